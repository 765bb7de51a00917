//===- World.h - N ranks in one process -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A world runs one compiled kernel on every block of every rank. A block is a
// fiber; a wait parks it, and whoever makes the awaited change wakes it. When
// nothing can run and not all have ended, the world says who waits for what.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_WORLD_H
#define COMMSIR_RUNTIME_CPU_WORLD_H

#include "runtime/jit/Compile.h"
#include "runtime/support/RunReport.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace commsir::cpu {

/// Assumptions on hardware that a run with weak memory can break; bits of
/// RunOptions::broken.
enum class Broken : unsigned {
  Store8Whole = 1,
  Store16Whole = 2,
  Store128Whole = 4,
  LaunchIsFence = 8
};

/// Their names, as the checker and the Spec have them.
struct BreakableAssumption {
  llvm::StringLiteral name;
  Broken bit;
};
llvm::ArrayRef<BreakableAssumption> getBreakableAssumptions();

struct RunOptions {
  /// Blocks of each rank.
  int64_t blocks = 1;
  /// How many times each rank launches the kernel. A rank starts its next
  /// launch when all its own blocks have ended, whatever its peers do.
  int64_t launches = 1;
  /// Number of the first of them, as if others had ended before.
  int64_t firstLaunch = 1;
  uint64_t seed = 0;
  /// A schedule drawn from `seed`, with switches at every synchronization;
  /// false: round robin.
  bool shuffle = false;
  /// Several threads; the schedule is then the machine's.
  bool fast = false;
  /// Threads of a fast run; 0: as many as the machine has.
  unsigned workers = 0;
  /// Limit on the steps of the scheduler; 0: none.
  uint64_t maxSteps = 0;
  /// Limit in seconds; 0: none.
  double timeLimit = 0;
  /// Ends the run from outside, whatever its blocks are at.
  std::stop_token stop;
  /// Fills each block's scratch memory, at the start of each of its launches,
  /// with numbers drawn from `seed`: a kernel that reads there what it has not
  /// written gives visible rubbish.
  bool junkScratch = false;
  /// Puts canaries around each part of each argument. A run that has changed
  /// one ends the process: for tests of what guards accesses.
  bool guardArrays = false;
  /// Takes the run as a Chrome trace (Perfetto); null: none is made.
  std::string *trace = nullptr;
  /// Memory is as late as the model allows, by `seed`, and races end the run
  /// (runtime/cpu/WeakMemory.h). Implies `shuffle`; the kernel was compiled
  /// with CompileOptions::weak.
  bool weak = false;
  /// Races are only counted.
  bool ignoreRaces = false;
  /// The hardware assumptions that a weak run breaks: bits of Broken.
  unsigned broken = 0;
  /// Called about twice a second after the first two seconds.
  std::function<void(double fraction)> progress;
  /// Called for every recorded access and synchronization of an instrumented
  /// kernel, from the thread that runs the block. `bytes` is 0 for a
  /// synchronization.
  std::function<void(int64_t rank, int64_t block, bool write,
                     const void *address, int64_t bytes,
                     const jit::SourceSite &site)>
      record;
};

class World {
public:
  /// Allocates the memory of all ranks, zeroed or poisoned. `kernel` must
  /// outlive the world. Fails when the options do not fit the kernel or memory
  /// is short.
  static llvm::Expected<std::unique_ptr<World>>
  create(const jit::Kernel &kernel, const RunOptions &options);
  ~World();

  /// Window part, memory, or cells of `rank` for argument number `arg`.
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank);
  /// Sets a scalar argument; `bytes` has the size of its element.
  void setScalar(unsigned arg, int64_t rank, llvm::ArrayRef<char> bytes);
  /// options.launches launches. May be called again: epochs go on.
  std::variant<RunStats, RunError> run();

private:
  struct Impl;
  explicit World(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_WORLD_H
