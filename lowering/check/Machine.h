//===- Machine.h - Follows a program on every rank and block ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread is one block of one rank. The machine runs all threads, launch after
// launch, each as far as possible. Because signals persist and waits test
// values, termination does not depend on the schedule. Effects that could
// depend on it (waits for equality, resets, overwrites) are checked against the
// order that holds in every schedule (Order.h).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_MACHINE_H
#define COMMSIR_LOWERING_CHECK_MACHINE_H

#include "lowering/check/Contents.h"
#include "lowering/check/Folding.h"
#include "lowering/check/Linear.h"
#include "lowering/check/Order.h"
#include "lowering/check/Program.h"
#include "lowering/check/Terms.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <set>

namespace mlir::comms::check {

/// Concrete data for a simulation: values of all integers in scalars and in
/// memory that the program has not written.
struct Model {
  /// Equal on all ranks; or, with `byRank`, a different number below the number
  /// of ranks on each: the rank shifted by `value`.
  bool byRank = false;
  int64_t value = 0;
  int64_t of(int64_t rank, int64_t ranks) const {
    return byRank ? (rank + value) % ranks : value;
  }
};

/// The reason why a program without errors is not proven, or cannot be
/// simulated further.
struct UnprovenReason {
  Operation *op = nullptr;
  std::string text;
  llvm::SmallVector<std::pair<Operation *, std::string>, 2> notes;
  /// The rank, cell or place of a synchronization depends on data.
  bool isPlace = false;
  /// Places that the kernel computes by counting may overlap.
  bool isCounted = false;
};

/// The roots of launches, before the remainder by the number of ranks: `first`
/// in launch 1, then further by `step`, by twice the step, and so on.
struct Roots {
  int64_t first = 0, step = 0;
  int64_t of(int64_t launch) const {
    return first + step * (launch * (launch - 1) / 2);
  }
};

/// A wait of a thread by an action on a cell: thread, action, argument, rank
/// and index of the cell.
using CellWaitKey = std::array<int64_t, 5>;

/// A wait whose value grows otherwise than its cell.
struct Drift {
  CellWaitKey wait = {};
  /// What each grows by in a period.
  int64_t wanted = 0, grown = 0;
  /// The launch in which the wait is never met, or first met by what came in
  /// the launches before.
  int64_t launch = 0;
};

/// The simulated world.
struct WorldShape {
  int64_t ranks = 0, reach = 0, blocks = 0, launches = 3;
  /// Simulated ranks, ascending. The actions of others are assumed to be done;
  /// reuse between launches is then not checked.
  std::vector<int64_t> followed;
  /// Budget of events (instructions, with actions and clocks weighted).
  uint64_t budget = 0;

  /// Omitted ranks do not affect the order of the simulated ones, so that
  /// memory is still checked.
  bool comparesMemory = false;
  /// Concrete data; none: arbitrary data.
  std::optional<Model> model;
  /// Simulates only these blocks of each rank, represented by the first.
  std::optional<Lanes> lanes;
  /// Decisions of host scalars about synchronization are chosen rather than
  /// left open: the first ones by `choices`, later ones false.
  bool choosesScalars = false;
  /// Those of data as well, which may differ by rank.
  bool choosesData = false;
  std::vector<bool> choices;
  /// Integers that the host gives, by launch (in turn) and in the order of
  /// `Program::scalars`; empty: any integers.
  std::vector<std::vector<int64_t>> scalars;
  /// For programs whose launches give the root.
  Roots roots;
  /// After so many launches what a launch does is repeated; 0: it is not known.
  int64_t period = 0;
  /// Some place may move on from launch to launch.
  bool hasMovingPlaces = false;
  /// Waits that are met at once, by what came in earlier launches.
  std::set<CellWaitKey> idle;

  /// Simulated blocks per rank.
  int64_t followedBlocks() const { return lanes ? 1 : blocks; }

  bool isPartial() const {
    return static_cast<int64_t>(followed.size()) < ranks && !comparesMemory;
  }
};

/// Condition of a waiting thread.
struct Waiting {
  /// "signal s[0] >= 3; observed 2".
  std::string what;
  /// Threads that could satisfy it; `each`: all of them must act.
  llvm::SmallVector<int32_t> awaited;
  bool each = false;
  /// Something arrived that does not match.
  bool mismatch = false;
  /// Additional lines.
  llvm::SmallVector<std::string, 2> details;
};

class Machine {
public:
  enum class Outcome {
    /// Every thread has finished every launch.
    Finished,
    /// Some threads wait and nothing can release them.
    Stuck,
    /// An error was reported, and the simulation cannot continue.
    Refused,
    /// The last unproven reason prevents the simulation from continuing; or the
    /// program's data do not match the model.
    Open,
    /// The budget is exhausted.
    OverBudget,
    /// Blocks that were simulated as one behave differently.
    Diverged,
  };

  /// The shape must be valid: positive, with at most 2^20 ranks and 2^16
  /// threads. `footprints` receives the accesses; it is required if the shape
  /// has lanes.
  Machine(const Program &program, const WorldShape &shape,
          Footprints *footprints = nullptr);

  Outcome run();
  /// Also tracks the contents of elements, for a program built for that.
  /// `begin` and `end` are called with the number of each launch before and
  /// after it, while no rank is inside one.
  void followValues(Contents &followed, std::function<void(int32_t)> begin,
                    std::function<void(int32_t)> end);
  bool foundErrors() const { return errors > 0; }
  /// Whether the model's data cause an out-of-range access, which ends a real
  /// run with an error, or are not all that the program needs. Such data prove
  /// nothing else.
  bool modelLeavesRange() const { return leavesRange; }
  llvm::ArrayRef<UnprovenReason> getUnprovenReasons() const { return unproven; }
  /// Some order of writes rests on packets_cumulative (M25).
  bool assumesChains() const { return reliesOnChains; }
  /// The choices that were made, in order.
  const std::vector<bool> &choicesMade() const { return madeChoices; }
  /// The conditions that were chosen, with values; none: one has no value.
  std::optional<std::vector<std::pair<Ref, bool>>> chosenConditions();
  /// Scalar values for which a run makes these choices: "steps = 1 in launch
  /// 2"; none if not found.
  std::optional<std::string> findScalarsThatChoose() const;

  // For launches that are not followed (MachineLaunches.cpp).
  std::vector<Drift> findDrifts() const;
  /// Reports places that move on.
  void checkPlaces();
  /// "signal s[0] of rank 1 grows by 10 in each launch, and …".
  std::string describe(const Drift &drift) const;
  void reportNeverMet(const Drift &drift);

  // For the report of a stuck run.
  int32_t numThreads() const { return static_cast<int32_t>(threads.size()); }
  bool isStuck(int32_t thread) const { return threads[thread].blocked; }
  /// Whether the thread has returned from its present launch.
  bool hasEnded(int32_t thread) const { return threads[thread].atEnd; }
  const Action &waitsAt(int32_t thread) const;
  Waiting describe(int32_t thread) const;
  /// "rank 1 block 0".
  std::string name(int32_t thread) const;
  int32_t launchOf(int32_t thread) const { return threads[thread].launch; }
  int64_t rankOf(int32_t thread) const { return threads[thread].rank; }
  int64_t blockOf(int32_t thread) const { return threads[thread].block; }
  const WorldShape &world() const { return shape; }

  uint64_t spent() const { return steps + clocks.work() / 8; }
  /// For a diverged run: the first block that behaves differently.
  int64_t splitsAt() const { return folding->splitsAt(); }

private:
  struct TeamView {
    int64_t first = 0, stride = 1, size = 1, rank = 0;
    int64_t world(int64_t teamRank) const { return first + teamRank * stride; }
  };
  struct Bounds {
    int64_t begin = 0, end = 0;
    /// The place depends on data; these are all possible places.
    bool anywhere = false;
    /// The place is unknown to the checker.
    bool isGuess = false;
    /// The kernel computed the place by counting; see Interval.
    bool isCounted = false;
    /// The elements in `sumsOfPlaces`; 0: not known as sums.
    int32_t sums = 0;
  };
  /// Elements that an access touches, as sums of unknown integers, and the
  /// conditions under which it is made.
  struct SumsOfPlace {
    LinearSum begin, end;
    llvm::SmallVector<int32_t, 2> conditions;
  };
  /// Executions of regions that may not run, from the outermost on.
  using Path = llvm::SmallVector<int64_t, 2>;
  /// A fence that names a proxy, and what was visible to its thread.
  struct ProxyFence {
    Timestamp stamp;
    /// Enclosing regions that may not run.
    Path path;
    std::vector<uint32_t> seen;
    AgentTimes seenOfAgents;
  };
  /// A branch or loop whose behavior is unknown.
  struct UnknownBranch {
    int32_t guard = -1;
    /// Identifies one execution of its region.
    int64_t run = 0;
    /// The first execution that has run if this one does: of a loop, that of
    /// its first iteration.
    int64_t firstRun = 0;
    /// Number of entries into its region.
    int32_t rounds = 0;
    /// A loop simulated from its first iteration on; its carried values are
    /// known.
    bool isCounted = false;
    /// The loop counter's register and its range.
    Register counter = noRegister;
    Interval span;
    /// A check that fails has ended the run in the present region.
    bool isOver = false;
    /// The upper bound of a loop; and the comparison that holds in the present
    /// region, as a term (0: none is known).
    Interval bound;
    int32_t holds = 0;
    /// If values are tracked: the condition under which the present region
    /// runs.
    std::optional<Ref> condition;
  };
  /// Memory accessed by a transfer until it is known to be complete.
  struct Pending {
    int32_t action = -1;
    /// Argument memory: the part; scratch memory: -1 - its index.
    int64_t place = 0;
    int32_t argument = -1;
    int64_t rank = 0;
    Bounds bounds{0, 0};
    bool write = false;
    /// A release fence followed it.
    bool fenced = false;
    /// When the op was executed.
    uint32_t time = 0;
    /// The agent that does it, and its moment; none: the thread.
    Timestamp agent;
    /// Token of a bulk copy.
    int64_t copy = 0;
    /// Id of the cell that counts it, or -1.
    int64_t counter = -1;
    /// World rank of its peer; -1: none, or unknown.
    int64_t peer = -1;
    /// Enclosing regions that may not run, and those of a flush behind it.
    Path path, flushedIn;
  };
  struct ScratchWrite {
    int32_t scratch = -1, action = -1;
    Bounds bounds;
    /// Whether its place is known, and data decide whether it is made.
    bool isSure = true, isUnsure = false;
    /// Enclosing regions of a fence behind it that may not run.
    Path fencedIn;
  };
  struct Thread {
    int32_t id = 0, rankIndex = 0, rank = 0, block = 0, launch = 1, pc = 0;
    bool blocked = false, atEnd = false;
    /// The wait at `pc` has let all others run as far as possible once.
    bool yielded = false;
    /// The last moments of the present launch and the two before.
    uint32_t ends[3] = {};
    int32_t openArrivals = 0, lastArrive = -1;
    /// Generation of the barrier at `pc`, after arrival.
    int32_t pending = -1;
    llvm::SmallVector<std::pair<int64_t, int32_t>, 0> copies;
    /// Transfers that may not be complete.
    llvm::SmallVector<Pending, 0> underway;
    /// Branches and loops around `pc` with unknown conditions: simulated
    /// actions may or may not happen.
    llvm::SmallVector<UnknownBranch, 0> unsure;
    /// Scratch memory written since the last certain fence of proxy async.
    llvm::SmallVector<ScratchWrite, 0> scratchWrites;
  };
  /// One change of a cell.
  struct Change {
    /// Time of the change, and the sender's last action before it.
    Timestamp stamp, deed;
    /// The increment, or (absolute) the new value; and the value after it.
    int64_t amount = 0, after = 0;
    /// The value after it at most: data decide which.
    int64_t most = 0;
    bool absolute = false;
    int32_t action = -1, launch = 0;
    Message message = 0;
    /// Who has surely read a value with it in the cell, the first time.
    llvm::SmallVector<Timestamp, 1> readers;
  };
  struct CellWait {
    Timestamp stamp;
    int32_t action = -1, launch = 0;
    int64_t want = 0;
    /// Number of changes of the cell when the wait was satisfied.
    size_t seen = 0;
    bool equal = false;
  };
  struct Cell {
    /// At least. Data decide by how much it is more, at most `spread`.
    int64_t value = 0, spread = 0;
    /// Data have decided some value since the last reset.
    bool isByData = false;
    /// Names the value; see Interval.
    int32_t term = 0;
    uint32_t id = 0;
    int32_t argument = 0;
    int64_t rank = 0, index = 0;
    /// Changes since the last reset; old ones are dropped.
    llvm::SmallVector<Change, 4> changes;
    int32_t resets = 0;
    /// Some change has set the value.
    bool isSet = false;
    /// The last reset; for counters, the last increment of each thread.
    CellWait reset;
    llvm::SmallVector<CellWait, 0> counts;
    /// Waits for equality since the last change, of a counter those that were
    /// met by all puts; waits since the last reset.
    llvm::SmallVector<CellWait, 2> equalWaits, waits;
    /// Reads of the value since the last change.
    llvm::SmallVector<CellWait, 0> readings;
    /// Incremented by each change.
    int64_t version = 0;
    /// The waiting thread; -1: several.
    int32_t waiter = -1;
    /// The value after each launch.
    llvm::SmallVector<int64_t, 4> ends;
  };
  /// A wait of an op on a cell, to check that it advances from launch to
  /// launch.
  struct Progress {
    int32_t launch = 0, resets = 0;
    int64_t highest = 0, before = 0;
    bool hasBefore = false;
    /// The most that it wanted, by launch; none: it did not run.
    llvm::SmallVector<std::optional<int64_t>, 4> wants;
  };
  struct Generation {
    int32_t arrived = 0, launch = 0, firstThread = -1, action = -1;
    Message message = 0;
  };
  struct BarrierState {
    TeamView team;
    bool grid = false;
    int32_t block = 0, channel = -1;
    int32_t members = 0;
    std::deque<Generation> generations;
    llvm::DenseMap<int32_t, int32_t> arrivals;
  };
  /// The last send through a slot.
  struct LastSend {
    int32_t action = -1, thread = -1, launch = 0, round = 0;
    int64_t valid = 0;
    Message message = 0;
    /// `valid`, if unknown.
    Interval length;
    /// Handle of the tile, if values are tracked.
    int64_t tile = 0;
  };
  /// When a slot was last received, for the present launch and the two before.
  struct LastReceive {
    int32_t action = -1, thread = -1;
    /// Round of the send whose tile was received.
    int32_t round = -1;
    int32_t launches[3] = {};
    uint32_t times[3] = {};
  };
  /// A message that a thread has received.
  struct Heard {
    Message message = 0;
    /// -1: of several, at a barrier.
    int32_t sender = -1;
    /// When it was received.
    Timestamp moment;
    /// The op that received it.
    int32_t action = -1, launch = 0;
  };
  /// The slots of one channel, allocated on demand: sends by source (to all) or
  /// by source and destination, receipts by both; among simulated ranks only.
  struct ChannelState {
    std::vector<std::vector<LastSend>> toAll, toOne;
    std::vector<std::vector<LastReceive>> receipts;
    /// Tiles sent (once per destination) and received in the present launch.
    int64_t due = 0, taken = 0;
  };

  // Simulation.
  void nextLaunch(int32_t rankIndex);
  /// Runs a thread until it waits or ends. Returns whether it made progress.
  bool advance(Thread &thread);
  void branch(Thread &thread, const Instruction &in, Interval condition);
  void enterLoop(Thread &thread, const Instruction &in, const Interval *v);
  void evaluate(const Instruction &in, Thread &thread, Interval *values);
  void evaluateChecked(const Instruction &in, Thread &thread, Interval *values);
  Interval evaluateCast(const Instruction &in, Interval value);
  /// The result of an operation of which some operand is not known.
  Interval evaluateUnknown(const Instruction &in, Interval a, Interval b);
  /// Simulates everything that a branch or loop with an unknown condition may
  /// do, or refuses it.
  /// `decides`: the integer that is not known.
  void passUnknown(Thread &thread, int32_t guard, Interval decides);
  /// The arrays on whose integers `value` depends: "'a', 'b'"; empty: not
  /// known.
  std::string arraysOf(Interval value) const;
  /// The innermost branch or loop that may not run, if it is this one.
  UnknownBranch *unknownBranchOf(Thread &thread, int32_t guard) {
    return !thread.unsure.empty() && thread.unsure.back().guard == guard
               ? &thread.unsure.back()
               : nullptr;
  }
  /// The decision of scalars, equal on all ranks; none: scalars do not decide
  /// it, or it is left open.
  std::optional<bool> choose(const Thread &thread, int32_t guard,
                             Interval condition);
  bool canChoose(int32_t guard, Interval value) const;
  /// Whether nothing that the kernel does limits the integers behind a term:
  /// the host gives them, in each launch others.
  bool isFree(int32_t term) const;
  bool choosesSo(llvm::ArrayRef<int32_t> leaves,
                 const std::map<int32_t, int64_t> &scalars) const;
  /// Enters a loop with an unknown end.
  void enterUnknownLoop(Thread &thread, const Instruction &in);
  /// At the loop's head: continues to the body, or behind the loop.
  void nextRound(Thread &thread, UnknownBranch &loop,
                 const Instruction *branch);
  /// Makes the loop's carried values unknown.
  void forgetCarried(Thread &thread, UnknownBranch &unsure);
  /// In a region that may not run: a flush completes only the transfers before
  /// it.
  void flushUnknown(Thread &thread, const Action &action);
  void flush(Thread &thread, const Action &action,
             llvm::ArrayRef<int64_t> path);
  /// Whether a flush of `team`, by `action`, waits for the transfer.
  bool flushes(const Thread &thread, const Action &action,
               const Pending &pending) const;
  /// The regions around what `thread` does now that may not run.
  static Path pathOf(const Thread &thread);
  /// Whether the regions of `path` have run, if what `thread` does now runs.
  static bool hasRun(const Thread &thread, const Path &path);
  /// Whether a flush has run, if what `thread` does now runs.
  static bool isFlushed(const Thread &thread, const Pending &pending);
  /// Records an unproven reason; `note` may be empty.
  UnprovenReason &noteUnproven(Operation *op, const llvm::Twine &text,
                               llvm::StringRef note = {},
                               Operation *other = nullptr);
  /// Ends the run if blocks simulated as one turn out to differ.
  bool agree(bool alike) {
    if (!alike)
      fatal = diverged = true;
    return alike;
  }
  /// Performs the action at pc. Returns false if the thread must wait.
  bool act(Thread &thread, int32_t index);
  void endLaunch(Thread &thread);
  void checkAllReceipts();
  void noteWant(const Thread &thread, Progress &state, int64_t want);
  void noteCells(int64_t launch);
  bool isIdle(const Thread &thread, int32_t index, const Cell &cell) const;
  void notePlaces(const Thread &thread, int32_t index);

  // Actions. Return false if the thread must wait.
  void doSignal(Thread &thread, int32_t index);
  bool doWait(Thread &thread, int32_t index);
  bool doRead(Thread &thread, int32_t index);
  void noteUnprovenRead(const Action &read, const Action &change);
  void doReset(Thread &thread, int32_t index);
  bool doWaitCounter(Thread &thread, int32_t index);
  void doFence(Thread &thread, const Action &action);
  bool doEngineCopy(Thread &thread, int32_t index);
  bool doBarrier(Thread &thread, int32_t index);
  void doSend(Thread &thread, int32_t index);
  bool doRecv(Thread &thread, int32_t index);
  bool doChannelBarrier(Thread &thread, int32_t index);
  bool doPackets(Thread &thread, int32_t index);
  void storePackets(Thread &thread, int32_t index, Bounds piece, int64_t flag);
  /// Returns false if the packets have not arrived.
  bool loadPackets(Thread &thread, int32_t index, Bounds piece, int64_t flag);
  int64_t packetRank(const Thread &thread, const Action &action) const;
  void checkOldPackets(const Thread &thread, const Action &action,
                       const Mailbox::Run &run, int64_t flag);
  void reportEmptyFlag(const Thread &thread, const Action &action);
  void doBulk(Thread &thread, int32_t index);
  void doAccess(Thread &thread, int32_t index);
  /// The most rows that a range can have.
  int64_t mostRows(const Thread &thread, const RangePlan &range) const;
  void touchRows(Thread &thread, int32_t index, const RangePlan &range,
                 Bounds row);

  /// `thread` receives a message of `sender` (-1: of several) by the action.
  void hear(Thread &thread, int32_t index, Message message, int32_t sender,
            bool acquire, bool near);
  /// Whether a write comes, in the order of its location, before what `thread`
  /// does there now (M13), if need be by M25. `moments`: of the write, and of
  /// reads that have surely read it or a later one.
  bool isBehind(const Thread &thread, llvm::ArrayRef<Timestamp> moments);
  /// The same for a change of a cell.
  bool isBehind(const Thread &thread, const Cell &cell, const Change &change);
  /// Adds notes: by what chain `thread` has heard of `write`, and what to do.
  void noteChain(InFlightDiagnostic &diag, const Thread &thread,
                 Timestamp write) const;
  /// A write that `thread` has heard of by relaxed ops only may come behind
  /// what it writes now.
  void reportOvertaking(const Thread &thread, const Action &action,
                        const Touch &write, llvm::StringRef what);

  // Helpers of actions.
  std::optional<int64_t> get(const Thread &thread, Register reg) const;
  Interval getInterval(const Thread &thread, Register reg) const;
  void set(const Thread &thread, Register reg, Interval value);
  /// An integer of `width` bits read by the program.
  Interval find(Leaf leaf, int64_t rank, unsigned width);
  void findScalars(Thread &thread);
  void forgetArrays(const Thread &thread);
  /// A part has been written in a way that is not followed.
  void forgetIntegers(size_t part);
  Interval findOpaque(const Thread &thread, const Instruction &in);
  void loadInteger(Thread &thread, const Action &action, Bounds bounds);
  /// Union of the integers known to be stored in `bounds`.
  std::optional<Interval> joinStored(size_t part, Bounds bounds) const;
  /// Records that one of the integers in `bounds` may have become `value`.
  void mayStore(const Thread &thread, size_t part, Bounds bounds,
                Interval value);
  void storeInteger(Thread &thread, const Action &action,
                    const RangePlan &range, Bounds bounds);
  /// Number of elements of a tile that exist: known, or an interval.
  Interval lengthOf(const Thread &thread, const Action &action) const;
  /// Checks whether a wait for `wanted` elements may need more than the
  /// `stored` ones; reports that, or leaves it open.
  void compareLengths(Thread &thread, const Action &action, const Action &store,
                      int32_t storer, Interval wanted, Interval stored);
  std::optional<int64_t> demand(Thread &thread, const Action &action,
                                Register reg, llvm::StringRef what);
  std::optional<int64_t> cellIndex(Thread &thread, const Action &action,
                                   int64_t count);
  std::optional<int64_t> peerOf(Thread &thread, const Action &action);
  Cell &cell(int32_t argument, int64_t rank, int64_t index);
  void observe(Thread &thread, int32_t index, Cell &cell, int64_t want);
  size_t lastSetBefore(const Thread &thread, const Cell &cell);
  void checkAdvance(Thread &thread, int32_t index, const Cell &cell,
                    int64_t want);
  void checkSender(Thread &thread, const Action &action, const Cell &cell);
  /// Checks the order between a change and those before, of which at least one
  /// sets the cell.
  void checkConflicts(Thread &thread, const Action &action, const Cell &cell,
                      bool sets, Interval amount);
  void reportConflict(Thread &thread, const Action &action, const Cell &cell,
                      bool sets, const Change &old);
  /// Checks that no wait for an exact value misses it.
  void checkExactWaits(Thread &thread, const Action &action, const Cell &cell);
  Change makeChange(Thread &thread, int32_t index, const Cell &cell, bool sets,
                    Interval amount, bool release);
  void change(Thread &thread, int32_t index, Cell &cell, bool sets,
              Interval amount, bool release);
  /// Whether data decide if a value of `low` to `high` meets a wait.
  static bool isUnsure(bool equal, int64_t want, int64_t low, int64_t high) {
    return low != high && want <= high && (equal ? low <= want : low < want);
  }
  bool isUnsure(const Action &wait, const Cell &cell, int64_t want) const;
  /// Data decide something of it that has to be known.
  void leaveOpen(const Action &action, llvm::StringRef what);
  void trim(Cell &cell, size_t old);
  /// `strongly`: only what releases and acquires order comes behind `moment`.
  bool isNeeded(ArrayRef<Change> since, const Change &change, Timestamp moment,
                int64_t want, bool strongly = false);
  void checkLowered(Thread &thread, const Action &action, const Cell &cell,
                    int64_t value);
  /// Calls `visit` for waits on `cell` that are not known to `thread` to be
  /// over, until it returns true.
  void forOpenWaits(const Thread &thread, const Cell &cell,
                    llvm::function_ref<bool(const CellWait &)> visit);
  void checkReset(Thread &thread, const Action &action, const Cell &cell);
  void count(Thread &thread, int32_t index);
  void checkCountedFor(const Thread &thread, const Action &action,
                       const Cell &cell);
  void resetCounter(Thread &thread, const Action &action, Cell &cell);
  void fenceTransfer(Thread &thread, Pending &pending);
  void checkOtherSet(Thread &thread, int32_t index, const Cell &cell,
                     const Change &next);
  void checkStandIn(Thread &thread, int32_t index, const Cell &cell,
                    const Change &next);
  Bounds possibleBounds(const Thread &thread, const RangePlan &range) const;
  bool leavesMatrix(const Thread &thread, const Action &action,
                    const RangePlan &range, int64_t first, int64_t count);
  std::optional<Bounds> bounds(Thread &thread, const Action &action,
                               const RangePlan &range);
  void touch(Thread &thread, int32_t index, const RangePlan &range,
             Bounds bounds);
  int32_t findSums(const Thread &thread, const RangePlan &range);
  bool areApart(const Touch &a, const Touch &b) const;
  void noteLengths(const LinearSum &sum);
  bool isPlacedByLengths(const Touch &touch) const;
  /// Calls `visit` with the world rank of each part that may be accessed.
  void forParts(const Thread &thread, const MemoryPlan &memory,
                llvm::function_ref<void(int64_t)> visit);
  bool isTracked(const ArgumentPlan &argument) const;
  /// All blocks of a rank do the same to memory that only they access.
  bool isAlike(const ArgumentPlan &argument) const {
    return !program.isBlockDependent && !argument.shared;
  }
  /// Whether a transfer goes to a member of a team, at any place.
  bool reaches(const Thread &thread, int32_t team,
               const Pending &pending) const;
  void checkPending(Thread &thread, int32_t index, int64_t place, bool write,
                    Bounds bounds);
  void defer(Thread &thread, int32_t index, const RangePlan &range,
             Bounds bounds);
  /// The agent that orders what goes from a thread to world rank `peer` (-1:
  /// not known) in a context of GIN; a get has another.
  int32_t wayOf(const Thread &thread, int64_t context, int64_t peer,
                bool isGet);
  /// Who does a transfer, and when, if not the thread.
  Timestamp beginTransfer(Thread &thread, const Action &action);
  /// The thread on whose behalf an agent acts; of a thread, itself.
  int32_t ownerOf(int32_t agent) const {
    return clocks.isAgent(agent) ? owners[agent - numThreads()] : agent;
  }
  /// Transfers that `over` says are over have been done by now.
  void complete(Thread &thread, llvm::function_ref<bool(const Pending &)> over);
  /// By a release.
  void completeReleased(Thread &thread);
  void settle(Thread &thread, const Pending &done);
  /// What went through adapters from `thread`, which must have left its source,
  /// has arrived for all that hear of a barrier.
  void completeByAdapters(Thread &thread, Message barrier);
  void completeFenced(Thread &thread);
  int64_t placeOf(int32_t argument, int64_t rank) const {
    return argument * static_cast<int64_t>(shape.followed.size()) +
           rankIndex[rank];
  }
  void touchByHost(const Thread &thread, Timestamp turn);
  class PartAccess;
  void touchPart(Thread &thread, int32_t index, int32_t argument, int64_t rank,
                 bool write, Bounds bounds);
  void touchPackets(Thread &thread, int32_t index, int64_t rank, bool write,
                    Bounds units);
  /// The proxy through which `action` accesses an argument.
  static Proxy proxyOf(const Action &action, int32_t argument);
  void fenceProxy(Thread &thread, Proxy proxy);
  /// Whether a fence of `proxy` separates a write from the present.
  bool isFenced(const Thread &thread, Proxy proxy, Timestamp write,
                bool perhaps) const;
  void noteUnfenced(const Action &action, int32_t write, Proxy wanted);
  void checkProxy(Thread &thread, int32_t index, int32_t argument, int64_t rank,
                  const Touch &now, const Touch &write, Bounds bounds);
  void noteScratch(Thread &thread, int32_t index, const RangePlan &range,
                   Bounds bounds);
  int32_t barrier(const Thread &thread, int32_t team, bool grid,
                  int32_t channel);
  int32_t arrive(Thread &thread, int32_t index, BarrierState &state,
                 bool release, bool ordered);
  bool leave(Thread &thread, int32_t index, BarrierState &state,
             int32_t generation, bool acquire, bool ordered);
  const TeamView &view(const Thread &thread, int32_t team) const {
    return views[size_t(thread.rankIndex) * program.teams.size() + team];
  }
  std::optional<TeamView> makeView(const TeamPlan &plan, int64_t rank) const;
  /// The slot's state. Ranks are simulated world ranks.
  std::vector<LastSend> &sends(const Action &action, int64_t source,
                               int64_t dest, bool all);
  const LastReceive *receipt(const Action &action, int64_t source, int64_t dest,
                             int64_t slot) const;
  size_t pairOf(int64_t source, int64_t dest) const {
    return rankIndex[source] * shape.followed.size() + rankIndex[dest];
  }
  void checkReceipts(const ChannelState &state);
  std::optional<int64_t> slotOf(Thread &thread, const Action &action,
                                int64_t &valid);
  Interval channelLength(const Thread &thread, const Action &action) const;
  void compareChannelLengths(Thread &thread, const Action &action,
                             const LastSend &tile);
  void checkReuse(Thread &thread, int32_t index, int64_t dest, int64_t slot);
  void checkCleared(const Thread &thread, const Action &action,
                    int32_t receiver, int64_t slot);
  void checkResend(Thread &thread, int32_t index, int64_t dest, int64_t slot,
                   const LastSend &before);
  /// Thread of a world rank, or -1 if that rank is not simulated.
  int32_t threadOf(int64_t rank, int64_t block) const {
    int32_t index = rankIndex[rank];
    int64_t at = block - (shape.lanes ? shape.lanes->first : 0);
    return index < 0 || at < 0 || at >= shape.followedBlocks()
               ? -1
               : static_cast<int32_t>(index * shape.followedBlocks() + at);
  }
  /// Memory units of a number of elements.
  int64_t unitsOf(const Action &action, int64_t count) const;
  std::optional<Bounds> packetBounds(Thread &thread, const Action &action);
  void store(Thread &thread, int32_t index, int64_t rank, Bounds bounds,
             int64_t flag);
  void checkOverwrite(Thread &thread, const Action &action,
                      const Mailbox::Run &run, int64_t flag,
                      llvm::function_ref<std::string()> place);
  void reportUnread(const Thread &thread, const Action &action,
                    const Touch &read, const std::string &place);
  void reportSameFlag(const Thread &thread, const Action &action,
                      const Mailbox::Run &run, const std::string &place);
  void storePart(Thread &thread, int32_t index, int64_t rank, Bounds bounds,
                 int64_t flag, const Mailbox::Run &made);

  // Values (MachineValues.cpp).
  void beginValues(int32_t launch);
  void endValues(int32_t launch);
  void setTile(const Thread &thread, Register reg, Tile tile);
  Tile unknownTile(int64_t length, Operation *op);
  Tile tileOf(const Thread &thread, Register reg, Type type, Operation *op);
  void computeTile(Thread &thread, const Instruction &in);
  /// The value of an integer that depends on data; none: not tracked.
  std::optional<Ref> valueOf(int32_t term);
  /// Records the condition under which the entered region runs.
  void enterIf(UnknownBranch &unsure, Interval condition, bool holds);
  /// Enters the other region of a branch.
  void enterOtherRegion(UnknownBranch &unsure);
  /// Contents of memory in which `tile` may have overwritten `old`; none: the
  /// condition is unknown.
  std::optional<Tile> mixTiles(const Thread &thread, const Tile &tile,
                               const Tile &old);
  /// An integer of `width` bits with value `ref`.
  Interval integerOf(Ref ref, unsigned width);
  /// Records the value of an integer that was read from memory.
  void noteInteger(const Thread &thread, const Action &action, Bounds bounds);
  Memory &memoryOf(const Thread &thread, const MemoryPlan &memory,
                   int64_t rank);
  bool isExact(const Thread &thread, const RangePlan &range, Bounds bounds);
  Tile readRange(const Thread &thread, const RangePlan &range, Bounds bounds,
                 Operation *op);
  std::optional<Tile> gatherRange(const Thread &thread, const RangePlan &range);
  void writeRange(const Thread &thread, const RangePlan &range, Bounds bounds,
                  Operation *op, llvm::function_ref<void(Memory &)> change);
  /// Stores a tile at a place that data decide. False: there are too many, or
  /// too little is known of it.
  bool scatter(const Thread &thread, const RangePlan &range, const Tile &tile,
               Operation *op);
  /// The number of elements of a range as a value, if it is not known.
  std::optional<Ref> countValue(const Thread &thread, const RangePlan &range);
  /// `tile` up to a number of elements, `rest` behind it.
  Tile maskTile(const Tile &tile, const Tile &rest, Ref count);
  /// Whether two views may be of the same memory.
  bool mayShareMemory(const Thread &thread, const MemoryPlan &a,
                      const MemoryPlan &b);
  /// A product is not written where its operands are.
  void checkProduct(Thread &thread, const Action &action);
  void multiply(const Thread &thread, const Action &action,
                const std::optional<Bounds> *pieces);
  Tile combineParts(const Thread &thread, const Action &action, Bounds bounds);
  void copyContents(const Thread &thread, const Action &action, Bounds from,
                    Bounds to);
  void loadContents(const Thread &thread, const Action &action, Bounds bounds);
  void storeContents(const Thread &thread, const Action &action,
                     const RangePlan &range, Bounds bounds);
  void moveContents(Thread &thread, const Action &action,
                    const std::optional<Bounds> *pieces);
  void markUncertain(Thread &thread, const Action &action);
  void packetContents(Thread &thread, const Action &action, int64_t offset,
                      int64_t rank);
  int64_t sentTile(Thread &thread, const Action &action);

  /// Describes what a thread waits for (MachineWaits.cpp).
  class WaitReport;

  // Reporting. None: an error was already reported at this op.
  std::optional<InFlightDiagnostic> report(const Action &action);
  std::optional<InFlightDiagnostic> report(Operation *op);
  /// For a place, rank or cell out of range. Reports nothing about a model's
  /// data.
  std::optional<InFlightDiagnostic> reportRange(const Action &action);
  bool leavesRange = false;
  std::string when(const Thread &thread) const;
  std::string cellName(const Cell &cell) const;
  /// "[0, 64) of 'x' at rank 1".
  std::string placeName(int32_t argument, int64_t rank, Bounds bounds) const;

  const Program &program;
  WorldShape shape;
  Clocks clocks;
  std::vector<Thread> threads;
  std::vector<Interval> values;
  /// Null: each block is simulated.
  std::unique_ptr<Folding> folding;
  Terms terms;
  /// Conditions decided by scalars, by term, and the choices made for them.
  std::map<int32_t, bool> chosen;
  std::vector<bool> madeChoices;
  /// Number of iterations of a loop, by guard and launch.
  std::map<std::array<int32_t, 3>, int32_t> roundsChosen;
  /// Integers in memory that ops stored individually, by part and element, and
  /// how often a part was written in another way.
  std::vector<std::map<int64_t, Interval>> stored;
  std::vector<int64_t> overwritten;
  std::vector<UnprovenReason> unproven;
  /// The first stands for none.
  std::vector<SumsOfPlace> sumsOfPlaces = std::vector<SumsOfPlace>(1);
  /// Terms that say how much is written somewhere.
  std::set<int32_t> lengths;
  /// Fences of proxies alias and async in each rank's present launch.
  std::vector<ProxyFence> aliasFences, asyncFences;
  /// The last value read, by thread and action.
  llvm::DenseMap<std::pair<int32_t, int32_t>, std::pair<int32_t, int64_t>>
      lastRead;
  int64_t nextRun = 0;
  /// What threads have received in the present launch and the two before.
  std::vector<std::vector<Heard>> heard;
  bool reliesOnChains = false;
  std::vector<TeamView> views;
  std::vector<int32_t> rankIndex;
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, uint32_t> cellIds;
  std::deque<Cell> cells;
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, Progress> progress;
  /// What actions named in the last launch, and a period before, by thread and
  /// action.
  std::map<std::pair<int32_t, int32_t>, std::vector<std::optional<int64_t>>>
      placesNow, placesBefore;
  std::deque<BarrierState> barriers;
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, int32_t> barrierIds;
  /// Channel barriers passed, by channel and thread.
  std::vector<std::vector<int32_t>> rounds;
  std::vector<ChannelState> channels;
  std::vector<Shadow> shadows;
  std::vector<Mailbox> mailboxes;
  /// The threads of agents, and those that are ways of GIN: by thread, context,
  /// peer, and whether it is of gets.
  std::vector<int32_t> owners;
  std::map<std::array<int64_t, 4>, int32_t> ways;
  /// What the transfer is done by whose memory is being touched.
  Timestamp transfer;
  llvm::DenseSet<Operation *> reported;
  uint64_t steps = 0;
  int64_t nextCopy = 0;
  /// Null: values are not tracked.
  Contents *contents = nullptr;
  /// Values of integer terms, and the terms of such integers.
  llvm::DenseMap<int32_t, Ref> valuesOfTerms;
  std::map<Ref, int32_t> termsOfValues;
  std::function<void(int32_t)> beginsLaunch, endsLaunch;
  unsigned errors = 0;
  bool fatal = false, open = false, diverged = false;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_MACHINE_H
