//===- Compare.h - Compares two reports -------------------------*- C++ -*-===//
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

/// A contender that appears in both reports.
struct Change {
  const Entry *before = nullptr, *after = nullptr;
  /// New time divided by old time; NaN if either is missing.
  Interval ratio;
  double p = 1;
  /// Whether both times were divided by the best common baseline of their run,
  /// which cancels the speed of the host.
  bool normalized = false;
  Verdict verdict = Verdict::Same;
};

struct Comparison {
  std::vector<Change> changes;
  /// Differences between the conditions of the two runs.
  std::vector<std::string> warnings;
  /// Number of contenders that appear in only one report.
  size_t onlyBefore = 0, onlyAfter = 0;

  /// Whether a contender of CommsIR is slower, or any contender has become
  /// incorrect.
  bool isWorse() const;
};

/// Compares contender by contender. A change counts if it exceeds `threshold`
/// (0.01: one percent) and is significant: Welch's test on the logarithms of
/// the repetitions' medians, at 5 % for all changes together. Fails if the
/// reports differ in target, number of ranks or mode, or share no contender.
/// The reports must outlive the result.
llvm::Expected<Comparison> compareReports(const Report &before,
                                          const Report &after,
                                          double threshold = 0.01);

/// Prints changes first, then the number of unchanged contenders.
void printComparison(const Comparison &comparison, llvm::raw_ostream &os);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_COMPARE_H
