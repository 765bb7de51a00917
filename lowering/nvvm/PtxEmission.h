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

/// How PTX is made.
struct PtxOptions {
  /// "sm_80", "sm_90", "sm_90a", "sm_100", …
  std::string chip = "sm_90";
  /// PTX version, "ptx83"; empty: the least that has all that is used.
  std::string features;
  /// 0: as it stands, 2: optimized.
  unsigned optLevel = 2;
  /// Bitcode of NCCL's device library, which is linked and inlined where it is
  /// called; empty: there is none, and calls of it stay calls.
  StringRef deviceLibrary;
  /// Calls of the device library may stay: who links the PTX has it.
  bool keepDeviceCalls = false;
};

/// Translates a module that convert-comms-to-nvvm made to LLVM IR for NVPTX.
/// Checks what the target would silently get wrong, the device library
/// included: no atomicrmw, and no inline assembly without side effects and
/// memory clobber (which the library's is given). Emits a diagnostic and
/// returns null on failure.
std::unique_ptr<llvm::Module> translateToNVPTX(ModuleOp lowered,
                                               llvm::LLVMContext &context,
                                               const PtxOptions &options);

/// The PTX text of a module that the pipeline comms-to-nvvm lowered. One entry
/// for each kernel, of the kernel's name. Registers what it needs with the
/// module's context, so no other thread may use that at the time. Emits a
/// diagnostic and fails on an unknown chip, on what NVPTX cannot select, and on
/// calls of NCCL's device library where there is none.
FailureOr<std::string> emitPTX(ModuleOp lowered, const PtxOptions &options);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_NVVM_PTXEMISSION_H
