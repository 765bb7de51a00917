//===- WeakOrder.cpp - What blocks know of each other ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What releases, acquires, fences and barriers pass on between blocks, as
// vector clocks.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeakMemoryImpl.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

/// What follows is not part of what was passed on until now.
void WeakMemory::publish(Agent &agent) {
  agent.now.happened.advance(agent.thread, ++agent.time);
}

WeakMemory::Lane &WeakMemory::findLane(Agent &agent, int kind, int64_t way) {
  auto [it, isNew] = agent.lanes.try_emplace({kind, way});
  if (isNew) {
    it->second.thread = owners.size();
    owners.push_back(int32_t(agent.thread));
  }
  return it->second;
}

uint32_t WeakMemory::countLaunch(const Fiber &fiber) const {
  return uint32_t(fiber.context.epoch - scheduler.options.firstLaunch);
}

/// The transfers of those ways happen before what follows.
void WeakMemory::settle(Agent &agent, int kind,
                        function_ref<bool(int64_t)> isWay) {
  for (auto &[key, lane] : agent.lanes)
    if (key.first == kind && isWay(key.second))
      agent.now.happened.advance(lane.thread, lane.time);
}

/// Whether a release reaches transfers of that way.
static bool isReleased(const WeakOp &op, int64_t way, int64_t rank,
                       int64_t ranks) {
  if (way < 0)
    return true;
  if (!op.overGin)
    return false;
  bool isContext = op.context < 0 || way / ranks == op.context;
  return isContext && (rank < 0 || way % ranks == rank);
}

/// Everything that a release of `op`, to `rank` (-1: all), is about to order is
/// made. Returns what it passes on: of GIN that is more than the block itself
/// knows, for the release travels behind the transfers (M9).
Knowledge WeakMemory::release(Fiber &fiber, const WeakOp &op, int64_t rank) {
  Agent &agent = agentOf(fiber);
  auto isWay = [&](int64_t way) {
    return isReleased(op, way, rank, scheduler.ranks);
  };
  for (int kind : {kSources, kDests})
    settle(agent, kind, [](int64_t way) { return way < 0; });
  Knowledge known = agent.now;
  for (auto &[key, lane] : agent.lanes)
    if (key.first <= kDests && isWay(key.second))
      known.happened.advance(lane.thread, lane.time);
  // Of a narrow scope nothing goes to other ranks.
  if (op.reach == 2 || scheduler.blocks > 1)
    makeHeld(fiber, [&](const Item &item) {
      return item.kind != Item::Transfer ||
             (item.lane != kBulk && isWay(item.way));
    });
  return known;
}

void WeakMemory::acquire(Agent &agent, const Message &message,
                         const WeakOp &op) {
  Knowledge &any = op.acquires ? agent.now : agent.seenAny;
  Knowledge &within = op.acquires ? agent.now : agent.seenRank;
  if (op.reach == 2)
    any.join(message.any);
  for (const auto &[rank, known] : message.within)
    if (op.reach >= 1 && rank == agent.rank)
      within.join(known);
}

void WeakMemory::fence(Fiber &fiber) {
  Agent &agent = agentOf(fiber);
  const WeakOp &op = *agent.op;
  if (op.isFlush) {
    auto isWay = [&](int64_t way) {
      return op.overGin ? way >= 0 && isReleased(op, way, -1, scheduler.ranks)
                        : way < 0;
    };
    for (auto &item : agent.items)
      if (item->kind == Item::Transfer && item->lane != kBulk &&
          isWay(item->way))
        item->isFlushed = readSource(*item);
    for (auto &[key, lane] : agent.lanes)
      if (key.first == kDests && isWay(key.second))
        lane.flushed = lane.time;
    makeHeld(fiber, [&](const Item &item) { // Gets.
      return item.kind == Item::Transfer && item.lane == kSources &&
             isWay(item.way);
    });
    return settle(agent, kSources, isWay);
  }
  if (op.acquires && op.reach >= 1) {
    agent.now.join(agent.seenRank);
    if (op.reach == 2)
      agent.now.join(agent.seenAny);
  }
  if (op.releases || op.proxy != Proxy::Generic)
    release(fiber, op, -1);
  if (op.proxy == Proxy::Alias)
    agent.now.aliased.join(agent.now.happened);
  if (op.proxy == Proxy::Async)
    agent.async.join(agent.now.happened);
  if (op.releases && op.reach >= 1)
    agent.fencedRank = agent.now;
  if (op.releases && op.reach == 2)
    agent.fencedAny = agent.now;
  agent.passed = nullptr;
  publish(agent);
}

void WeakMemory::beforeArrival(Fiber &fiber) {
  Agent &agent = agentOf(fiber);
  agent.arriving =
      agent.op->releases ? release(fiber, *agent.op, -1) : agent.fencedAny;
}

void WeakMemory::arrived(Fiber &fiber, int64_t handle) {
  Agent &agent = agentOf(fiber);
  // Generations go on: what the last ones passed on, all have taken.
  arrivals.erase(handle - 4);
  arrivals[handle].join(agent.arriving);
  publish(agent);
}

void WeakMemory::departed(Fiber &fiber, int64_t handle) {
  Agent &agent = agentOf(fiber);
  Knowledge &known = agent.op->acquires ? agent.now : agent.seenAny;
  known.join(arrivals[handle]);
}
