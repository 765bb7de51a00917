//===- MachineMemory.cpp - Accesses, packets and poison -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "dialect/Packets.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// All that an access of which not everything is known may touch.
Machine::Bounds Machine::possibleBounds(const Thread &thread,
                                        const RangePlan &range) const {
  bool isGuess = range.memory.moved || range.offset < 0;
  Interval at = isGuess ? Interval() : getInterval(thread, range.offset);
  bool isCounted = at.isCounted && at.term == 0;
  Interval count = getInterval(thread, range.count);
  if (range.fixedCount > 0)
    count.high = std::min(count.high, range.fixedCount);
  else if (range.count < 0 && range.fixedCount == 0)
    return {};
  int64_t limit = range.memory.limit >= 0 ? range.memory.limit : INT64_MAX;
  int64_t most = std::clamp<int64_t>(count.high, 0, limit);
  if (most == 0)
    return {};
  int64_t first = std::clamp<int64_t>(at.low, 0, limit);
  int64_t last = std::clamp<int64_t>(at.high, first, limit);
  return {first, last + std::min(most, limit - last), !at.isKnown(), isGuess,
          isCounted};
}

std::optional<Machine::Bounds>
Machine::bounds(Thread &thread, const Action &action, const RangePlan &range) {
  auto offset = range.memory.moved || range.offset < 0
                    ? std::nullopt
                    : get(thread, range.offset);
  auto count = range.count < 0 ? std::optional(range.fixedCount)
                               : get(thread, range.count);
  if (count && *count < 0 && range.count < 0)
    count = std::nullopt;
  auto rows = range.rowCount < 0 ? std::optional<int64_t>(1)
                                 : get(thread, range.rowCount);
  if (!offset || !count || !rows || !thread.unsure.empty())
    return possibleBounds(thread, range);
  if (range.count >= 0 && range.fixedCount > 0 &&
      (*count < 0 || *count > range.fixedCount)) {
    if (auto diag = reportRange(action)) {
      *diag << "says that " << *count << " elements are valid of a tile of "
            << range.fixedCount << ", on " << when(thread);
      diag->attachNote() << "clamp it: arith.minsi and arith.maxsi with the "
                            "tile's length and 0";
    }
    return std::nullopt;
  }
  int64_t end = 0;
  bool overflow = __builtin_add_overflow(*offset, *count, &end);
  bool outside = range.memory.limit >= 0 && end > range.memory.limit;
  // Nothing is touched, wherever that is.
  if (*rows == 0 || (*count == 0 && !overflow))
    return Bounds{0, 0};
  if (overflow || *offset < 0 || *count < 0 || outside) {
    if (auto diag = reportRange(action)) {
      *diag << (range.write ? "writes" : "reads") << " elements [" << *offset
            << ", " << (overflow ? std::string("…") : std::to_string(end))
            << ") of ";
      if (range.memory.argument >= 0)
        *diag << "'" << program.arguments[range.memory.argument].name << "'";
      else
        *diag << "memory";
      if (range.memory.limit >= 0)
        *diag << ", which has " << range.memory.limit;
      *diag << ", on " << when(thread);
      diag->attachNote() << "shorten the last tile with `valid`, or check the "
                            "loop's bounds";
    }
    return std::nullopt;
  }
  return Bounds{*offset, end};
}

void Machine::noteLengths(const LinearSum &sum) {
  for (const auto &[term, factor] : sum.factors)
    lengths.insert(term);
}

/// Whether it begins behind lengths that data choose freely, not at a place
/// that the host gives.
bool Machine::isPlacedByLengths(const Touch &touch) const {
  return touch.sums != 0 &&
         llvm::all_of(
             sumsOfPlaces[touch.sums].begin.factors,
             [&](const auto &part) { return lengths.count(part.first) != 0; });
}

/// The elements of a range of which the first is not known.
int32_t Machine::findSums(const Thread &thread, const RangePlan &range) {
  if (range.memory.moved || range.offset < 0 || range.rows != 1 ||
      range.rowCount >= 0)
    return 0;
  std::optional<LinearSum> begin =
      findSum(terms, getInterval(thread, range.offset));
  Interval count = range.count < 0 ? Interval::of(range.fixedCount)
                                   : getInterval(thread, range.count);
  std::optional<LinearSum> length = findSum(terms, count);
  if (!length && range.fixedCount > 0)
    length = LinearSum::of(range.fixedCount);
  if (!begin || !length)
    return 0;
  SumsOfPlace made{*begin, *begin, {}};
  if (!made.end.add(*length, 1))
    return 0;
  for (const UnknownBranch &unsure : thread.unsure)
    if (unsure.holds != 0) {
      made.conditions.push_back(unsure.holds);
      if (auto bound = findBound(terms, unsure.holds))
        noteLengths(*bound);
    }
  noteLengths(*length);
  sumsOfPlaces.push_back(std::move(made));
  return static_cast<int32_t>(sumsOfPlaces.size()) - 1;
}

/// Whether two accesses touch other elements for all data.
bool Machine::areApart(const Touch &a, const Touch &b) const {
  constexpr size_t mostConditions = 8;
  if (a.sums == 0 || b.sums == 0)
    return false;
  const SumsOfPlace &one = sumsOfPlaces[a.sums], &other = sumsOfPlaces[b.sums];
  SmallVector<int32_t, 2> conditions = one.conditions;
  llvm::append_range(conditions, other.conditions);
  if (conditions.size() > mostConditions)
    conditions.resize(mostConditions);
  auto isBefore = [&](const SumsOfPlace &first, const SumsOfPlace &second) {
    LinearSum between = second.begin;
    return between.add(first.end, -1) &&
           isNeverNegative(terms, between, conditions);
  };
  return isBefore(one, other) || isBefore(other, one);
}

void Machine::touch(Thread &thread, int32_t index, const RangePlan &range,
                    Bounds bounds) {
  const MemoryPlan &memory = range.memory;
  if (shape.isPartial() || bounds.begin == bounds.end)
    return;
  if (memory.kind == MemoryPlan::Scratch && !thread.underway.empty())
    checkPending(thread, index, -1 - int64_t(memory.scratch), range.write,
                 bounds);
  if (memory.kind == MemoryPlan::Scratch && program.usesProxies)
    noteScratch(thread, index, range, bounds);
  if (memory.argument < 0)
    return;
  // Blocks that share out this rank's own memory by data are not compared.
  const ArgumentPlan &argument = program.arguments[memory.argument];
  bool byData = bounds.anywhere && !bounds.isGuess;
  bool tracked =
      isTracked(argument) && !(byData && !argument.shared && shape.blocks > 1);
  if (isTracked(argument) && !tracked)
    noteUnproven(
        program.actions[index].op,
        "touches elements of '" + argument.name +
            "' that data choose: it is not known whether blocks of a rank "
            "touch the same ones",
        "let ranges of blocks be apart on all data, or synchronize the "
        "blocks");
  bool isExact = !bounds.anywhere && thread.unsure.empty() &&
                 (range.count < 0 || get(thread, range.count));
  if (tracked && range.write && !isExact && !bounds.isGuess)
    bounds.sums = findSums(thread, range);
  forParts(thread, memory, [&](int64_t rank) {
    if (!thread.underway.empty())
      checkPending(thread, index, placeOf(memory.argument, rank), range.write,
                   bounds);
    if (tracked && folding)
      (void)agree(folding->touchMemory(thread.id, range, rank, bounds.begin,
                                       bounds.end, range.write, isExact));
    if (tracked)
      touchPart(thread, index, memory.argument, rank, range.write, bounds);
  });
}

/// Whether two of those that touch it could meet there: blocks, or proxies.
bool Machine::isTracked(const ArgumentPlan &argument) const {
  return (argument.written || argument.host) &&
         (argument.shared || argument.isCopied || shape.blocks > 1);
}

void Machine::forParts(const Thread &thread, const MemoryPlan &memory,
                       llvm::function_ref<void(int64_t)> visit) {
  if (memory.kind == MemoryPlan::Own)
    return visit(thread.rank);
  const TeamView &team = view(thread, memory.team);
  auto visitMember = [&](int64_t peer) {
    // Nobody looks at the parts of ranks that are not followed.
    if (peer >= 0 && peer < team.size && rankIndex[team.world(peer)] >= 0)
      visit(team.world(peer));
  };
  if (memory.kind == MemoryPlan::Peer)
    if (auto peer = get(thread, memory.peer))
      return visitMember(*peer);
  for (int64_t rank = 0; rank < team.size; ++rank)
    visitMember(rank);
}

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

//===----------------------------------------------------------------------===//
// Transfers that are not over
//===----------------------------------------------------------------------===//

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

/// How often a block has written there in its launch, with what it does now. A
/// transfer is touched twice, and counts once.
static int32_t countWrites(const Shadow::Piece &piece, const Touch &now,
                           bool transfers) {
  for (const Touch &old : piece.reads)
    if (old.access == Touch::Alike && old.launch == now.launch &&
        old.stamp.thread == now.stamp.thread)
      return old.version +
             (now.writes && !(transfers && old.action == now.action));
  return now.writes;
}

/// Whether a block reads what it has written itself in this launch, and another
/// writes that once more. What a block writes there later is not the same.
static bool isOwnValue(const Touch &read, const Touch &write) {
  return !read.writes && write.access == Touch::Alike && read.version > 0 &&
         read.launch == write.launch && read.version == write.version;
}

/// Whether the op has an offset there, which could be bounded.
static bool isPlacedByData(const Action &action, int32_t argument) {
  return llvm::any_of(action.ranges, [&](const RangePlan &range) {
    return range.used && range.memory.argument == argument && range.offset >= 0;
  });
}

static Proxy proxyOf(const Action &action, int32_t argument) {
  if (action.kind == ActionKind::BulkCopy)
    return Proxy::Async;
  bool isAlias = llvm::any_of(action.ranges, [&](const RangePlan &range) {
    return range.used && range.memory.kind == MemoryPlan::Multimem &&
           range.memory.argument == argument;
  });
  return isAlias ? Proxy::Alias : Proxy::Generic;
}

void Machine::fenceProxy(Thread &thread, Proxy proxy) {
  if (proxy != Proxy::Alias && proxy != Proxy::Async)
    return;
  ProxyFence made;
  made.path = pathOf(thread);
  made.stamp = clocks.mark(thread.id);
  made.seen = clocks.seen(thread.id).vec();
  made.seenOfAgents = clocks.seenOfAgents(thread.id);
  steps += made.seen.size() / 8;
  if (proxy == Proxy::Async) {
    if (made.path.empty())
      thread.scratchWrites.clear();
    for (ScratchWrite &write : thread.scratchWrites)
      if (write.fencedIn.empty() || !hasRun(thread, write.fencedIn))
        write.fencedIn = made.path;
  }
  (proxy == Proxy::Alias ? aliasFences : asyncFences)
      .push_back(std::move(made));
}

/// A fence of proxy alias stands anywhere on the path, one of proxy async in
/// the block that copies. `perhaps`: one that may have run is enough.
bool Machine::isFenced(const Thread &thread, Proxy proxy, Timestamp write,
                       bool perhaps) const {
  bool isAsync = proxy == Proxy::Async;
  return llvm::any_of(
      isAsync ? asyncFences : aliasFences, [&](const ProxyFence &fence) {
        int32_t agent = fence.stamp.thread;
        bool runs = perhaps || fence.path.empty() ||
                    (agent == thread.id && hasRun(thread, fence.path));
        bool isBehind =
            clocks.isAgent(write.thread) ? fence.seenOfAgents.holds(write)
            : agent == write.thread      ? write.time <= fence.stamp.time
                                    : fence.seen[write.thread] >= write.time;
        return runs && isBehind &&
               (isAsync ? agent == thread.id
                        : clocks.visible(thread.id, fence.stamp));
      });
}

/// M11: what was written through one proxy is accessed through another, in one
/// launch. An error, or not decided if the two need not meet.
void Machine::checkProxy(Thread &thread, int32_t index, int32_t argument,
                         int64_t rank, const Touch &now, const Touch &write,
                         Bounds bounds) {
  bool isAsync = now.proxy == Proxy::Async, isAlias = now.proxy == Proxy::Alias;
  bool isSure =
      !now.isGuess && !now.somewhere && !write.isGuess && !write.somewhere;
  // `bulk_wait` is a fence for what a copy has written.
  if (write.action < 0 || write.launch != now.launch ||
      write.proxy == now.proxy || isMail(program.actions[index].kind) ||
      (isAsync ? now.writes : !isAlias && write.proxy != Proxy::Alias))
    return;
  Proxy wanted = isAsync ? Proxy::Async : Proxy::Alias;
  steps += aliasFences.size() + asyncFences.size();
  if (isFenced(thread, wanted, write.stamp, /*perhaps=*/false))
    return;
  const Action &action = program.actions[index];
  // The same data may decide on the fence and on what needs it.
  bool isLinked = (now.isUnsure || write.isUnsure) &&
                  isFenced(thread, wanted, write.stamp, /*perhaps=*/true);
  if (!isSure || isLinked)
    return noteUnfenced(action, write.action, wanted);
  if (auto diag = report(action)) {
    *diag << (now.writes ? "writes " : "reads ")
          << placeName(argument, rank, bounds) << " on " << when(thread)
          << ", which was written through another proxy, and no comms.fence of "
             "proxy "
          << stringifyProxy(wanted) << (isAsync ? " of this block" : "")
          << " stands between the two";
    diag->attachNote(program.actions[write.action].op->getLoc())
        << "the write, by " << name(write.stamp.thread);
    diag->attachNote() << (isAsync
                               ? "put comms.fence of proxy async before the "
                                 "copy, behind what makes the write visible"
                               : "put comms.fence acq_rel sys proxy alias "
                                 "behind the write or before this access");
  }
}

/// What may have been written through another proxy.
void Machine::noteUnfenced(const Action &action, int32_t write, Proxy wanted) {
  noteUnproven(action.op,
               "may access what was written through another proxy, and no "
               "comms.fence of proxy " +
                   stringifyProxy(wanted) + " stands between the two",
               "the write", program.actions[write].op);
}

/// Scratch memory is a block's own: its order is that of the program.
void Machine::noteScratch(Thread &thread, int32_t index, const RangePlan &range,
                          Bounds bounds) {
  const Action &action = program.actions[index];
  bool isSure = !bounds.anywhere && !bounds.isGuess;
  if (action.kind != ActionKind::BulkCopy) {
    if (range.write)
      thread.scratchWrites.push_back({range.memory.scratch,
                                      index,
                                      bounds,
                                      isSure,
                                      !thread.unsure.empty(),
                                      {}});
    return;
  }
  if (range.write)
    return;
  steps += thread.scratchWrites.size();
  for (const ScratchWrite &write : thread.scratchWrites) {
    if (write.scratch != range.memory.scratch ||
        write.bounds.end <= bounds.begin || bounds.end <= write.bounds.begin ||
        (!write.fencedIn.empty() && hasRun(thread, write.fencedIn)))
      continue;
    bool isLinked =
        !write.fencedIn.empty() && (write.isUnsure || !thread.unsure.empty());
    if (!isSure || !write.isSure || isLinked) {
      noteUnfenced(action, write.action, Proxy::Async);
      continue;
    }
    if (auto diag = report(action)) {
      *diag << "reads scratch memory on " << when(thread)
            << " through the async proxy, which was written without it, and no "
               "comms.fence of proxy async stands between the two";
      diag->attachNote(program.actions[write.action].op->getLoc())
          << "the write";
      diag->attachNote() << "put comms.fence of proxy async before the copy";
    }
    return;
  }
}

/// One access to a part: compares it with those before, and records it.
class Machine::PartAccess {
public:
  PartAccess(Machine &machine, Thread &thread, int32_t index, int32_t argument,
             int64_t rank, bool write, Bounds bounds);

  /// Compares it with the accesses to a piece from `begin` on, and becomes one
  /// of them.
  void meet(int64_t begin, Shadow::Piece &piece);

private:
  bool visible(const Touch &old) const {
    return machine.clocks.visible(thread.id, old.stamp);
  }
  void meetWrite(int64_t begin, const Shadow::Piece &piece);
  void meetReads(int64_t begin, const Shadow::Piece &piece);
  /// Whether two accesses without an order between them are no race.
  bool isHarmless(const Touch &old) const;
  void replaceWrite(Shadow::Piece &piece) const;
  void checkProxy(const Touch &old, int64_t begin, const Shadow::Piece &piece);

  /// Reports that no order stands between it and `old`, which touched the
  /// elements from `begin` up to `end`.
  void clash(const Touch &old, bool oldWrites, int64_t begin, int64_t end);
  void reportHost(InFlightDiagnostic &diag, const Touch &old) const;
  void adviseOrder(InFlightDiagnostic &diag, const Touch &old) const;
  /// "writes [0, 64) of 'x' at rank 1 on rank 0 block 0 in launch 1".
  std::string describe(int64_t begin, int64_t end) const;
  /// Leaves open whether it touches the same elements as `old`.
  void mayMeet(const Touch &old);

  Machine &machine;
  Thread &thread;
  int32_t index;
  const Action &action;
  int32_t argument;
  int64_t rank;
  bool write;
  Bounds bounds;
  const ArgumentPlan &plan;
  Touch now;
};

Machine::PartAccess::PartAccess(Machine &machine, Thread &thread, int32_t index,
                                int32_t argument, int64_t rank, bool write,
                                Bounds bounds)
    : machine(machine), thread(thread), index(index),
      action(machine.program.actions[index]), argument(argument), rank(rank),
      write(write), bounds(bounds), plan(machine.program.arguments[argument]) {
  const Timestamp &transfer = machine.transfer;
  now.stamp = transfer.thread < 0 ? machine.clocks.stamp(thread.id) : transfer;
  now.action = index;
  now.launch = thread.launch;
  now.access = isa<MultimemReduceOp>(action.op) ? Touch::Reduction
               : isMail(action.kind)            ? Touch::Mail
               : bounds.anywhere && write       ? Touch::Scattered
               : write && machine.isAlike(plan) ? Touch::Alike
                                                : Touch::Plain;
  now.writes = write;
  now.somewhere = bounds.anywhere && isPlacedByData(action, argument);
  now.isGuess = bounds.isGuess;
  now.isCounted = bounds.isCounted;
  now.isUnsure = !thread.unsure.empty();
  now.proxy =
      machine.program.usesProxies ? proxyOf(action, argument) : Proxy::Generic;
  now.sums = bounds.sums;
}

std::string Machine::PartAccess::describe(int64_t begin, int64_t end) const {
  return formatv("{0} [{1}, {2}) of '{3}' at rank {4} on {5}",
                 write ? "writes" : "reads", std::max(begin, bounds.begin),
                 std::min(end, bounds.end), plan.name, rank,
                 machine.when(thread));
}

void Machine::PartAccess::clash(const Touch &old, bool oldWrites, int64_t begin,
                                int64_t end) {
  auto diag = machine.report(action);
  if (!diag)
    return;
  *diag << describe(begin, end);
  if (old.action < 0)
    return reportHost(*diag, old);
  llvm::StringRef kind = oldWrites ? "write" : "read";
  *diag << ", with no order between it and the " << kind << " by "
        << machine.name(old.stamp.thread) << " in launch " << old.launch;
  Operation *other = machine.program.actions[old.action].op;
  machine.reported.insert(other);
  diag->attachNote(other->getLoc()) << "the " << kind;
  adviseOrder(*diag, old);
}

void Machine::PartAccess::reportHost(InFlightDiagnostic &diag,
                                     const Touch &old) const {
  diag << ", where that rank may not have begun launch " << old.launch
       << ": its host may still use it";
  diag.attachNote() << "wait for that rank first: a comms.barrier before "
                       "the first access to what its host uses";
}

void Machine::PartAccess::adviseOrder(InFlightDiagnostic &diag,
                                      const Touch &old) const {
  bool reuse = old.launch != thread.launch;
  diag.attachNote()
      << (machine.isAlike(plan)
              ? "every block of the rank does this, and may find what "
                "another has written: share the elements out by "
                "comms.block_id, or give the kernel one block"
          : reuse ? "let the earlier launch end in a barrier or a signal that "
                    "orders them, or alternate two buffers by comms.epoch"
                  : "order them: a signal that releases and a wait that "
                    "acquires, or a barrier");
  if (machine.clocks.isAgent(old.stamp.thread) &&
      machine.program.actions[old.action].gin)
    diag.attachNote()
        << "what goes through the adapter is ordered by a signal by gin to "
           "the same rank in the same context; for this rank, by comms.flush";
  if (now.somewhere || old.somewhere)
    diag.attachNote()
        << "data decide the place, which may be any of these: bound it by "
           "comms.check_bounds before it, or by arith.minsi and arith.maxsi";
}

void Machine::PartAccess::mayMeet(const Touch &old) {
  bool isGuess = now.isGuess || old.isGuess;
  machine.steps += 4;
  if (machine.ownerOf(old.stamp.thread) == thread.id ||
      (!isGuess && machine.areApart(now, old)))
    return;
  machine.noteUnproven(
      action.op,
      "writes to '" + plan.name + "' where " +
          (isGuess ? "comms-check-sync does not follow the view" : "data say") +
          ", with no order between it and another access: it is not known "
          "whether they meet",
      "the other access", machine.program.actions[old.action].op);
  auto &unproven = machine.unproven;
  if (!isGuess && unproven.back().notes.size() == 1)
    unproven.back().notes.emplace_back(
        nullptr, "give each writer a part by its rank and block, or let it "
                 "begin behind the lengths of the others, exchanged before");
  for (UnprovenReason &made : unproven)
    made.isCounted |=
        made.op == action.op &&
        ((now.isCounted && old.isCounted) ||
         (machine.isPlacedByLengths(now) && machine.isPlacedByLengths(old)));
}

void Machine::PartAccess::checkProxy(const Touch &old, int64_t begin,
                                     const Shadow::Piece &piece) {
  machine.checkProxy(
      thread, index, argument, rank, now, old,
      {std::max(begin, bounds.begin), std::min(piece.end, bounds.end)});
}

void Machine::PartAccess::meetWrite(int64_t begin, const Shadow::Piece &piece) {
  const Touch &old = piece.write;
  if (visible(old))
    checkProxy(old, begin, piece);
  else if (now.isApartByData(old) || now.isGuess || old.isGuess)
    mayMeet(old);
  else
    clash(old, /*oldWrites=*/true, begin, piece.end);
}

bool Machine::PartAccess::isHarmless(const Touch &old) const {
  return isOwnValue(write ? old : now, write ? now : old) ||
         (old.access != Touch::Plain && old.access == now.access &&
          old.access != Touch::Scattered);
}

void Machine::PartAccess::meetReads(int64_t begin, const Shadow::Piece &piece) {
  for (const Touch &old : piece.reads) {
    if (!write && !old.writes)
      continue;
    if (old.writes && visible(old)) {
      checkProxy(old, begin, piece);
      continue;
    }
    bool isOpen = now.isApartByData(old) || now.isGuess || old.isGuess;
    if ((!isOpen && isHarmless(old)) || visible(old))
      continue;
    if (isOpen)
      mayMeet(old);
    else
      clash(old, old.writes, begin, piece.end);
  }
}

void Machine::PartAccess::replaceWrite(Shadow::Piece &piece) const {
  // What is not ordered with this write is still there for reads.
  llvm::erase_if(piece.reads, [&](const Touch &old) {
    return !now.isApartByData(old) || visible(old);
  });
  // Of two writes of a launch to other elements here, none stands for both.
  bool isOther =
      piece.write.launch == now.launch && piece.write.sums != now.sums;
  piece.write = now;
  if (isOther)
    piece.write.sums = 0;
}

void Machine::PartAccess::meet(int64_t begin, Shadow::Piece &piece) {
  bool mayClash = write || piece.hasWrites;
  machine.steps += 2 + (mayClash ? piece.reads.size() : 0);
  if (machine.isAlike(plan))
    now.version = countWrites(piece, now, action.deferral != Deferral::None);
  meetWrite(begin, piece);
  if (mayClash)
    meetReads(begin, piece);
  if (write && now.access == Touch::Plain)
    replaceWrite(piece);
  else
    piece.note(now);
}

void Machine::touchPart(Thread &thread, int32_t index, int32_t argument,
                        int64_t rank, bool write, Bounds bounds) {
  PartAccess access(*this, thread, index, argument, rank, write, bounds);
  size_t part = size_t(argument) * shape.followed.size() + rankIndex[rank];
  shadows[part].access(
      bounds.begin, bounds.end,
      [&](int64_t begin, Shadow::Piece &piece) { access.meet(begin, piece); });
}

/// Between two launches of a rank its host reads and writes its parts of
/// windows that are handed to it: all that peers wrote there has come, and what
/// they write in the next launch comes later.
void Machine::touchByHost(const Thread &thread, Timestamp turn) {
  if (shape.isPartial())
    return;
  for (auto [argument, plan] : llvm::enumerate(program.arguments)) {
    if (!plan.host || !isTracked(plan) || plan.elements == 0)
      continue;
    auto late = [&](const Touch &old, bool write) {
      if (old.action < 0)
        return;
      const Action &action = program.actions[old.action];
      if (auto diag = report(action)) {
        *diag << (write ? "writes" : "reads") << " '" << plan.name
              << "' at rank " << thread.rank << " in launch " << old.launch
              << " on " << name(old.stamp.thread)
              << ", which that rank does not wait for before it ends the launch"
              << ": its host may use it too early";
        diag->attachNote() << "end the kernel with a comms.barrier behind the "
                              "accesses to what its host uses";
      }
    };
    size_t part = argument * shape.followed.size() + rankIndex[thread.rank];
    Touch now{turn, -1, thread.launch, Touch::Plain, true};
    shadows[part].access(0, plan.elements, [&](int64_t, Shadow::Piece &piece) {
      steps += 2 + piece.reads.size();
      if (!clocks.visible(thread.id, piece.write.stamp))
        late(piece.write, true);
      for (const Touch &old : piece.reads)
        if (!clocks.visible(thread.id, old.stamp))
          late(old, false);
      piece.reads.clear();
      piece.write = now;
    });
  }
}

void Machine::doAccess(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  bool sure = thread.unsure.empty();
  if (sure && action.peer >= 0 && action.kind == ActionKind::Access &&
      get(thread, action.peer) && !peerOf(thread, action))
    return;
  std::optional<Bounds> pieces[std::extent_v<decltype(action.ranges)>];
  transfer = beginTransfer(thread, action);
  llvm::scope_exit ended([&] { transfer = {}; });
  for (auto [at, range] : llvm::enumerate(action.ranges)) {
    if (!range.used)
      continue;
    if (sure && range.memory.kind == MemoryPlan::Peer)
      if (auto peer = get(thread, range.memory.peer)) {
        Action at = {};
        at.op = action.op;
        at.peer = range.memory.peer;
        at.team = range.memory.team;
        if (!peerOf(thread, at))
          return;
      }
    pieces[at] = bounds(thread, action, range);
    if (!pieces[at])
      continue;
    touchRows(thread, index, range, *pieces[at]);
    if (range.write)
      storeInteger(thread, action, range, *pieces[at]);
    else
      loadInteger(thread, action, *pieces[at]);
  }
  if (isa<ContractOp>(action.op) && action.ranges[2].used)
    checkProduct(thread, action);
  if (contents && !fatal)
    moveContents(thread, action, pieces);
  if (sure && action.counter >= 0)
    count(thread, index);
  for (auto [at, range] : llvm::enumerate(action.ranges))
    if (!fatal && pieces[at])
      defer(thread, index, range, *pieces[at]);
}

/// The copy engine has its turn when all blocks of the rank have come; they go
/// on when it is done. The last of them stands for it.
bool Machine::doEngineCopy(Thread &thread, int32_t index) {
  BarrierState &state = barriers[barrier(thread, -1, true, -2 - index)];
  if (thread.pending < 0) {
    thread.pending = arrive(thread, index, state, /*release=*/true, true);
    if (leave(thread, index, state, thread.pending, /*acquire=*/true, true)) {
      doAccess(thread, index);
      clocks.merge(thread.id, state.generations[thread.pending].message,
                   /*release=*/true);
    }
  }
  if (!leave(thread, index, state, thread.pending, /*acquire=*/true, true))
    return false;
  thread.pending = -1;
  return true;
}

/// All rows of a range, of which `row` is the first. Rows that lie one behind
/// the other are touched together.
void Machine::touchRows(Thread &thread, int32_t index, const RangePlan &range,
                        Bounds row) {
  int64_t rows = range.rows, limit = range.memory.limit;
  if (range.rowCount >= 0) {
    int64_t most = rows >= 0                        ? rows
                   : limit >= 0 && range.stride > 0 ? limit / range.stride + 1
                                                    : 1;
    std::optional<int64_t> known = get(thread, range.rowCount);
    rows = std::clamp<int64_t>(known.value_or(most), 0, most);
    row.isGuess |= !known; // It may be none.
  }
  // Where not everything is known, the first row may be anywhere.
  if (limit >= 0 && (row.anywhere || row.isGuess) && rows > 1) {
    row.end = limit;
    rows = 1;
  }
  if (rows > 1 && row.end - row.begin == range.stride) {
    row.end = row.begin + rows * range.stride;
    rows = 1;
  }
  for (int64_t done = 0; done < rows; ++done) {
    touch(thread, index, range, row);
    row.begin += range.stride;
    row.end += range.stride;
  }
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
// Packets and poison
//===----------------------------------------------------------------------===//

int64_t Machine::unitsOf(const Action &action, int64_t count) const {
  if (action.kind != ActionKind::PacketStore &&
      action.kind != ActionKind::PacketLoad)
    return count;
  int64_t unit = getUnitBits(action.assumes);
  count = count > 0 && count < (int64_t(1) << 40)
              ? (count * action.elementBits + unit - 1) / unit
              : 0;
  // A line is stored and looked at as a whole.
  return areLines(action.assumes)
             ? static_cast<int64_t>(llvm::alignTo(count, kLineUnits))
             : count;
}

Interval Machine::lengthOf(const Thread &thread, const Action &action) const {
  const RangePlan &range = action.ranges[0];
  if (range.count < 0)
    return Interval::of(range.fixedCount);
  Interval count = getInterval(thread, range.count);
  count.low = std::clamp<int64_t>(count.low, 0, range.fixedCount);
  count.high = std::clamp<int64_t>(count.high, 0, range.fixedCount);
  return count;
}

void Machine::compareLengths(Thread &thread, const Action &action,
                             const Action &store, int32_t storer,
                             Interval wanted, Interval stored) {
  if (wanted.high <= stored.low || terms.isAtMost(wanted.term, stored.term))
    return;
  auto most = findSum(terms, stored), least = findSum(terms, wanted);
  if (most && least && most->add(*least, -1) &&
      isNeverNegative(terms, *most, {}))
    return;
  auto number = [](Interval value) {
    return value.isKnown() ? std::to_string(value.low)
                           : std::to_string(value.low) + " to " +
                                 std::to_string(value.high);
  };
  std::string text = "expects " + number(wanted) + " elements on " +
                     when(thread) + ", but data decide how many " +
                     name(storer) + " stores: " + number(stored);
  const char *hint = "store all elements that are waited for, or send the "
                     "number first and load as many";
  // Of numbers that have to do with each other nothing more is known.
  bool isFree = wanted.isKnown() || stored.isKnown() ||
                terms.isIndependent(wanted.term, stored.term);
  if (!isFree) {
    UnprovenReason &made = noteUnproven(action.op, text, "the store", store.op);
    made.isCounted = true;
    if (made.notes.size() == 1)
      made.notes.emplace_back(nullptr, hint);
    return;
  }
  if (auto diag = report(action)) {
    *diag << text;
    diag->attachNote(store.op->getLoc()) << "the store";
    diag->attachNote() << hint;
  }
}

std::optional<Machine::Bounds> Machine::packetBounds(Thread &thread,
                                                     const Action &action) {
  const RangePlan &range = action.ranges[0];
  const MemoryPlan &memory = range.memory;
  if (memory.argument < 0) {
    fatal = true;
    if (auto diag = report(action))
      *diag << "uses memory that is not a kernel argument, whose packets "
               "comms-check-sync does not follow";
    return std::nullopt;
  }
  if (memory.kind == MemoryPlan::Peer) {
    Action at = {};
    at.op = action.op;
    at.peer = memory.peer;
    at.team = memory.team;
    if (!peerOf(thread, at))
      return std::nullopt;
  }
  auto offset = demand(thread, action, range.offset, "offset");
  if (!offset)
    return std::nullopt;
  RangePlan words = range;
  bool packets = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  int64_t count = range.fixedCount;
  if (range.count >= 0) {
    // Of a tile whose length depends on data this is the most.
    bool isTile = action.kind != ActionKind::PoisonFill;
    auto some = isTile
                    ? get(thread, range.count)
                    : demand(thread, action, range.count, "number of elements");
    if (!some && !isTile)
      return std::nullopt;
    count = some.value_or(lengthOf(thread, action).high);
    if (some && isTile && (*some < 0 || *some > range.fixedCount)) {
      (void)bounds(thread, action, range); // Says so.
      return std::nullopt;
    }
  }
  count = unitsOf(action, count);
  if (packets && areLines(action.assumes) && *offset % kLineUnits != 0) {
    fatal = true;
    if (auto diag = report(action)) {
      *diag << "begins at " << *offset << " on " << when(thread)
            << ", which is not the first of a line";
      diag->attachNote() << "use a multiple of " << kLineUnits;
    }
    return std::nullopt;
  }
  words.count = noRegister;
  words.fixedCount = count;
  auto result = bounds(thread, action, words);
  if (!result)
    fatal = true;
  return result;
}

/// Of a tile whose length data decide, the elements that are there on all data
/// are stored, and then those that may be.
void Machine::store(Thread &thread, int32_t index, int64_t rank, Bounds bounds,
                    int64_t flag) {
  const Action &action = program.actions[index];
  forgetIntegers(placeOf(action.ranges[0].memory.argument, rank));
  Interval length = lengthOf(thread, action);
  int64_t sure = action.kind == ActionKind::PoisonFill || length.isKnown()
                     ? bounds.end
                     : bounds.begin + unitsOf(action, length.low);
  Mailbox::Run made;
  storePart(thread, index, rank, {bounds.begin, sure}, flag, made);
  made.isUnsure = true;
  made.length = length;
  made.from = bounds.begin;
  storePart(thread, index, rank, {sure, bounds.end}, flag, made);
}

/// Checks that a store of packets or poison with `flag` loses nothing of what
/// `run` holds. `place` names its elements.
void Machine::checkOverwrite(Thread &thread, const Action &action,
                             const Mailbox::Run &run, int64_t flag,
                             llvm::function_ref<std::string()> place) {
  const Touch *early = nullptr;
  for (const Touch &read : run.reads)
    if (!clocks.carriedOut(thread.id, read.stamp))
      early = &read;
  bool isSame = run.flag == flag;
  if (early) {
    reportUnread(thread, action, *early, place());
  } else if (isSame && action.kind != ActionKind::PoisonFill) {
    reportSameFlag(thread, action, run, place());
  } else if (run.store.action < 0 ||
             clocks.visible(thread.id, run.store.stamp)) {
    // Nothing has been stored there, or it is ordered before.
  } else if (clocks.carriedOut(thread.id, run.store.stamp)) {
    SmallVector<Timestamp> moments = {run.store.stamp};
    for (const Touch &read : run.reads)
      moments.push_back(read.stamp);
    if (!isBehind(thread, moments))
      reportOvertaking(thread, action, run.store, "writes to " + place());
  } else if (auto diag = report(action)) {
    *diag << "writes to " << place() << " on " << when(thread)
          << " with no order between it and " << name(run.store.stamp.thread)
          << " in launch " << run.store.launch;
    diag->attachNote(program.actions[run.store.action].op->getLoc())
        << "the other store";
    diag->attachNote() << "give each writer its own part, or order them "
                          "with a signal or a barrier";
  }
}

void Machine::reportUnread(const Thread &thread, const Action &action,
                           const Touch &read, const std::string &place) {
  auto diag = report(action);
  if (!diag)
    return;
  *diag << "overwrites " << place << " on " << when(thread) << " before "
        << name(read.stamp.thread) << " has surely read it in launch "
        << read.launch;
  reported.insert(program.actions[read.action].op);
  diag->attachNote(program.actions[read.action].op->getLoc()) << "the read";
  diag->attachNote() << "alternate buffers by comms.epoch, or let the "
                        "reader answer before the next launch";
}

void Machine::reportSameFlag(const Thread &thread, const Action &action,
                             const Mailbox::Run &run,
                             const std::string &place) {
  auto diag = report(action);
  if (!diag)
    return;
  bool isPacket = action.kind == ActionKind::PacketStore;
  if (isPacket)
    *diag << "writes flag " << (run.flag & 0xffffffff) << " to " << place
          << " on " << when(thread) << ", where packets of launch "
          << run.store.launch
          << " have that flag already: a reader cannot tell them apart";
  else
    *diag << "writes to " << place << " on " << when(thread)
          << ", which still holds the tile of launch " << run.store.launch
          << ": a reader would take the old one for the new";
  for (const Touch &read : run.reads)
    reported.insert(program.actions[read.action].op);
  diag->attachNote(program.actions[run.store.action].op->getLoc())
      << "the earlier store";
  diag->attachNote() << (isPacket
                             ? "let the flag grow with comms.epoch"
                             : "let the reader clear it with comms.poison_fill "
                               "before it is used again");
}

void Machine::storePart(Thread &thread, int32_t index, int64_t rank,
                        Bounds bounds, int64_t flag, const Mailbox::Run &made) {
  if (bounds.begin >= bounds.end)
    return;
  int32_t argument = program.actions[index].ranges[0].memory.argument;
  Mailbox &box = mailboxes[placeOf(argument, rank)];
  bool near = rank == thread.rank;
  touchPackets(thread, index, rank, /*write=*/true, bounds);
  const Action &action = program.actions[index];
  Touch now{clocks.stamp(thread.id), index, thread.launch, Touch::Mail, true};
  completeFenced(thread);
  Message message = clocks.send(thread.id, /*release=*/false, near);
  bool poison = action.kind != ActionKind::PacketStore;
  box.access(bounds.begin, bounds.end, [&](int64_t begin, Mailbox::Run &run) {
    steps += 2 + run.reads.size();
    checkOverwrite(thread, action, run, flag,
                   [&] { return placeName(argument, rank, {begin, run.end}); });
    // Memory that nobody has filled with poison looks like a tile.
    bool isFirst = run.store.action < 0;
    if (isFirst && poison && !program.arguments[argument].isPoisoned)
      run.past.emplace_back(1, now.stamp);
    if (run.flag != flag && !isFirst) {
      llvm::erase_if(run.past,
                     [&](const auto &old) { return old.first == run.flag; });
      run.past.emplace_back(run.flag, now.stamp);
    }
    run.isUnsure = made.isUnsure;
    run.length = made.length;
    run.from = made.from;
    run.flag = flag;
    run.store = now;
    run.message = message;
    run.reads.clear();
  });
}

bool Machine::doPackets(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto piece = packetBounds(thread, action);
  if (!piece)
    return true;
  bool isLoad = action.kind == ActionKind::PacketLoad ||
                action.kind == ActionKind::PoisonLoad;
  bool hasFlag = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  int64_t flag = action.kind == ActionKind::PoisonFill ? -1 : 1;
  if (hasFlag) {
    auto value = demand(thread, action, action.value, "flag");
    if (!value)
      return true;
    flag = *value & 0xffffffff;
    if (isLoad && flag == 0) {
      reportEmptyFlag(thread, action);
      return true;
    }
    // A load of packets of 8 bytes finds no line, and the reverse.
    if (areLines(action.assumes))
      flag |= int64_t(1) << 32;
  }
  if (isLoad)
    return loadPackets(thread, index, *piece, flag);
  storePackets(thread, index, *piece, flag);
  return true;
}

void Machine::reportEmptyFlag(const Thread &thread, const Action &action) {
  if (auto diag = report(action)) {
    *diag << "waits for flag 0 on " << when(thread)
          << ", which memory holds before anything is stored";
    diag->attachNote() << "begin with flag 1: comms.epoch does";
  }
  fatal = true;
}

/// World rank whose memory `action` stores to or loads from.
int64_t Machine::packetRank(const Thread &thread, const Action &action) const {
  const MemoryPlan &memory = action.ranges[0].memory;
  return memory.kind == MemoryPlan::Peer
             ? view(thread, memory.team).world(*get(thread, memory.peer))
             : thread.rank;
}

void Machine::storePackets(Thread &thread, int32_t index, Bounds piece,
                           int64_t flag) {
  const Action &action = program.actions[index];
  const MemoryPlan &memory = action.ranges[0].memory;
  auto storeAt = [&](int64_t to) {
    if (folding)
      (void)agree(
          folding->touchPackets(thread.id, action, to, piece.begin, piece.end));
    store(thread, index, to, piece, flag);
    if (contents)
      packetContents(thread, action, piece.begin, to);
  };
  if (memory.kind != MemoryPlan::Multimem)
    return storeAt(packetRank(thread, action));
  const TeamView &team = view(thread, memory.team);
  for (int64_t peer = 0; peer < team.size; ++peer)
    storeAt(team.world(peer));
}

bool Machine::loadPackets(Thread &thread, int32_t index, Bounds piece,
                          int64_t flag) {
  const Action &action = program.actions[index];
  int64_t rank = packetRank(thread, action);
  Mailbox &box = mailboxes[placeOf(action.ranges[0].memory.argument, rank)];
  int64_t seen = -1;
  if (!box.holds(piece.begin, piece.end, flag, seen))
    return false;
  if (folding)
    (void)agree(
        folding->touchPackets(thread.id, action, rank, piece.begin, piece.end));
  Touch now{clocks.stamp(thread.id), index, thread.launch, Touch::Mail, false};
  touchPackets(thread, index, rank, /*write=*/false, piece);
  box.access(piece.begin, piece.end, [&](int64_t, Mailbox::Run &run) {
    checkOldPackets(thread, action, run, flag);
    if (run.isUnsure) {
      // Elements count from the tile's first one on either side.
      Interval wanted = lengthOf(thread, action);
      if (run.from != piece.begin)
        wanted.term = 0;
      compareLengths(thread, action, program.actions[run.store.action],
                     run.store.stamp.thread, wanted, run.length);
    }
    remember(run.reads, now);
    int32_t sender = run.store.stamp.thread;
    hear(thread, index, run.message, sender, /*acquire=*/false,
         /*near=*/threads[sender].rank == thread.rank);
  });
  if (contents)
    packetContents(thread, action, piece.begin, rank);
  return true;
}

/// Checks that a load is met only by the store that it waits for.
void Machine::checkOldPackets(const Thread &thread, const Action &action,
                              const Mailbox::Run &run, int64_t flag) {
  bool hasFlag = action.kind == ActionKind::PacketLoad;
  bool isOld = llvm::any_of(run.reads, [&](const Touch &read) {
    return read.launch < thread.launch;
  });
  if (isOld)
    if (auto diag = report(action)) {
      *diag << "is met at launch " << thread.launch
            << " by what was stored in launch " << run.store.launch << ", on "
            << name(thread.id);
      diag->attachNote(program.actions[run.store.action].op->getLoc())
          << "the store";
      diag->attachNote() << (hasFlag ? "let the flag grow with comms.epoch"
                                     : "clear what has been read with "
                                       "comms.poison_fill");
    }
  for (const auto &[old, overwritten] : run.past) {
    if (old != flag || isBehind(thread, overwritten))
      continue;
    auto diag = report(action);
    if (!diag)
      continue;
    *diag << "may be met on " << when(thread) << " by what was there before "
          << name(overwritten.thread) << " overwrote it";
    diag->attachNote(program.actions[run.store.action].op->getLoc())
        << "the store that it should wait for";
    diag->attachNote()
        << (hasFlag ? "let each store have a flag of its own, or let the "
                      "reader wait until the old tile is gone"
                    : "fill it with poison first, comms.poison_fill, and "
                      "let a barrier follow");
  }
}

/// Packets and plain accesses to one memory do not go together.
void Machine::touchPackets(Thread &thread, int32_t index, int64_t rank,
                           bool write, Bounds units) {
  const Action &action = program.actions[index];
  const MemoryPlan &memory = action.ranges[0].memory;
  const ArgumentPlan &argument = program.arguments[memory.argument];
  if (!argument.hasData || !isTracked(argument) || shape.isPartial())
    return;
  // The units are not those of plain accesses: as written by all blocks.
  if (folding)
    (void)agree(folding->touchMemory(thread.id, action.ranges[0], rank, 0,
                                     INT64_MAX, true, /*isExact=*/false));
  touchPart(thread, index, memory.argument, rank, write, units);
  // Lines have rests behind them.
  bool packets = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  if (packets && areLines(action.assumes) && memory.limit < argument.elements)
    touchPart(thread, index, memory.argument, rank, write,
              {memory.limit, argument.elements});
}
