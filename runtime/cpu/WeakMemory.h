//===- WeakMemory.h - Memory as late as the model allows --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory of a run with RunOptions::weak. The kernel is instrumented
// (comms-instrument=everything): before each op that accesses memory, it
// reports the op and the memory that the op will access.
//
// Stores. While a block runs, its delayed stores are in memory. When the block
// stops, they are taken out again, and they are put back when it continues, so
// that only this block sees them. Each store becomes visible to all blocks at a
// random time, in order per location. A release makes all of them visible.
// Relaxed signals, puts and bulk copies wait in the same list.
//
// Cells. Signals and counters keep their last values. A read may return any
// value that is consistent with the events that the reader knows of.
//
// Races. Vector clocks compare every access with earlier ones.
//
// All random choices come from the scheduler's seed. There is one worker.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_WEAKMEMORY_H
#define COMMSIR_RUNTIME_CPU_WEAKMEMORY_H

#include "runtime/cpu/RaceDetector.h"
#include "runtime/cpu/Scheduler.h"

#include "llvm/ADT/DenseMap.h"

#include <deque>
#include <unordered_map>

namespace commsir::cpu {

/// The content of a synchronization record of an op: "signal release sys".
struct WeakOp {
  std::string name;
  bool releases = false, acquires = false;
  /// Scope of its order: 0 none, 1 blocks of a rank, 2 all ranks.
  int reach = 2;
  Proxy proxy = Proxy::Generic;
  bool overGin = false;
  /// GIN context; -1: all.
  int64_t context = -1;
  /// Bulk copies; empty: all.
  llvm::SmallVector<int64_t, 2> copies;
  /// The kernel states packets_cumulative (M25).
  bool isCumulative = false;
  /// Packets: bytes that are stored as a whole.
  int64_t whole = 8;

  // Properties of `name`, which every access uses.
  bool isPut = false, isGet = false, isBulkCopy = false, isBulkWait = false,
       isEngineCopy = false, isPacketStore = false, isMultimem = false,
       isFlush = false, isHost = false, isOfCounter = false;
  /// Packets, poison and reductions through multimem may race.
  bool isStrong = false;
  /// The kernel calls `stored` after a store of such an op.
  bool isTold = false;
  /// Bytes of its stores that become visible together.
  int64_t grain = 8;
};

class WeakMemory {
public:
  explicit WeakMemory(Scheduler &scheduler);
  ~WeakMemory();

  // Calls from an instrumented kernel.
  void beginOp(Fiber &fiber, int32_t site);
  void access(Fiber &fiber, bool write, char *address, int64_t bytes);

  // Replacements for the functions that kernels call.
  void stored(Fiber &fiber, char *address, int64_t bytes);
  void copy(Fiber &fiber, char *source, char *dest, int64_t bytes);
  void count(Fiber &fiber, int64_t *cell);
  /// `kind`: 0 sets, 1 and 2 add.
  void signal(Fiber &fiber, int64_t *cell, int64_t rank, int64_t kind,
              int64_t value);
  void reset(Fiber &fiber, int64_t *cell);
  int64_t read(Fiber &fiber, int64_t *cell);
  /// Ends a wait if a value that the reader may see satisfies it.
  bool tryWait(Fiber &fiber, int64_t *cell, bool atLeast, int64_t value);
  void fence(Fiber &fiber);
  void beforeArrival(Fiber &fiber);
  void arrived(Fiber &fiber, int64_t handle);
  void departed(Fiber &fiber, int64_t handle);

  // Calls from the scheduler.
  void enter(Fiber &fiber);
  void leave(Fiber &fiber);
  /// All blocks of the rank have ended a launch.
  void endLaunch(Fiber &last);
  /// Makes a random delayed operation visible, or none.
  void tick();
  /// Makes one delayed operation visible; false: there is none.
  bool makeOne();
  void makeAll();

  /// The race that ended a block.
  std::string describeRace() const;

private:
  struct Item;
  struct Snapshot;
  struct Lane;
  struct Agent;
  struct Cell;
  struct Message;

  Agent &agentOf(const Fiber &fiber);
  Lane &findLane(Agent &agent, int kind, int64_t way);
  uint32_t countLaunch(const Fiber &fiber) const;
  void advanceRank(int64_t rank, uint32_t thread, uint32_t time);
  void settle(Agent &agent, int kind, llvm::function_ref<bool(int64_t)> isWay);
  Knowledge release(Fiber &fiber, const WeakOp &op, int64_t rank);
  void publish(Agent &agent);
  void makeHeld(Fiber &fiber, llvm::function_ref<bool(const Item &)> isMade);
  void make(Agent &agent, Item &item);
  bool makeRandom(Agent &agent, bool whole);
  bool readSource(Item &item);
  void apply(Agent &agent);
  void unapply(Agent &agent);
  void capture(Agent &agent);
  void endScratch(Fiber &fiber);
  std::unique_ptr<Item> newItem();
  void hold(Agent &agent, std::unique_ptr<Item> item);
  void drop(std::unique_ptr<Item> item);
  bool mayBeOvertaken(const Agent &agent, const Event &event, char *address,
                      int64_t bytes) const;
  void snapshot(Agent &agent, char *address, int64_t bytes, bool isOvertaken);
  void holdPart(Agent &agent, const Item &all, char *address, int64_t bytes);
  bool makePart(Agent &agent, Item &item);
  void resolvePassed(Agent &agent);
  void acquire(Agent &agent, const Message &message, const WeakOp &op);
  void change(Cell &cell, int64_t *at, int64_t kind, int64_t value,
              const Event &event, std::shared_ptr<const Message> message);
  bool mayComeLast(const Cell &cell) const;
  Cell &cellAt(int64_t *at);
  size_t firstVisible(const Agent &agent, const Cell &cell) const;
  void take(Agent &agent, Cell &cell, size_t version);
  bool isOrdered(const Agent &agent, const Event &earlier,
                 const Event &later) const;
  void accessHost(Fiber &fiber, char *address, int64_t bytes);
  void check(Fiber &fiber, const Event &event, char *address, int64_t bytes,
             const Passed &passed);
  /// Where memory of an argument lies.
  struct Place {
    unsigned arg = 0;
    int64_t rank = 0, offset = 0;
  };
  std::optional<Place> findPlace(const char *address) const;
  bool isScratch(const char *address) const;
  int64_t findWay(const WeakOp &op, const char *address) const;
  std::string describe(const Event &event) const;
  uint64_t random();
  bool chance(unsigned oneIn) { return random() % oneIn == 0; }

  Scheduler &scheduler;
  uint64_t drawn = 0;
  std::vector<WeakOp> ops;
  const WeakOp none;
  bool usesScopes = false;
  /// The kernel states packets_cumulative, and the run does not break it.
  bool isCumulative = false;
  std::vector<Agent> agents;
  /// Of each thread of a clock, the block, over all ranks; or `kHost`.
  std::vector<int32_t> owners;
  static constexpr int32_t kHost = -1;
  std::unordered_map<int64_t *, Cell> cells;
  AccessHistory history;
  /// What arrivals at a barrier release, by the barrier's handle.
  std::unordered_map<int64_t, Knowledge> arrivals;
  std::vector<uint32_t> hostThreads;
  /// By rank and launch, the block that tells what the host does before it.
  std::map<std::pair<int64_t, int64_t>, int64_t> hostTellers;
  size_t held = 0;
  /// Items that can be used again.
  std::vector<std::unique_ptr<Item>> spare;
  std::optional<Race> race;
  Place racePlace;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_WEAKMEMORY_H
