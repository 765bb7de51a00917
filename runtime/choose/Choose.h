//===- Choose.h - Algorithm, protocol and launch shape ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses how a collective is carried out if the user does not: from measured
// tables, else from a cost model. No other code makes this choice.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_CHOOSE_H
#define COMMSIR_RUNTIME_CHOOSE_CHOOSE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace commsir::tune {

struct Config;

/// The collective to configure.
struct ConfigQuery {
  /// "all_reduce"; reductions: "sum".
  std::string op, reduction, elementType;
  /// Message size per rank in bytes, as in tables: the input of all_reduce and
  /// all_gather, the output of reduce_scatter.
  int64_t bytes = 0;
  /// Fused collectives on rows: their number and length; 0: flat.
  int64_t rows = 0, columns = 0;
  int64_t ranks = 0;
  /// "sm_90", or "cpu".
  std::string chip;
  /// Device name from the driver ("NVIDIA H200"); empty: unknown.
  std::string device;
  /// Multiprocessors of the device; 0: the minimum over devices of the chip.
  int64_t multiprocessors = 0;
  /// Values that are already fixed; empty or 0: to be chosen.
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// Maximum number of CTAs of a collective that takes long enough for other
  /// kernels to run at the same time (`share`); 0: as many as are fastest.
  int64_t ctas = 0;
  /// Limit on the channel memory of a rank in bytes; 0: none. Configurations
  /// that need more are rejected.
  uint64_t memory = 0;
  /// Outputs are windows, which peers can write.
  bool windows = false;
  /// Returns the channel memory of a configuration in bytes, within the kernel
  /// at hand. Null: within a kernel with just this collective.
  std::function<std::optional<uint64_t>(const Config &)> channels = nullptr;
};

/// A configuration of a collective.
struct Config {
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// Time measured, interpolated between measured sizes, or estimated.
  double microseconds = 0;
};

/// A configuration that would be faster than the chosen one, and its channel
/// memory in bytes.
struct RejectedConfig {
  Config config;
  uint64_t bytes = 0;
};

struct ConfigChoice {
  /// The compiler chooses empty names and numbers that are 0. On the CPU there
  /// are no threads and clusters.
  Config config;
  /// "table h200-4 of 2026-11-21, between 64 KiB and 256 KiB", "cost model".
  std::string source;
  /// All configurations considered, best first; for --explain.
  std::vector<Config> considered;
  /// Faster configurations that need too much channel memory. If all do, the
  /// fastest is chosen anyway, and the caller must refuse or split it.
  std::vector<RejectedConfig> tooLarge;
};

/// Chooses a configuration. Never fails, because the cost model knows every op.
/// The result is equal on every rank for equal arguments and tables. Tables of
/// the last `loadTables` precede the built-in ones. Before the first
/// `loadTables`, the file or folder in COMMSIR_TABLES is read at the first
/// call; its errors are printed once to standard error. Thread-safe.
ConfigChoice choose(const ConfigQuery &query);

/// The algorithms whose kernels can take their size at launch, the preferred
/// one first.
std::array<llvm::StringRef, 2> getExtentAlgorithms();

/// COMMSIR_MAX_CTAS, which overrides the `ConfigQuery::ctas` of every group;
/// none: not set.
llvm::Expected<std::optional<int64_t>> getCtaLimit();

/// Loads the tables in a file, or in all files of a folder, in place of those
/// loaded before. An empty `path` leaves only the built-in tables. Nothing
/// changes after an error. Thread-safe.
llvm::Error loadTables(llvm::StringRef path);

/// Digest of the user's tables, which ranks compare; 0: there are none.
uint64_t getTablesDigest();

/// Describes a choice: the result, its source, and one line for each of the
/// best `most` other configurations (0: all) and of those rejected for memory.
std::string explain(const ConfigQuery &query, const ConfigChoice &answer,
                    size_t most = 8);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CHOOSE_H
