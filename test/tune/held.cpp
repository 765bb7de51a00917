//===- held.cpp - The choice at sizes that tables do not have -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs/held-*.json were measured on the machine of a built-in table, right
// after it, at other sizes (test/gpu/tune.sh), with the table's choice among
// the ways. How far is that choice from the best that was found?
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Table.h"
#include "test/tune/Measured.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace commsir;
using namespace commsir::tune;

/// Doublings to a shape that may stand for one that was not measured, as half
/// the threads in twice the blocks.
static constexpr double kNear = 2;

/// What `way` took, or the nearest shape of its pair; infinite when none was
/// measured, or was too slow to be kept.
static double timeOf(const Way &way, const std::vector<Way> &measured) {
  const Way *nearest = findNearest(way, measured);
  return nearest && distance(way, *nearest) <= kNear ? nearest->microseconds
                                                     : INFINITY;
}

/// Whether a table has rows of that length. Others go by longer ones, which is
/// right to 10 %.
static bool isMeasuredLength(const Tables &tables, const Question &question) {
  return llvm::any_of(tables.find(question), [&](const Table *table) {
    return llvm::any_of(table->sections, [&](const Section &section) {
      return section.op == question.op && section.columns == question.columns;
    });
  });
}

/// Times of few microseconds differ from run to run, of table and inputs, by so
/// much; and the best of many ways is the one that was lucky.
static constexpr double kNoise = 0.25;

TEST(Held, TheChoiceIsWithinFivePerCentOfTheBest) {
  Tables tables = Tables::load("");
  std::vector<Table> all = readHeld();
  ASSERT_FALSE(all.empty());
  double sum = 0;
  int count = 0, unmeasured = 0;
  for (const Table &held : all)
    for (const Section &section : held.sections)
      for (const auto &[size, times] : section.points) {
        Question question = askOf(held, section, size);
        Answer answer = chooseFrom(tables, question);
        EXPECT_NE(answer.source, "cost model") << section.op;
        std::vector<Way> measured = listWays(times, question);
        double best = measured.front().microseconds;
        double factor = isMeasuredLength(tables, question) ? 1.05 : 1.10;
        double time = timeOf(answer.way, measured);
        if (std::isinf(time)) {
          // A single warp has become better since these were measured.
          EXPECT_EQ(answer.way.threads, 32) << explain(question, answer, 3);
          ++unmeasured;
          continue;
        }
        EXPECT_LE(time, factor * best + kNoise) << explain(question, answer, 3);
        sum += time / best - 1;
        ++count;
      }
  EXPECT_LE(unmeasured, 4);
  // Over all of them noise is no excuse.
  EXPECT_LE(sum / count, 0.03);
}

TEST(Held, BuiltInTablesAreWhole) {
  Tables tables = Tables::load("");
  ASSERT_FALSE(tables.all.empty());
  for (const Table &table : tables.all) {
    EXPECT_FALSE(table.sections.empty()) << table.name;
    for (const Section &section : table.sections)
      for (const auto &[size, times] : section.points)
        EXPECT_FALSE(times.empty()) << table.name << " " << section.op;
  }
}
