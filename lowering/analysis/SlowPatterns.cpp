//===- SlowPatterns.cpp - Patterns that take too long ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/SlowPatterns.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

/// The most scf.if of a kernel in which those in a row with one condition
/// become one. Each step makes the first anew, with the results of both, so
/// that the time grows with the square of the number.
static constexpr unsigned kMostCombined = 256;

bool mlir::comms::hasMoreThan(unsigned most, Operation *kernel,
                              function_ref<bool(Operation *)> isCounted) {
  unsigned count = 0;
  return kernel
      ->walk([&](Operation *op) {
        return isCounted(op) && ++count > most ? WalkResult::interrupt()
                                               : WalkResult::advance();
      })
      .wasInterrupted();
}

SmallVector<std::string, 3> mlir::comms::getSlowPatterns(Operation *kernel) {
  if (hasMoreThan(kMostCombined, kernel, llvm::IsaPred<scf::IfOp>))
    return {"(anonymous namespace)::CombineIfs"};
  return {};
}
