//===- Launches.h - After how many launches a program repeats ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a launch does depends on its number through `comms.epoch` alone. An
// integer f(e) that is computed from it repeats, in general, from some launch s
// on: f(e + p) = f(e) + d for all e >= s. Sums, products by constants,
// quotients, remainders, masks, comparisons and choices of such integers are
// such integers, with a p, d and s that follow from theirs.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_LAUNCHES_H
#define COMMSIR_LOWERING_CHECK_LAUNCHES_H

#include "lowering/check/Program.h"

namespace mlir::comms::check {

/// How the launches of a program follow one another.
struct LaunchPattern {
  /// From launch `start` on, what one launch does the launch `period` later
  /// does as well.
  int64_t start = 1, period = 1;
  /// An integer that matters and is not known to repeat; null: all do.
  Operation *irregular = nullptr;
  /// Launches after which each of them has been followed by its successors:
  /// what is used again in the next period is used again in these.
  int64_t launches() const;
};

/// Of `program` with so many ranks and blocks.
LaunchPattern findLaunchPattern(const Program &program, int64_t ranks,
                                int64_t blocks);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_LAUNCHES_H
