//===- Fitting.h - No more blocks than registers allow ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks wait for each other, so that all must be on the GPU at once. How many
// can be depends on the registers of the kernel, which are known when it is
// compiled: after the choice.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_CUDA_FITTING_H
#define COMMSIR_RUNTIME_CHOOSE_CUDA_FITTING_H

#include "runtime/choose/Choose.h"
#include "runtime/jit/cuda/CudaKernel.h"

namespace commsir::tune {

using CompiledKernel = llvm::Expected<std::unique_ptr<jit::CudaKernel>>;

/// Blocks that fit on the GPU of `machine` together, where a kernel has more;
/// 0: all of its blocks fit, or its registers are not known.
int64_t countFewerBlocks(const ConfigQuery &machine,
                         const jit::CudaKernel &kernel);

/// Compiles kernel `name` (empty: the only one) of `module` as `options` say.
/// With `isOpen`, nobody but the choice has settled the number of blocks: where
/// these do not fit together, fewer are compiled, which `options` have then.
CompiledKernel compileFitting(mlir::OwningOpRef<mlir::ModuleOp> module,
                              llvm::StringRef name, jit::CudaOptions &options,
                              const ConfigQuery &machine, bool isOpen);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CUDA_FITTING_H
