//===- model.cpp - What the cost model alone would choose -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The built-in tables say what the best way takes, and what many others take:
// how much slower is the one that the model would have chosen? Where that one
// has not been measured, the nearest shape of its pair stands for it. Run with
// --gtest_filter='Regret.*' it prints every choice.
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Model.h"
#include "runtime/tune/Table.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace commsir;
using namespace commsir::tune;

namespace {
/// A choice of the model beside what was measured.
struct Choice {
  std::string problem;
  Way chosen, stand, best;
  /// Pairs that the model would have preferred, which were not measured there.
  int unmeasured = 0;

  double regret() const { return stand.microseconds / best.microseconds - 1; }
};

struct Summary {
  double sum = 0, worst = 0;
  int count = 0;
  double mean() const { return sum / count; }
};
} // namespace

static Question askOf(const Table &table, const Section &section,
                      int64_t size) {
  Question question;
  question.op = section.op;
  question.reduction = "sum";
  question.elementType = section.type;
  question.bytes = section.columns ? size * section.columns * 2 : size;
  question.rows = section.columns ? size : 0;
  question.columns = section.columns;
  question.ranks = table.ranks;
  question.chip = table.chip;
  question.device = table.device;
  // Tables are measured on windows; those of rows with a residual, so that no
  // rank can write what comes out for another.
  question.windows = !section.columns;
  return question;
}

/// Doublings between two shapes: of all threads, of those of a CTA, of CTAs of
/// a cluster.
static double distance(const Way &a, const Way &b) {
  auto steps = [](int64_t x, int64_t y) {
    return std::abs(std::log2(double(x) / double(y)));
  };
  return 2 * steps(a.blocks * a.threads * a.cluster,
                   b.blocks * b.threads * b.cluster) +
         steps(a.threads, b.threads) + steps(a.cluster, b.cluster);
}

/// The way of the same pair whose shape is nearest.
static const Way *findNearest(const Way &way, const std::vector<Way> &all) {
  const Way *nearest = nullptr;
  for (const Way &other : all)
    if (other.algorithm == way.algorithm && other.protocol == way.protocol &&
        (!nearest || distance(way, other) < distance(way, *nearest)))
      nearest = &other;
  return nearest;
}

static std::string name(const Way &way) {
  return llvm::formatv("{0}/{1} b{2} t{3} c{4}", way.algorithm, way.protocol,
                       way.blocks, way.threads, way.cluster);
}

static std::string name(const Section &section, const Table &table) {
  return llvm::formatv("{0} ranks, {1}{2}", table.ranks, section.op,
                       section.columns ? " of rows" : "");
}

static Choice compare(const Table &table, const Section &section,
                      int64_t size) {
  Question question = askOf(table, section, size);
  std::vector<Way> measured;
  for (const auto &[recipe, time] : section.points.at(size)) {
    measured.push_back(applyRecipe(recipe, question));
    measured.back().microseconds = time;
  }
  llvm::sort(measured, isFaster);
  Choice choice;
  choice.problem =
      name(section, table) + ", " +
      (section.columns ? llvm::formatv("{0} x {1}", size, section.columns).str()
                       : llvm::formatv("{0} B", size).str());
  choice.best = measured.front();
  for (const Way &way : estimateAll(question)) {
    if (const Way *nearest = findNearest(way, measured)) {
      choice.chosen = way;
      choice.stand = *nearest;
      return choice;
    }
    ++choice.unmeasured;
  }
  ADD_FAILURE() << choice.problem << ": nothing that was measured";
  choice.stand = choice.best;
  return choice;
}

static void print(const Choice &choice) {
  llvm::outs() << llvm::formatv(
      "{0,-34} {1,4:f1} %  best {2,8:f2} {3,-34} model {4,8:f2} {5,-34}",
      choice.problem, 100 * choice.regret(), choice.best.microseconds,
      name(choice.best), choice.chosen.microseconds, name(choice.chosen));
  if (!isSame(choice.chosen, choice.stand))
    llvm::outs() << " for it " << name(choice.stand);
  if (choice.unmeasured)
    llvm::outs() << " (after " << choice.unmeasured << " not measured)";
  llvm::outs() << "\n";
}

TEST(Regret, TheModelsChoiceIsNearTheBestThatWasMeasured) {
  Tables tables = Tables::load("");
  std::map<std::string, Summary> summaries;
  for (const Table &table : tables.all)
    for (const Section &section : table.sections)
      for (const auto &[size, times] : section.points) {
        Choice choice = compare(table, section, size);
        print(choice);
        Summary &summary = summaries[name(section, table)];
        summary.sum += choice.regret();
        summary.worst = std::max(summary.worst, choice.regret());
        ++summary.count;
        EXPECT_LE(choice.regret(), 0.20) << choice.problem;
      }
  for (const auto &[what, summary] : summaries) {
    llvm::outs() << llvm::formatv("{0,-28} mean {1,4:f1} %, worst {2,4:f1} %\n",
                                  what, 100 * summary.mean(),
                                  100 * summary.worst);
    EXPECT_LE(summary.mean(), 0.05) << what;
  }
}
