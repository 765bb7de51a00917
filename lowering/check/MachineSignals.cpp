//===- MachineSignals.cpp - Signals, counters and barriers ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Changes of a cell that are kept, at least.
static constexpr size_t leastChanges = 64;

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
  Interval amount = Interval::of(1);
  if (action.signal != SignalKind::Inc) {
    amount = getInterval(thread, action.value);
    // A value that data decide, within bounds.
    bool isBounded = action.signal == SignalKind::Set && amount.low >= 0 &&
                     amount.high < INT64_MAX;
    if (!isBounded && !demand(thread, action, action.value, "value"))
      return;
  }
  if (amount.low < 0) {
    if (auto diag = report(action)) {
      *diag << "signals " << amount.low << " on " << when(thread)
            << ": cells hold no negative numbers";
      diag->attachNote() << "let values grow, and wait with `ge`";
    }
    fatal = true;
    return;
  }
  // A narrower scope does not reach another rank.
  bool release = releases(action.order) &&
                 (action.scope == MemoryScope::Sys || *peer == thread.rank);
  if (release)
    completeReleased(thread);
  else
    completeFenced(thread);
  change(thread, index, cell(action.object, *peer, *at),
         action.signal == SignalKind::Set, amount, release);
}

void Machine::checkConflicts(Thread &thread, const Action &action,
                             const Cell &cell, bool sets, Interval amount) {
  if (!cell.isSet)
    return;
  for (const Change &old : cell.changes) {
    bool conflict = sets ? !(old.absolute && old.after == old.most &&
                             amount.isKnown() && old.amount == amount.low)
                         : old.absolute;
    if (conflict && !isBehind(thread, cell, old))
      return reportConflict(thread, action, cell, sets, old);
  }
}

void Machine::reportConflict(Thread &thread, const Action &action,
                             const Cell &cell, bool sets, const Change &old) {
  bool isReset = action.kind == ActionKind::ResetSignal;
  if (clocks.carriedOut(thread.id, old.stamp)) {
    Touch earlier;
    earlier.stamp = old.stamp;
    earlier.action = old.action;
    earlier.launch = old.launch;
    llvm::StringRef verb = isReset ? "resets " : sets ? "sets " : "signals ";
    return reportOvertaking(thread, action, earlier,
                            (verb + cellName(cell)).str());
  }
  // Name the reset, whichever of the two it is, as the culprit.
  const Action &before = program.actions[old.action];
  bool oldIsReset = before.kind == ActionKind::ResetSignal;
  auto diag = report(oldIsReset ? before : action);
  if (!diag)
    return;
  *diag << (isReset || oldIsReset ? "resets " : "sets ") << cellName(cell)
        << " with no order between it and a signal of "
        << name(oldIsReset ? thread.id : old.stamp.thread)
        << ": the signal may be lost";
  diag->attachNote((oldIsReset ? action : before).op->getLoc())
      << "the signal, in launch " << (oldIsReset ? thread.launch : old.launch);
  diag->attachNote() << "do not reset: wait with `ge` for a value that "
                        "grows with comms.epoch; or signal only after the "
                        "signaling block has observed the reset";
}

void Machine::checkExactWaits(Thread &thread, const Action &action,
                              const Cell &cell) {
  for (const CellWait &wait : cell.equalWaits) {
    if (clocks.carriedOut(thread.id, wait.stamp))
      continue;
    auto diag = report(program.actions[wait.action]);
    if (!diag)
      continue;
    *diag << "waits on " << cellName(cell) << " for one exact value, but "
          << name(thread.id) << " may signal again before "
          << name(wait.stamp.thread) << " has seen it";
    diag->attachNote(action.op->getLoc())
        << "the later signal, in launch " << thread.launch;
    diag->attachNote() << "wait with `ge`, or let the sender wait for the "
                          "receiver before it signals again";
  }
}

Machine::Change Machine::makeChange(Thread &thread, int32_t index,
                                    const Cell &cell, bool sets,
                                    Interval amount, bool release) {
  const Action &action = program.actions[index];
  Change made;
  made.stamp = clocks.stampSignal(thread.id);
  made.deed = clocks.lastAction(thread.id);
  made.amount = amount.low;
  made.after = cell.value;
  made.most = cell.value + cell.spread;
  if (cell.isByData)
    forOpenWaits(thread, cell, [&](const CellWait &wait) {
      if (!isUnsure(wait.equal, wait.want, made.after, made.most))
        return false;
      leaveOpen(action, "value");
      return true;
    });
  made.absolute = sets;
  made.action = index;
  made.launch = thread.launch;
  made.message =
      clocks.send(thread.id, release, /*near=*/cell.rank == thread.rank);
  // What went the same way before it comes before it.
  if (release && action.gin)
    made.message = clocks.add(
        made.message, clocks.lastOf(wayOf(thread, action.context, cell.rank,
                                          /*isGet=*/false)));
  return made;
}

void Machine::change(Thread &thread, int32_t index, Cell &cell, bool sets,
                     Interval amount, bool release) {
  const Action &action = program.actions[index];
  cell.isSet |= sets;
  checkConflicts(thread, action, cell, sets, amount);
  checkExactWaits(thread, action, cell);
  cell.equalWaits.clear();
  for (const CellWait &reading : cell.readings)
    if (!clocks.carriedOut(thread.id, reading.stamp))
      noteUnprovenRead(program.actions[reading.action], action);
  cell.readings.clear();
  ++cell.version;
  if (sets && amount.low < cell.value + cell.spread &&
      action.kind != ActionKind::ResetSignal)
    checkLowered(thread, action, cell, amount.low);
  // Of two launches, if each rank signals it once.
  if (size_t most = std::max<size_t>(leastChanges, 2 * shape.ranks);
      cell.changes.size() >= most)
    trim(cell, most / 2);
  cell.value = sets ? amount.low
                    : static_cast<int64_t>(static_cast<uint64_t>(cell.value) +
                                           static_cast<uint64_t>(amount.low));
  cell.spread = sets ? amount.high - amount.low : cell.spread;
  cell.term = sets ? amount.term : 0;
  cell.isByData |= cell.spread != 0;
  Change made = makeChange(thread, index, cell, sets, amount, release);
  checkStandIn(thread, index, cell, made);
  cell.changes.push_back(made);
}

bool Machine::isUnsure(const Action &wait, const Cell &cell,
                       int64_t want) const {
  return cell.isByData && llvm::any_of(cell.changes, [&](const Change &change) {
           return isUnsure(wait.wait == WaitKind::Eq, want, change.after,
                           change.most);
         });
}

bool Machine::isBehind(const Thread &thread, const Cell &cell,
                       const Change &change) {
  if (clocks.visible(thread.id, change.stamp))
    return true;
  SmallVector<Timestamp> moments = {change.stamp};
  // Whoever has read a later change of its sender comes after this one, too.
  for (const Change &later : llvm::make_range(&change, cell.changes.end()))
    if (later.stamp.thread == change.stamp.thread)
      llvm::append_range(moments, later.readers);
  return isBehind(thread, moments);
}

/// A value that goes down again may be missed by those who wait for it.
void Machine::checkLowered(Thread &thread, const Action &action,
                           const Cell &cell, int64_t value) {
  forOpenWaits(thread, cell, [&](const CellWait &wait) {
    if (wait.equal || wait.want <= value)
      return false;
    if (auto diag = report(action)) {
      *diag << "sets " << cellName(cell) << " to " << value << " on "
            << when(thread) << ", before " << name(wait.stamp.thread)
            << " has surely seen it be at least " << wait.want;
      diag->attachNote(program.actions[wait.action].op->getLoc()) << "the wait";
      diag->attachNote() << "let the value grow, or let the receiver answer "
                            "before it is set again";
    }
    return true;
  });
}

void Machine::forOpenWaits(const Thread &thread, const Cell &cell,
                           llvm::function_ref<bool(const CellWait &)> visit) {
  for (const CellWait &wait : llvm::reverse(cell.waits)) {
    ++steps;
    if (!clocks.carriedOut(thread.id, wait.stamp)) {
      if (visit(wait))
        return;
    } else if (cell.waiter >= 0) {
      return; // So are its earlier ones.
    }
  }
}

/// The oldest changes, so many, become one, which nobody is taken to have
/// waited for.
void Machine::trim(Cell &cell, size_t old) {
  Change &last = cell.changes[old - 1];
  last.amount = last.after;
  for (const Change &change : ArrayRef(cell.changes).take_front(old - 1))
    last.most = std::max(last.most, change.most);
  last.absolute = cell.changes.front().absolute;
  size_t dropped = old - 1;
  for (CellWait &wait : cell.waits)
    wait.seen = wait.seen == SIZE_MAX || wait.seen <= dropped
                    ? SIZE_MAX
                    : wait.seen - dropped;
  cell.changes.erase(cell.changes.begin(), cell.changes.begin() + dropped);
}

/// Where the last change that sets `cell` before what `thread` does now is
/// among its changes; 0: none.
size_t Machine::lastSetBefore(const Thread &thread, const Cell &cell) {
  for (size_t at = cell.changes.size(); at > 1; --at)
    if (cell.changes[at - 1].absolute &&
        isBehind(thread, cell, cell.changes[at - 1]))
      return at - 1;
  return 0;
}

/// The wait has been met: `thread` comes after the changes it cannot have been
/// met without.
void Machine::observe(Thread &thread, int32_t index, Cell &cell, int64_t want) {
  const Action &action = program.actions[index];
  bool acquire = acquires(action.order);
  auto receive = [&](const Change &change) {
    bool near = threads[change.stamp.thread].rank == thread.rank;
    if (action.scope == MemoryScope::Sys || near)
      return hear(thread, index, change.message, change.stamp.thread, acquire,
                  near);
    if (auto diag = report(action)) {
      *diag << "waits at scope gpu, but " << name(change.stamp.thread)
            << " updates " << cellName(cell) << " from another rank";
      diag->attachNote(program.actions[change.action].op->getLoc())
          << "the signal";
      diag->attachNote() << "wait at scope sys";
    }
  };
  // Changes between two that set the value add up in any order. The wait may
  // have been met by the first of these runs that was enough.
  bool isEqual = action.wait == WaitKind::Eq;
  auto meets = [&](const Change &change) {
    return isEqual ? change.after == want : change.after >= want;
  };
  MutableArrayRef<Change> changes = cell.changes;
  // What was overwritten before is not read again.
  if (isEqual)
    changes = changes.drop_front(lastSetBefore(thread, cell));
  size_t begin = 0, end = 0;
  for (begin = 0; begin < changes.size(); begin = end) {
    bool met = false;
    end = begin;
    do {
      met |= meets(changes[end]);
      ++end;
    } while (end < changes.size() && !changes[end].absolute &&
             !(met && isEqual));
    if (met)
      break;
  }
  MutableArrayRef<Change> since = changes.slice(begin, end - begin);
  if (since.empty())
    return;
  // Of several that set it with no order among them, any may have been seen.
  if (since.front().absolute && meets(since.front()) &&
      llvm::any_of(changes, [&](const Change &other) {
        return other.absolute && meets(other) &&
               !clocks.after(other.message, since.front().stamp);
      }))
    return;
  // Where the value is just reached, none is to spare; a sender's last message
  // holds its earlier ones.
  bool every = since.back().after == want;
  llvm::SmallDenseSet<int32_t, 16> heard;
  for (Change &change : llvm::reverse(since)) {
    if (heard.contains(change.stamp.thread))
      continue;
    bool itself = every || isNeeded(since, change, change.stamp, want);
    if (!itself && !isNeeded(since, change, change.deed, want))
      continue;
    heard.insert(change.stamp.thread);
    if (itself && llvm::none_of(change.readers, [&](Timestamp reader) {
          return reader.thread == thread.id;
        }))
      change.readers.push_back(clocks.stamp(thread.id));
    // What the sender did is needed, but an earlier signal may have told it.
    const Change *first = &change;
    if (!itself)
      first = llvm::find_if(since, [&](const Change &other) {
        return other.stamp.thread == change.stamp.thread &&
               other.deed.time == change.deed.time;
      });
    // What others have heard of by relaxed ops only may come first.
    if (every || isNeeded(since, change, itself ? change.stamp : change.deed,
                          want, /*strongly=*/true))
      receive(*first);
    else
      clocks.observe(thread.id, first->message);
  }
}

/// Whether a cell cannot have come to `want` by the changes `since` without
/// `change`: that one, and what comes after `moment`, left out.
bool Machine::isNeeded(ArrayRef<Change> since, const Change &change,
                       Timestamp moment, int64_t want, bool strongly) {
  int64_t without = 0;
  for (const Change &other : since) {
    bool isBehind = strongly && other.stamp.thread != moment.thread
                        ? clocks.passesOn(other.message, moment)
                        : clocks.after(other.message, moment);
    if (&other != &change && !isBehind)
      without += other.amount;
  }
  steps += since.size() / 4;
  return without < want;
}

/// A count may be met by a rank that runs ahead in place of one that is late:
/// then the wait does not show what it was taken to show.
void Machine::checkStandIn(Thread &thread, int32_t index, const Cell &cell,
                           const Change &next) {
  if (next.absolute)
    return checkOtherSet(thread, index, cell, next);
  forOpenWaits(thread, cell, [&](const CellWait &wait) {
    if (wait.equal || wait.seen > cell.changes.size())
      return false;
    ArrayRef<Change> before = ArrayRef(cell.changes).take_front(wait.seen);
    ArrayRef<Change> behind = ArrayRef(cell.changes).drop_front(wait.seen);
    for (const Change &change : before) {
      // What it releases, the other has to pass on.
      bool passesOn = next.stamp.thread == change.stamp.thread ||
                      !clocks.passesOn(change.message, change.deed) ||
                      clocks.passesOn(next.message, change.deed);
      if ((passesOn && clocks.after(next.message, change.deed)) ||
          !isNeeded(before, change, change.deed, wait.want))
        continue;
      int64_t without = next.amount;
      for (const Change &other : before)
        if (&other != &change && !clocks.after(other.message, change.deed))
          without += other.amount;
      for (const Change &other : behind)
        if (!other.absolute && !clocks.after(other.message, change.deed) &&
            !clocks.after(other.message, wait.stamp))
          without += other.amount;
      steps += cell.changes.size() / 4;
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
      return true;
    }
    return false;
  });
}

/// The same for a value that several set with no order among them.
void Machine::checkOtherSet(Thread &thread, int32_t index, const Cell &cell,
                            const Change &next) {
  forOpenWaits(thread, cell, [&](const CellWait &wait) {
    if (next.after < wait.want || wait.seen > cell.changes.size())
      return false;
    ArrayRef<Change> before = ArrayRef(cell.changes).take_front(wait.seen);
    const Change *met = llvm::find_if(before, [&](const Change &change) {
      return change.absolute && change.after >= wait.want;
    });
    if (met == before.end() || clocks.after(next.message, met->stamp))
      return false;
    if (auto diag = report(program.actions[wait.action])) {
      *diag << "waits until " << cellName(cell) << " is " << wait.want
            << " in launch " << wait.launch << ", which "
            << name(met->stamp.thread) << " and " << name(thread.id)
            << " set with no order between them: it does not show which has";
      diag->attachNote(program.actions[index].op->getLoc())
          << "set by " << name(thread.id);
      diag->attachNote() << "give each sender a cell of its own";
    }
    return true;
  });
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
  noteWant(thread, state, want);
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
            << name(sender.id) << " updates " << cellName(cell) << " as well";
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
  if (isIdle(thread, index, cell))
    return true;
  // First let all others come as far as they can: what they signal may meet
  // this wait in place of what it was meant for.
  if (!thread.yielded) {
    thread.yielded = true;
    return false;
  }
  if (isUnsure(action, cell, *want)) {
    leaveOpen(program.actions[cell.changes.back().action], "value");
    return true;
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
  checkReset(thread, action, cell);
  cell.waiter = cell.waits.empty() || cell.waiter == thread.id ? thread.id : -1;
  cell.waits.push_back(wait);
  observe(thread, index, cell, *want);
  return true;
}

/// A value that other schedules may find another.
void Machine::noteUnprovenRead(const Action &read, const Action &change) {
  noteUnproven(
      read.op,
      "may find another value in another order of ranks and blocks: it was "
      "followed with one",
      "no order between it and this signal", change.op);
}

/// The value is read when all others have come as far as they can; in a loop
/// that polls, again when it has changed.
bool Machine::doRead(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  if (!thread.unsure.empty()) {
    set(thread, action.dst, Interval());
    return true;
  }
  auto at = cellIndex(thread, action, program.arguments[action.object].count);
  if (!at)
    return true;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  if (!thread.yielded) {
    thread.yielded = true;
    return false;
  }
  std::pair<int32_t, int64_t> now = {thread.launch, cell.version};
  auto &last = lastRead[{thread.id, index}];
  bool polls = action.op->getParentOfType<scf::WhileOp>() != nullptr;
  if (polls && last == now)
    return false;
  last = now;
  for (const Change &change : cell.changes)
    if (!isBehind(thread, cell, change))
      noteUnprovenRead(action, program.actions[change.action]);
  CellWait reading;
  reading.stamp = clocks.stamp(thread.id);
  reading.action = index;
  reading.launch = thread.launch;
  cell.readings.push_back(reading);
  set(thread, action.dst, {cell.value, cell.value + cell.spread, cell.term});
  if (cell.value != 0)
    observe(thread, index, cell, cell.value);
  return true;
}

void Machine::doReset(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto at = cellIndex(thread, action, program.arguments[action.object].count);
  if (!at)
    return;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  ++cell.resets;
  checkReset(thread, action, cell);
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
  cell.reset.stamp = clocks.stamp(thread.id);
  cell.reset.action = index;
  cell.reset.launch = thread.launch;
  if (action.kind == ActionKind::ResetCounter) {
    resetCounter(thread, action, cell);
    return;
  }
  change(thread, index, cell, /*sets=*/true, Interval::of(0),
         /*release=*/true);
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
  if (isIdle(thread, index, cell))
    return true;
  if (cell.value < *want)
    return false;
  checkAdvance(thread, index, cell, *want);
  checkReset(thread, action, cell);
  CellWait wait;
  wait.stamp = clocks.stamp(thread.id);
  wait.action = index;
  wait.launch = thread.launch;
  wait.want = *want;
  remember(cell.waits, wait);
  // Which of them have been counted is known when all have.
  if (cell.value != *want)
    return true;
  size_t before = thread.underway.size();
  complete(thread, [&](const Pending &pending) {
    return pending.counter == cell.id && !pending.write;
  });
  if (thread.underway.size() != before)
    remember(cell.equalWaits, wait);
  return true;
}

/// A wait may have been met by another block's put that was counted early.
void Machine::checkCountedFor(const Thread &thread, const Action &action,
                              const Cell &cell) {
  for (const CellWait &wait : cell.equalWaits) {
    if (wait.stamp.thread == thread.id ||
        clocks.carriedOut(thread.id, wait.stamp))
      continue;
    if (auto diag = report(program.actions[wait.action])) {
      *diag << "counts puts on " << cellName(cell) << " up to " << wait.want
            << " in launch " << wait.launch << ", but a put of launch "
            << thread.launch << " by " << name(thread.id)
            << " may be counted in place of one of " << name(wait.stamp.thread);
      diag->attachNote(action.op->getLoc()) << "the put that may run ahead";
      diag->attachNote() << "give each block a counter's cell of its own, or "
                            "let the waiting block continue first";
    }
  }
}

/// A put that is counted.
void Machine::count(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  Action at = {};
  at.op = action.op;
  at.index = action.counterIndex;
  at.object = action.counter;
  auto found = cellIndex(thread, at, program.arguments[action.counter].count);
  if (!found)
    return;
  Cell &cell = this->cell(action.counter, thread.rank, *found);
  checkReset(thread, action, cell);
  checkCountedFor(thread, action, cell);
  CellWait counted;
  counted.stamp = clocks.stamp(thread.id);
  counted.action = index;
  counted.launch = thread.launch;
  remember(cell.counts, counted);
  ++cell.value;
}

/// Puts that are still on their way would be counted behind the reset.
void Machine::resetCounter(Thread &thread, const Action &action, Cell &cell) {
  for (const Thread &other : threads)
    for (const Pending &pending : other.underway) {
      if (pending.counter != cell.id || pending.write)
        continue;
      if (auto diag = report(action)) {
        *diag << "resets " << cellName(cell) << " on " << when(thread)
              << ", which may count a put of " << name(other.id) << " later";
        diag->attachNote(program.actions[pending.action].op->getLoc())
            << "the put";
        diag->attachNote() << "wait with comms.wait_counter for all puts that "
                              "it counts, then reset it";
      }
    }
  for (const CellWait &counted : cell.counts)
    if (!isBehind(thread, counted.stamp))
      if (auto diag = report(action)) {
        *diag << "resets " << cellName(cell) << " on " << when(thread)
              << " with no order between it and a put of "
              << name(counted.stamp.thread) << " that it counts";
        diag->attachNote(program.actions[counted.action].op->getLoc())
            << "the put";
        diag->attachNote() << "let the block that counts reset the cell, or "
                              "let the value grow with comms.epoch";
      }
  cell.value = 0;
  cell.equalWaits.clear();
}

/// Whoever waits or counts comes after the last reset: before it, it may take
/// an old value for a new one.
void Machine::checkReset(Thread &thread, const Action &action,
                         const Cell &cell) {
  if (cell.reset.action < 0 || isBehind(thread, cell.reset.stamp))
    return;
  const Action &reset = program.actions[cell.reset.action];
  if (auto diag = report(reset)) {
    *diag << "resets " << cellName(cell) << " in launch " << cell.reset.launch
          << " with no order between it and what " << name(thread.id)
          << " does with the cell";
    diag->attachNote(action.op->getLoc()) << "there";
    diag->attachNote() << "let the block that waits reset the cell, or wait "
                          "for `ge` a value that grows";
  }
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void Machine::doFence(Thread &thread, const Action &action) {
  if (program.usesProxies)
    fenceProxy(thread, action.proxy);
  if (action.scope != MemoryScope::Sys && action.scope != MemoryScope::Gpu)
    return;
  if (releases(action.order)) {
    // Transfers have been made before the fence, for all who hear of it.
    complete(thread, [](const Pending &pending) { return pending.fenced; });
    for (Pending &pending : thread.underway)
      fenceTransfer(thread, pending);
  }
  clocks.fence(thread.id, releases(action.order), acquires(action.order),
               action.scope == MemoryScope::Sys);
}

int32_t Machine::barrier(const Thread &thread, int32_t team, bool grid,
                         int32_t channel) {
  TeamView view{thread.rank, 1, 1, 0};
  if (team >= 0)
    view = this->view(thread, team);
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
            << " pairs with a barrier in launch " << generation.launch << " of "
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

bool Machine::leave(Thread &thread, int32_t index, BarrierState &state,
                    int32_t number, bool acquire, bool ordered) {
  Generation &generation = state.generations[number];
  if (generation.arrived < state.members)
    return false;
  if (ordered)
    hear(thread, index, generation.message, /*sender=*/-1, acquire,
         /*near=*/false);
  return true;
}

/// Whether it goes through adapters.
static bool isBarrierOfAdapters(const TeamPlan &team, const WorldShape &shape) {
  return team.splits.empty() &&
         (team.kind == TeamKind::Rail ||
          (team.kind == TeamKind::World && shape.reach < shape.ranks));
}

bool Machine::doBarrier(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  if (action.kind == ActionKind::BarrierWait) {
    auto token = demand(thread, action, action.token, "token");
    if (!token)
      return true;
    BarrierState &state = barriers[*token >> 32];
    if (!leave(thread, index, state, static_cast<int32_t>(*token & 0x7fffffff),
               acquires(action.order), true))
      return false;
    --thread.openArrivals;
    return true;
  }
  bool grid = action.extent == BarrierExtent::Grid;
  int32_t id = barrier(thread, action.team, grid, -1);
  BarrierState &state = barriers[id];
  auto arriveHere = [&] {
    if (releases(action.order))
      completeReleased(thread);
    int32_t number = arrive(thread, index, state, releases(action.order), true);
    if (releases(action.order) &&
        isBarrierOfAdapters(program.teams[action.team], shape))
      completeByAdapters(thread, state.generations[number].message);
    return number;
  };
  if (action.kind == ActionKind::Arrive) {
    int64_t number = arriveHere();
    set(thread, action.dst, Interval::of(int64_t(id) << 32 | number));
    ++thread.openArrivals;
    thread.lastArrive = index;
    return true;
  }
  if (thread.pending < 0)
    thread.pending = arriveHere();
  if (!leave(thread, index, state, thread.pending, acquires(action.order),
             true))
    return false;
  thread.pending = -1;
  return true;
}
