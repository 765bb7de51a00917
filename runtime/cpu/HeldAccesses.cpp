//===- HeldAccesses.cpp - Accesses that others do not see yet -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stores, relaxed signals and transfers that are held back, and when they
// become visible.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeakMemoryImpl.h"

#include <cstring>

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

static void swapBytes(char *memory, std::vector<char> &data) {
  std::swap_ranges(data.begin(), data.end(), memory);
}

/// Puts the block's own stores into memory.
void WeakMemory::apply(Agent &agent) {
  if (agent.isApplied)
    return;
  agent.isApplied = true;
  for (auto &item : agent.items)
    if (item->kind == Item::Store)
      swapBytes(item->address, item->data);
}

/// Takes them out, in reverse.
void WeakMemory::unapply(Agent &agent) {
  if (!agent.isApplied)
    return;
  agent.isApplied = false;
  for (auto &item : reverse(agent.items))
    if (item->kind == Item::Store)
      swapBytes(item->address, item->data);
}

std::unique_ptr<WeakMemory::Item> WeakMemory::newItem() {
  if (spare.empty())
    return std::make_unique<Item>();
  std::unique_ptr<Item> item = std::move(spare.back());
  spare.pop_back();
  return item;
}

/// The item is made, or was not needed. Its memory stays.
void WeakMemory::drop(std::unique_ptr<Item> item) {
  std::vector<char> data = std::move(item->data);
  data.clear();
  *item = Item();
  item->data = std::move(data);
  spare.push_back(std::move(item));
}

void WeakMemory::hold(Agent &agent, std::unique_ptr<Item> item) {
  ++held;
  agent.heldMask |= maskOf(item->address, item->bytes);
  agent.items.push_back(std::move(item));
}

/// A part of a told store, which has just been made in memory, is this block's
/// alone. `all` has what was there before. What follows an earlier part is
/// often held with it.
void WeakMemory::holdPart(Agent &agent, const Item &all, char *address,
                          int64_t bytes) {
  const char *before = all.data.data() + (address - all.address);
  if (!agent.items.empty() && !chance(4)) {
    Item &last = *agent.items.back();
    if (last.kind == Item::Store && last.site == agent.site &&
        last.isOvertaken == all.isOvertaken &&
        last.address + last.bytes == address && last.bytes < kMostBytes) {
      last.data.insert(last.data.end(), before, before + bytes);
      last.bytes += bytes;
      agent.heldMask |= maskOf(address, bytes);
      return;
    }
  }
  auto item = newItem();
  item->address = address;
  item->bytes = bytes;
  item->data.assign(before, before + bytes);
  item->grain = all.grain;
  item->isPacket = all.isPacket;
  item->isOvertaken = all.isOvertaken;
  item->site = agent.site;
  hold(agent, std::move(item));
}

/// What the last op was about to write, it has written.
void WeakMemory::capture(Agent &agent) {
  if (agent.open.empty())
    return;
  erase_if(agent.open, [&](Snapshot &one) {
    if (!one.isTold)
      hold(agent, std::move(one.item));
    return !one.isTold;
  });
}

void WeakMemory::enter(Fiber &fiber) {
  Agent &agent = agentOf(fiber);
  apply(agent);
  for (Snapshot &one : agent.open)
    std::memcpy(one.item->data.data(), one.item->address, one.item->bytes);
}

/// The most that a block holds back.
static constexpr size_t kMostItems = 24;

void WeakMemory::leave(Fiber &fiber) {
  Agent &agent = agentOf(fiber);
  capture(agent);
  unapply(agent);
  while (agent.items.size() > kMostItems)
    makeRandom(agent, /*whole=*/true);
  agent.heldMask = 0;
  for (auto &item : agent.items)
    agent.heldMask |= maskOf(item->address, item->bytes);
  if (fiber.state == Fiber::Finished)
    endScratch(fiber);
}

/// The block's scratch memory is about to become another's.
void WeakMemory::endScratch(Fiber &fiber) {
  for (auto &item : agentOf(fiber).items)
    if (item->source && isScratch(item->source))
      readSource(*item);
  makeHeld(fiber, [&](const Item &item) { return isScratch(item.address); });
}

/// Reads the source of a transfer. A counter counts it.
bool WeakMemory::readSource(Item &item) {
  if (item.isRead)
    return true;
  item.isRead = true;
  item.data.assign(item.source, item.source + item.bytes);
  if (!item.counter)
    return true;
  auto message = std::make_shared<Message>();
  message->any.happened.advance(item.reads.thread, item.reads.time);
  change(cellAt(item.counter), item.counter, 1, 1, {}, std::move(message));
  scheduler.stored(scheduler.fibers[item.event.thread],
                   reinterpret_cast<char *>(item.counter), 8);
  return true;
}

/// Makes it for all. The block's stores are not in memory.
void WeakMemory::make(Agent &agent, Item &item) {
  if (item.kind == Item::Signal) {
    auto *cell = reinterpret_cast<int64_t *>(item.address);
    change(cellAt(cell), cell, item.change, item.value, item.event,
           item.message);
  } else {
    if (item.kind == Item::Transfer)
      readSource(item);
    if (item.isOvertaken)
      return;
    std::memcpy(item.address, item.data.data(), item.data.size());
  }
  scheduler.stored(*agent.fiber, item.address, item.bytes);
}

void WeakMemory::makeHeld(Fiber &fiber,
                          function_ref<bool(const Item &)> isMade) {
  Agent &agent = agentOf(fiber);
  if (none_of(agent.items, [&](auto &item) { return isMade(*item); }))
    return;
  bool wasApplied = agent.isApplied;
  unapply(agent);
  size_t kept = 0;
  for (auto &item : agent.items)
    if (isMade(*item)) {
      make(agent, *item);
      --held;
      drop(std::move(item));
    } else {
      std::swap(agent.items[kept++], item);
    }
  agent.items.resize(kept);
  if (wasApplied)
    apply(agent);
}

/// Makes a random part of a store. Returns false if it has none.
bool WeakMemory::makePart(Agent &agent, Item &item) {
  if (item.isPacket && item.grain < 8) { // Flags, and later the words.
    for (int64_t at = 4; at < item.bytes; at += 8)
      std::memcpy(item.address + at, item.data.data() + at, 4);
    scheduler.stored(*agent.fiber, item.address, item.bytes);
    return true;
  }
  int64_t grains = item.bytes / item.grain;
  int64_t some = grains > 1 ? item.grain * int64_t(random() % grains) : 0;
  if (some == 0)
    return false;
  bool isFront = chance(2);
  int64_t from = isFront ? 0 : some, to = isFront ? some : item.bytes;
  std::memcpy(item.address + from, item.data.data() + from, to - from);
  scheduler.stored(*agent.fiber, item.address + from, to - from);
  item.data.erase(item.data.begin() + from, item.data.begin() + to);
  item.bytes -= to - from;
  if (isFront)
    item.address += some;
  return true;
}

/// Makes a random item, or, unless `whole`, a part of it, but never before one
/// that is older and of the same location.
bool WeakMemory::makeRandom(Agent &agent, bool whole) {
  if (agent.items.empty())
    return false;
  size_t chosen = random() % agent.items.size();
  if (agent.items[chosen]->kind != Item::Transfer)
    for (size_t i = 0; i < chosen; ++i)
      if (agent.items[i]->kind != Item::Transfer &&
          agent.items[i]->overlaps(agent.items[chosen]->address,
                                   agent.items[chosen]->bytes))
        chosen = i;
  Item &item = *agent.items[chosen];
  if (!whole && item.kind == Item::Transfer && !item.isRead)
    return readSource(item);
  if (!whole && item.kind == Item::Store && !item.isOvertaken && chance(2) &&
      makePart(agent, item))
    return true;
  make(agent, item);
  drop(std::move(agent.items[chosen]));
  agent.items.erase(agent.items.begin() + ptrdiff_t(chosen));
  --held;
  return true;
}

void WeakMemory::tick() {
  if (held && chance(4))
    makeRandom(agents[random() % agents.size()], /*whole=*/false);
}

bool WeakMemory::makeOne() {
  if (!held)
    return false;
  size_t start = random() % agents.size();
  for (size_t i = 0; i < agents.size(); ++i)
    if (makeRandom(agents[(start + i) % agents.size()], /*whole=*/false))
      return true;
  return false;
}

void WeakMemory::makeAll() {
  for (Agent &agent : agents)
    while (makeRandom(agent, /*whole=*/true))
      continue;
}
