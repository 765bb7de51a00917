//===- Plan.h - What comms-bench is asked to do -----------------*- C++ -*-===//
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

/// How one of our kernels is compiled. Empty and 0: the compiler chooses.
struct KernelChoice {
  std::string algorithm, protocol;
  int64_t blocks = 0, threads = 0, cluster = 0;
  /// Attributes of the kernel, without their `comms.`: `step_bytes`.
  KernelNumbers numbers;
};

/// The command line, read.
struct Plan {
  std::string target = "cuda";
  std::vector<Operation> operations;
  std::vector<int64_t> sizes;
  std::vector<driver::Element> types;
  int64_t ranks = 0;
  /// Every combination is tried. An empty string, or 0, leaves it open.
  std::vector<std::string> algorithms, protocols;
  std::vector<int64_t> blocks, threads, clusters;
  /// Attributes of the kernel and their values; null: without it.
  std::vector<std::pair<std::string, std::vector<std::optional<int64_t>>>>
      numbers;
  /// Of operations on rows: their numbers and their lengths.
  std::vector<int64_t> rows, hidden;
  /// Calls are captured in graphs; launched one by one; both, side by side.
  bool graph = true, eager = false;
  /// Ours on windows, and on plain memory.
  bool windows = true, plain = false;
  /// Calls in a replay, timed replays in a repetition, repetitions.
  int64_t calls = 60, replays = 9, repetitions = 5;
  /// Calls in a replay where arrays have `bytes` together: fewer above 64 MiB,
  /// where one call takes long.
  int64_t callsWith(int64_t bytes) const {
    return std::max(std::min<int64_t>(calls, 4),
                    calls * (64 << 20) / std::max<int64_t>(bytes, 64 << 20));
  }
  bool baselines = true;
  bool ours = true;
  /// Run comms-check-sync before each compilation.
  bool check = true;
  /// Show every contender, and not only the best of ours.
  bool full = false;
  bool quiet = false;
  std::string json, svg;
  uint64_t seed = 1;
  /// Seconds that a kernel of ours waits for a peer.
  double timeout = 10;
  /// Our speed against the best baseline must be at least this, with the lower
  /// end of its interval; 0: nothing is asked.
  double least = 0;

  /// Table to write; nothing is compared then.
  std::string tune;
  /// Seconds for all of it.
  int64_t budget = 0;
  /// Say what would be chosen and why; nothing is measured then.
  bool explain = false;
  /// Machine that --explain asks for.
  std::string chip, device;

  /// Two reports to compare; nothing is measured then.
  std::string compareOld, compareNew;
  double threshold = 0.01;
  /// Reports to show instead of measuring; those of one run are merged.
  std::vector<std::string> show;

  bool help = false, version = false;
  /// The whole command, for the header.
  std::string command;

  /// The problems, in the order in which they are measured.
  std::vector<BenchCase> problems() const;
  /// All combinations of algorithms, protocols, launch shapes and attributes.
  std::vector<KernelChoice> choices() const;
};

/// Reads "1K", "1K,4K", "1K..64M" (doubling), "1K..64M*4" as bytes, ascending
/// within a range.
llvm::Expected<std::vector<int64_t>> parseSizes(llvm::StringRef text);

/// Reads the command line (without the program's name). Errors say what to
/// write instead.
llvm::Expected<Plan> parsePlan(llvm::ArrayRef<const char *> arguments);

/// The text of --help.
std::string planHelp();

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_PLAN_H
