//===- WeakMemory.cpp - Memory as late as the model allows ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeakMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

/// What a value of a cell passes on to those who acquire it.
struct WeakMemory::Message {
  /// To blocks of any rank.
  Knowledge any;
  /// To blocks of the rank that released, where kernels use narrow scopes.
  SmallVector<std::pair<int64_t, Knowledge>, 1> within;

  void addWithin(int64_t rank, const Knowledge &known) {
    auto *same = find_if(within, [&](auto &one) { return one.first == rank; });
    if (same != within.end())
      same->second.join(known);
    else
      within.emplace_back(rank, known);
  }
  void join(const Message &other) {
    any.join(other.any);
    for (const auto &[rank, known] : other.within)
      addWithin(rank, known);
  }
};

/// Something that others do not see yet.
struct WeakMemory::Item {
  enum Kind : uint8_t { Store, Signal, Transfer } kind = Store;
  /// What it changes.
  char *address = nullptr;
  int64_t bytes = 0;
  /// Store: the new bytes, or, while the block runs, those that others see.
  /// Transfer: what was read.
  std::vector<char> data;
  /// Store: what becomes visible as a whole; isPacket: words that have flags.
  int64_t grain = 8;
  bool isPacket = false;
  /// Store: an earlier write of the place comes behind it (M5, M25).
  bool isOvertaken = false;
  /// Store: the op that made it.
  int32_t site = -1;
  /// Signal.
  int64_t change = 0, value = 0;
  Event event;
  std::shared_ptr<const Message> message;
  /// Transfer: the lane (see laneOf) and what it reads.
  int lane = 0;
  int64_t way = -1;
  char *source = nullptr;
  bool isRead = false, isFlushed = false;
  int64_t *counter = nullptr;
  Event reads;

  bool overlaps(const char *other, int64_t count) const {
    return other < address + bytes && address < other + count;
  }
};

/// What transfers of one way have happened so far, as a thread of a clock.
struct WeakMemory::Lane {
  uint32_t thread = 0, time = 0, flushed = 0;
};

/// Memory that an op is about to write, as it is before.
struct WeakMemory::Snapshot {
  std::unique_ptr<Item> item;
  /// The kernel says what it has stored, vector by vector.
  bool isTold = false;
};

struct WeakMemory::Agent {
  uint32_t thread = 0, time = 1;
  int64_t rank = 0, block = 0;
  Fiber *fiber = nullptr;
  Knowledge now;
  /// What release fences have ordered before later relaxed signals, as far as
  /// all ranks and as far as this rank; and what relaxed reads have seen that
  /// acquire fences are to order.
  Knowledge fencedAny, fencedRank, seenAny, seenRank;
  /// A copy of fencedAny for strong writes; null: there is none yet.
  Passed passed;
  /// What the arrival at a barrier that it is making passes on.
  Knowledge arriving;
  /// What a fence of proxy async of this block has ordered before bulk copies.
  VectorClock async;
  const WeakOp *op = nullptr;
  int32_t site = -1;
  std::map<std::pair<int, int64_t>, Lane> lanes;
  std::vector<std::unique_ptr<Item>> items;
  /// A bit for each place where a store may be held (maskOf).
  uint64_t heldMask = 0;
  /// The reads of the last transfer.
  Event lastReads;
  bool isApplied = false;
  SmallVector<Snapshot, 1> open;
  /// The side of a transfer on this rank, until the other is known.
  std::optional<std::tuple<bool, char *, int64_t>> side;
  /// Packets and poison whose loads may have passed something on.
  SmallVector<std::pair<char *, int64_t>, 1> loads;
  AccessHistory scratch;
};

struct WeakMemory::Cell {
  struct Version {
    int64_t value = 0;
    Event event;
    std::shared_ptr<const Message> message;
    bool isSet = false;
    /// The blocks that have read it, and when first.
    SmallVector<std::pair<uint32_t, uint32_t>, 1> readers;
  };
  std::deque<Version> versions;
  /// Number of the first of them.
  size_t first = 0;
  /// The version that a block has read last.
  DenseMap<int32_t, size_t> seen;
};

/// A bit for each kind of place of a range: two ranges that share no bit do not
/// overlap.
static uint64_t maskOf(const char *address, int64_t bytes) {
  auto first = reinterpret_cast<uintptr_t>(address) >> 9,
       last = (reinterpret_cast<uintptr_t>(address) + bytes - 1) >> 9;
  if (last - first >= 63)
    return ~uint64_t(0);
  uint64_t mask = (uint64_t(2) << (last - first)) - 1;
  unsigned by = first % 64;
  return by ? mask << by | mask >> (64 - by) : mask;
}

/// Lanes of an agent: the sources of its puts, their destinations, bulk copies,
/// and copies by an engine. Ways: -1 is by load and store; over GIN it is the
/// context times the number of ranks, plus the peer; of bulk copies their
/// number.
static constexpr int kSources = 0, kDests = 1, kBulk = 2, kEngine = 3;

/// Reads off the name what later is asked often.
static void classify(WeakOp &op) {
  StringRef name = op.name;
  op.isPut = name == "put" || name == "put_signal";
  op.isGet = name == "get";
  op.isBulkCopy = name == "bulk_copy";
  op.isBulkWait = name == "bulk_wait";
  op.isEngineCopy = name == "engine_copy";
  op.isPacketStore = name == "packet_store";
  op.isMultimem = name.starts_with("multimem");
  op.isFlush = name == "flush";
  op.isHost = name == "host";
  op.isOfCounter = name.contains("counter");
  op.isTold = op.isPacketStore || name == "poison_store";
  op.isStrong = op.isTold || name == "packet_load" || name == "poison_load" ||
                name == "poison_fill" || name == "multimem_reduce";
  op.releases = name == "put_signal";
  if (op.isBulkCopy)
    op.proxy = Proxy::Async;
  else if (op.isMultimem)
    op.proxy = Proxy::Alias;
  else if (op.isEngineCopy)
    op.proxy = Proxy::CopyEngine;
}

/// Bytes of a store that become visible together.
static int64_t findGrain(const WeakOp &op, unsigned broken) {
  if (!op.isPacketStore)
    return op.isStrong ? 4 : 8;
  if (broken & unsigned(Broken::Store8Whole))
    return 4;
  return broken & unsigned(Broken::Store16Whole) ? 8 : op.whole;
}

static WeakOp parseOp(StringRef text, unsigned broken) {
  WeakOp op;
  SmallVector<StringRef, 6> words;
  text.split(words, ' ', -1, false);
  if (words.empty())
    return op;
  op.name = words.front().str();
  classify(op);
  bool isBulk = op.isBulkCopy || op.isBulkWait;
  for (size_t i = 1; i < words.size(); ++i) {
    StringRef word = words[i];
    int64_t number = 0;
    bool isNumber = !word.getAsInteger(10, number);
    if (isBulk && isNumber)
      op.copies.push_back(number);
    else if (op.overGin && isNumber)
      op.context = number;
    op.releases |= word == "release" || word == "acq_rel";
    op.acquires |= word == "acquire" || word == "acq_rel";
    op.overGin |= word == "gin";
    if (word == "block" || word == "cluster")
      op.reach = 0;
    else if (word == "gpu")
      op.reach = 1;
    else if (word == "async")
      op.proxy = Proxy::Async;
    else if (word == "alias")
      op.proxy = Proxy::Alias;
    else if (word == "packets_cumulative")
      op.isCumulative = true;
    else if (word == "store16_whole")
      op.whole = 16;
    else if (word == "store128_whole")
      op.whole = 128;
  }
  op.grain = findGrain(op, broken);
  return op;
}

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
    ops.push_back(isRecord ? parseOp(site.detail, scheduler.options.broken)
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

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// What is held back
//===----------------------------------------------------------------------===//

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

/// The most bytes of one store that are held back.
static constexpr int64_t kMostBytes = 256;

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

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

std::optional<WeakMemory::Place>
WeakMemory::findPlace(const char *address) const {
  for (unsigned arg = 0; arg < scheduler.args.size(); ++arg) {
    const auto &[base, stride] = scheduler.args[arg];
    if (base && address >= base && address < base + stride * scheduler.ranks)
      return Place{arg, (address - base) / stride, (address - base) % stride};
  }
  return std::nullopt;
}

/// Whether it is no argument's.
bool WeakMemory::isScratch(const char *address) const {
  return none_of(scheduler.args, [&](const auto &table) {
    return table.base && address >= table.base &&
           address < table.base + table.stride * scheduler.ranks;
  });
}

/// Whether the earlier event happens before the later one, which `agent` makes
/// (M11).
bool WeakMemory::isOrdered(const Agent &agent, const Event &earlier,
                           const Event &later) const {
  // What a block did before, of one proxy.
  if (earlier.thread == agent.thread && earlier.proxy == later.proxy &&
      later.proxy == Proxy::Generic)
    return true;
  auto isIn = [&](const VectorClock &clock) {
    return clock[earlier.thread] >= earlier.time;
  };
  if (earlier.proxy == Proxy::CopyEngine || later.proxy == Proxy::CopyEngine) {
    // Of all blocks of a rank, at once.
    int32_t owner = owners[earlier.thread];
    if (owner != kHost && agents[owner].rank == agent.rank)
      return true;
    return any_of(agents, [&](const Agent &other) {
      return other.rank == agent.rank &&
             other.now.happened[earlier.thread] >= earlier.time;
    });
  }
  if (later.proxy == Proxy::Async && earlier.proxy == Proxy::Generic)
    return isIn(agent.async);
  if (earlier.proxy == Proxy::Async || earlier.proxy == later.proxy)
    return isIn(agent.now.happened);
  return isIn(agent.now.aliased);
}

/// What that thread does happens before what the blocks of the rank do next.
void WeakMemory::advanceRank(int64_t rank, uint32_t thread, uint32_t time) {
  for (Agent &agent : agents)
    if (agent.rank == rank) {
      agent.now.happened.advance(thread, time);
      agent.now.aliased.advance(thread, time);
    }
}

void WeakMemory::check(Fiber &fiber, const Event &event, char *address,
                       int64_t bytes, const Passed &passed) {
  Agent &agent = agentOf(fiber);
  auto begin = reinterpret_cast<intptr_t>(address);
  auto isBefore = [&](const Event &earlier) {
    return isOrdered(agent, earlier, event);
  };
  std::optional<Race> found =
      (isScratch(address) ? agent.scratch : history)
          .add(begin, begin + bytes, event, passed, isBefore);
  // The engine's copy is ordered before all that follows on the rank.
  if (event.proxy == Proxy::CopyEngine)
    advanceRank(agent.rank, event.thread, event.time);
  if (!found)
    return;
  if (!race) {
    Place scratch = {unsigned(scheduler.args.size()), agent.rank,
                     address - fiber.context.arena};
    racePlace = findPlace(address).value_or(scratch);
    race = *found;
    // Within the argument.
    int64_t base = begin - racePlace.offset;
    race->begin -= base;
    race->end -= base;
  }
  if (!scheduler.options.ignoreRaces)
    scheduler.fail(fiber, agent.site, {Failure::Race, 0, 0, 0});
}

/// The host uses its window between two launches of its rank (M23): told by the
/// first block that begins the later one.
void WeakMemory::accessHost(Fiber &fiber, char *address, int64_t bytes) {
  int64_t rank = fiber.context.rank;
  uint32_t thread = hostThreads[rank];
  Event event = {thread,
                 countLaunch(fiber) + 1,
                 countLaunch(fiber),
                 agentOf(fiber).site,
                 true,
                 false,
                 Proxy::Generic};
  // Every window is told once, by the block that comes first.
  auto [teller, isNew] =
      hostTellers.try_emplace({rank, fiber.context.epoch}, fiber.context.block);
  if (!isNew && teller->second != fiber.context.block)
    return;
  check(fiber, event, address, bytes, nullptr);
  advanceRank(rank, thread, event.time);
  for (Agent &agent : agents)
    if (agent.rank == rank)
      agent.async.advance(thread, event.time);
}

std::string WeakMemory::describe(const Event &event) const {
  std::string launch =
      std::to_string(event.launch + scheduler.options.firstLaunch);
  if (owners[event.thread] == kHost)
    return "the host, before launch " + launch +
           " of the rank (the window is marked comms.host)";
  const Agent &agent = agents[owners[event.thread]];
  const jit::SourceSite &site = scheduler.kernel.sites()[event.site];
  std::string what = event.site >= 0 ? ops[event.site].name : "an op";
  std::string text = "rank " + std::to_string(agent.rank) + ", block " +
                     std::to_string(agent.block) + ", launch " + launch + " " +
                     (event.write ? "writes" : "reads") + " (" + what + ", " +
                     site.location + ")";
  if (event.proxy == Proxy::Async)
    text += ", through the async proxy";
  else if (event.proxy == Proxy::Alias)
    text += ", through the alias proxy";
  else if (event.thread != agent.thread)
    text += ", at some time after the op";
  return text;
}

std::string WeakMemory::describeRace() const {
  if (!race)
    return "race";
  std::string where = "scratch memory";
  int64_t bytes = 1;
  if (racePlace.arg < scheduler.kernel.args().size()) {
    const jit::ArgInfo &info = scheduler.kernel.args()[racePlace.arg];
    bytes = std::max(1u, info.elementBytes);
    where = (info.hidden ? "channel memory " : "") + info.name;
  }
  std::string text = "data race on " + where + "[" +
                     std::to_string(race->begin / bytes) + ", " +
                     std::to_string((race->end + bytes - 1) / bytes) +
                     ") of rank " + std::to_string(racePlace.rank) +
                     ": nothing orders these two accesses\n  " +
                     describe(race->first) + "\n  " + describe(race->second);
  bool isProxy = race->first.proxy != race->second.proxy;
  text += isProxy ? "\norder them, and put a fence of that proxy between them "
                    "(Spec, M11)"
                  : "\norder them: by a signal of order release and a wait of "
                    "order acquire, by a barrier, or by a flush before memory "
                    "of a transfer is used again";
  return text + "\nseed " + std::to_string(scheduler.options.seed) +
         " repeats this run";
}
