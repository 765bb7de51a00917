//===- Choose.cpp - Algorithm, protocol and launch shape ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/Choose.h"

#include "runtime/choose/Table.h"
#include "runtime/support/Size.h"
#include "runtime/support/StandardError.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

using namespace commsir;
using namespace commsir::tune;

namespace {
/// The tables of this process. Who reads them keeps what it reads.
class KernelCache {
public:
  std::shared_ptr<const Tables> get() {
    std::lock_guard lock(mutex);
    if (!tables)
      take(readNamed());
    return tables;
  }
  uint64_t getDigest() {
    // Calls ask each time: the environment is looked at by the first alone.
    if (!isKnown) {
      if (std::getenv("COMMSIR_TABLES"))
        get();
      isKnown = true;
    }
    return digest;
  }
  llvm::Error load(llvm::StringRef path) {
    Tables read = Tables::load(path);
    if (!read.problem.empty())
      return llvm::createStringError(read.problem);
    std::lock_guard lock(mutex);
    take(std::move(read));
    return llvm::Error::success();
  }

private:
  static Tables readNamed() {
    const char *path = std::getenv("COMMSIR_TABLES");
    Tables read = Tables::load(path ? path : "");
    if (!read.problem.empty())
      printWarning("COMMSIR_TABLES: " + read.problem +
                   "; the built-in tables are used");
    return read;
  }
  void take(Tables read) {
    std::string text;
    llvm::raw_string_ostream out(text);
    for (const Table &table : read.own)
      printTable(table, out);
    digest = text.empty() ? 0 : llvm::xxh3_64bits(text) | 1;
    tables = std::make_shared<const Tables>(std::move(read));
    isKnown = true;
  }

  std::mutex mutex;
  std::shared_ptr<const Tables> tables;
  std::atomic<uint64_t> digest{0};
  /// Tables have been read, or none were named when the digest was asked for.
  std::atomic<bool> isKnown{false};
};
} // namespace

static KernelCache &kernelCache() {
  static KernelCache kernelCache;
  return kernelCache;
}

std::array<llvm::StringRef, 2> commsir::tune::getExtentAlgorithms() {
  return {"two_shot", "one_shot"};
}

ConfigChoice commsir::tune::choose(const ConfigQuery &query) {
  return chooseFrom(*kernelCache().get(), query);
}

llvm::Expected<std::optional<int64_t>> commsir::tune::getCtaLimit() {
  const char *text = std::getenv("COMMSIR_MAX_CTAS");
  int64_t number = 0;
  if (!text || !*text)
    return std::nullopt;
  if (llvm::StringRef(text).getAsInteger(10, number) || number < 0)
    return llvm::createStringError(
        "COMMSIR_MAX_CTAS: '" + std::string(text) +
        "' is not a number of CTAs: write one like 32, or 0 for no limit");
  return number;
}

llvm::Error commsir::tune::loadTables(llvm::StringRef path) {
  return kernelCache().load(path);
}

uint64_t commsir::tune::getTablesDigest() { return kernelCache().getDigest(); }

static std::string describe(const ConfigQuery &query) {
  std::string text =
      query.op + " of " + renderSize(query.bytes) + " " + query.elementType;
  if (query.rows > 0)
    text += llvm::formatv(" ({0} x {1})", query.rows, query.columns);
  text += llvm::formatv(", {0} ranks, {1}", query.ranks, query.chip);
  return query.device.empty() ? text : text + " (" + query.device + ")";
}

static std::string describe(const Config &config) {
  std::string text = config.algorithm + "/" + config.protocol;
  if (config.blocks)
    text += " b" + std::to_string(config.blocks);
  if (config.threads)
    text += " t" + std::to_string(config.threads);
  if (config.cluster > 1)
    text += " c" + std::to_string(config.cluster);
  return text;
}

/// Explains, for each algorithm and protocol that needed too much memory, its
/// fastest configuration.
static void explainRejected(const ConfigQuery &query,
                            const ConfigChoice &answer, llvm::raw_ostream &os) {
  std::set<std::pair<std::string, std::string>> told;
  for (const RejectedConfig &one : answer.tooLarge)
    if (told.emplace(one.config.algorithm, one.config.protocol).second)
      os << llvm::formatv("  {0,9:f2} us  {1}: left out, it takes {2} of "
                          "channel memory, and the limit is {3}\n",
                          one.config.microseconds, describe(one.config),
                          renderSize(int64_t(one.bytes)),
                          renderSize(int64_t(query.memory)));
}

std::string commsir::tune::explain(const ConfigQuery &query,
                                   const ConfigChoice &answer, size_t most) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << describe(query) << ": " << describe(answer.config) << ", by the "
     << answer.source << "\n";
  explainRejected(query, answer, os);
  size_t shown = 0;
  for (const Config &config : answer.considered) {
    if (most && shown++ == most) {
      os << "  and " << answer.considered.size() - most << " more\n";
      break;
    }
    os << llvm::formatv("  {0,9:f2} us  {1}\n", config.microseconds,
                        describe(config));
  }
  return text;
}
