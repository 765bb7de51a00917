//===- BenchReport.h - Figures and their output -----------------*- C++ -*-===//
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

/// Lower bounds on this host: launch, one hop, bandwidth.
struct Floor {
  /// Time of an empty kernel between two others in a graph or stream, in
  /// microseconds.
  double launch = 0;
  /// Time from a store until a peer's poll sees it, in microseconds.
  double hop = 0;
  /// Bandwidth from each GPU to all its peers at once, with all GPUs sending,
  /// in GB/s.
  double bandwidth = 0;
};

/// Conditions of a run, common to all its figures.
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
  /// "2.9.0" if baselines use torch, else empty.
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

/// One contender for one operation, size and type.
struct Entry {
  std::string op, type;
  /// Size of one rank's input.
  int64_t bytes = 0;
  /// "commsir two_shot/lamport 32x128", "nccl", "torch one_shot".
  std::string contender;
  bool baseline = false;
  /// Whether peers access the buffers directly (windows), as opposed to plain
  /// memory.
  bool registered = false;
  Status status = Status::Ok;
  /// The error, or the reason why it could not run.
  std::string message;
  /// Whether the result equals sums in rank order in f32, bit by bit.
  bool exact = false;
  Samples samples;
  /// Minimum time on this host in microseconds; 0: unknown.
  double floor = 0;
  /// Time of the best baseline divided by this time, and the baseline's name.
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

  /// Sets `speedup` and `against` of every entry, relative to the best correct
  /// baseline of the same operation, size and type.
  void compareWithBaselines();
  /// Whether any entry is wrong.
  bool hasWrong() const;
};

/// Minimum time of `op` with `bytes` bytes of input per rank, in microseconds.
double floorTime(const Floor &floor, llvm::StringRef op, int64_t ranks,
                 int64_t bytes);

/// Prints a table. For each operation, size and type it shows the baselines and
/// the best `most` others (0: all), and always wrong ones. Contenders that
/// could not run follow the table.
void printTable(const Report &report, llvm::raw_ostream &os, size_t most = 1);

/// Prints the report with every sample.
void printJson(const Report &report, llvm::raw_ostream &os);

/// Parses the output of printJson; `name` is the file's name, for errors.
llvm::Expected<Report> parseJson(llvm::StringRef text, llvm::StringRef name);

/// Plots time against size on logarithmic axes, one panel per operation and
/// type: CommsIR's best, every baseline, and the floor.
void printSvg(const Report &report, llvm::raw_ostream &os);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCHREPORT_H
