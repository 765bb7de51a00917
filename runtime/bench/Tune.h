//===- Tune.h - comms-bench --tune ------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures ways (Search.h) on a target and writes a table. Every time goes into
// a journal beside the table at once, so that a run that was stopped goes on
// where it was, and a way that took its process with it is not tried again: a
// worker measures, and whoever started it starts another one.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_TUNE_H
#define COMMSIR_RUNTIME_BENCH_TUNE_H

#include "runtime/bench/BenchTarget.h"
#include "runtime/bench/Search.h"

#include "llvm/Support/JSON.h"

#include <memory>

namespace commsir::tune {

/// What has been measured before, and what is measured now.
class Journal {
public:
  struct Outcome {
    std::optional<double> time;
    std::string failure;
  };

  /// Goes on with `path`, or begins it. One of another machine, number of ranks
  /// or version than `identity` says is refused, and so is a file that is no
  /// journal. Of a way that was begun twice and never ended it says that it did
  /// not return.
  static llvm::Expected<std::unique_ptr<Journal>>
  open(const std::string &path, const std::string &identity);
  ~Journal();

  /// Null: not known.
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

/// The ranges that `plan` names, in the order in which they are measured, and
/// of each its problems by size.
struct TuneRanges {
  std::vector<Range> ranges;
  std::vector<std::map<int64_t, BenchCase>> problems;
};
TuneRanges listRanges(const Plan &plan, const BenchTarget &target);

/// Exit status of a worker that has to be started again.
inline constexpr int kRestart = 75;

/// Measures on `target` until all is measured or the budget is spent, and
/// writes plan.tune. Returns an exit status.
int runTuneWorker(Plan &plan, BenchTarget &target);

/// Runs workers until one ends well, or none gets on: this program again, with
/// the `arguments` that it works with.
int runTune(const Plan &plan, llvm::ArrayRef<const char *> arguments);

/// Whether this process is a worker.
bool isTuneWorker();

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_TUNE_H
