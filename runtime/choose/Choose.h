//===- Choose.h - Algorithm, protocol and launch shape ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that decides how a collective is carried out when nobody says:
// from measured tables, else from a cost model.
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

/// What is to be carried out.
struct ConfigQuery {
  /// "all_reduce"; reductions: "sum".
  std::string op, reduction, elementType;
  /// Bytes of one rank's message, as tables count them: the input of all_reduce
  /// and all_gather, the output of reduce_scatter.
  int64_t bytes = 0;
  /// Of a fused collective over rows; 0: flat.
  int64_t rows = 0, columns = 0;
  int64_t ranks = 0;
  /// "sm_90", or "cpu".
  std::string chip;
  /// Of the device, as the driver names it ("NVIDIA H200"); empty: not known.
  std::string device;
  /// Of the device; 0: the least that devices of the chip have.
  int64_t multiprocessors = 0;
  /// What is settled already; empty and 0: to be chosen.
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// CTAs of a collective that lasts long enough for other kernels to be run
  /// beside it (`share`), at most; 0: as many as are fastest.
  int64_t ctas = 0;
  /// Bytes of channel memory that a rank may take; 0: there is no limit. Ways
  /// that take more are left out.
  uint64_t memory = 0;
  /// The outputs are windows, which peers can write.
  bool windows = false;
  /// Bytes of channel memory that a way takes, of who has the kernel; null: of
  /// a kernel with this collective alone.
  std::function<std::optional<uint64_t>(const Config &)> channels = nullptr;
};

/// One way to do it.
struct Config {
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// Measured, interpolated between measured sizes, or estimated.
  double microseconds = 0;
};

/// A way that would be faster than the answer, and what it takes.
struct RejectedConfig {
  Config config;
  uint64_t bytes = 0;
};

struct ConfigChoice {
  /// Names that are empty and numbers that are 0 are left to the compiler: on
  /// the processor there are no threads and clusters.
  Config config;
  /// "table h200-4 of 2026-11-21, between 64 KiB and 256 KiB", "cost model".
  std::string source;
  /// All ways that were weighed, the best first; for --explain.
  std::vector<Config> considered;
  /// Faster ones with too much channel memory. Where all have, the fastest is
  /// the answer nevertheless, for the caller to refuse or to cut.
  std::vector<RejectedConfig> tooLarge;
};

/// Never fails: the cost model knows every op. Same arguments and tables, same
/// answer on every rank. Tables are those that are built in and, before them,
/// those of the last `loadTables`; before that, of the file or folder that
/// COMMSIR_TABLES names, read at the first call, what is wrong with them told
/// once on standard error. Any thread.
ConfigChoice choose(const ConfigQuery &query);

/// The algorithms whose kernels can take their size at launch, the first to be
/// taken where both can.
std::array<llvm::StringRef, 2> getExtentAlgorithms();

/// COMMSIR_MAX_CTAS: what a group takes for `ConfigQuery::ctas`, whatever it
/// was made with; none: it is not set.
llvm::Expected<std::optional<int64_t>> getCtaLimit();

/// Takes the tables of a file, or of all files of a folder, from the next
/// choice on, in place of those that it took before; `path` empty: none but
/// those that are built in. After an error all is as before. Any thread.
llvm::Error loadTables(llvm::StringRef path);

/// What the tables of the user are: 0: there are none; else a number of what is
/// in them, which ranks compare.
uint64_t getTablesDigest();

/// The answer for people: what was chosen, from what, and what else was
/// weighed (the best `most` ways; 0: all) and left out for memory, a line each.
std::string explain(const ConfigQuery &query, const ConfigChoice &answer,
                    size_t most = 8);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CHOOSE_H
