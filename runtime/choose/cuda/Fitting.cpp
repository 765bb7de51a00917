//===- Fitting.cpp - No more blocks than registers allow ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/cuda/Fitting.h"

#include "runtime/choose/Recipe.h"

using namespace commsir;
using namespace commsir::tune;

int64_t commsir::tune::countFewerBlocks(const ConfigQuery &machine,
                                        const jit::CudaKernel &kernel) {
  jit::LaunchShape shape = kernel.shape();
  int64_t fitting =
      countFitting(machine, kernel.registers(), shape.threads, shape.cluster);
  return fitting > 0 && shape.blocks > fitting ? fitting : 0;
}

CompiledKernel
commsir::tune::compileFitting(mlir::OwningOpRef<mlir::ModuleOp> module,
                              llvm::StringRef name, jit::CudaOptions &options,
                              const ConfigQuery &machine, bool isOpen) {
  if (!isOpen)
    return jit::compileCuda(std::move(module), name, options);
  auto kernel = jit::compileCuda(module->clone(), name, options);
  if (!kernel)
    return kernel;
  int64_t blocks = countFewerBlocks(machine, **kernel);
  if (!blocks)
    return kernel;
  options.blocks = blocks;
  return jit::compileCuda(std::move(module), name, options);
}
