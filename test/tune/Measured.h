//===- Measured.h - Tables that tests compare with --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The built-in tables, the tables of other sizes in Inputs, the questions that
// their points answer, and the replacements for configs that were not measured.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_TUNE_MEASURED_H
#define COMMSIR_TEST_TUNE_MEASURED_H

#include "runtime/choose/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>

namespace commsir::tune {

/// Inputs/held-*.json, by name.
inline std::vector<Table> readHeld() {
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(COMMSIR_TUNE_INPUTS, error), end;
       it != end && !error; it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".json")
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  std::vector<Table> all;
  for (const std::string &path : paths) {
    auto buffer = llvm::cantFail(
        llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path)));
    all.push_back(llvm::cantFail(parseTable(buffer->getBuffer(), path)));
  }
  return all;
}

inline ConfigQuery askOf(const Table &table, const Section &section,
                         int64_t size) {
  ConfigQuery query;
  query.op = section.op;
  query.reduction = "sum";
  query.elementType = section.type;
  query.bytes = section.columns ? size * section.columns * 2 : size;
  query.rows = section.columns ? size : 0;
  query.columns = section.columns;
  query.ranks = table.ranks;
  query.chip = table.chip;
  query.device = table.device;
  // Measured on windows; rows with a residual, so that no rank can write what
  // comes out for another.
  query.windows = !section.columns;
  return query;
}

/// Doublings between two shapes: of all threads, of those of a CTA, of CTAs of
/// a cluster.
inline double distance(const Config &a, const Config &b) {
  auto steps = [](int64_t x, int64_t y) {
    return std::abs(std::log2(double(x) / double(y)));
  };
  return 2 * steps(a.blocks * a.threads * a.cluster,
                   b.blocks * b.threads * b.cluster) +
         steps(a.threads, b.threads) + steps(a.cluster, b.cluster);
}

/// The way of the same pair whose shape is nearest.
inline const Config *findNearest(const Config &config,
                                 const std::vector<Config> &all) {
  const Config *nearest = nullptr;
  for (const Config &other : all)
    if (other.algorithm == config.algorithm &&
        other.protocol == config.protocol &&
        (!nearest || distance(config, other) < distance(config, *nearest)))
      nearest = &other;
  return nearest;
}

/// The ways of a point with their times, the fastest first.
inline std::vector<Config> listWays(const std::map<Recipe, double> &times,
                                    const ConfigQuery &query) {
  std::vector<Config> configs;
  for (const auto &[recipe, time] : times) {
    configs.push_back(applyRecipe(recipe, query));
    configs.back().microseconds = time;
  }
  llvm::sort(configs, isFaster);
  return configs;
}

} // namespace commsir::tune

#endif // COMMSIR_TEST_TUNE_MEASURED_H
