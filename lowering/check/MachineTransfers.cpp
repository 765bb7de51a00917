//===- MachineTransfers.cpp - Transfers that are not complete -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts, gets, bulk copies and what adapters do, from the op that begins them to
// the wait, flush, fence or release that completes them.
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// This block's own accesses are not ordered with its transfers.
void Machine::checkPending(Thread &thread, int32_t index, int64_t place,
                           bool write, Bounds bounds) {
  steps += thread.underway.size();
  for (const Pending &old : thread.underway) {
    bool apartByData =
        write && old.write && (bounds.anywhere || old.bounds.anywhere);
    if (old.place != place || !(write || old.write) || apartByData ||
        old.bounds.end <= bounds.begin || bounds.end <= old.bounds.begin ||
        (old.agent.thread >= 0 && clocks.visible(thread.id, old.agent)) ||
        isFlushed(thread, old))
      continue;
    const Action &action = program.actions[index];
    const Action &transfer = program.actions[old.action];
    auto diag = report(action);
    if (!diag)
      return;
    *diag << (write ? "writes" : "reads") << " ["
          << std::max(old.bounds.begin, bounds.begin) << ", "
          << std::min(old.bounds.end, bounds.end) << ") of ";
    if (old.argument >= 0)
      *diag << "'" << program.arguments[old.argument].name << "' at rank "
            << old.rank;
    else
      *diag << "scratch memory";
    *diag << " on " << when(thread) << ", which a transfer before it may still "
          << (old.write ? "write" : "read");
    diag->attachNote(transfer.op->getLoc()) << "the transfer";
    if (transfer.deferral == Deferral::Bulk)
      diag->attachNote() << "wait for it first: comms.bulk_wait";
    else if (transfer.gin && !(transfer.deferral == Deferral::Put && old.write))
      diag->attachNote() << "let comms.flush come between, in the same "
                            "context and of a team that the peer belongs to";
    else if (transfer.gin)
      diag->attachNote() << "a put through the adapter is ordered by a signal "
                            "by gin to the same rank in the same context, "
                            "once the peer has answered";
    else if (transfer.deferral == Deferral::Get || !old.write)
      diag->attachNote() << "let comms.flush come between, of a team that the "
                            "peer belongs to, or a barrier";
    else
      diag->attachNote() << "only a release orders what a put writes: a signal "
                            "or a barrier between them";
    return;
  }
}

void Machine::defer(Thread &thread, int32_t index, const RangePlan &range,
                    Bounds bounds) {
  const Action &action = program.actions[index];
  const MemoryPlan &memory = range.memory;
  if (action.deferral == Deferral::None || shape.isPartial() ||
      bounds.begin == bounds.end)
    return;
  Pending made;
  made.action = index;
  made.bounds = bounds;
  made.write = range.write;
  made.time = clocks.stamp(thread.id).time;
  made.agent = transfer;
  made.copy = nextCopy + 1;
  made.path = pathOf(thread);
  if (action.counter >= 0)
    if (auto at = get(thread, action.counterIndex))
      made.counter = cell(action.counter, thread.rank, *at).id;
  if (auto peer = get(thread, action.peer))
    made.peer = view(thread, action.team).world(*peer);
  if (memory.kind == MemoryPlan::Scratch) {
    made.place = -1 - int64_t(memory.scratch);
    thread.underway.push_back(made);
    return;
  }
  made.argument = memory.argument;
  forParts(thread, memory, [&](int64_t rank) {
    made.place = placeOf(memory.argument, rank);
    made.rank = rank;
    thread.underway.push_back(made);
  });
}

/// A transfer is touched twice, where it begins and where it is over: what is
/// ordered with it comes before the one or after the other.
void Machine::complete(Thread &thread,
                       llvm::function_ref<bool(const Pending &)> over) {
  if (thread.underway.empty())
    return;
  llvm::SmallVector<Pending, 0> left, done;
  for (Pending &pending : thread.underway)
    (over(pending) ? done : left).push_back(std::move(pending));
  thread.underway = std::move(left);
  for (const Pending &pending : done) {
    if (pending.argument < 0 || !isTracked(program.arguments[pending.argument]))
      continue;
    if (pending.agent.thread >= 0)
      settle(thread, pending);
    else if (clocks.stamp(thread.id).time != pending.time)
      touchPart(thread, pending.action, pending.argument, pending.rank,
                pending.write, pending.bounds);
  }
}

/// What an agent did for the thread is over. Memory remembers the last moment
/// of each agent: an earlier one that is not over hides behind it.
void Machine::settle(Thread &thread, const Pending &done) {
  if (llvm::any_of(thread.underway, [&](const Pending &other) {
        return other.agent.thread == done.agent.thread &&
               other.place == done.place &&
               other.bounds.begin < done.bounds.end &&
               done.bounds.begin < other.bounds.end;
      }))
    return;
  size_t part = placeOf(done.argument, done.rank);
  steps += 2;
  shadows[part].settle(done.bounds.begin, done.bounds.end, done.agent,
                       clocks.stamp(thread.id));
}

void Machine::completeReleased(Thread &thread) {
  complete(thread, [&](const Pending &pending) {
    const Action &transfer = program.actions[pending.action];
    return transfer.deferral == Deferral::Put && !transfer.gin;
  });
}

void Machine::completeByAdapters(Thread &thread, Message barrier) {
  complete(thread, [&](const Pending &pending) {
    const Action &transfer = program.actions[pending.action];
    return transfer.gin &&
           (transfer.deferral == Deferral::Get || !pending.write);
  });
  SmallVector<Timestamp> moments;
  for (auto it = ways.lower_bound({thread.id, 0, INT64_MIN, 0});
       it != ways.end() && it->first[0] == thread.id; ++it)
    if (!it->first[3])
      moments.push_back(clocks.lastOf(it->second));
  llvm::sort(moments,
             [](Timestamp a, Timestamp b) { return a.thread < b.thread; });
  clocks.addTo(barrier, moments);
}

int32_t Machine::wayOf(const Thread &thread, int64_t context, int64_t peer,
                       bool isGet) {
  auto [it, isNew] = ways.try_emplace({thread.id, context, peer, isGet});
  if (isNew) {
    it->second = clocks.makeAgent();
    owners.push_back(thread.id);
  }
  return it->second;
}

Timestamp Machine::beginTransfer(Thread &thread, const Action &action) {
  bool isBulk = action.deferral == Deferral::Bulk;
  if (action.deferral == Deferral::None || shape.isPartial() ||
      !(isBulk || action.gin))
    return {};
  if (isBulk) {
    owners.push_back(thread.id);
    return clocks.stampAgent(clocks.makeAgent());
  }
  // What the thread has heard of is over.
  llvm::erase_if(thread.underway, [&](const Pending &old) {
    return old.agent.thread >= 0 && old.counter < 0 &&
           clocks.visible(thread.id, old.agent);
  });
  auto peer = get(thread, action.peer);
  return clocks.stampAgent(
      wayOf(thread, action.context,
            peer ? view(thread, action.team).world(*peer) : -1,
            action.deferral == Deferral::Get));
}

/// A fence and a relaxed signal behind it release, too.
void Machine::completeFenced(Thread &thread) {
  llvm::erase_if(thread.underway,
                 [](const Pending &pending) { return pending.fenced; });
}

/// Whoever hears of the fence comes after the put.
void Machine::fenceTransfer(Thread &thread, Pending &pending) {
  const Action &transfer = program.actions[pending.action];
  if (transfer.deferral != Deferral::Put || transfer.gin || pending.fenced)
    return;
  pending.fenced = true;
  if (pending.argument >= 0 && isTracked(program.arguments[pending.argument]) &&
      clocks.stamp(thread.id).time != pending.time)
    touchPart(thread, pending.action, pending.argument, pending.rank,
              pending.write, pending.bounds);
}

void Machine::doBulk(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  if (action.kind == ActionKind::BulkWait) {
    for (Register token : action.tokens)
      if (auto id = get(thread, token)) {
        complete(thread, [&](const Pending &pending) {
          return pending.copy == *id &&
                 program.actions[pending.action].deferral == Deferral::Bulk;
        });
        llvm::erase_if(thread.copies,
                       [&](const auto &copy) { return copy.first == *id; });
      }
    return;
  }
  doAccess(thread, index);
  set(thread, action.dst, Interval::of(++nextCopy));
  thread.copies.emplace_back(nextCopy, index);
}

//===----------------------------------------------------------------------===//
// Flushes
//===----------------------------------------------------------------------===//

bool Machine::reaches(const Thread &thread, int32_t team,
                      const Pending &pending) const {
  const TeamView &to = view(thread, team);
  if (to.size == shape.ranks)
    return true;
  auto holds = [&](int64_t rank) {
    int64_t distance = rank - to.first;
    return distance >= 0 && distance % to.stride == 0 &&
           distance / to.stride < to.size;
  };
  if (pending.peer >= 0)
    return holds(pending.peer);
  // It may be any of the transfer's team.
  const TeamView &from = view(thread, program.actions[pending.action].team);
  for (int64_t rank = 0; rank < from.size; ++rank)
    if (!holds(from.world(rank)))
      return false;
  return true;
}

bool Machine::flushes(const Thread &thread, const Action &action,
                      const Pending &pending) const {
  const Action &transfer = program.actions[pending.action];
  return transfer.gin == action.gin &&
         (!action.gin || transfer.context == action.context) &&
         reaches(thread, action.team, pending) &&
         (transfer.deferral == Deferral::Get ||
          (transfer.deferral == Deferral::Put && !pending.write));
}

void Machine::flush(Thread &thread, const Action &action,
                    llvm::ArrayRef<int64_t> path) {
  complete(thread, [&](const Pending &pending) {
    return llvm::ArrayRef(pending.path).take_front(path.size()) == path &&
           flushes(thread, action, pending);
  });
}

/// What stands before it in the same region has been done if the flush is. Of
/// what stands before the region, that is known within it.
void Machine::flushUnknown(Thread &thread, const Action &action) {
  Path path = pathOf(thread);
  flush(thread, action, path);
  for (Pending &pending : thread.underway)
    if (!isFlushed(thread, pending) && flushes(thread, action, pending))
      pending.flushedIn = path;
}

bool Machine::isFlushed(const Thread &thread, const Pending &pending) {
  return !pending.flushedIn.empty() && hasRun(thread, pending.flushedIn);
}
