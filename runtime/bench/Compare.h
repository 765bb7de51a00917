//===- Compare.h - What changed from one report to the next -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_COMPARE_H
#define COMMSIR_RUNTIME_BENCH_COMPARE_H

#include "runtime/bench/BenchReport.h"

namespace commsir::tune {

enum class Verdict { Same, Faster, Slower, Broken, Repaired };

/// One contender that both reports have.
struct Change {
  const Entry *before = nullptr, *after = nullptr;
  /// New time / old time; NaN where one was not measured.
  Interval ratio;
  double p = 1;
  /// Whether both times were divided by the best common baseline of their run,
  /// so that a faster or slower host does not count.
  bool normalized = false;
  Verdict verdict = Verdict::Same;
};

struct Comparison {
  std::vector<Change> changes;
  /// What differs between the runs besides the figures.
  std::vector<std::string> warnings;
  /// Contenders that one of the reports lacks.
  size_t onlyBefore = 0, onlyAfter = 0;

  /// Whether a contender of ours is slower, or one is no longer right.
  bool isWorse() const;
};

/// Compares contender by contender. A change counts when it is larger than
/// `threshold` (0.01: one per cent) and would not come from noise: Welch's test
/// on the logarithms of the repetitions' medians, at 5 % for all changes
/// together. Fails when the reports are of different targets, numbers of ranks
/// or modes, or have no contender in common. The reports must outlive the
/// result.
llvm::Expected<Comparison> compareReports(const Report &before,
                                          const Report &after,
                                          double threshold = 0.01);

/// Changes first, then how many are the same.
void printComparison(const Comparison &comparison, llvm::raw_ostream &os);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_COMPARE_H
