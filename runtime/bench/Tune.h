//===- Tune.h - comms-bench --tune ------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures configurations (Search.h) on a target and writes a table. Every time
// is written at once to a journal next to the table, so that an interrupted run
// can resume and a configuration that crashed its process is not tried again: a
// worker process measures, and its parent restarts it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_TUNE_H
#define COMMSIR_RUNTIME_BENCH_TUNE_H

#include "runtime/bench/BenchTarget.h"
#include "runtime/bench/Search.h"

#include "llvm/Support/JSON.h"

#include <memory>

namespace commsir::tune {

/// Results of earlier runs and of this one.
class Journal {
public:
  struct Outcome {
    std::optional<double> time;
    std::string failure;
  };

  /// Opens or creates `path`. Refuses the journal of another machine, number of
  /// ranks or version than `identity`, and files that are not journals. A
  /// configuration that was begun twice and never finished is reported as not
  /// returning.
  static llvm::Expected<std::unique_ptr<Journal>>
  open(const std::string &path, const std::string &identity);
  ~Journal();

  /// Null: not measured.
  const Outcome *find(const std::string &key) const;
  void begin(const std::string &key);
  void end(const std::string &key, Outcome outcome);
  const std::map<std::string, Outcome> &outcomes() const { return known; }

private:
  Journal() = default;
  void write(llvm::json::Object line);
  void read(llvm::StringRef text);
  int file = -1;
  std::map<std::string, Outcome> known;
};

/// The ranges of `plan` in the order of measurement, and the problems of each
/// by size.
struct TuneRanges {
  std::vector<Range> ranges;
  std::vector<std::map<int64_t, BenchCase>> problems;
};
TuneRanges listRanges(const Plan &plan, const BenchTarget &target);

/// Exit status of a worker that must be restarted.
inline constexpr int kRestart = 75;

/// Measures on `target` until done or out of budget, then writes plan.tune.
/// Returns an exit status.
int runTuneWorker(Plan &plan, BenchTarget &target);

/// Runs workers until one succeeds or none makes progress. A worker is this
/// program with its current `arguments`.
int runTune(const Plan &plan, llvm::ArrayRef<const char *> arguments);

/// Whether this process is a worker.
bool isTuneWorker();

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_TUNE_H
