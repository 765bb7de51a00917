//===- WeakCells.cpp - Signals and counters -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Signals and counters keep their last values; a read returns one that the
// reader may still see.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeakMemoryImpl.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

static constexpr size_t kVersions = 8;

WeakMemory::Cell &WeakMemory::cellAt(int64_t *at) {
  Cell &cell = cells[at];
  if (cell.versions.empty())
    cell.versions.push_back({*at, {}, nullptr, false, {}});
  return cell;
}

void WeakMemory::change(Cell &cell, int64_t *at, int64_t kind, int64_t value,
                        const Event &event,
                        std::shared_ptr<const Message> message) {
  const Cell::Version &last = cell.versions.back();
  if (kind != 0) {
    value += last.value;
    if (last.message) {
      auto sum = std::make_shared<Message>(*last.message);
      if (message)
        sum->join(*message);
      message = std::move(sum);
    }
  }
  cell.versions.push_back({value, event, std::move(message), kind == 0, {}});
  if (mayComeLast(cell) && chance(2)) {
    Cell::Version &before = *std::prev(cell.versions.end(), 2);
    if (kind != 0) // It adds to what was there before that was set.
      cell.versions.back().value +=
          std::prev(cell.versions.end(), 3)->value - before.value;
    std::swap(before, cell.versions.back());
    // What has been read stays the newer one.
    size_t newest = cell.first + cell.versions.size() - 1;
    for (auto &[thread, version] : cell.seen)
      if (version + 1 == newest)
        version = newest;
  }
  if (cell.versions.size() > kVersions) {
    cell.versions.pop_front();
    ++cell.first;
  }
  __atomic_store_n(at, cell.versions.back().value, __ATOMIC_RELEASE);
}

/// Whether the value that was set before the last change may come behind it:
/// nothing orders the two (M13, M25).
bool WeakMemory::mayComeLast(const Cell &cell) const {
  if (cell.versions.size() < 3 || isCumulative)
    return false;
  const Cell::Version &last = cell.versions.back(),
                      &before = *std::prev(cell.versions.end(), 2);
  int32_t owner = owners[last.event.thread];
  if (!before.isSet || !before.event.time || !last.event.time || owner == kHost)
    return false;
  const VectorClock &known = agents[owner].now.happened;
  auto knows = [&](uint32_t thread, uint32_t time) {
    return thread == last.event.thread || known[thread] >= time;
  };
  return !knows(before.event.thread, before.event.time) &&
         none_of(before.readers, [&](const auto &reader) {
           return knows(reader.first, reader.second);
         });
}

void WeakMemory::signal(Fiber &fiber, int64_t *cell, int64_t rank, int64_t kind,
                        int64_t value) {
  Agent &agent = agentOf(fiber);
  const WeakOp &op = *agent.op;
  Knowledge known;
  if (op.releases)
    known = release(fiber, op, rank);
  auto message = std::make_shared<Message>();
  if (usesScopes && op.reach >= 1)
    message->addWithin(agent.rank, op.releases ? known : agent.fencedRank);
  if (op.reach == 2)
    message->any = op.releases ? std::move(known) : agent.fencedAny;
  auto added = newItem();
  Item &item = *added;
  item.kind = Item::Signal;
  item.address = reinterpret_cast<char *>(cell);
  item.bytes = 8;
  item.change = kind;
  item.value = kind == 1 ? 1 : value;
  item.event = {agent.thread, agent.time, countLaunch(fiber), agent.site,
                true,         true,       Proxy::Generic};
  item.message = std::move(message);
  publish(agent);
  if (!op.releases)
    return hold(agent, std::move(added));
  make(agent, item);
  drop(std::move(added));
}

void WeakMemory::reset(Fiber &fiber, int64_t *cell) {
  Agent &agent = agentOf(fiber);
  makeHeld(fiber, [&](const Item &item) {
    return item.overlaps(reinterpret_cast<char *>(cell), 8);
  });
  Event event = {agent.thread, agent.time, countLaunch(fiber), agent.site,
                 true,         true,       Proxy::Generic};
  publish(agent);
  change(cellAt(cell), cell, 0, 0, event, nullptr);
  scheduler.stored(fiber, reinterpret_cast<char *>(cell), 8);
}

/// The first value that the block may still read (M13).
size_t WeakMemory::firstVisible(const Agent &agent, const Cell &cell) const {
  auto seen = cell.seen.find(int32_t(agent.thread));
  size_t first =
      std::max(cell.first, seen == cell.seen.end() ? 0 : seen->second);
  for (size_t i = cell.versions.size(); i-- > first - cell.first;) {
    const Cell::Version &version = cell.versions[i];
    const Event &event = version.event;
    bool isKnown = event.time && agent.now.happened[event.thread] >= event.time;
    // What has been read is not older for whom the reader tells.
    if (isKnown || any_of(version.readers, [&](const auto &reader) {
          return agent.now.happened[reader.first] >= reader.second;
        }))
      return std::max(first, cell.first + i);
  }
  return first;
}

void WeakMemory::take(Agent &agent, Cell &cell, size_t version) {
  cell.seen[int32_t(agent.thread)] = version;
  auto &readers = cell.versions[version - cell.first].readers;
  if (none_of(readers, [&](auto &one) { return one.first == agent.thread; }))
    readers.emplace_back(agent.thread, agent.time);
  const auto &message = cell.versions[version - cell.first].message;
  if (!message)
    return;
  // The count of a counter is of what this block's own transfers have read.
  if (agent.op->isOfCounter)
    agent.now.join(message->any);
  else
    acquire(agent, *message, *agent.op);
}

int64_t WeakMemory::read(Fiber &fiber, int64_t *at) {
  makeHeld(fiber, [&](const Item &item) {
    return item.kind == Item::Signal &&
           item.overlaps(reinterpret_cast<char *>(at), 8);
  });
  Agent &agent = agentOf(fiber);
  Cell &cell = cellAt(at);
  size_t first = firstVisible(agent, cell),
         newest = cell.first + cell.versions.size() - 1;
  size_t chosen = chance(2) ? newest : first + random() % (newest - first + 1);
  take(agent, cell, chosen);
  return cell.versions[chosen - cell.first].value;
}

bool WeakMemory::tryWait(Fiber &fiber, int64_t *at, bool atLeast,
                         int64_t value) {
  Agent &agent = agentOf(fiber);
  Cell &cell = cellAt(at);
  SmallVector<size_t, kVersions> satisfying;
  for (size_t i = firstVisible(agent, cell);
       i < cell.first + cell.versions.size(); ++i) {
    int64_t found = cell.versions[i - cell.first].value;
    if (atLeast ? found >= value : found == value)
      satisfying.push_back(i);
  }
  if (satisfying.empty())
    return false;
  take(agent, cell,
       chance(2) ? satisfying.front()
                 : satisfying[random() % satisfying.size()]);
  return true;
}
