//===- World.h - N ranks in one process -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A world runs one compiled kernel on every block of every rank. A block is a
// fiber. A wait suspends it, and the block that makes the awaited change
// resumes it. If no block can run and not all have ended, the world reports the
// deadlock.
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
  LaunchIsFence = 8,
  PacketsCumulative = 16
};

/// Their names, as the checker and the Spec have them.
struct BreakableAssumption {
  llvm::StringLiteral name;
  Broken bit;
};
llvm::ArrayRef<BreakableAssumption> getBreakableAssumptions();

struct RunOptions {
  /// Blocks per rank.
  int64_t blocks = 1;
  /// Launches per rank. A rank starts its next launch when all its own blocks
  /// have ended, independently of its peers.
  int64_t launches = 1;
  /// Number of the first launch, as if earlier launches had ended.
  int64_t firstLaunch = 1;
  uint64_t seed = 0;
  /// True: a random schedule drawn from `seed`, with switches at every
  /// synchronization. False: round robin.
  bool shuffle = false;
  /// Use several threads; the schedule is then nondeterministic.
  bool fast = false;
  /// Threads of a fast run; 0: one per processor.
  unsigned workers = 0;
  /// Limit on scheduler steps; 0: none.
  uint64_t maxSteps = 0;
  /// Time limit in seconds; 0: none.
  double timeLimit = 0;
  /// Ends the run from outside, whatever its blocks do.
  std::stop_token stop;
  /// Fills each block's scratch memory with numbers drawn from `seed` at the
  /// start of each launch. Reads of uninitialized scratch memory then give
  /// visibly wrong results.
  bool junkScratch = false;
  /// Places canaries around each part of each argument and terminates the
  /// process if one changes. For tests of bounds checks.
  bool guardArrays = false;
  /// Receives a Chrome trace (Perfetto) of the run; null: none.
  std::string *trace = nullptr;
  /// Memory is as late as the model allows, by `seed`, and races end the run
  /// (runtime/cpu/WeakMemory.h). Implies `shuffle`; the kernel was compiled
  /// with CompileOptions::weak.
  bool weak = false;
  /// Races are only counted.
  bool ignoreRaces = false;
  /// The hardware assumptions that a weak run breaks: bits of Broken.
  unsigned broken = 0;
  /// Arguments whose elements move on by one place, on each rank, before each
  /// of its launches but the first.
  std::vector<unsigned> varied;
  /// Called about twice a second after the first two seconds.
  std::function<void(double fraction)> progress;
  /// Instrumented kernels: called for each recorded access and synchronization,
  /// from the thread that runs the block. `bytes` is 0 for a synchronization.
  std::function<void(int64_t rank, int64_t block, bool write,
                     const void *address, int64_t bytes,
                     const jit::SourceSite &site)>
      record;
};

class World {
public:
  /// Allocates the memory of all ranks, zeroed or poisoned. `kernel` must
  /// outlive the world. Fails if the options do not fit the kernel or memory is
  /// short.
  static llvm::Expected<std::unique_ptr<World>>
  create(const jit::Kernel &kernel, const RunOptions &options);
  ~World();

  /// Window part, memory, or cells of `rank` for argument `arg`.
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank);
  /// Sets a scalar argument; `bytes` must have its element's size.
  void setScalar(unsigned arg, int64_t rank, llvm::ArrayRef<char> bytes);
  /// Runs options.launches launches. May be called repeatedly; epochs continue.
  std::variant<RunStats, RunError> run();

private:
  struct Impl;
  explicit World(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_WORLD_H
