//===- PtxEmission.h - LLVM functions become PTX ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_PTXEMISSION_H
#define COMMSIR_LOWERING_NVVM_PTXEMISSION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace mlir::comms {

/// Returns an error message if `chip` is unsupported, or an empty string.
std::string findChipMistake(StringRef chip);

/// Options of PTX generation.
struct PtxOptions {
  /// "sm_80", "sm_90", "sm_90a", "sm_100", …
  std::string chip = "sm_90";
  /// PTX version, "ptx83"; empty: the lowest that supports everything used.
  std::string features;
  /// 0: unoptimized; 2: optimized.
  unsigned optLevel = 2;
  /// Bitcode of NCCL's device library, which is linked and inlined; empty: not
  /// available, and calls remain calls.
  StringRef deviceLibrary;
  /// Calls of the device library may remain, because the PTX is linked with it
  /// later.
  bool keepDeviceCalls = false;
};

/// Translates a module of convert-comms-to-nvvm to LLVM IR for NVPTX. Checks
/// for constructs that the target would silently miscompile, also in the device
/// library: no atomicrmw, and no inline assembly without side effects and
/// memory clobber (the library's gets them). Returns null after a diagnostic on
/// failure.
std::unique_ptr<llvm::Module> translateToNVPTX(ModuleOp lowered,
                                               llvm::LLVMContext &context,
                                               const PtxOptions &options);

/// The PTX text of a module that the pipeline comms-to-nvvm lowered, with one
/// entry per kernel, named after it. Registers dialect interfaces with the
/// module's context, which no other thread may use meanwhile. Emits a
/// diagnostic and fails on an unknown chip, on code that NVPTX cannot select,
/// and on calls of NCCL's device library if it is not available.
FailureOr<std::string> emitPTX(ModuleOp lowered, const PtxOptions &options);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_NVVM_PTXEMISSION_H
