//===- BenchTarget.h - The interface of targets for benchmarks --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The measuring loop (Bench.cpp) accesses a target and its contenders only
// through these interfaces, so that CommsIR and the baselines are measured in
// the same way.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_BENCHTARGET_H
#define COMMSIR_RUNTIME_BENCH_BENCHTARGET_H

#include "runtime/bench/BenchCase.h"
#include "runtime/bench/BenchReport.h"
#include "runtime/bench/Plan.h"
#include "runtime/choose/Choose.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace commsir::tune {

/// One way to solve a problem, ready to run on all ranks, with inputs in place.
class Contender {
public:
  virtual ~Contender() = default;
  /// Fills the outputs of all ranks with kOutputPoison.
  virtual llvm::Error poison() = 0;
  /// Runs all calls of a replay on all ranks, which start together. Returns
  /// microseconds per call on the slowest rank.
  virtual llvm::Expected<double> replay() = 0;
  /// Copies the output of `rank`.
  virtual llvm::Error read(int64_t rank, llvm::MutableArrayRef<char> out) = 0;
};

/// Describes a contender that has not been made yet.
struct Candidate {
  /// Name in tables.
  std::string name;
  bool baseline = false;
  bool registered = false;
  /// Launched call by call rather than captured in a graph.
  bool eager = false;
  /// Contenders of CommsIR: the kernel's configuration.
  KernelChoice choice;
  /// Baselines: their number.
  unsigned number = 0;
};

class BenchTarget {
public:
  virtual ~BenchTarget() = default;
  /// Number of ranks: from the plan, or all that the target has.
  virtual int64_t ranks() const = 0;
  /// Whether something does not return, so that the process must exit without
  /// cleaning up.
  virtual bool isStuck() const { return false; }
  /// After a failure: whether every later contender would fail too, because the
  /// target is stuck or a GPU does not recover from an error.
  virtual bool isBroken() const { return isStuck(); }
  /// Fills in device, driver, NCCL and floor.
  virtual llvm::Error describe(Header &header) = 0;
  /// Fills in the machine's fields of a query: chip, device, multiprocessors.
  virtual void describeMachine(ConfigQuery &query) const {}
  /// Prepares, in parallel, what `make` will need for CommsIR's contenders.
  virtual void prepare(llvm::ArrayRef<Candidate> candidates,
                       const BenchCase &problem) {}
  /// The baselines for `problem`.
  virtual std::vector<Candidate> baselines(const BenchCase &problem) = 0;
  /// Makes a contender, which must not outlive `inputs` and the target. May
  /// complete the name with what was chosen automatically.
  virtual llvm::Expected<std::unique_ptr<Contender>>
  make(Candidate &candidate, const BenchCase &problem,
       const Reference &inputs) = 0;
};

/// A kind of target. Each kind is one file *Bench.cpp that defines `get<File>`;
/// CMake lists the files in Benches.inc.
struct BenchKind {
  /// Value of `--target`.
  llvm::StringLiteral name;
  /// Fails if the machine lacks what the plan requires.
  llvm::Expected<std::unique_ptr<BenchTarget>> (*create)(const Plan &plan);
};

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCHTARGET_H
