//===- Statistics.h - Statistics of timings ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Statistics of timings, independent of what was measured. docs/Benchmarking.md
// explains the choice of methods.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_STATISTICS_H
#define COMMSIR_RUNTIME_BENCH_STATISTICS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace commsir::tune {

/// Samples of one contender: [repetition][replay], in microseconds per call.
/// Repetitions may differ in their number of replays.
using Samples = std::vector<std::vector<double>>;

/// The quantile `fraction` of `values`, interpolated linearly: 0: minimum; 0.5:
/// median; 1: maximum. `fraction` is clamped to [0, 1]. NaN if there are no
/// values.
double quantile(llvm::ArrayRef<double> values, double fraction);

/// quantile(values, 0.5).
double median(llvm::ArrayRef<double> values);

/// All samples in one list.
std::vector<double> flatten(const Samples &samples);

/// The median of each repetition that has samples.
std::vector<double> repetitionMedians(const Samples &samples);

/// An estimate and its 95 % interval.
struct Interval {
  double value = 0, low = 0, high = 0;
};

/// The ratio of `numerator` to `denominator`: the median over repetitions of
/// the ratio of their medians. Repetition i of both was measured side by side,
/// so that common variation cancels. The interval is from a two-stage bootstrap
/// (pairs of repetitions, then replays within each), reproducible for the same
/// `seed`. All NaN if no repetition has samples of both.
Interval ratio(const Samples &numerator, const Samples &denominator,
               unsigned resamples = 2000, uint64_t seed = 1);

/// Comparison of the means of two small samples.
struct MeanDifference {
  /// Mean of the second minus mean of the first, with its 95 % interval.
  Interval difference;
  /// p-value of Welch's test: the probability of a difference at least this
  /// large if there is none. 1 if a side has fewer than two values.
  double p = 1;
};

MeanDifference compareMeans(llvm::ArrayRef<double> first,
                            llvm::ArrayRef<double> second);

/// Returns which of many tests are significant if the probability of any false
/// positive must stay below `level`: Holm's step-down method.
std::vector<bool> holm(llvm::ArrayRef<double> p, double level = 0.05);

/// Two-sided p-value of Student's t with `freedom` degrees of freedom.
double studentTwoSided(double t, double freedom);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_STATISTICS_H
