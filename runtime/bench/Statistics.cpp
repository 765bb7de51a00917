//===- Statistics.cpp - Statistics of timings -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Statistics.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace commsir::tune;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double commsir::tune::quantile(llvm::ArrayRef<double> values, double fraction) {
  if (values.empty())
    return kNaN;
  std::vector<double> sorted(values.begin(), values.end());
  llvm::sort(sorted);
  double at = std::clamp(fraction, 0.0, 1.0) * double(sorted.size() - 1);
  size_t below = static_cast<size_t>(at);
  if (below + 1 == sorted.size())
    return sorted[below];
  double share = at - double(below);
  return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

double commsir::tune::median(llvm::ArrayRef<double> values) {
  return quantile(values, 0.5);
}

std::vector<double> commsir::tune::flatten(const Samples &samples) {
  std::vector<double> all;
  for (const std::vector<double> &repetition : samples)
    all.insert(all.end(), repetition.begin(), repetition.end());
  return all;
}

std::vector<double> commsir::tune::repetitionMedians(const Samples &samples) {
  std::vector<double> medians;
  for (const std::vector<double> &repetition : samples)
    if (!repetition.empty())
      medians.push_back(median(repetition));
  return medians;
}

//===----------------------------------------------------------------------===//
// Bootstrap
//===----------------------------------------------------------------------===//

namespace {
/// splitmix64: the standard library's distributions differ between systems.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// In [0, bound).
  size_t below(size_t bound) {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    return static_cast<size_t>((static_cast<__uint128_t>(x) * bound) >> 64);
  }

private:
  uint64_t state;
};
} // namespace

/// The median of as many values as `from` has, drawn from it with return.
static double resampledMedian(const std::vector<double> &from, Random &random) {
  std::vector<double> drawn(from.size());
  for (double &value : drawn)
    value = from[random.below(from.size())];
  return median(drawn);
}

Interval commsir::tune::ratio(const Samples &numerator,
                              const Samples &denominator, unsigned resamples,
                              uint64_t seed) {
  std::vector<size_t> usable;
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(numerator.size(), denominator.size()); ++i) {
    if (numerator[i].empty() || denominator[i].empty())
      continue;
    usable.push_back(i);
    ratios.push_back(median(numerator[i]) / median(denominator[i]));
  }
  if (usable.empty())
    return {kNaN, kNaN, kNaN};
  Interval interval;
  interval.value = interval.low = interval.high = median(ratios);
  Random random(seed);
  std::vector<double> estimates;
  for (unsigned round = 0; round < resamples; ++round) {
    for (double &drawn : ratios) {
      size_t i = usable[random.below(usable.size())];
      double above = resampledMedian(numerator[i], random);
      drawn = above / resampledMedian(denominator[i], random);
    }
    estimates.push_back(median(ratios));
  }
  if (!estimates.empty()) {
    interval.low = std::min(interval.value, quantile(estimates, 0.025));
    interval.high = std::max(interval.value, quantile(estimates, 0.975));
  }
  return interval;
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

/// The continued fraction of the incomplete beta function, by Lentz's method.
static double betaFraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  auto away = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / away(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= 500; ++m) {
    double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    result *= d * c;
    double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1) < 1e-14)
      break;
  }
  return result;
}

/// The regularized incomplete beta function I_x(a, b).
static double incompleteBeta(double a, double b, double x) {
  if (x <= 0)
    return 0;
  if (x >= 1)
    return 1;
  double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                          a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on this side only.
  if (x < (a + 1) / (a + b + 2))
    return front * betaFraction(a, b, x) / a;
  return 1 - front * betaFraction(b, a, 1 - x) / b;
}

double commsir::tune::studentTwoSided(double t, double freedom) {
  if (std::isnan(t) || !(freedom > 0))
    return 1;
  if (std::isinf(t))
    return 0;
  return incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/// The t whose two sides together have probability 0.05.
static double studentCritical(double freedom) {
  double low = 0, high = 1e4;
  for (int i = 0; i < 100; ++i) {
    double middle = (low + high) / 2;
    (studentTwoSided(middle, freedom) > 0.05 ? low : high) = middle;
  }
  return high;
}

/// Mean, and variance of that mean.
static std::pair<double, double> meanOf(llvm::ArrayRef<double> values) {
  double n = double(values.size());
  double mean = llvm::accumulate(values, 0.0) / n;
  double squares = 0;
  for (double value : values)
    squares += (value - mean) * (value - mean);
  return {mean, squares / (n - 1) / n};
}

MeanDifference commsir::tune::compareMeans(llvm::ArrayRef<double> first,
                                           llvm::ArrayRef<double> second) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  MeanDifference result;
  if (first.empty() || second.empty()) {
    result.difference = {kNaN, -inf, inf};
    return result;
  }
  auto [mean1, variance1] = meanOf(first);
  auto [mean2, variance2] = meanOf(second);
  double difference = mean2 - mean1;
  if (first.size() < 2 || second.size() < 2) {
    result.difference = {difference, -inf, inf};
    return result;
  }
  double variance = variance1 + variance2;
  if (variance == 0) {
    result.difference = {difference, difference, difference};
    result.p = difference == 0 ? 1 : 0;
    return result;
  }
  double freedom = variance * variance /
                   (variance1 * variance1 / double(first.size() - 1) +
                    variance2 * variance2 / double(second.size() - 1));
  double error = std::sqrt(variance);
  double reach = studentCritical(freedom) * error;
  result.difference = {difference, difference - reach, difference + reach};
  result.p = studentTwoSided(difference / error, freedom);
  return result;
}

std::vector<bool> commsir::tune::holm(llvm::ArrayRef<double> p, double level) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<bool> holds(p.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    if (!(p[order[i]] <= level / double(order.size() - i)))
      break;
    holds[order[i]] = true;
  }
  return holds;
}
