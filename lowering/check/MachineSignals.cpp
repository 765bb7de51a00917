//===- MachineSignals.cpp - Signals, counters and barriers ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Changes of a cell that are kept.
static constexpr size_t maxChanges = 64;

static bool releases(MemoryOrder order) {
  return order == MemoryOrder::Release || order == MemoryOrder::AcqRel;
}
static bool acquires(MemoryOrder order) {
  return order == MemoryOrder::Acquire || order == MemoryOrder::AcqRel;
}

//===----------------------------------------------------------------------===//
// Signals and counters
//===----------------------------------------------------------------------===//

void Machine::doSignal(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto peer = peerOf(thread, action);
  auto at =
      peer ? cellIndex(thread, action, program.arguments[action.object].count)
           : std::nullopt;
  if (!at)
    return;
  int64_t amount = 1;
  if (action.signal != SignalKind::Inc) {
    auto value = demand(thread, action, action.value, "value");
    if (!value)
      return;
    amount = *value;
  }
  // A narrower scope does not reach another rank.
  bool release = releases(action.order) &&
                 (action.scope == MemoryScope::Sys || *peer == thread.rank);
  change(thread, index, cell(action.object, *peer, *at),
         action.signal == SignalKind::Set, amount, release);
}

void Machine::change(Thread &thread, int32_t index, Cell &cell, bool sets,
                     int64_t amount, bool release) {
  const Action &action = program.actions[index];
  bool isReset = action.kind == ActionKind::ResetSignal;
  for (const Change &old : cell.changes) {
    bool oldIsReset =
        program.actions[old.action].kind == ActionKind::ResetSignal;
    bool conflict =
        sets ? !(old.absolute && old.amount == amount) : old.absolute;
    if (!conflict || clocks.carriedOut(thread.id, old.stamp))
      continue;
    // Name the reset, whichever of the two it is, as the culprit.
    const Action &blamed = oldIsReset ? program.actions[old.action] : action;
    const Action &other = oldIsReset ? action : program.actions[old.action];
    int32_t otherThread = oldIsReset ? thread.id : old.stamp.thread;
    if (auto diag = report(blamed)) {
      *diag << (isReset || oldIsReset ? "resets " : "sets ") << cellName(cell)
            << " with no order between it and a signal of " << name(otherThread)
            << ": the signal may be lost";
      diag->attachNote(other.op->getLoc())
          << "the signal, in launch "
          << (oldIsReset ? thread.launch : old.launch);
      diag->attachNote() << "do not reset: wait with `ge` for a value that "
                            "grows with comms.epoch; or signal only after the "
                            "reset has been heard of";
    }
    break;
  }
  for (const CellWait &wait : cell.equalWaits)
    if (!clocks.carriedOut(thread.id, wait.stamp))
      if (auto diag = report(program.actions[wait.action])) {
        *diag << "waits on " << cellName(cell) << " for one exact value, but "
              << name(thread.id) << " may signal again before "
              << name(wait.stamp.thread) << " has seen it";
        diag->attachNote(action.op->getLoc())
            << "the later signal, in launch " << thread.launch;
        diag->attachNote() << "wait with `ge`, or let the sender wait for the "
                              "receiver before it signals again";
      }
  cell.equalWaits.clear();
  if (cell.changes.size() >= maxChanges)
    trim(cell);
  cell.value = sets ? amount
                    : static_cast<int64_t>(static_cast<uint64_t>(cell.value) +
                                           static_cast<uint64_t>(amount));
  Change made;
  made.stamp = clocks.stampSignal(thread.id);
  made.deed = clocks.lastDeed(thread.id);
  made.amount = amount;
  made.after = cell.value;
  made.absolute = sets;
  made.action = index;
  made.launch = thread.launch;
  made.message = clocks.send(thread.id, release);
  checkStandIn(thread, index, cell, made);
  cell.changes.push_back(made);
}

/// Old changes become one, which nobody is taken to have waited for.
void Machine::trim(Cell &cell) {
  Change &last = cell.changes[maxChanges / 2 - 1];
  last.amount = last.after;
  last.absolute = cell.changes.front().absolute;
  for (CellWait &wait : cell.waits)
    wait.seen = SIZE_MAX;
  cell.changes.erase(cell.changes.begin(),
                     cell.changes.begin() + maxChanges / 2 - 1);
}

/// The wait has been met: `thread` comes after the changes it cannot have been
/// met without.
void Machine::observe(Thread &thread, const Action &action, Cell &cell,
                      int64_t want) {
  bool acquire = acquires(action.order);
  size_t begin = 0;
  for (size_t i = cell.changes.size(); i-- > 0;)
    if (cell.changes[i].absolute) {
      begin = i;
      break;
    }
  ArrayRef<Change> since = ArrayRef(cell.changes).drop_front(begin);
  if (!since.empty() && since.front().absolute && since.size() == 1) {
    // Set, perhaps several times: met by the first that was enough.
    for (const Change &change : cell.changes)
      if (action.wait == WaitKind::Eq ? change.after == want
                                      : change.after >= want)
        return clocks.receive(thread.id, change.message, acquire);
    return;
  }
  // Where the value is just reached, none is to spare; a sender's last message
  // holds its earlier ones.
  bool every = cell.value == want;
  llvm::SmallDenseSet<int32_t, 16> heard;
  for (const Change &change : llvm::reverse(since)) {
    if (heard.contains(change.stamp.thread) ||
        (!every && !isNeeded(since, change, want)))
      continue;
    heard.insert(change.stamp.thread);
    clocks.receive(thread.id, change.message, acquire);
  }
}

/// Whether a cell cannot have come to `want` by the changes `since` without
/// `change`: that one, and what comes after it, left out.
bool Machine::isNeeded(ArrayRef<Change> since, const Change &change,
                       int64_t want) {
  int64_t without = 0;
  for (const Change &other : since)
    if (&other != &change && !clocks.after(other.message, change.deed))
      without += other.amount;
  steps += since.size() / 4;
  return without < want;
}

/// A count may be met by a rank that runs ahead in place of one that is late:
/// then the wait does not show what it was taken to show.
void Machine::checkStandIn(Thread &thread, int32_t index, const Cell &cell,
                           const Change &next) {
  if (next.absolute)
    return;
  for (const CellWait &wait : cell.waits) {
    if (wait.launch >= thread.launch || wait.equal ||
        wait.seen > cell.changes.size() ||
        clocks.carriedOut(thread.id, wait.stamp))
      continue;
    ArrayRef<Change> before = ArrayRef(cell.changes).take_front(wait.seen);
    for (const Change &change : before) {
      if (clocks.after(next.message, change.deed) ||
          !isNeeded(before, change, wait.want))
        continue;
      int64_t without = next.amount;
      for (const Change &other : before)
        if (&other != &change && !clocks.after(other.message, change.deed))
          without += other.amount;
      if (without < wait.want)
        continue;
      if (auto diag = report(program.actions[wait.action])) {
        *diag << "counts signals on " << cellName(cell) << " up to "
              << wait.want << " in launch " << wait.launch
              << ", but a signal of launch " << thread.launch << " by "
              << name(thread.id) << " may come before that of "
              << name(change.stamp.thread) << " and be counted in its place";
        diag->attachNote(program.actions[index].op->getLoc())
            << "the signal that may run ahead";
        diag->attachNote() << "give each sender a cell of its own, or keep "
                              "senders from running ahead with a barrier";
      }
      return;
    }
  }
}

/// A wait that wants no more than it got at the launch before is met by an old
/// signal: it waits for nothing.
void Machine::checkAdvance(Thread &thread, int32_t index, const Cell &cell,
                           int64_t want) {
  const Action &action = program.actions[index];
  Progress &state =
      progress[{uint64_t(thread.id) << 32 | uint32_t(index), cell.id}];
  if (state.launch != thread.launch) {
    state.hasBefore =
        state.launch == thread.launch - 1 && state.resets == cell.resets;
    state.before = state.highest;
    state.highest = want;
    state.launch = thread.launch;
  }
  state.resets = cell.resets;
  bool stale = state.hasBefore && want > 0 &&
               (action.wait == WaitKind::Eq ? want == state.before
                                            : want <= state.before);
  state.highest = std::max(state.highest, want);
  if (!stale)
    return;
  if (auto diag = report(action)) {
    *diag << "is met at launch " << thread.launch << " by what came in launch "
          << thread.launch - 1 << ": " << name(thread.id) << " wants "
          << (action.kind == ActionKind::WaitCounter
                  ? "the counter"
                  : llvm::StringRef("the signal"))
          << " to be " << want << " again, and " << cellName(cell)
          << " keeps its value from launch to launch";
    diag->attachNote() << "let the value grow with comms.epoch, or reset the "
                          "cell where no signal can be on its way";
  }
}

/// A wait that names its peer is held to it.
void Machine::checkSender(Thread &thread, const Action &action,
                          const Cell &cell) {
  if (action.peer < 0)
    return;
  auto peer = peerOf(thread, action);
  if (!peer)
    return;
  for (const Change &change : cell.changes) {
    const Thread &sender = threads[change.stamp.thread];
    if (sender.rank == *peer ||
        program.actions[change.action].kind != ActionKind::Signal)
      continue;
    if (auto diag = report(action)) {
      *diag << "waits for a signal from rank " << *peer << ", but "
            << name(sender.id) << " signals " << cellName(cell) << " as well";
      diag->attachNote(program.actions[change.action].op->getLoc())
          << "the other signal";
      diag->attachNote() << "give each sender a cell of its own, or use "
                            "comms.wait_signal for a count";
    }
    return;
  }
}

bool Machine::doWait(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto want = demand(thread, action, action.value, "value");
  auto at =
      want ? cellIndex(thread, action, program.arguments[action.object].count)
           : std::nullopt;
  if (!at)
    return true;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  // First let all others come as far as they can: what they signal may meet
  // this wait in place of what it was meant for.
  if (!thread.yielded) {
    thread.yielded = true;
    return false;
  }
  bool met =
      action.wait == WaitKind::Eq ? cell.value == *want : cell.value >= *want;
  if (!met)
    return false;
  checkSender(thread, action, cell);
  checkAdvance(thread, index, cell, *want);
  CellWait wait;
  wait.stamp = clocks.stamp(thread.id);
  wait.action = index;
  wait.launch = thread.launch;
  wait.want = *want;
  wait.seen = cell.changes.size();
  wait.equal = action.wait == WaitKind::Eq;
  if (action.wait == WaitKind::Eq)
    remember(cell.equalWaits, wait);
  remember(cell.waits, wait);
  observe(thread, action, cell, *want);
  return true;
}

void Machine::doReset(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto at = cellIndex(thread, action, program.arguments[action.object].count);
  if (!at)
    return;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  ++cell.resets;
  if (action.kind == ActionKind::ResetCounter) {
    cell.value = 0;
    return;
  }
  for (const CellWait &wait : cell.waits)
    if (!clocks.carriedOut(thread.id, wait.stamp))
      if (auto diag = report(action)) {
        *diag << "resets " << cellName(cell) << ", which "
              << name(wait.stamp.thread)
              << " may still be waiting for: the signal may be lost";
        diag->attachNote(program.actions[wait.action].op->getLoc())
            << "the wait";
        diag->attachNote() << "let the block that waits reset the cell, or "
                              "wait for `ge` a value that grows";
      }
  cell.waits.clear();
  change(thread, index, cell, /*sets=*/true, 0, /*release=*/true);
  // What was before the reset is done with, unless it raced.
  cell.changes.erase(cell.changes.begin(), cell.changes.end() - 1);
}

bool Machine::doWaitCounter(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto want = demand(thread, action, action.value, "value");
  auto at =
      want ? cellIndex(thread, action, program.arguments[action.object].count)
           : std::nullopt;
  if (!at)
    return true;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  if (cell.value < *want)
    return false;
  checkAdvance(thread, index, cell, *want);
  return true;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void Machine::doFence(Thread &thread, const Action &action) {
  clocks.fence(thread.id, releases(action.order), acquires(action.order));
}

int32_t Machine::barrier(const Thread &thread, int32_t team, bool grid,
                         int32_t channel) {
  const TeamView &view = this->view(thread, team);
  uint64_t who = uint64_t(view.first) << 42 | uint64_t(view.stride) << 21 |
                 uint64_t(view.size);
  uint64_t what = uint64_t(channel + 1) << 32 |
                  (grid ? uint64_t(1) << 31 : uint64_t(thread.block));
  auto [it, isNew] = barrierIds.try_emplace(
      {who, what}, static_cast<int32_t>(barriers.size()));
  if (isNew) {
    BarrierState &made = barriers.emplace_back();
    made.team = view;
    made.grid = grid;
    made.block = thread.block;
    made.channel = channel;
    for (int64_t rank = 0; rank < view.size; ++rank)
      if (rankIndex[view.world(rank)] >= 0)
        made.members += grid ? static_cast<int32_t>(shape.blocks) : 1;
  }
  return it->second;
}

int32_t Machine::arrive(Thread &thread, int32_t index, BarrierState &state,
                        bool release, bool ordered) {
  int32_t number = state.arrivals[thread.id]++;
  if (static_cast<size_t>(number) >= state.generations.size()) {
    Generation &made = state.generations.emplace_back();
    made.launch = thread.launch;
    made.firstThread = thread.id;
    made.action = index;
    made.message = clocks.make();
  }
  Generation &generation = state.generations[number];
  if (generation.launch != thread.launch) {
    const Action &action = program.actions[index];
    if (auto diag = report(action)) {
      *diag << "in launch " << thread.launch << " of " << name(thread.id)
            << " meets a barrier in launch " << generation.launch << " of "
            << name(generation.firstThread)
            << ": they do not reach it equally often in a launch";
      diag->attachNote(program.actions[generation.action].op->getLoc())
          << "the other barrier";
      diag->attachNote() << "every member must reach the barrier the same "
                            "number of times: move it out of the condition";
    }
    fatal = true;
  }
  ++generation.arrived;
  if (ordered)
    clocks.merge(thread.id, generation.message, release);
  return number;
}

bool Machine::leave(Thread &thread, BarrierState &state, int32_t number,
                    bool acquire, bool ordered) {
  Generation &generation = state.generations[number];
  if (generation.arrived < state.members)
    return false;
  if (ordered)
    clocks.receive(thread.id, generation.message, acquire);
  return true;
}

bool Machine::doBarrier(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  if (action.kind == ActionKind::BarrierWait) {
    auto token = demand(thread, action, action.token, "token");
    if (!token)
      return true;
    BarrierState &state = barriers[*token >> 32];
    if (!leave(thread, state, static_cast<int32_t>(*token & 0x7fffffff),
               acquires(action.order), true))
      return false;
    --thread.openArrivals;
    return true;
  }
  bool grid = action.extent == BarrierExtent::Grid;
  int32_t id = barrier(thread, action.team, grid, -1);
  BarrierState &state = barriers[id];
  if (action.kind == ActionKind::Arrive) {
    int64_t number = arrive(thread, index, state, releases(action.order), true);
    size_t at = thread.id * program.initialValues.size() + action.dst;
    values[at] = int64_t(id) << 32 | number;
    known[at] = 1;
    ++thread.openArrivals;
    thread.lastArrive = index;
    return true;
  }
  if (thread.pending < 0)
    thread.pending = arrive(thread, index, state, releases(action.order), true);
  if (!leave(thread, state, thread.pending, acquires(action.order), true))
    return false;
  thread.pending = -1;
  return true;
}
