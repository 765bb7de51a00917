//===- held.cpp - The choice at sizes that tables do not have -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs/held-*.json were measured on the machine of a built-in table, right
// after it, at other sizes (test/gpu/tune.sh), and include the table's choice.
// The test bounds how much slower that choice is than the best config.
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/Table.h"
#include "test/tune/Measured.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace commsir;
using namespace commsir::tune;

/// Doublings to a shape that may stand for one that was not measured, as half
/// the threads in twice the blocks.
static constexpr double kNear = 2;

/// What `config` took, or the nearest shape of its pair; infinite when none was
/// measured, or was too slow to be kept.
static double timeOf(const Config &config,
                     const std::vector<Config> &measured) {
  const Config *nearest = findNearest(config, measured);
  return nearest && distance(config, *nearest) <= kNear ? nearest->microseconds
                                                        : INFINITY;
}

/// Whether a table has rows of that length. Others go by longer ones, which is
/// right to 10 %.
static bool isMeasuredLength(const Tables &tables, const ConfigQuery &query) {
  return llvm::any_of(tables.find(query), [&](const Table *table) {
    return llvm::any_of(table->sections, [&](const Section &section) {
      return section.op == query.op && section.columns == query.columns;
    });
  });
}

namespace {
/// A point at which the choice is further from the best than at all others.
struct Known {
  int64_t ranks;
  llvm::StringLiteral op;
  int64_t columns, size;
  /// What the choice takes, of what the best took, is less.
  double factor;
};
} // namespace

static constexpr Known kKnown[] = {
    // one_shot/ll128 of 64 threads is the one shape of which the table has both
    // neighbors (1.995 us at 1 KiB, 2.008 at 4). Here it took 2.228 in its one
    // measurement, more than at either, where its other shape took 2.057. What
    // was best, lamport (1.913), is best at both neighbors too, by another
    // shape at each (1.864, 1.978).
    {4, "all_reduce", 0, 2048, 1.17},
    // one_shot/ll128 of one warp against two: the table has 2.039 and 2.052 us
    // at 4 KiB, 2.109 and 2.114 at 16 KiB, so either may come first; here it is
    // 2.217 and 2.100.
    {4, "all_gather", 0, 8192, 1.06},
};

static const Known *findKnown(const ConfigQuery &query, const Section &section,
                              int64_t size) {
  const Known *known = llvm::find_if(kKnown, [&](const Known &each) {
    return each.ranks == query.ranks && each.op == section.op &&
           each.columns == section.columns && each.size == size;
  });
  return known == std::end(kKnown) ? nullptr : known;
}

TEST(Held, TheChoiceIsWithinFivePerCentOfTheBest) {
  Tables tables = Tables::load("");
  std::vector<Table> all = readHeld();
  ASSERT_FALSE(all.empty());
  double sum = 0;
  int count = 0, unmeasured = 0;
  size_t exceptions = 0;
  for (const Table &held : all)
    for (const Section &section : held.sections)
      for (const auto &[size, times] : section.points) {
        ConfigQuery query = askOf(held, section, size);
        ConfigChoice answer = chooseFrom(tables, query);
        EXPECT_NE(answer.source, "cost model") << section.op;
        std::vector<Config> measured = listWays(times, query);
        double best = measured.front().microseconds;
        double factor = isMeasuredLength(tables, query) ? 1.05 : 1.10;
        double time = timeOf(answer.config, measured);
        if (std::isinf(time)) {
          // A single warp has become better since these were measured.
          EXPECT_EQ(answer.config.threads, 32) << explain(query, answer, 3);
          ++unmeasured;
          continue;
        }
        if (const Known *known = findKnown(query, section, size)) {
          ++exceptions;
          EXPECT_GT(time, factor * best) << "is as near as all others now: the "
                                            "exception can go";
          factor = known->factor;
        }
        EXPECT_LE(time, factor * best)
            << section.op << ", " << size << ", " << section.columns << ", "
            << query.ranks << " ranks: " << explain(query, answer, 3);
        sum += time / best - 1;
        ++count;
      }
  EXPECT_LE(unmeasured, 4);
  EXPECT_EQ(exceptions, std::size(kKnown));
  EXPECT_LE(sum / count, 0.03);
}

TEST(Held, BuiltInTablesAreWhole) {
  ASSERT_FALSE(readBuiltIn().empty());
  for (const Table *table : readBuiltIn()) {
    EXPECT_FALSE(table->sections.empty()) << table->name;
    for (const Section &section : table->sections)
      for (const auto &[size, times] : section.points)
        EXPECT_FALSE(times.empty()) << table->name << " " << section.op;
  }
}
