//===- statistics.cpp - Statistics of samples with known answers ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Statistics.h"

#include "Noise.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace commsir::tune;

TEST(Quantile, LiesBetweenNeighbors) {
  std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(values), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile(values, 7), 4);
  EXPECT_DOUBLE_EQ(median({5}), 5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Quantile, NinetyNineOfAHundred) {
  std::vector<double> values;
  for (int i = 1; i <= 101; ++i)
    values.push_back(i);
  EXPECT_DOUBLE_EQ(quantile(values, 0.99), 100);
  EXPECT_DOUBLE_EQ(median(values), 51);
}

TEST(Samples, AreTakenTogether) {
  Samples samples = {{1, 2, 9}, {}, {4}};
  EXPECT_EQ(flatten(samples), (std::vector<double>{1, 2, 9, 4}));
  EXPECT_EQ(repetitionMedians(samples), (std::vector<double>{2, 4}));
}

TEST(Ratio, OfSamplesWithoutNoiseIsExact) {
  Samples twice = {{4, 4}, {4, 4}}, once = {{2, 2}, {2, 2}};
  Interval interval = ratio(twice, once);
  EXPECT_DOUBLE_EQ(interval.value, 2);
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 2);
}

TEST(Ratio, DriftOfBothSidesCancels) {
  // The host slows down threefold; the ratio stays.
  Samples a, b;
  for (int i = 0; i < 5; ++i) {
    a.push_back({3.0 * (1 + i)});
    b.push_back({2.0 * (1 + i)});
  }
  Interval interval = ratio(a, b);
  EXPECT_NEAR(interval.value, 1.5, 1e-12);
  EXPECT_NEAR(interval.low, 1.5, 1e-12);
  EXPECT_NEAR(interval.high, 1.5, 1e-12);
}

TEST(Ratio, IntervalHoldsTheTruthAndGrowsWithNoise) {
  Noise noise(7);
  int held = 0;
  double narrow = 0, wide = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Samples a = noise.samples(13, 0.02, 8, 9),
            b = noise.samples(10, 0.02, 8, 9);
    Interval interval = ratio(a, b, 300);
    held += interval.low <= 1.3 && 1.3 <= interval.high;
    narrow += interval.high - interval.low;
    Interval loud = ratio(noise.samples(13, 0.1, 8, 9), b, 300);
    wide += loud.high - loud.low;
  }
  EXPECT_GE(held, 90);
  EXPECT_GT(wide, 2 * narrow);
}

TEST(Ratio, IsTheSameForTheSameSeed) {
  Noise noise(3);
  Samples a = noise.samples(5, 0.1, 5, 9), b = noise.samples(4, 0.1, 5, 9);
  Interval one = ratio(a, b), two = ratio(a, b);
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
  EXPECT_LE(one.low, one.value);
  EXPECT_LE(one.value, one.high);
}

TEST(Ratio, WithoutSamplesIsNoNumber) {
  EXPECT_TRUE(std::isnan(ratio({}, {{1}}).value));
  EXPECT_TRUE(std::isnan(ratio({{}, {1}}, {{1}, {}}).low));
  EXPECT_DOUBLE_EQ(ratio({{6}}, {{3}}).value, 2);
}

TEST(Student, AgreesWithTables) {
  EXPECT_NEAR(studentTwoSided(12.7062, 1), 0.05, 1e-5);
  EXPECT_NEAR(studentTwoSided(2.7764, 4), 0.05, 1e-5);
  EXPECT_NEAR(studentTwoSided(4.6041, 4), 0.01, 1e-5);
  EXPECT_NEAR(studentTwoSided(-2.2281, 10), 0.05, 1e-5);
  EXPECT_NEAR(studentTwoSided(1.959964, 1e6), 0.05, 1e-5);
  EXPECT_DOUBLE_EQ(studentTwoSided(0, 3), 1);
  EXPECT_DOUBLE_EQ(studentTwoSided(INFINITY, 3), 0);
  EXPECT_DOUBLE_EQ(studentTwoSided(NAN, 3), 1);
}

TEST(Means, WelchOfAKnownPair) {
  // Means 3 and 5, variances 2.5 and 2.5 of five values each: the difference is
  // 2, its error 1, with eight degrees of freedom.
  MeanDifference result = compareMeans({1, 2, 3, 4, 5}, {3, 4, 5, 6, 7});
  EXPECT_DOUBLE_EQ(result.difference.value, 2);
  EXPECT_NEAR(result.difference.low, 2 - 2.306004, 1e-5);
  EXPECT_NEAR(result.difference.high, 2 + 2.306004, 1e-5);
  EXPECT_NEAR(result.p, 0.0805, 1e-4);
}

TEST(Means, FewOrEqualValues) {
  EXPECT_EQ(compareMeans({1}, {2, 3}).p, 1);
  EXPECT_EQ(compareMeans({}, {2, 3}).p, 1);
  EXPECT_EQ(compareMeans({2, 2}, {2, 2}).p, 1);
  EXPECT_EQ(compareMeans({2, 2}, {3, 3}).p, 0);
  EXPECT_TRUE(std::isinf(compareMeans({1}, {2}).difference.high));
}

TEST(Holm, StepsDown) {
  // Levels 0.05/4, 0.05/3, 0.05/2, 0.05: the third fails, so does the fourth.
  EXPECT_EQ(holm({0.016, 0.001, 0.04, 0.03}),
            (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(holm({0.04}), (std::vector<bool>{true}));
  EXPECT_EQ(holm({NAN, 0.2}), (std::vector<bool>{false, false}));
  EXPECT_TRUE(holm({}).empty());
}
