//===- MachineWaits.cpp - What the threads of a stuck run wait for --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::formatv;

/// At most this many other cells or slots are listed.
static constexpr unsigned mostListed = 4;

/// "rank 1", or "ranks 1, 3".
static std::string list(llvm::StringRef noun, llvm::ArrayRef<int64_t> numbers) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << noun << (numbers.size() == 1 ? " " : "s ");
  llvm::interleaveComma(numbers, os);
  return text;
}

/// Describes the condition of one waiting thread.
class Machine::WaitReport {
public:
  WaitReport(const Machine &machine, int32_t id)
      : machine(machine), program(machine.program), shape(machine.shape),
        thread(machine.threads[id]), action(machine.waitsAt(id)) {}

  Waiting describe();

private:
  int64_t get(Register reg, int64_t otherwise) const {
    return machine.get(thread, reg).value_or(otherwise);
  }
  /// A thread that could satisfy the condition.
  void await(int64_t rank, int64_t block);
  /// The thread's own block of every other rank could.
  void awaitEveryRank();

  void describeCell();
  void describeSenders(const Cell *cell, int64_t index);
  /// Ranks that have signaled the cell in the present launch, in the order of
  /// their signals.
  SmallVector<int64_t> findSenders(const Cell *cell) const;
  void awaitSenders(int64_t index, ArrayRef<int64_t> senders);
  void describeOtherCells(const Cell *cell);
  void describeReading();

  const BarrierState &barrierOf(int32_t channel, bool grid) const;
  void describeBarrier(const BarrierState &state, int32_t number);
  void describeToken();

  void describeReceive();
  /// The first slots of the channel that `source` has sent in the present
  /// launch.
  SmallVector<int64_t> findSlots(int64_t source) const;
  void describePackets();

  const Machine &machine;
  const Program &program;
  const WorldShape &shape;
  const Thread &thread;
  const Action &action;
  Waiting result;
};

void Machine::WaitReport::await(int64_t rank, int64_t block) {
  int32_t other = machine.threadOf(rank, block);
  if (other >= 0 && other != thread.id)
    result.awaited.push_back(other);
}

void Machine::WaitReport::awaitEveryRank() {
  for (int64_t rank = 0; rank < shape.ranks; ++rank)
    await(rank, thread.block);
}

//===----------------------------------------------------------------------===//
// Signals and counters
//===----------------------------------------------------------------------===//

void Machine::WaitReport::describeCell() {
  int64_t index = get(action.index, -1), want = get(action.value, 0);
  auto it = machine.cellIds.find(
      {uint64_t(action.object) << 32 | uint64_t(thread.rank), uint64_t(index)});
  const Cell *cell =
      it == machine.cellIds.end() ? nullptr : &machine.cells[it->second];
  int64_t value = cell ? cell->value : 0;
  bool isSignal = action.kind == ActionKind::WaitSignal;
  bool equal = isSignal && action.wait == WaitKind::Eq;
  bool isPassed = equal && value > want;
  result.what = formatv(
      "{0} {1}[{2}] {3} {4}; observed {5}{6}", isSignal ? "signal" : "counter",
      program.arguments[action.object].name, index, equal ? "==" : ">=", want,
      value,
      isPassed ? ": it has passed that value and will not return to it" : "");
  if (!isSignal)
    return;
  describeSenders(cell, index);
  describeOtherCells(cell);
  result.mismatch |= isPassed;
}

void Machine::WaitReport::describeSenders(const Cell *cell, int64_t index) {
  SmallVector<int64_t> senders = findSenders(cell);
  auto peer = action.peer < 0 ? std::nullopt : machine.get(thread, action.peer);
  if (peer) {
    result.each = true;
    int64_t rank = machine.view(thread, action.team).world(*peer);
    if (!llvm::is_contained(senders, rank))
      for (int64_t block = 0; block < shape.blocks; ++block)
        await(rank, block);
    result.details.push_back(formatv("rank {0} should have signaled it", rank));
  } else {
    awaitSenders(index, senders);
  }
  result.details.push_back(
      senders.empty() ? "no rank has signaled it in this launch"
                      : "signaled in this launch by " + list("rank", senders));
}

SmallVector<int64_t> Machine::WaitReport::findSenders(const Cell *cell) const {
  SmallVector<int64_t> senders;
  if (!cell)
    return senders;
  std::vector<bool> has(shape.ranks);
  for (const Change &change : cell->changes) {
    int64_t rank = machine.threads[change.stamp.thread].rank;
    if (change.launch != thread.launch || has[rank] ||
        program.actions[change.action].kind != ActionKind::Signal)
      continue;
    has[rank] = true;
    senders.push_back(rank);
  }
  return senders;
}

/// The senders to a cell are assumed to be at the same distances from its rank
/// as those that signaled the same cell of other ranks; if there are none,
/// every rank may be one.
void Machine::WaitReport::awaitSenders(int64_t index,
                                       ArrayRef<int64_t> senders) {
  std::vector<bool> has(shape.ranks), expected(shape.ranks);
  for (int64_t rank : senders)
    has[rank] = true;
  bool pattern = false;
  for (const Cell &other : machine.cells) {
    if (other.argument != action.object || other.index != index ||
        other.rank == thread.rank)
      continue;
    for (const Change &change : other.changes) {
      if (change.launch != thread.launch)
        continue;
      int64_t distance = machine.threads[change.stamp.thread].rank - other.rank;
      expected[(thread.rank + distance + shape.ranks) % shape.ranks] = true;
      pattern = true;
    }
  }
  for (int64_t rank = 0; rank < shape.ranks; ++rank)
    if (!has[rank] && rank != thread.rank && (!pattern || expected[rank]))
      await(rank, thread.block);
}

void Machine::WaitReport::describeOtherCells(const Cell *cell) {
  std::string others;
  unsigned shown = 0;
  for (const Cell &other : machine.cells)
    if (&other != cell && other.argument == action.object &&
        other.rank == thread.rank && other.value != 0 && ++shown <= mostListed)
      others += formatv("{0}{1}[{2}] is {3}", others.empty() ? "" : ", ",
                        program.arguments[action.object].name, other.index,
                        other.value);
  if (others.empty())
    return;
  result.details.push_back("other cells of this rank: " + others);
  result.mismatch = true;
}

void Machine::WaitReport::describeReading() {
  result.what =
      formatv("signal {0}[{1}] to change",
              program.arguments[action.object].name, get(action.index, 0));
  awaitEveryRank();
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

const Machine::BarrierState &Machine::WaitReport::barrierOf(int32_t channel,
                                                            bool grid) const {
  const TeamView team = action.kind == ActionKind::EngineCopy
                            ? TeamView{thread.rank, 1, 1, 0}
                            : machine.view(thread, action.team);
  uint64_t who = uint64_t(team.first) << 42 | uint64_t(team.stride) << 21 |
                 uint64_t(team.size);
  uint64_t what = uint64_t(channel + 1) << 32 |
                  (grid ? uint64_t(1) << 31 : uint64_t(thread.block));
  return machine.barriers[machine.barrierIds.find({who, what})->second];
}

void Machine::WaitReport::describeBarrier(const BarrierState &state,
                                          int32_t number) {
  result.each = true;
  result.what = formatv("all {0} blocks of the barrier; {1} arrived",
                        state.members, state.generations[number].arrived);
  for (int64_t rank = 0; rank < state.team.size; ++rank)
    for (int64_t block = 0; block < shape.blocks; ++block) {
      if (!state.grid && block != state.block)
        continue;
      int32_t other = machine.threadOf(state.team.world(rank), block);
      if (other < 0)
        continue;
      auto it = state.arrivals.find(other);
      if (it == state.arrivals.end() || it->second <= number)
        result.awaited.push_back(other);
    }
}

void Machine::WaitReport::describeToken() {
  int64_t token = get(action.token, 0);
  describeBarrier(machine.barriers[token >> 32],
                  static_cast<int32_t>(token & 0x7fffffff));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void Machine::WaitReport::describeReceive() {
  int64_t source = machine.view(thread, action.team).world(get(action.peer, 0));
  result.each = true;
  result.what =
      formatv("rank {0} to send slot {1}", source, get(action.index, 0));
  if (source != thread.rank)
    await(source, thread.block);
  SmallVector<int64_t> slots = findSlots(source);
  result.mismatch = !slots.empty();
  if (result.mismatch)
    result.details.push_back(
        formatv("rank {0} has sent {1} of this channel in this launch", source,
                list("slot", slots)));
}

SmallVector<int64_t> Machine::WaitReport::findSlots(int64_t source) const {
  const ChannelState &state = machine.channels[action.object];
  bool all =
      program.channels[action.object].pattern == ChannelPattern::Multicast;
  const std::vector<LastSend> &sends =
      all ? state.toAll[machine.rankIndex[source]]
          : state.toOne[machine.pairOf(source, thread.rank)];
  SmallVector<int64_t> slots;
  for (auto [slot, tile] : llvm::enumerate(sends))
    if (tile.launch == thread.launch && slots.size() < mostListed)
      slots.push_back(static_cast<int64_t>(slot));
  return slots;
}

void Machine::WaitReport::describePackets() {
  bool hasFlag = action.kind == ActionKind::PacketLoad;
  const RangePlan &range = action.ranges[0];
  int32_t argument = range.memory.argument;
  int64_t offset = get(range.offset, 0);
  std::string awaited =
      hasFlag ? formatv("packets with flag {0}", get(action.value, 0)).str()
              : "a tile";
  result.what = formatv("{0} at {1}[{2}]", awaited,
                        program.arguments[argument].name, offset);
  if (hasFlag && range.memory.kind == MemoryPlan::Own) {
    const Mailbox &box =
        machine.mailboxes[machine.placeOf(argument, thread.rank)];
    int64_t seen = -1;
    (void)box.holds(offset, offset + 1, INT64_MIN, seen);
    result.mismatch = seen >= 0;
    result.details.push_back(
        seen < 0 ? "nothing has been stored there"
                 : formatv("the flag there is {0}", seen & 0xffffffff).str());
  }
  awaitEveryRank();
}

Waiting Machine::WaitReport::describe() {
  switch (action.kind) {
  case ActionKind::WaitSignal:
  case ActionKind::WaitCounter:
    describeCell();
    break;
  case ActionKind::ReadSignal:
    describeReading();
    break;
  case ActionKind::Barrier:
    describeBarrier(
        barrierOf(-1, /*grid=*/action.extent == BarrierExtent::Grid),
        thread.pending);
    break;
  case ActionKind::EngineCopy:
    describeBarrier(
        barrierOf(-2 - program.code[thread.pc].extra, /*grid=*/true),
        thread.pending);
    break;
  case ActionKind::ChannelBarrier:
    describeBarrier(barrierOf(action.object, /*grid=*/false), thread.pending);
    break;
  case ActionKind::BarrierWait:
    describeToken();
    break;
  case ActionKind::Recv:
    describeReceive();
    break;
  case ActionKind::PacketLoad:
  case ActionKind::PoisonLoad:
    describePackets();
    break;
  default:
    break;
  }
  return std::move(result);
}

Waiting Machine::describe(int32_t thread) const {
  return WaitReport(*this, thread).describe();
}
