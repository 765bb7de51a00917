//===- BenchTarget.h - Where contenders run ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The measuring loop (Bench.cpp) sees a target and its contenders through these
// interfaces alone, so that ours and every baseline are treated alike.
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

/// One way to carry out a problem, ready to run on all ranks: its inputs are in
/// place.
class Contender {
public:
  virtual ~Contender() = default;
  /// Fills the outputs of all ranks with kOutputPoison.
  virtual llvm::Error poison() = 0;
  /// Runs all calls of a replay on all ranks, which start together;
  /// microseconds a call on the slowest rank.
  virtual llvm::Expected<double> replay() = 0;
  /// Copies the output of `rank`.
  virtual llvm::Error read(int64_t rank, llvm::MutableArrayRef<char> out) = 0;
};

/// A contender before it is made.
struct Candidate {
  /// As tables name it.
  std::string name;
  bool baseline = false;
  bool registered = false;
  /// Launched call by call, not captured in a graph.
  bool eager = false;
  /// Of ours.
  KernelChoice choice;
  /// Of a target's baselines: which one.
  unsigned number = 0;
};

class BenchTarget {
public:
  virtual ~BenchTarget() = default;
  /// Number of ranks: the plan's, or what the target has.
  virtual int64_t ranks() const = 0;
  /// Something does not return: the process has to leave without cleaning up.
  virtual bool isStuck() const { return false; }
  /// Fills in what the target knows: device, driver, NCCL, floor.
  virtual llvm::Error describe(Header &header) = 0;
  /// Fills in what a question says of the machine: chip, device,
  /// multiprocessors.
  virtual void describeMachine(ConfigQuery &query) const {}
  /// Makes ready, several at a time, what `make` will need for ours.
  virtual void prepare(llvm::ArrayRef<Candidate> candidates,
                       const BenchCase &problem) {}
  /// The baselines for `problem`.
  virtual std::vector<Candidate> baselines(const BenchCase &problem) = 0;
  /// Makes a contender, which must not outlive `inputs` and the target. May
  /// complete the name (what was chosen where the candidate left it open).
  virtual llvm::Expected<std::unique_ptr<Contender>>
  make(Candidate &candidate, const BenchCase &problem,
       const Reference &inputs) = 0;
};

/// A kind of target. Each is one file *Bench.cpp, which defines the function
/// `get<File>`; CMake lists the files in Benches.inc.
struct BenchKind {
  /// As `--target` has it.
  llvm::StringLiteral name;
  /// Fails when the machine does not have what the plan asks for.
  llvm::Expected<std::unique_ptr<BenchTarget>> (*create)(const Plan &plan);
};

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCHTARGET_H
