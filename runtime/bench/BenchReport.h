//===- BenchReport.h - Figures, and how they are told -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_BENCHREPORT_H
#define COMMSIR_RUNTIME_BENCH_BENCHREPORT_H

#include "runtime/bench/Statistics.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace commsir::tune {

/// What nothing on this host can beat: launch, one hop, bytes.
struct Floor {
  /// Of an empty kernel, between two of a graph or a stream; microseconds.
  double launch = 0;
  /// From a store to when the peer's poll sees it; microseconds.
  double hop = 0;
  /// Of one GPU to all its peers at once, all GPUs at a time; GB/s.
  double bandwidth = 0;
};

/// How a run was made; the same for all its figures.
struct Header {
  /// "cuda" or "cpu".
  std::string target;
  std::string date;
  std::string commsir;
  /// "8 x NVIDIA H200", "16 cores".
  std::string device;
  /// "13.0", or empty.
  std::string driver;
  /// "2.28.9", or empty.
  std::string nccl;
  /// "2.9.0", or empty: for baselines that come from torch.
  std::string torch;
  int64_t ranks = 0;
  /// "graph" or "eager".
  std::string mode;
  bool inPlace = false;
  int64_t calls = 0, replays = 0, repetitions = 0;
  std::string command;
  std::optional<Floor> floor;
};

enum class Status { Ok, Wrong, Failed };

/// One contender at one operation, size and type.
struct Entry {
  std::string op, type;
  /// Of one rank's input.
  int64_t bytes = 0;
  /// "commsir two_shot/lamport 32x128", "nccl", "torch one_shot".
  std::string contender;
  bool baseline = false;
  /// Whether peers reach the buffers directly (windows), as opposed to plain
  /// memory.
  bool registered = false;
  Status status = Status::Ok;
  /// What is wrong, or why it could not run.
  std::string message;
  /// Whether the result has the bits of sums in rank order in f32.
  bool exact = false;
  Samples samples;
  /// Least time on this host, microseconds; 0: not known.
  double floor = 0;
  /// Best baseline's time / this time, and the baseline's name.
  Interval speedup;
  std::string against;

  double medianTime() const { return median(flatten(samples)); }
  double p99Time() const { return quantile(flatten(samples), 0.99); }
  bool isMeasured() const {
    return status == Status::Ok && !flatten(samples).empty();
  }
};

struct Report {
  Header header;
  std::vector<Entry> entries;

  /// Sets `speedup` and `against` of every entry from the best right baseline
  /// of its operation, size and type.
  void compareWithBaselines();
  /// Whether an entry is wrong.
  bool hasWrong() const;
};

/// Least time of `op` with `bytes` of input a rank, microseconds.
double floorTime(const Floor &floor, llvm::StringRef op, int64_t ranks,
                 int64_t bytes);

/// A table for people. Of each operation, size and type it shows the baselines
/// and the best `most` others (0: all), wrong ones always. What could not be
/// run follows the table.
void printTable(const Report &report, llvm::raw_ostream &os, size_t most = 1);

/// The report with every sample.
void printJson(const Report &report, llvm::raw_ostream &os);

/// Reads what printJson wrote; `name` is the file's, for errors.
llvm::Expected<Report> parseJson(llvm::StringRef text, llvm::StringRef name);

/// Time against size on logarithmic axes, a panel an operation and type: the
/// best of ours, every baseline, and the floor.
void printSvg(const Report &report, llvm::raw_ostream &os);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCHREPORT_H
