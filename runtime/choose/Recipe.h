//===- Recipe.h - A config for every size -----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The best grid depends on the size: one that is right at 64 KiB is wrong at 1
// MiB. Tables and the tuner therefore use recipes instead of block counts; a
// recipe derives the number of blocks from the size.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_RECIPE_H
#define COMMSIR_RUNTIME_CHOOSE_RECIPE_H

#include "runtime/choose/Choose.h"

#include <tuple>

namespace commsir::tune {

/// A configuration without its number of blocks: enough blocks to give each
/// `spread` tiles, but at most `limit` CTAs in total. A flat tile is 16 bytes
/// per thread.
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

/// Orders configurations by time, then by names and numbers, so that the order
/// is equal on every rank.
bool isFaster(const Config &a, const Config &b);

/// Whether two configurations are equal, apart from their times.
bool isSame(const Config &a, const Config &b);

/// Number of multiprocessors of the query's device.
int64_t countMultiprocessors(const ConfigQuery &query);

/// Number of CTAs with `threads` threads that a GPU can hold at a time, with
/// any register count: 64 registers per thread fit with 1024 threads per
/// multiprocessor, 128 with 512 threads in smaller CTAs.
int64_t countResident(const ConfigQuery &query, int64_t threads);

/// Maximum CTAs per cluster; chips before sm_90 have no clusters.
int64_t getMostCtas(const ConfigQuery &query);

/// Number of blocks that a GPU can hold at a time, for a kernel with known
/// registers per thread (0: unknown; then `countResident` applies).
int64_t countFitting(const ConfigQuery &query, int64_t registers,
                     int64_t threads, int64_t cluster);

/// Number of tiles of the part that a rank sends at a time.
int64_t countTiles(const ConfigQuery &query, int64_t threads, int64_t cluster);

/// Applies the recipe to `query`, without a time. Values that the query fixes
/// are kept.
Config applyRecipe(const Recipe &recipe, const ConfigQuery &query);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_RECIPE_H
