//===- compare.cpp - Changes and noise ------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Compare.h"

#include "Noise.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace commsir::tune;

/// Forty contenders at as many sizes next to a baseline, all times `pace` times
/// as long; contender `changed` is `factor` times slower.
static Report makeReport(Noise &noise, double pace = 1, int changed = -1,
                         double factor = 1, double spread = 0.01) {
  Report report;
  report.header.target = "cuda";
  report.header.mode = "graph";
  report.header.ranks = 8;
  report.header.repetitions = 7;
  for (int i = 0; i < 40; ++i)
    for (bool baseline : {true, false}) {
      Entry entry;
      entry.op = "all_reduce";
      entry.type = "bf16";
      entry.bytes = 1024 * (i + 1);
      entry.contender = baseline ? "nccl" : "commsir";
      entry.baseline = baseline;
      double time = pace * (baseline ? 10 : 4);
      if (!baseline && i == changed)
        time *= factor;
      entry.samples = noise.samples(time, spread, 7, 9);
      report.entries.push_back(std::move(entry));
    }
  return report;
}

static size_t count(const Comparison &comparison, Verdict verdict) {
  return llvm::count_if(comparison.changes, [&](const Change &change) {
    return change.verdict == verdict;
  });
}

TEST(Compare, NoiseIsNoChange) {
  size_t found = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    Noise noise(seed);
    Report before = makeReport(noise), after = makeReport(noise);
    auto comparison = compareReports(before, after);
    ASSERT_TRUE(bool(comparison));
    EXPECT_EQ(comparison->changes.size(), 80u);
    found += 80 - count(*comparison, Verdict::Same);
  }
  // 2,400 comparisons; a test at 5 % each would find 120.
  EXPECT_LE(found, 3u);
}

TEST(Compare, AChangeIsFoundInNoise) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    Noise noise(seed);
    Report before = makeReport(noise), slower = makeReport(noise, 1, 17, 1.08),
           faster = makeReport(noise, 1, 17, 0.92);
    auto comparison = compareReports(before, slower);
    ASSERT_TRUE(bool(comparison));
    EXPECT_TRUE(comparison->isWorse());
    EXPECT_EQ(count(*comparison, Verdict::Slower), 1u);
    const Change &change = comparison->changes[2 * 17 + 1];
    EXPECT_EQ(change.verdict, Verdict::Slower);
    EXPECT_TRUE(change.normalized);
    EXPECT_NEAR(change.ratio.value, 1.08, 0.02);
    EXPECT_LT(change.ratio.low, change.ratio.value);
    auto other = compareReports(before, faster);
    ASSERT_TRUE(bool(other));
    EXPECT_FALSE(other->isWorse());
    EXPECT_EQ(count(*other, Verdict::Faster), 1u);
  }
}

TEST(Compare, AFasterHostIsNotAFasterKernel) {
  Noise noise(5);
  Report before = makeReport(noise), after = makeReport(noise, 0.8);
  auto comparison = compareReports(before, after);
  ASSERT_TRUE(bool(comparison));
  for (const Change &change : comparison->changes)
    EXPECT_EQ(change.verdict,
              change.before->baseline ? Verdict::Faster : Verdict::Same);
}

TEST(Compare, ASlowerHostIsNoFailure) {
  Noise noise(5);
  Report before = makeReport(noise), after = makeReport(noise, 1.5);
  auto comparison = compareReports(before, after);
  ASSERT_TRUE(bool(comparison));
  EXPECT_EQ(count(*comparison, Verdict::Slower), 40u);
  EXPECT_FALSE(comparison->isWorse());
  std::string text;
  llvm::raw_string_ostream os(text);
  printComparison(*comparison, os);
  EXPECT_NE(text.find("SLOWER   all_reduce 1 KiB bf16 nccl, a baseline: "),
            std::string::npos)
      << text;
}

TEST(Compare, SmallChangesAreBelowTheThreshold) {
  Noise noise(1);
  Report before = makeReport(noise, 1, -1, 1, 1e-6),
         after = makeReport(noise, 1, 3, 1.005, 1e-6);
  auto comparison = compareReports(before, after);
  ASSERT_TRUE(bool(comparison));
  EXPECT_EQ(count(*comparison, Verdict::Same), 80u);
  auto strict = compareReports(before, after, 0.001);
  ASSERT_TRUE(bool(strict));
  EXPECT_EQ(count(*strict, Verdict::Slower), 1u);
}

TEST(Compare, BrokenAndRepaired) {
  Noise noise(1);
  Report right = makeReport(noise), wrong = makeReport(noise);
  wrong.entries[9].status = Status::Wrong;
  wrong.entries[9].message = "rank 0, element 1: got 2, expected 3";
  auto broken = compareReports(right, wrong);
  ASSERT_TRUE(bool(broken));
  EXPECT_TRUE(broken->isWorse());
  EXPECT_EQ(broken->changes[9].verdict, Verdict::Broken);
  std::string text;
  llvm::raw_string_ostream os(text);
  printComparison(*broken, os);
  EXPECT_NE(text.find("BROKEN   all_reduce 5 KiB bf16 commsir: rank 0"),
            std::string::npos);
  auto repaired = compareReports(wrong, right);
  ASSERT_TRUE(bool(repaired));
  EXPECT_FALSE(repaired->isWorse());
  EXPECT_EQ(repaired->changes[9].verdict, Verdict::Repaired);
}

TEST(Compare, OneRepetitionProvesNothing) {
  Noise noise(1);
  Report before = makeReport(noise), after = makeReport(noise, 2);
  for (Report *report : {&before, &after}) {
    report->header.repetitions = 1;
    for (Entry &entry : report->entries)
      entry.samples.resize(1);
  }
  auto comparison = compareReports(before, after);
  ASSERT_TRUE(bool(comparison));
  EXPECT_EQ(count(*comparison, Verdict::Same), 80u);
  ASSERT_EQ(comparison->warnings.size(), 1u);
  EXPECT_NE(comparison->warnings[0].find("repetitions"), std::string::npos);
}

static std::string refusal(const Report &before, const Report &after) {
  auto comparison = compareReports(before, after);
  return comparison ? "" : llvm::toString(comparison.takeError());
}

TEST(Compare, IncomparableReportsAreRefused) {
  Noise noise(1);
  Report report = makeReport(noise);
  Report other = report;
  other.header.ranks = 4;
  EXPECT_NE(refusal(report, other).find("ranks: 8"), std::string::npos);
  other = report;
  other.header.mode = "eager";
  EXPECT_NE(refusal(report, other).find("mode graph"), std::string::npos);
  other = report;
  other.header.target = "cpu";
  EXPECT_NE(refusal(report, other).find("target cuda"), std::string::npos);
  other = report;
  other.entries.clear();
  EXPECT_NE(refusal(report, other).find("no contender in common"),
            std::string::npos);
  EXPECT_EQ(refusal(report, report), "");
}

TEST(Compare, EntriesOfOnlyOneReportAreCounted) {
  Noise noise(1);
  Report before = makeReport(noise), after = before;
  after.entries.resize(70);
  after.header.nccl = "2.30.0";
  auto comparison = compareReports(before, after);
  ASSERT_TRUE(bool(comparison));
  EXPECT_EQ(comparison->onlyBefore, 10u);
  EXPECT_EQ(comparison->onlyAfter, 0u);
  EXPECT_EQ(comparison->warnings.size(), 1u);
}
