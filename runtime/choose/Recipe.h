//===- Recipe.h - A way, for every size -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A grid that is right at 64 KiB is wrong at 1 MiB. So tables and the tuner do
// not speak of numbers of blocks but of recipes: how many blocks there are
// follows from the size.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_RECIPE_H
#define COMMSIR_RUNTIME_CHOOSE_RECIPE_H

#include "runtime/choose/Choose.h"

#include <tuple>

namespace commsir::tune {

/// A way without its number of blocks: as many as give each `spread` tiles, but
/// no more than make `limit` CTAs. A flat tile is 16 bytes a thread.
struct Recipe {
  std::string algorithm, protocol;
  int64_t threads = 0, cluster = 1, spread = 1, limit = 1;

  auto key() const {
    return std::tie(algorithm, protocol, threads, cluster, spread, limit);
  }
  bool operator==(const Recipe &other) const { return key() == other.key(); }
  bool operator<(const Recipe &other) const { return key() < other.key(); }
};

/// "two_shot/lamport t64 c1 spread 4 limit 1056".
std::string renderRecipe(const Recipe &recipe);

/// The order of answers: by time, then by names and numbers, so that it is the
/// same on every rank.
bool isFaster(const Config &a, const Config &b);

/// Whether two ways are one, whatever they took.
bool isSame(const Config &a, const Config &b);

/// Multiprocessors of the device of a question.
int64_t countMultiprocessors(const ConfigQuery &query);

/// CTAs of `threads` threads that are on a GPU at a time, whatever their
/// registers: 64 a thread fit when there are 1024, 128 when there are 512 in
/// CTAs that are smaller.
int64_t countResident(const ConfigQuery &query, int64_t threads);

/// CTAs of a cluster, at most: chips before sm_90 have no clusters.
int64_t getMostCtas(const ConfigQuery &query);

/// Blocks that are on a GPU at a time, of a kernel whose registers are known
/// (0: not known; then what `countResident` says).
int64_t countFitting(const ConfigQuery &query, int64_t registers,
                     int64_t threads, int64_t cluster);

/// Tiles of the part that a rank sends at a time.
int64_t countTiles(const ConfigQuery &query, int64_t threads, int64_t cluster);

/// The way that the recipe is for `query`, without a time. What the question
/// has settled, the recipe does not change.
Config applyRecipe(const Recipe &recipe, const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_RECIPE_H
