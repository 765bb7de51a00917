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

CompiledKernel commsir::tune::compileFitting(
    const Question &machine, llvm::function_ref<bool()> isOpen,
    llvm::function_ref<CompiledKernel(int64_t blocks)> compile) {
  auto kernel = compile(0);
  if (!kernel || !isOpen())
    return kernel;
  jit::LaunchShape shape = (*kernel)->shape();
  int64_t fitting = countFitting(machine, (*kernel)->registers(), shape.threads,
                                 shape.cluster);
  if (fitting <= 0 || shape.blocks <= fitting)
    return kernel;
  return compile(fitting);
}
