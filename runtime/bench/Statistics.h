//===- Statistics.h - What samples of time say ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here knows what was measured. docs/Benchmarking.md says why these
// statistics and not others.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_STATISTICS_H
#define COMMSIR_RUNTIME_BENCH_STATISTICS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace commsir::tune {

/// Samples of one contender: [repetition][replay], microseconds a call.
/// Repetitions need not have equally many replays.
using Samples = std::vector<std::vector<double>>;

/// The value below which the share `fraction` of `values` lies, linear between
/// neighbors: 0 is the least, 0.5 the median, 1 the greatest. NaN when there
/// are no values; `fraction` is clamped to [0, 1].
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

/// How many times greater `numerator` is than `denominator`: the median over
/// the repetitions of the ratio of their medians. Repetition i of both was
/// measured side by side, so what moves both cancels. The interval is that of a
/// bootstrap in two stages (repetitions, kept in pairs, then the replays in
/// each), the same on every machine for the same `seed`. All NaN when there is
/// no repetition that has samples of both.
Interval ratio(const Samples &numerator, const Samples &denominator,
               unsigned resamples = 2000, uint64_t seed = 1);

/// Two means of few values, compared.
struct MeanDifference {
  /// Mean of the second less mean of the first, with its 95 % interval.
  Interval difference;
  /// Probability of a difference at least as large when there is none: Welch's
  /// test. 1 when a side has fewer than two values.
  double p = 1;
};

MeanDifference compareMeans(llvm::ArrayRef<double> first,
                            llvm::ArrayRef<double> second);

/// Which of many tests hold when the chance of even one false one is to stay
/// below `level`: Holm's step-down rule.
std::vector<bool> holm(llvm::ArrayRef<double> p, double level = 0.05);

/// Probability that Student's t with `freedom` degrees of freedom exceeds |t|
/// on either side.
double studentTwoSided(double t, double freedom);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_STATISTICS_H
