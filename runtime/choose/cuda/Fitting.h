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

#include "llvm/ADT/STLFunctionalExtras.h"

namespace commsir::tune {

using CompiledKernel = llvm::Expected<std::unique_ptr<jit::CudaKernel>>;

/// What `compile(0)` makes, of the number of blocks that was chosen; where
/// these do not fit on the GPU of `machine` together, what `compile` makes of
/// as many as do. `isOpen`, asked between the two: whether nobody has settled
/// the number of blocks.
CompiledKernel
compileFitting(const Question &machine, llvm::function_ref<bool()> isOpen,
               llvm::function_ref<CompiledKernel(int64_t blocks)> compile);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CUDA_FITTING_H
