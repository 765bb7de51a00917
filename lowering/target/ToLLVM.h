//===- ToLLVM.h - The rest of a kernel becomes LLVM -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The comms ops of a kernel are rewritten one by one (KernelBase.h). What
// stands between them, of MLIR's own dialects, becomes LLVM here, alike on all
// targets.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_TOLLVM_H
#define COMMSIR_LOWERING_TARGET_TOLLVM_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::comms::target {

/// What tokens become.
void addTypeConversions(LLVMTypeConverter &types);

/// Converts all that is left of a module whose kernels have become functions:
/// views, loops, arithmetic, vectors. `more` are patterns of the target, and
/// `legal` dialects that stay. `target` names it in errors: "CPU" or "GPU".
LogicalResult convertToLLVM(ModuleOp module, LLVMTypeConverter &types,
                            llvm::StringRef target, RewritePatternSet more,
                            llvm::ArrayRef<llvm::StringRef> legal = {});

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_TARGET_TOLLVM_H
