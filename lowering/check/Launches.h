//===- Launches.h - After how many launches a program repeats ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch depends on its number only through `comms.epoch`. An integer f(e)
// computed from the epoch usually repeats from some launch s on: f(e + p) =
// f(e) + d for all e >= s. Sums, products with constants, quotients,
// remainders, masks, comparisons and selects of such integers have the same
// property, with p, d and s derived from their operands.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_LAUNCHES_H
#define COMMSIR_LOWERING_CHECK_LAUNCHES_H

#include "lowering/check/Machine.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::comms::check {

/// Repetition pattern of a program's launches.
struct LaunchPattern {
  /// From launch `start` on, each launch does the same as the launch `period`
  /// later.
  int64_t start = 1, period = 1;
  /// A relevant integer that is not known to repeat; null: all do.
  Operation *irregular = nullptr;
  /// A rank, cell or element may move on from launch to launch.
  bool hasMovingPlaces = false;
  /// Number of launches after which every launch of the pattern has been
  /// followed by its successors, so that all reuse of memory has been seen.
  int64_t launches() const;
};

/// Computes the pattern of `program` for these numbers of ranks and blocks.
LaunchPattern findLaunchPattern(const Program &program, int64_t ranks,
                                int64_t blocks);

/// Iterations that represent all of a loop without any order but barriers: what
/// its ops name is the same after a period, and every iteration of a period has
/// been followed by the next. 0: it is not known to be, or there are too many.
/// `isNeeded`: whether an integer decides control flow or an access.
int32_t findLoopPeriod(scf::ForOp loop,
                       llvm::function_ref<bool(Value)> isNeeded);

/// Extents of launches that are followed: the most, the least, and what lies
/// between. The tiles of a smaller extent are the first ones of a larger.
std::vector<int64_t> extentsOf(const Program &program);

/// Ranks up to which each is followed as the root of all launches.
inline constexpr int64_t mostRoots = 16;

/// Roots of launches that are followed: each rank in all launches, and roots
/// that differ by every distance from one launch to the next.
std::vector<Roots> rootsOf(const Program &program, int64_t ranks);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_LAUNCHES_H
