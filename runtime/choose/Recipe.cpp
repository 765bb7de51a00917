//===- Recipe.cpp - A config for every size -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/Recipe.h"

#include "lowering/collectives/CollectiveInfo.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace commsir;
using namespace commsir::tune;

std::string commsir::tune::renderRecipe(const Recipe &recipe) {
  std::string text = recipe.algorithm + "/" + recipe.protocol;
  if (recipe.threads)
    text += llvm::formatv(" t{0} c{1} spread {2} limit {3}", recipe.threads,
                          recipe.cluster, recipe.spread, recipe.limit)
                .str();
  return text;
}

bool commsir::tune::isFaster(const Config &a, const Config &b) {
  auto key = [](const Config &config) {
    return std::tie(config.microseconds, config.algorithm, config.protocol,
                    config.threads, config.cluster, config.blocks);
  };
  return key(a) < key(b);
}

bool commsir::tune::isSame(const Config &a, const Config &b) {
  auto key = [](const Config &config) {
    return std::tie(config.algorithm, config.protocol, config.threads,
                    config.cluster, config.blocks);
  };
  return key(a) == key(b);
}

namespace {
struct ChipRow {
  llvm::StringLiteral device, chip;
  int64_t multiprocessors;
};
} // namespace

/// The first row that fits; devices by how their names begin.
static constexpr ChipRow kChips[] = {
    {"NVIDIA H200", "", 132},
    {"NVIDIA H100 80GB", "", 132},
    {"NVIDIA H100 PCIe", "", 114},
    {"NVIDIA H20", "", 78},
    {"NVIDIA A100", "", 108},
    {"NVIDIA B200", "", 148},
    {"NVIDIA B100", "", 132},
    {"", "sm_80", 56},
    {"", "sm_90", 78},
    {"", "sm_100", 132},
};

int64_t commsir::tune::countMultiprocessors(const ConfigQuery &query) {
  if (query.multiprocessors > 0)
    return query.multiprocessors;
  for (const ChipRow &row : kChips)
    if (row.device.empty()
            ? row.chip == query.chip
            : llvm::StringRef(query.device).starts_with(row.device))
      return row.multiprocessors;
  return 32;
}

int64_t commsir::tune::countResident(const ConfigQuery &query,
                                     int64_t threads) {
  // 128 registers a thread; of kernels on rows, whose threads have 16 bytes of
  // each rank at a time, 102: ptxas gives them 40 to 72 for 2 to 8 ranks.
  int64_t most = query.rows > 0 ? 640 : 512;
  int64_t perProcessor =
      std::max<int64_t>(most / std::max<int64_t>(threads, 1), 1);
  return countMultiprocessors(query) * perProcessor;
}

int64_t commsir::tune::getMostCtas(const ConfigQuery &query) {
  int sm = 0;
  llvm::StringRef chip = query.chip;
  if (!chip.consume_front("sm_") || chip.consumeInteger(10, sm))
    return 1;
  return sm >= 90 ? 8 : 1;
}

/// The CTAs of a cluster share a part of the GPU, and some are left over.
static int64_t inClusters(int64_t ctas, int64_t cluster) {
  return cluster > 1 ? ctas * 9 / 10 / cluster : ctas;
}

int64_t commsir::tune::countFitting(const ConfigQuery &query, int64_t registers,
                                    int64_t threads, int64_t cluster) {
  if (registers <= 0)
    return inClusters(countResident(query, threads), cluster);
  // Registers come in eights; a multiprocessor has 64 Ki of them, and room for
  // 2048 threads and 32 CTAs.
  int64_t perCta = int64_t(llvm::alignTo(registers, 8)) * threads;
  int64_t perProcessor =
      std::min({int64_t(65536) / perCta, 2048 / threads, int64_t(32)});
  return inClusters(countMultiprocessors(query) * perProcessor, cluster);
}

int64_t commsir::tune::countTiles(const ConfigQuery &query, int64_t threads,
                                  int64_t cluster) {
  if (query.rows > 0)
    return query.rows;
  const mlir::comms::CollectiveKind *kind =
      mlir::comms::findCollectiveKind(query.op);
  bool exchange = kind && kind->movement == mlir::comms::Movement::Exchange;
  int64_t part =
      exchange ? query.bytes / std::max<int64_t>(query.ranks, 1) : query.bytes;
  int64_t tile = 16 * std::max<int64_t>(threads * cluster, 1);
  return std::max<int64_t>(llvm::divideCeil(std::max<int64_t>(part, 1), tile),
                           1);
}

/// Blocks of a rank that comms-check-sync takes.
static constexpr int64_t kMostBlocks = 2048;

Config commsir::tune::applyRecipe(const Recipe &recipe,
                                  const ConfigQuery &query) {
  Config config;
  config.algorithm = recipe.algorithm;
  config.protocol = recipe.protocol;
  if (query.chip == "cpu") {
    config.blocks =
        query.blocks ? query.blocks : std::max<int64_t>(recipe.limit, 1);
    return config;
  }
  config.threads = query.threads ? query.threads : recipe.threads;
  config.cluster = query.cluster ? query.cluster : recipe.cluster;
  config.blocks = query.blocks;
  if (config.blocks)
    return config;
  int64_t tiles = countTiles(query, config.threads, config.cluster);
  int64_t limit = std::min(
      {recipe.limit / config.cluster,
       inClusters(countResident(query, config.threads), config.cluster),
       kMostBlocks});
  config.blocks = std::clamp<int64_t>(
      llvm::divideCeil(tiles, std::max<int64_t>(recipe.spread, 1)), 1,
      std::max<int64_t>(limit, 1));
  return config;
}
