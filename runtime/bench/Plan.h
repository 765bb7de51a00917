//===- Plan.h - The plan of a comms-bench run -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_PLAN_H
#define COMMSIR_RUNTIME_BENCH_PLAN_H

#include "runtime/bench/BenchCase.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace commsir::tune {

/// Compile options of a CommsIR kernel. Empty or 0: chosen by the compiler.
struct KernelChoice {
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// Attributes of the kernel, without the prefix `comms.`: `step_bytes`.
  KernelNumbers numbers;
};

/// The parsed command line.
struct Plan {
  std::string target = "cuda";
  std::vector<Operation> operations;
  std::vector<int64_t> sizes;
  std::vector<driver::Element> types;
  int64_t ranks = 0;
  /// All combinations are measured. An empty string, or 0, leaves the choice
  /// open.
  std::vector<std::string> algorithms, protocols;
  std::vector<int64_t> blocks, threads, clusters;
  /// Attributes of the kernel and their values; null: attribute omitted.
  std::vector<std::pair<std::string, std::vector<std::optional<int64_t>>>>
      numbers;
  /// Row operations: numbers and lengths of rows.
  std::vector<int64_t> rows, hidden;
  /// Calls are captured in graphs, launched one by one, or both.
  bool graph = true, eager = false;
  /// Measure CommsIR on windows, and on plain memory.
  bool windows = true, plain = false;
  /// Calls per replay, timed replays per repetition, and repetitions.
  int64_t calls = 60, replays = 9, repetitions = 5;
  /// Calls per replay if arrays take `bytes` bytes in total: fewer above 64
  /// MiB, where one call takes long.
  int64_t callsWith(int64_t bytes) const {
    return std::max(std::min<int64_t>(calls, 4),
                    calls * (64 << 20) / std::max<int64_t>(bytes, 64 << 20));
  }
  bool baselines = true;
  bool ours = true;
  /// Run comms-check-sync before each compilation.
  bool check = true;
  /// Show every contender rather than only CommsIR's best.
  bool full = false;
  bool quiet = false;
  std::string json, svg;
  uint64_t seed = 1;
  /// Seconds that a CommsIR kernel waits for a peer.
  double timeout = 10;
  /// Required speedup over the best baseline, tested at the lower end of its
  /// interval; 0: none.
  double least = 0;

  /// Table file to write; no comparison is made then.
  std::string tune;
  /// Total time budget in seconds.
  int64_t budget = 0;
  /// Only explain what would be chosen.
  bool explain = false;
  /// Machine for --explain.
  std::string chip, device;

  /// Two reports to compare; nothing is measured then.
  std::string compareOld, compareNew;
  double threshold = 0.01;
  /// Reports to show; nothing is measured. Reports of one run are merged.
  std::vector<std::string> show;

  bool help = false, version = false;
  /// The complete command, for the header.
  std::string command;

  /// The problems in the order of measurement.
  std::vector<BenchCase> problems() const;
  /// All combinations of algorithm, protocol, launch shape and attributes.
  std::vector<KernelChoice> choices() const;
};

/// Parses "1K", "1K,4K", "1K..64M" (doubling) or "1K..64M*4" to bytes,
/// ascending within a range.
llvm::Expected<std::vector<int64_t>> parseSizes(llvm::StringRef text);

/// Parses the command line (without the program's name). Errors suggest a
/// correction.
llvm::Expected<Plan> parsePlan(llvm::ArrayRef<const char *> arguments);

/// The text of --help.
std::string planHelp();

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_PLAN_H
