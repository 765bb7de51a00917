//===- Scheduler.h - Schedules blocks of all ranks --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State of a world. With one worker, a waiting block is stored in a table under
// the address (or barrier) it waits at, and the block that changes that memory
// makes it ready again, without polling. With several workers, each polls the
// waits of its own blocks and is idle when none can continue; the world is
// stuck if all are idle and none has run since the first of them checked. With
// `peers`, only the blocks of one rank are here (see runShared).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_SCHEDULER_H
#define COMMSIR_RUNTIME_CPU_SCHEDULER_H

#include "runtime/cpu/Fiber.h"
#include "runtime/cpu/Peers.h"
#include "runtime/cpu/Trace.h"
#include "runtime/cpu/World.h"

#include "llvm/ADT/DenseMap.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <random>

namespace commsir::cpu {

struct Scheduler;
class WeakMemory;

/// A thread that runs blocks.
struct Worker {
  Scheduler *scheduler = nullptr;
  boost::context::detail::fcontext_t main = nullptr;
  [[no_unique_address]] FiberTag mainTag;
  std::vector<int64_t> freeSlots;
  /// Runnable blocks; in a fast run also blocks to poll (`waiting`).
  std::deque<Fiber *> ready;
  std::vector<Fiber *> waiting;
  uint64_t steps = 0;
  uint64_t bytesMoved = 0;
  std::vector<TraceSlice> slices;
  size_t droppedSlices = 0;
  /// Fast runs: the world's progress counter when this worker last found
  /// nothing to do.
  std::atomic<uint64_t> idleAt{0};
};

/// State of the barrier of one team (and, with extent block, of one block).
struct BarrierState {
  int64_t first = 0, stride = 1, size = 0;
  /// The block it belongs to; -1: all blocks (grid).
  int64_t block = 0;
  int64_t total = 0, arrived = 0;
  std::atomic<uint32_t> generation{0};
  std::vector<bool> present;
  Fiber *waiters = nullptr;
  /// If ranks are processes: the arrivals of all ranks, and how often each
  /// block of this rank has arrived.
  SharedBarrier shared;
  std::vector<uint64_t> own;
  /// Number of observed openings. Used by one thread.
  mutable uint64_t opened = 0;
  bool isPast(uint32_t passed) const {
    if (!shared.arrived)
      return generation.load(std::memory_order_acquire) != passed;
    uint64_t count = shared.arrived->load(std::memory_order_acquire);
    opened = std::max(opened, count / total);
    return static_cast<int32_t>(uint32_t(count / total) - passed) > 0;
  }
};

/// Progress of a rank.
struct RankState {
  std::atomic<int64_t> running{0};
  /// Launch that its blocks may run.
  std::atomic<int64_t> launch{0};
  std::chrono::steady_clock::time_point first, last;
  std::atomic<bool> started{false};
};

struct Scheduler {
  Scheduler(const jit::Kernel &kernel, const RunOptions &options);

  /// Runs options.launches launches, after those of earlier calls.
  std::variant<RunStats, RunError> run();
  /// Runs the blocks of rank `own` in launch `epoch`; the other ranks are other
  /// processes. Returns null if all blocks have ended.
  std::unique_ptr<RunError> runShared(int64_t own, int64_t epoch);
  /// Whether the failure was caused by a peer that damaged shared memory.
  bool isPeersFault() const;
  /// Builds an error with a report of the current waits, as for a deadlock.
  RunError makeError(RunError::Kind kind, std::string message) const;

  // Called by compiled kernels through Runtime.cpp.
  void waitFor(Fiber &fiber, const Wait &wait);
  [[noreturn]] void fail(Fiber &fiber, int32_t site, const Failure &failure);
  void interrupt(Fiber &fiber, int32_t site);
  /// The barrier of that number, or null.
  BarrierState *findBarrier(uint64_t number);
  void stored(Fiber &fiber, char *address, int64_t bytes);
  void maybeYield(Fiber &fiber);
  /// Lets other blocks run; `site` is the source site, or -1.
  void yield(Fiber &fiber, int32_t site);
  int64_t readCell(Fiber &fiber, int32_t site, int64_t *cell);
  int64_t arrive(Fiber &fiber, int32_t site, int64_t first, int64_t stride,
                 int64_t size, bool grid);
  bool isReady(Wait &wait) const;

  // Implemented in Report.cpp.
  Waiting describe(const Fiber &fiber) const;
  std::string describeCell(const Fiber &fiber) const;
  std::string describeSlot(const Fiber &fiber) const;
  std::string describeMissing(const BarrierState &barrier, int64_t member,
                              int64_t missing, int64_t first) const;
  std::string describeBarrier(const Fiber &fiber) const;
  std::string describeFailure(const Fiber &fiber) const;
  std::string describeProgress(int64_t rank, int64_t block) const;

  const jit::Kernel &kernel;
  const RunOptions &options;
  int64_t ranks, blocks;
  std::vector<Mapping> memory;
  std::vector<mlir::comms::cpu::ArgTable> args;
  StackPool stacks;
  std::vector<Fiber> fibers;
  std::deque<RankState> rankStates;
  std::deque<Worker> workers;
  int64_t lastLaunch;
  /// Ranks that are other processes; null: all ranks are here.
  Peers *peers = nullptr;
  /// Of a run with weak memory; else null.
  std::shared_ptr<WeakMemory> weak;

  std::deque<BarrierState> barriers;
  std::mutex barrierLock, reduceLock;

  /// Nonzero: every block must stop at the next opportunity.
  alignas(64) std::atomic<uint32_t> stop{0};
  std::atomic<bool> timedOut{false}, interrupted{false}, outOfSteps{false};

private:
  void start();
  void takeStack(Worker &worker, Fiber &fiber);
  void resume(Worker &worker, Fiber &fiber);
  void ended(Worker &worker, Fiber &fiber);
  void varyData(int64_t rank);
  void park(Fiber &fiber);
  void wake(Fiber *list);
  bool wakeStale();
  void runAlone();
  void runWorker(unsigned number);
  void startShared(int64_t own, int64_t epoch);
  bool pollWaiting(Worker &worker);
  int64_t arriveShared(Fiber &fiber, int32_t site, const BarrierKey &key);
  uint32_t findShared(Fiber &fiber, int32_t site, const BarrierKey &key);
  bool isStuck();
  void checkClock();
  void record(Worker &worker, Fiber &fiber, int64_t begin, int64_t end);
  int64_t now() const;
  void noteChange(const Worker &worker) {
    if (!options.fast)
      lastChange = worker.steps;
  }
  std::variant<RunStats, RunError> conclude();
  static void enter(boost::context::detail::transfer_t transfer);
  void suspend(Fiber &fiber);

  /// Blocks that wait at memory, by 128-byte granule.
  llvm::DenseMap<uintptr_t, Fiber *> parked;
  llvm::DenseMap<
      std::pair<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>,
      uint32_t>
      barrierIds;
  std::mt19937_64 random;
  std::chrono::steady_clock::time_point begun, lastProgress;
  std::atomic<int64_t> finishedBlocks{0};
  int64_t allBlocks = 0;
  std::atomic<uint64_t> progress{1};
  std::atomic<bool> abort{false};
  std::atomic<bool> stuck{false};
  bool onlyPolls = false;
  /// One worker: the step at which memory last changed.
  uint64_t lastChange = 0;
  /// Last values that blocks read from cells, if other ranks are other
  /// processes.
  llvm::DenseMap<int64_t *, int64_t> lastRead;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_SCHEDULER_H
