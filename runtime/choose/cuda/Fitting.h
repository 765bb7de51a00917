//===- Fitting.h - No more blocks than registers allow ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks wait for each other, so that all must be resident on the GPU at once.
// How many fit depends on the kernel's registers, which are known only after
// compilation, hence after the choice.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_CUDA_FITTING_H
#define COMMSIR_RUNTIME_CHOOSE_CUDA_FITTING_H

#include "runtime/choose/Choose.h"
#include "runtime/jit/cuda/CudaKernel.h"

namespace commsir::tune {

using CompiledKernel = llvm::Expected<std::unique_ptr<jit::CudaKernel>>;

/// Number of blocks that fit together on the GPU of `machine`, if the kernel
/// has more. 0: all its blocks fit, or its registers are unknown.
int64_t countFewerBlocks(const ConfigQuery &machine,
                         const jit::CudaKernel &kernel);

/// Compiles kernel `name` (empty: the only kernel) of `module` with `options`.
/// `isOpen`: the number of blocks was chosen automatically; if the blocks do
/// not fit together, compiles again with fewer and updates `options`.
CompiledKernel compileFitting(mlir::OwningOpRef<mlir::ModuleOp> module,
                              llvm::StringRef name, jit::CudaOptions &options,
                              const ConfigQuery &machine, bool isOpen);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CUDA_FITTING_H
