//===- WeakMemory.cpp - Memory as late as the model allows ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accesses and copies of ops, and the ends of launches.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeakMemoryImpl.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

/// Splitmix64: short, for it is asked at every store.
uint64_t WeakMemory::random() {
  uint64_t mixed = drawn += 0x9E3779B97F4A7C15;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return mixed ^ (mixed >> 31);
}

WeakMemory::WeakMemory(Scheduler &scheduler)
    : scheduler(scheduler), drawn(scheduler.options.seed),
      agents(scheduler.fibers.size()) {
  for (const jit::SourceSite &site : scheduler.kernel.sites()) {
    bool isRecord = site.op == "comms.record_sync";
    ops.push_back(isRecord ? parseWeakOp(site.detail, scheduler.options.broken)
                           : WeakOp());
    usesScopes |= isRecord && ops.back().reach == 1;
    isCumulative |= isRecord && ops.back().isCumulative;
  }
  isCumulative &=
      !(scheduler.options.broken & unsigned(Broken::PacketsCumulative));
  for (size_t i = 0; i < agents.size(); ++i) {
    Agent &agent = agents[i];
    agent.fiber = &scheduler.fibers[i];
    agent.rank = agent.fiber->context.rank;
    agent.block = agent.fiber->context.block;
    agent.op = &none;
    agent.thread = owners.size();
    owners.push_back(int32_t(i));
    agent.now.happened.advance(agent.thread, agent.time);
    agent.now.aliased.advance(agent.thread, 0);
  }
  for (int64_t rank = 0; rank < scheduler.ranks; ++rank) {
    hostThreads.push_back(owners.size());
    owners.push_back(kHost);
  }
}

WeakMemory::~WeakMemory() = default;

WeakMemory::Agent &WeakMemory::agentOf(const Fiber &fiber) {
  return agents[&fiber - scheduler.fibers.data()];
}

/// What packets and poison that were loaded pass on (M7).
void WeakMemory::resolvePassed(Agent &agent) {
  const Knowledge *last = nullptr;
  auto join = [&](const AccessHistory::LastWrite &write) {
    if (write.passed && write.passed.get() != last)
      agent.seenAny.join(*write.passed);
    last = write.passed.get();
  };
  // They have read what is there now, which may have come while they polled.
  Event read = {agent.thread,  agent.time, countLaunch(*agent.fiber),
                agent.site,    false,      true,
                Proxy::Generic};
  auto isBefore = [](const Event &) { return true; };
  for (auto [address, bytes] : agent.loads) {
    auto begin = reinterpret_cast<intptr_t>(address);
    history.visitWrites(begin, begin + bytes, join);
    (void)history.add(begin, begin + bytes, read, nullptr, isBefore);
  }
  agent.loads.clear();
}

void WeakMemory::beginOp(Fiber &fiber, int32_t site) {
  Agent &agent = agentOf(fiber);
  capture(agent);
  for (Snapshot &one : agent.open)
    drop(std::move(one.item));
  agent.open.clear();
  agent.side.reset();
  if (!agent.loads.empty())
    resolvePassed(agent);
  agent.op = &ops[site];
  agent.site = site;
  // Through another address a block does not see its own stores either.
  if (agent.op->isMultimem)
    unapply(agent);
  else
    apply(agent);
  if (!agent.op->isBulkWait)
    return;
  auto isNamed = [&](int64_t copy) {
    return agent.op->copies.empty() || is_contained(agent.op->copies, copy);
  };
  makeHeld(fiber, [&](const Item &item) {
    return item.kind == Item::Transfer && item.lane == kBulk &&
           isNamed(item.way);
  });
  settle(agent, kBulk, isNamed);
}

/// The way of a transfer whose other side lies at `address`.
int64_t WeakMemory::findWay(const WeakOp &op, const char *address) const {
  std::optional<Place> place;
  if (op.overGin)
    place = findPlace(address);
  return place
             ? std::max<int64_t>(op.context, 0) * scheduler.ranks + place->rank
             : -1;
}

/// A plain store, a packet or poison may be held back.
void WeakMemory::access(Fiber &fiber, bool write, char *address,
                        int64_t bytes) {
  Agent &agent = agentOf(fiber);
  const WeakOp &op = *agent.op;
  if (op.isHost)
    return accessHost(fiber, address, bytes);
  Event event = {agent.thread, agent.time, countLaunch(fiber),
                 agent.site,   write,      op.isStrong,
                 op.proxy};
  bool isPut = op.isPut, isGet = op.isGet && op.overGin;
  if (isPut || isGet) {
    if (write != isPut) { // This rank's side comes first.
      agent.side = {write, address, bytes};
      return;
    }
    int64_t way = findWay(op, address);
    auto add = [&](int kind, bool writes, char *at, int64_t count) {
      Lane &lane = findLane(agent, kind, way);
      event.thread = lane.thread;
      event.time = ++lane.time;
      event.write = writes;
      check(fiber, event, at, count, nullptr);
    };
    if (agent.side) {
      auto [writes, at, count] = *agent.side;
      agent.side.reset();
      add(kSources, writes, at, count);
    }
    return add(isPut ? kDests : kSources, write, address, bytes);
  }
  if (op.isBulkCopy || op.isEngineCopy) {
    bool isBulk = op.isBulkCopy;
    Lane &lane = findLane(agent, isBulk ? kBulk : kEngine,
                          isBulk && !op.copies.empty() ? op.copies.front() : 0);
    event.thread = lane.thread;
    event.time = ++lane.time;
    return check(fiber, event, address, bytes, nullptr);
  }
  bool isOvertaken =
      write && mayBeOvertaken(agent, event, address, bytes) && chance(2);
  bool passes = write && event.strong && !agent.fencedAny.isEmpty();
  if (passes && !agent.passed)
    agent.passed = llvm::makeIntrusiveRefCnt<SharedKnowledge>(agent.fencedAny);
  check(fiber, event, address, bytes, passes ? agent.passed : nullptr);
  if (!write) {
    if (event.strong)
      agent.loads.emplace_back(address, bytes);
    return;
  }
  if (op.proxy != Proxy::Alias)
    snapshot(agent, address, bytes, isOvertaken);
}

/// Whether an earlier write of a packet or poison may come behind one that
/// `agent` makes now: nothing orders the two.
bool WeakMemory::mayBeOvertaken(const Agent &agent, const Event &event,
                                char *address, int64_t bytes) const {
  if (!event.strong || agent.op->isMultimem || isCumulative)
    return false;
  bool found = false;
  auto begin = reinterpret_cast<intptr_t>(address);
  history.visitWrites(
      begin, begin + bytes, [&](const AccessHistory::LastWrite &write) {
        // Whoever has read it, or knows that somebody has, comes behind it.
        bool isRead = any_of(write.reads, [&](const Event &read) {
          return isOrdered(agent, read, event);
        });
        found |= write.event.strong && !isRead &&
                 !isOrdered(agent, write.event, event);
      });
  return found;
}

/// A store is about to be made, and may be held back: of a long one, a part.
void WeakMemory::snapshot(Agent &agent, char *address, int64_t bytes,
                          bool isOvertaken) {
  const WeakOp &op = *agent.op;
  bool isOld =
      (agent.heldMask & maskOf(address, bytes)) &&
      any_of(agent.items, [&](const auto &item) {
        return item->kind == Item::Store && item->overlaps(address, bytes);
      });
  // A line is whole; what belongs to it lies elsewhere.
  bool isLine = op.whole == 128;
  if (isLine && !(scheduler.options.broken & unsigned(Broken::Store128Whole)))
    return;
  if (!isOld && !isOvertaken && !chance(2))
    return;
  if (bytes > kMostBytes) {
    address += random() % (bytes - kMostBytes + 1) & -128;
    bytes = kMostBytes;
  }
  auto item = newItem();
  item->address = address;
  item->bytes = bytes;
  item->data.assign(address, address + bytes);
  item->grain = op.grain;
  item->isPacket = op.isPacketStore;
  item->isOvertaken = isOvertaken;
  agent.open.push_back({std::move(item), op.isTold});
}

void WeakMemory::stored(Fiber &fiber, char *address, int64_t bytes) {
  Agent &agent = agentOf(fiber);
  if (bytes > 0)
    for (Snapshot &one : agent.open) {
      int64_t at = address - one.item->address;
      if (!one.isTold || at < 0 || at + bytes > one.item->bytes)
        continue;
      // Of a line the flag comes early.
      bool isLine = agent.op->whole == 128;
      if (isLine && (bytes -= 8) <= 0)
        break;
      return holdPart(agent, *one.item, address, bytes);
    }
  scheduler.stored(fiber, address, bytes);
}

void WeakMemory::copy(Fiber &fiber, char *source, char *dest, int64_t bytes) {
  Agent &agent = agentOf(fiber);
  const WeakOp &op = *agent.op;
  if (bytes <= 0)
    return;
  bool isBulk = op.isBulkCopy;
  uint64_t mask = maskOf(source, bytes) | maskOf(dest, bytes);
  if (!isBulk && (mask & agent.heldMask)) // It is read, and overwritten.
    makeHeld(fiber, [&](const Item &item) {
      return item.kind == Item::Store &&
             (item.overlaps(source, bytes) || item.overlaps(dest, bytes));
    });
  if (!(isBulk || op.isPut || (op.isGet && op.overGin))) {
    std::memmove(dest, source, static_cast<size_t>(bytes));
    return scheduler.stored(fiber, dest, bytes);
  }
  auto added = newItem();
  Item &item = *added;
  item.kind = Item::Transfer;
  item.address = dest;
  item.bytes = bytes;
  item.source = source;
  item.event.thread = agent.thread;
  item.lane = isBulk ? kBulk : op.isGet ? kSources : kDests;
  if (isBulk)
    item.way = op.copies.empty() ? 0 : op.copies.front();
  else
    item.way = findWay(op, op.isGet ? source : dest);
  if (!isBulk) {
    Lane &lane = findLane(agent, kSources, item.way);
    item.reads.thread = lane.thread;
    item.reads.time = lane.time;
    agent.lastReads = item.reads;
  }
  hold(agent, std::move(added));
}

void WeakMemory::count(Fiber &fiber, int64_t *cell) {
  Agent &agent = agentOf(fiber);
  const Event &reads = agent.lastReads;
  for (auto &item : agent.items)
    if (item->kind == Item::Transfer && !item->isRead &&
        item->reads.thread == reads.thread && item->reads.time == reads.time) {
      item->counter = cell;
      return;
    }
  // It has been read since, or there was nothing to read.
  auto message = std::make_shared<Message>();
  message->any.happened.advance(reads.thread, reads.time);
  change(cellAt(cell), cell, 1, 1, {}, std::move(message));
  scheduler.stored(fiber, reinterpret_cast<char *>(cell), 8);
}

/// Before the rank's next launch all that it has done is done (M10), but what
/// went over GIN without a flush.
void WeakMemory::endLaunch(Fiber &last) {
  bool isFenced = !(scheduler.options.broken & unsigned(Broken::LaunchIsFence));
  int64_t rank = last.context.rank;
  MutableArrayRef<Agent> own = MutableArrayRef<Agent>(agents).slice(
      rank * scheduler.blocks, scheduler.blocks);
  Knowledge all;
  for (Agent &agent : own) {
    agent.open.clear();
    resolvePassed(agent);
    if (isFenced || scheduler.blocks > 1)
      makeHeld(*agent.fiber, [&](const Item &item) {
        return item.kind != Item::Transfer || item.lane == kBulk ||
               item.way < 0 || item.isFlushed;
      });
    for (auto &[key, lane] : agent.lanes) {
      bool isGin = key.first <= kDests && key.second >= 0;
      agent.now.happened.advance(lane.thread, isGin && key.first == kDests
                                                  ? lane.flushed
                                              : isGin ? 0
                                                      : lane.time);
    }
    all.join(agent.now);
    if (isFenced) {
      all.join(agent.seenAny);
      all.join(agent.seenRank);
    }
    agent.scratch = {};
  }
  all.aliased = all.happened;
  for (Agent &agent : own) {
    agent.now = all;
    agent.async = all.happened;
    if (isFenced) {
      agent.fencedAny = agent.fencedRank = all;
      agent.passed = nullptr;
      agent.seenAny = agent.seenRank = {};
    }
    publish(agent);
  }
}
