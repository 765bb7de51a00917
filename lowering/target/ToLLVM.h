//===- ToLLVM.h - The rest of a kernel becomes LLVM -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// KernelBase.h rewrites the comms ops of a kernel. The remaining ops, of MLIR's
// own dialects, are converted to LLVM here, in the same way on all targets.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_TOLLVM_H
#define COMMSIR_LOWERING_TARGET_TOLLVM_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::comms::target {

/// Adds the conversion of tokens.
void addTypeConversions(LLVMTypeConverter &types);

/// Converts everything that remains in a module whose kernels have become
/// functions: views, loops, arithmetic, vectors. `more` holds patterns of the
/// target, `legal` dialects that are kept. `target` is its name in errors:
/// "CPU" or "GPU".
LogicalResult convertToLLVM(ModuleOp module, LLVMTypeConverter &types,
                            llvm::StringRef target, RewritePatternSet more,
                            llvm::ArrayRef<llvm::StringRef> legal = {});

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_TARGET_TOLLVM_H
