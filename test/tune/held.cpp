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

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace commsir;
using namespace commsir::tune;

static std::vector<Table> readHeld() {
  std::vector<Table> all;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(COMMSIR_TUNE_INPUTS, error), end;
       it != end && !error; it.increment(error)) {
    auto buffer = llvm::MemoryBuffer::getFile(it->path());
    if (buffer && llvm::sys::path::extension(it->path()) == ".json")
      all.push_back(
          llvm::cantFail(parseTable((*buffer)->getBuffer(), it->path())));
  }
  return all;
}

static Question askOf(const Table &held, const Section &section, int64_t size) {
  Question question;
  question.op = section.op;
  question.reduction = "sum";
  question.elementType = section.type;
  question.bytes = section.columns ? size * section.columns * 2 : size;
  question.rows = section.columns ? size : 0;
  question.columns = section.columns;
  question.ranks = held.ranks;
  question.chip = held.chip;
  question.device = held.device;
  return question;
}

/// What `way` took when it was measured; infinite when it was not, or was too
/// slow to be kept.
static double timeOf(const Way &way, const std::map<Recipe, double> &times,
                     const Question &question) {
  for (const auto &[recipe, time] : times) {
    Way other = applyRecipe(recipe, question);
    if (std::tie(way.algorithm, way.protocol, way.blocks, way.threads,
                 way.cluster) == std::tie(other.algorithm, other.protocol,
                                          other.blocks, other.threads,
                                          other.cluster))
      return time;
  }
  return INFINITY;
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

TEST(Held, TheChoiceIsWithinFivePerCentOfTheBest) {
  Tables tables = Tables::load("");
  std::vector<Table> all = readHeld();
  ASSERT_FALSE(all.empty());
  for (const Table &held : all)
    for (const Section &section : held.sections)
      for (const auto &[size, times] : section.points) {
        Question question = askOf(held, section, size);
        Answer answer = chooseFrom(tables, question);
        EXPECT_NE(answer.source, "cost model") << section.op;
        double best = INFINITY;
        for (const auto &[recipe, time] : times)
          best = std::min(best, time);
        double factor = isMeasuredLength(tables, question) ? 1.05 : 1.10;
        EXPECT_LE(timeOf(answer.way, times, question), factor * best)
            << explain(question, answer, 3);
      }
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
