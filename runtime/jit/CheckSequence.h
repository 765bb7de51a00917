//===- CheckSequence.h - Launches of several kernels ------------*- C++ -*-===//
//-*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CHECKSEQUENCE_H
#define COMMSIR_RUNTIME_JIT_CHECKSEQUENCE_H

#include "runtime/jit/Compile.h"

#include "mlir/IR/BuiltinOps.h"

namespace commsir::jit {

struct SequenceOptions {
  /// "a, read x, b(x=inbox)": again and again in this order; "any of a, b": in
  /// every order. See lowering/check/Sequence.h.
  std::string order;
  /// 0: the kernels' own.
  int64_t ranks = 0, blocks = 0;
  std::string algorithm, protocol;
  /// Events that one run of the checker may follow; 0: the default.
  int64_t checkEvents = 0;
  /// Launches to follow, up to 64; 0: as many as needed to show reuse.
  int64_t launches = 0;
  /// Fails if the verdict is not "proven".
  bool requireProof = false;
};

struct SequenceProof {
  /// The digest is that of the module with all kernels.
  ProofInfo proof;
  /// The simulated launches: "a, read x, b, again and again".
  std::string order;
  /// The kernels: "a, b".
  std::string kernels;
};

/// Checks launches of the kernels of `module`, which share windows, arrays,
/// signals and counters of the same name. Lowers the module for that. An error
/// of stage Checker means that the kernels fail under some schedule;
/// diagnostics of the module's context show it.
llvm::Expected<SequenceProof> checkSequence(mlir::ModuleOp module,
                                            const SequenceOptions &options);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CHECKSEQUENCE_H
