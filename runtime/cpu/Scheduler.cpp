//===- Scheduler.cpp - Schedules blocks of all ranks ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Scheduler.h"
#include "runtime/cpu/WeakMemory.h"
#include "runtime/support/StartThread.h"

#include "llvm/Support/Format.h"

#include <condition_variable>
#include <cstring>
#include <thread>

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

using Clock = std::chrono::steady_clock;

Scheduler::Scheduler(const jit::Kernel &kernel, const RunOptions &options)
    : kernel(kernel), options(options), ranks(kernel.ranks()),
      blocks(options.blocks), lastLaunch(options.firstLaunch - 1),
      random(options.seed) {}

int64_t Scheduler::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() -
                                                              begun)
      .count();
}

//===----------------------------------------------------------------------===//
// Switching
//===----------------------------------------------------------------------===//

void Scheduler::enter(transfer_t transfer) {
  auto *fiber = static_cast<Fiber *>(transfer.data);
  fiber->worker->main = transfer.fctx;
  Scheduler *scheduler = fiber->worker->scheduler;
  scheduler->kernel.entry()(&fiber->context);
  fiber->state = Fiber::Finished;
  fiber->worker->mainTag.enter();
  jump_fcontext(fiber->worker->main, nullptr);
  __builtin_unreachable();
}

void Scheduler::suspend(Fiber &fiber) {
  fiber.worker->mainTag.enter();
  transfer_t transfer = jump_fcontext(fiber.worker->main, nullptr);
  fiber.worker->main = transfer.fctx;
}

/// NaNs as floats of every type, and odd numbers as integers: every 16 bits are
/// 0x7FFF, of which the upper of each pair may have its sign.
static void fillWithJunk(char *memory, size_t bytes, uint64_t draw) {
  for (size_t at = 0; at < bytes; at += 8) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    uint64_t junk = 0x7FFF7FFF7FFF7FFFu | (draw & 0x8000000080000000u);
    std::memcpy(memory + at, &junk, std::min<size_t>(8, bytes - at));
  }
}

/// The block begins its launch.
void Scheduler::takeStack(Worker &worker, Fiber &fiber) {
  Context &context = fiber.context;
  fiber.slot = worker.freeSlots.back();
  worker.freeSlots.pop_back();
  context.arena = stacks.arena(fiber.slot);
  if (options.junkScratch) {
    uint64_t draw = options.seed;
    for (int64_t part : {context.rank, context.block, context.epoch})
      draw = (draw + uint64_t(part)) * 0x9E3779B97F4A7C15u;
    fillWithJunk(context.arena, kernel.arenaBytes(), draw);
  }
}

void Scheduler::resume(Worker &worker, Fiber &fiber) {
  ++worker.steps;
  if (fiber.slot < 0) {
    takeStack(worker, fiber);
    fiber.suspended =
        make_fcontext(stacks.top(fiber.slot), stacks.stackBytes(), enter);
    fiber.tag.renew();
    RankState &rank = rankStates[fiber.context.rank];
    if (!rank.started.exchange(true))
      rank.first = Clock::now();
  }
  bool traced = options.trace != nullptr;
  int64_t begin = traced ? now() : 0;
  if (traced && fiber.wait.kind != Wait::Nothing &&
      fiber.wait.kind != Wait::Launch)
    record(worker, fiber, fiber.stoppedAt, begin);
  fiber.wait.kind = Wait::Nothing;
  fiber.state = Fiber::Running;
  if (weak) {
    weak->tick();
    weak->enter(fiber);
  }
  worker.mainTag.note();
  fiber.tag.enter();
  transfer_t transfer = jump_fcontext(fiber.suspended, &fiber);
  fiber.suspended = transfer.fctx;
  if (weak)
    weak->leave(fiber);
  if (traced) {
    Wait wait = fiber.wait;
    fiber.wait.site = kRuns;
    record(worker, fiber, begin, fiber.stoppedAt = now());
    fiber.wait = wait;
  }
  if (fiber.state == Fiber::Finished)
    ended(worker, fiber);
  else if (fiber.state == Fiber::Dead)
    abort = true;
}

void Scheduler::record(Worker &worker, Fiber &fiber, int64_t begin,
                       int64_t end) {
  if (worker.slices.size() * workers.size() >= kMaxSlices) {
    ++worker.droppedSlices;
    return;
  }
  worker.slices.push_back({int32_t(fiber.context.rank),
                           int32_t(fiber.context.block), fiber.wait.site,
                           fiber.context.epoch, begin, end});
}

/// A block has run to its end. The last of its rank starts the next launch.
void Scheduler::ended(Worker &worker, Fiber &fiber) {
  worker.freeSlots.push_back(fiber.slot);
  fiber.slot = -1;
  ++finishedBlocks;
  noteChange(worker);
  int64_t rank = fiber.context.rank, epoch = fiber.context.epoch;
  RankState &state = rankStates[rank];
  if (epoch < lastLaunch) {
    fiber.state = Fiber::Waiting;
    fiber.wait = {};
    fiber.wait.kind = Wait::Launch;
    fiber.wait.value = epoch + 1;
    fiber.wait.index = rank;
    ++fiber.context.epoch;
    if (options.fast)
      worker.waiting.push_back(&fiber);
  }
  if (--state.running != 0)
    return;
  state.last = Clock::now();
  if (weak)
    weak->endLaunch(fiber);
  if (epoch == lastLaunch)
    return;
  varyData(rank);
  state.running = blocks;
  state.launch = epoch + 1;
  if (options.fast)
    return;
  for (int64_t block = 0; block < blocks; ++block) {
    Fiber &next = fibers[rank * blocks + block];
    next.state = Fiber::Ready;
    worker.ready.push_back(&next);
  }
}

/// The host gives the rank other data for its next launch.
void Scheduler::varyData(int64_t rank) {
  for (unsigned arg : options.varied) {
    const jit::ArgInfo &info = kernel.args()[arg];
    char *memory = args[arg].base + rank * args[arg].stride;
    if (size_t bytes = info.bytes())
      std::rotate(memory, memory + (bytes - info.elementBytes), memory + bytes);
  }
}

//===----------------------------------------------------------------------===//
// Waiting and waking
//===----------------------------------------------------------------------===//

static constexpr unsigned kGranuleBits = 7;

static uintptr_t waitBucketOf(const char *address) {
  return reinterpret_cast<uintptr_t>(address) >> kGranuleBits;
}

/// Whether the wait is over. Remembers how far packets and poison have come, so
/// that the next look begins there.
bool Scheduler::isReady(Wait &wait) const {
  switch (wait.kind) {
  case Wait::Cell: {
    int64_t value = __atomic_load_n(reinterpret_cast<int64_t *>(wait.address),
                                    __ATOMIC_ACQUIRE);
    return wait.compare == 0 ? value == wait.value : value >= wait.value;
  }
  case Wait::Packets:
    for (; wait.found < wait.count; ++wait.found) {
      auto *packet = reinterpret_cast<uint64_t *>(wait.address) + wait.found;
      if (static_cast<int32_t>(__atomic_load_n(packet, __ATOMIC_ACQUIRE) >>
                               32) != static_cast<int32_t>(wait.value))
        return false;
    }
    return true;
  case Wait::Poison:
    for (; wait.found < wait.count; ++wait.found) {
      char *element = wait.address + wait.found * wait.elementBytes;
      bool empty =
          wait.elementBytes == 4
              ? __atomic_load_n(reinterpret_cast<uint32_t *>(element),
                                __ATOMIC_ACQUIRE) == mlir::comms::cpu::kPoison32
              : __atomic_load_n(reinterpret_cast<uint16_t *>(element),
                                __ATOMIC_ACQUIRE) ==
                    mlir::comms::cpu::kPoison16;
      if (empty)
        return false;
    }
    return true;
  case Wait::Barrier:
    return wait.barrier->isPast(static_cast<uint32_t>(wait.value));
  case Wait::Launch:
    return rankStates[wait.index].launch.load(std::memory_order_acquire) >=
           wait.value;
  case Wait::Nothing:
    return true;
  case Wait::Interrupted:
  case Wait::Failed:
    return false;
  }
  return false;
}

/// The address whose change the wait needs next.
static char *awaitedAddress(const Wait &wait) {
  if (wait.kind == Wait::Packets)
    return wait.address + wait.found * 8;
  if (wait.kind == Wait::Poison)
    return wait.address + wait.found * wait.elementBytes;
  return wait.address;
}

void Scheduler::park(Fiber &fiber) {
  Fiber *&list = fiber.wait.kind == Wait::Barrier
                     ? fiber.wait.barrier->waiters
                     : parked[waitBucketOf(awaitedAddress(fiber.wait))];
  fiber.next = list;
  list = &fiber;
}

void Scheduler::waitFor(Fiber &fiber, const Wait &wait) {
  fiber.wait = wait;
  if (options.shuffle)
    maybeYield(fiber);
  fiber.wait = wait;
  while (!isReady(fiber.wait)) {
    fiber.state = Fiber::Waiting;
    if (!options.fast && !peers)
      park(fiber);
    suspend(fiber);
    int64_t found = fiber.wait.found;
    fiber.wait = wait;
    fiber.wait.found = found;
  }
  fiber.wait.kind = Wait::Nothing;
}

void Scheduler::fail(Fiber &fiber, int32_t site, const Failure &failure) {
  fiber.failure = failure;
  fiber.wait = {};
  fiber.wait.kind = Wait::Failed;
  fiber.wait.site = site;
  fiber.state = Fiber::Dead;
  while (true)
    suspend(fiber);
}

void Scheduler::interrupt(Fiber &fiber, int32_t site) {
  fiber.wait = {};
  fiber.wait.kind = Wait::Interrupted;
  fiber.wait.site = site;
  fiber.state = Fiber::Dead;
  while (true)
    suspend(fiber);
}

BarrierState *Scheduler::findBarrier(uint64_t number) {
  std::unique_lock<std::mutex> guard(barrierLock, std::defer_lock);
  if (options.fast)
    guard.lock();
  return number < barriers.size() ? &barriers[number] : nullptr;
}

void Scheduler::wake(Fiber *list) {
  // The list is last in, first out; waking in the order of arrival is fairer.
  Fiber *reversed = nullptr;
  while (list) {
    Fiber *next = list->next;
    list->next = reversed;
    reversed = list;
    list = next;
  }
  while (reversed) {
    Fiber *fiber = reversed;
    reversed = fiber->next;
    fiber->next = nullptr;
    fiber->state = Fiber::Ready;
    if (options.trace && fiber->worker->slices.size() < kMaxSlices)
      fiber->worker->slices.push_back({int32_t(fiber->context.rank),
                                       int32_t(fiber->context.block), kWoken,
                                       fiber->context.epoch, now(), now()});
    fiber->worker->ready.push_back(fiber);
  }
}

/// Wakes the blocks of `list` whose awaited address is in [from, to); returns
/// the others.
static Fiber *splitList(Fiber *list, const char *from, const char *to,
                        Fiber *&woken) {
  Fiber *kept = nullptr;
  while (list) {
    Fiber *next = list->next;
    const char *address = awaitedAddress(list->wait);
    Fiber *&target = address >= from && address < to ? woken : kept;
    list->next = target;
    target = list;
    list = next;
  }
  return kept;
}

void Scheduler::stored(Fiber &fiber, char *address, int64_t bytes) {
  if (bytes <= 0)
    return;
  fiber.worker->bytesMoved += bytes;
  noteChange(*fiber.worker);
  if (peers) {
    peers->wrote(address, bytes);
    return;
  }
  if (options.fast || parked.empty())
    return;
  uintptr_t from = waitBucketOf(address),
            to = waitBucketOf(address + bytes - 1);
  Fiber *woken = nullptr;
  auto visit = [&](decltype(parked)::iterator it) {
    Fiber *kept = splitList(it->second, address, address + bytes, woken);
    if (kept)
      it->second = kept;
    else
      parked.erase(it);
  };
  if (to - from > parked.size()) {
    for (auto it = parked.begin(), next = it; it != parked.end(); it = next) {
      next = std::next(it);
      if (it->first >= from && it->first <= to)
        visit(it);
    }
  } else {
    for (uintptr_t granule = from; granule <= to; ++granule)
      if (auto it = parked.find(granule); it != parked.end())
        visit(it);
  }
  wake(woken);
}

/// Wakes those whose wait is over although nobody said so (a plain store wrote
/// what they wait for). Returns whether there were any.
bool Scheduler::wakeStale() {
  SmallVector<uintptr_t> granules;
  for (auto &entry : parked)
    granules.push_back(entry.first);
  llvm::sort(granules);
  Fiber *woken = nullptr;
  for (uintptr_t granule : granules) {
    Fiber *list = parked[granule], *kept = nullptr;
    while (list) {
      Fiber *next = list->next;
      Wait look = list->wait;
      Fiber *&target =
          isReady(look) || look.found != list->wait.found ? woken : kept;
      list->next = target;
      target = list;
      list = next;
    }
    if (kept)
      parked[granule] = kept;
    else
      parked.erase(granule);
  }
  bool any = woken != nullptr;
  wake(woken);
  return any;
}

void Scheduler::yield(Fiber &fiber, int32_t site) {
  fiber.wait.kind = Wait::Nothing;
  fiber.wait.site = site;
  fiber.state = Fiber::Ready;
  fiber.worker->ready.push_back(&fiber);
  suspend(fiber);
}

int64_t Scheduler::readCell(Fiber &fiber, int32_t site, int64_t *cell) {
  // A kernel may poll: others must get their turn.
  yield(fiber, site);
  int64_t value = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
  if (!peers)
    return value;
  auto [it, isNew] = lastRead.try_emplace(cell, value);
  if (isNew || std::exchange(it->second, value) != value)
    noteChange(*fiber.worker);
  return value;
}

void Scheduler::maybeYield(Fiber &fiber) {
  if (options.shuffle && (random() & 3) == 0)
    yield(fiber, -1);
}

int64_t Scheduler::arrive(Fiber &fiber, int32_t site, int64_t first,
                          int64_t stride, int64_t size, bool grid) {
  int64_t last = 0;
  bool bad = size < 1 || stride < 1 || first < 0 ||
             __builtin_mul_overflow(size - 1, stride, &last) ||
             __builtin_add_overflow(last, first, &last) || last >= ranks;
  if (bad)
    fail(fiber, site, {Failure::Team, first, stride, size});
  int64_t block = grid ? -1 : fiber.context.block;
  if (peers)
    return arriveShared(fiber, site, {first, stride, size, block});
  std::unique_lock<std::mutex> guard(barrierLock, std::defer_lock);
  if (options.fast)
    guard.lock();
  auto [it, isNew] = barrierIds.try_emplace({{first, stride}, {size, block}},
                                            uint32_t(barriers.size()));
  if (isNew) {
    BarrierState &made = barriers.emplace_back();
    made.first = first;
    made.stride = stride;
    made.size = size;
    made.block = block;
    made.total = size * (grid ? blocks : 1);
    made.present.resize(made.total);
  }
  uint32_t number = it->second;
  BarrierState &barrier = barriers[number];
  int64_t seat = (fiber.context.rank - first) / stride;
  if (grid)
    seat = seat * blocks + fiber.context.block;
  if (barrier.present[seat]) {
    if (guard.owns_lock())
      guard.unlock();
    fail(fiber, site, {Failure::Barrier, 0, 0, 0});
  }
  uint32_t generation = barrier.generation;
  noteChange(*fiber.worker);
  barrier.present[seat] = true;
  if (++barrier.arrived == barrier.total) {
    barrier.arrived = 0;
    barrier.present.assign(barrier.total, false);
    barrier.generation.store(generation + 1, std::memory_order_release);
    Fiber *list = barrier.waiters;
    barrier.waiters = nullptr;
    if (!options.fast)
      wake(list);
  }
  return static_cast<int64_t>(number) << 32 | generation;
}

/// Number of the barrier of that key, which lies in shared memory.
uint32_t Scheduler::findShared(Fiber &fiber, int32_t site,
                               const BarrierKey &key) {
  auto [it, isNew] =
      barrierIds.try_emplace({{key.first, key.stride}, {key.size, key.block}},
                             uint32_t(barriers.size()));
  if (!isNew)
    return it->second;
  SharedBarrier shared = peers->findBarrier(key);
  if (!shared.arrived)
    fail(
        fiber, site,
        {shared.isDamaged ? Failure::BarriersDamaged : Failure::TooManyBarriers,
         0, 0, 0});
  BarrierState &made = barriers.emplace_back();
  made.first = key.first;
  made.stride = key.stride;
  made.size = key.size;
  made.block = key.block;
  made.total = key.size * (key.block < 0 ? blocks : 1);
  made.shared = shared;
  made.own.resize(blocks);
  return it->second;
}

/// Counts the arrival in shared memory. The barrier never has to be reset: it
/// opens whenever the count has reached a multiple of `total`.
int64_t Scheduler::arriveShared(Fiber &fiber, int32_t site,
                                const BarrierKey &key) {
  uint32_t number = findShared(fiber, site, key);
  BarrierState &barrier = barriers[number];
  uint64_t &own = barrier.own[fiber.context.block];
  uint64_t passed =
      barrier.shared.arrived->load(std::memory_order_acquire) / barrier.total;
  if (own > passed)
    fail(fiber, site,
         {passed < barrier.opened ? Failure::BarriersDamaged : Failure::Barrier,
          0, 0, 0});
  ++own;
  int64_t member = (fiber.context.rank - key.first) / key.stride;
  barrier.shared.ofMember[member].fetch_add(1, std::memory_order_relaxed);
  uint64_t count =
      barrier.shared.arrived->fetch_add(1, std::memory_order_acq_rel) + 1;
  if (count % barrier.total == 0)
    peers->opened();
  return static_cast<int64_t>(number) << 32 | uint32_t(passed);
}

//===----------------------------------------------------------------------===//
// The loops
//===----------------------------------------------------------------------===//

void Scheduler::start() {
  abort = stuck = timedOut = interrupted = outOfSteps = onlyPolls = false;
  lastChange = 0;
  stop = 0;
  finishedBlocks = 0;
  parked.clear();
  barriers.clear();
  barrierIds.clear();
  begun = lastProgress = Clock::now();
  int64_t firstLaunch = lastLaunch + 1;
  lastLaunch += options.launches;
  allBlocks = int64_t(fibers.size()) * options.launches;
  rankStates.clear();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    RankState &state = rankStates.emplace_back();
    state.running = blocks;
    state.launch = firstLaunch;
  }
  size_t next = 0, count = fibers.size(), number = 0;
  for (Worker &worker : workers) {
    size_t end = count * ++number / workers.size();
    worker.ready.clear();
    worker.waiting.clear();
    worker.slices.clear();
    worker.droppedSlices = worker.steps = worker.bytesMoved = 0;
    worker.idleAt = 0;
    worker.freeSlots = stacks.take(next, end - next);
    for (; next < end; ++next) {
      Fiber &fiber = fibers[next];
      fiber.worker = &worker;
      fiber.slot = -1;
      fiber.state = Fiber::Ready;
      fiber.wait = {};
      fiber.failure = {};
      fiber.next = nullptr;
      fiber.context.epoch = firstLaunch;
      worker.ready.push_back(&fiber);
    }
  }
}

/// The callback for progress.
void Scheduler::checkClock() {
  if (!options.progress)
    return;
  auto time = Clock::now();
  if (time - begun < std::chrono::seconds(2) ||
      time - lastProgress < std::chrono::milliseconds(500))
    return;
  lastProgress = time;
  options.progress(double(finishedBlocks) / double(allBlocks));
}

/// Steps without any change after which blocks that poll are taken to poll
/// forever.
static constexpr uint64_t kQuietSteps = 10000000;

void Scheduler::runAlone() {
  Worker &worker = workers.front();
  while (!abort && !stop.load(std::memory_order_relaxed)) {
    if (worker.ready.empty() && !wakeStale()) {
      // What is made wakes those who wait for it.
      while (weak && worker.ready.empty() && weak->makeOne())
        continue;
      if (!worker.ready.empty() || (weak && wakeStale()))
        continue;
      stuck = finishedBlocks != allBlocks;
      return;
    }
    if (options.maxSteps && worker.steps >= options.maxSteps) {
      outOfSteps = true;
      return;
    }
    if ((worker.steps & 255) == 0)
      checkClock();
    if (worker.steps - lastChange > kQuietSteps) {
      stuck = onlyPolls = true;
      return;
    }
    if (options.shuffle && worker.ready.size() > 1) {
      size_t chosen = random() % worker.ready.size();
      std::swap(worker.ready[chosen], worker.ready.front());
    }
    Fiber *fiber = worker.ready.front();
    worker.ready.pop_front();
    resume(worker, *fiber);
  }
}

bool Scheduler::isStuck() {
  uint64_t seen = progress.load();
  for (Worker &worker : workers)
    if (worker.idleAt.load() != seen)
      return false;
  return progress.load() == seen;
}

/// Exact: a worker counts as idle at the progress it read before it polled, and
/// running a block moves progress before and after. When all are idle at the
/// same number, no block ran since, so every poll saw the memory as it is.
void Scheduler::runWorker(unsigned number) {
  Worker &worker = workers[number];
  unsigned idleRounds = 0;
  while (!abort && !stuck && !stop.load(std::memory_order_relaxed) &&
         finishedBlocks != allBlocks) {
    // A block that polls by itself is always ready: look at the others too.
    if (!worker.ready.empty() &&
        ((worker.steps & 63) != 63 || worker.waiting.empty())) {
      if (options.maxSteps &&
          worker.steps * workers.size() >= options.maxSteps) {
        outOfSteps = true;
        abort = true;
        break;
      }
      if (number == 0 && (worker.steps & 255) == 0)
        checkClock();
      Fiber *fiber = worker.ready.front();
      worker.ready.pop_front();
      ++progress;
      resume(worker, *fiber);
      if (fiber->state == Fiber::Waiting && fiber->wait.kind != Wait::Launch)
        worker.waiting.push_back(fiber);
      ++progress;
      idleRounds = 0;
      continue;
    }
    uint64_t seen = progress.load();
    auto firstStill = std::stable_partition(
        worker.waiting.begin(), worker.waiting.end(),
        [&](Fiber *fiber) { return !isReady(fiber->wait); });
    worker.ready.insert(worker.ready.end(), firstStill, worker.waiting.end());
    worker.waiting.erase(firstStill, worker.waiting.end());
    if (!worker.ready.empty()) {
      ++worker.steps;
      continue;
    }
    worker.idleAt = seen;
    if (finishedBlocks != allBlocks && isStuck()) {
      // All may have finished between the two looks.
      stuck = finishedBlocks != allBlocks;
      break;
    }
    if (number == 0 && (idleRounds & 1023) == 0)
      checkClock();
    if (++idleRounds > 16)
      std::this_thread::yield();
    else
      __builtin_ia32_pause();
  }
}

//===----------------------------------------------------------------------===//
// One rank of several processes
//===----------------------------------------------------------------------===//

void Scheduler::startShared(int64_t own, int64_t epoch) {
  Worker &worker = workers.front();
  if (rankStates.empty()) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      rankStates.emplace_back();
    worker.freeSlots = stacks.take(0, fibers.size());
  }
  abort = false;
  finishedBlocks = 0;
  allBlocks = blocks;
  lastLaunch = epoch;
  lastRead.clear();
  rankStates[own].running = blocks;
  worker.ready.clear();
  worker.waiting.clear();
  for (Fiber &fiber : fibers) {
    fiber.worker = &worker;
    fiber.slot = -1;
    fiber.state = Fiber::Ready;
    fiber.wait = {};
    fiber.failure = {};
    fiber.next = nullptr;
    fiber.context.epoch = epoch;
    worker.ready.push_back(&fiber);
  }
}

/// Puts those whose waits are over into the queue.
bool Scheduler::pollWaiting(Worker &worker) {
  size_t kept = 0;
  for (Fiber *fiber : worker.waiting) {
    if (isReady(fiber->wait))
      worker.ready.push_back(fiber);
    else
      worker.waiting[kept++] = fiber;
  }
  bool any = kept != worker.waiting.size();
  worker.waiting.resize(kept);
  return any;
}

/// Steps between two looks at blocks that wait, and at the clock, while others
/// can run.
static constexpr uint64_t kStepsOfOthers = 64;

std::unique_ptr<RunError> Scheduler::runShared(int64_t own, int64_t epoch) {
  startShared(own, epoch);
  Worker &worker = workers.front();
  uint64_t steps = 0;
  bool ended = false, moves = true;
  // `rest` may ask again after the answer was yes.
  auto canRun = [&] { return pollWaiting(worker) || !worker.ready.empty(); };
  while (finishedBlocks != allBlocks && !abort && !ended &&
         !stop.load(std::memory_order_relaxed)) {
    if (worker.ready.empty()) {
      ended = !canRun() && !peers->rest(canRun);
      continue;
    }
    Fiber *fiber = worker.ready.front();
    worker.ready.pop_front();
    resume(worker, *fiber);
    if (fiber->state == Fiber::Waiting)
      worker.waiting.push_back(fiber);
    moves |= fiber->state != Fiber::Ready || lastChange == worker.steps;
    // Blocks that poll by themselves are always ready.
    if (++steps % kStepsOfOthers == 0) {
      pollWaiting(worker);
      ended = !peers->poll(std::exchange(moves, false));
    }
  }
  if (finishedBlocks == allBlocks)
    return nullptr;
  for (const Fiber &fiber : fibers)
    if (fiber.failure.kind != Failure::None)
      return std::make_unique<RunError>(
          makeError(fiber.failure.kind == Failure::OutOfBounds ||
                            fiber.failure.kind == Failure::Cell
                        ? RunError::Bounds
                        : RunError::Other,
                    describeFailure(fiber)));
  return std::make_unique<RunError>(
      makeError(RunError::Deadlock, std::to_string(allBlocks - finishedBlocks) +
                                        " of " + std::to_string(allBlocks) +
                                        " blocks have not ended"));
}

namespace {
/// Raises a flag when a time has passed.
class Watchdog {
public:
  Watchdog(double seconds, std::function<void()> onTimeout) {
    if (seconds <= 0)
      return;
    thread = requireThread([this, seconds, onTimeout = std::move(onTimeout)] {
      std::unique_lock<std::mutex> guard(lock);
      // A week is longer than any run and fits the clock.
      auto time = std::chrono::duration<double>(std::min(seconds, 604800.0));
      if (!done.wait_for(guard, time, [&] { return ended; }))
        onTimeout();
    });
  }
  ~Watchdog() {
    if (!thread.joinable())
      return;
    {
      std::lock_guard<std::mutex> guard(lock);
      ended = true;
    }
    done.notify_all();
    thread.join();
  }

private:
  std::mutex lock;
  std::condition_variable done;
  bool ended = false;
  std::thread thread;
};
} // namespace

std::variant<RunStats, RunError> Scheduler::run() {
  start();
  {
    Watchdog watchdog(options.timeLimit, [this] {
      timedOut = true;
      stop = 1;
    });
    std::stop_callback onStop(options.stop, [this] {
      interrupted = true;
      stop = 1;
    });
    if (!options.fast) {
      runAlone();
      if (weak)
        weak->makeAll();
    } else {
      runInParallel(
          workers.size(), [this](unsigned i) { runWorker(i); },
          [this] { stop = 1; });
    }
  }
  auto result = conclude();
  if (!options.trace)
    return result;
  std::vector<TraceSlice> slices;
  size_t dropped = 0;
  int64_t end = now();
  for (Worker &worker : workers) {
    slices.insert(slices.end(), worker.slices.begin(), worker.slices.end());
    dropped += worker.droppedSlices;
  }
  // Waits that never ended last until the end.
  for (const Fiber &fiber : fibers)
    if (fiber.state == Fiber::Waiting && fiber.wait.kind != Wait::Launch)
      slices.push_back({int32_t(fiber.context.rank),
                        int32_t(fiber.context.block), fiber.wait.site,
                        fiber.context.epoch, fiber.stoppedAt, end});
  *options.trace = renderTrace(kernel, ranks, slices, dropped);
  return result;
}

std::variant<RunStats, RunError> Scheduler::conclude() {
  for (const Fiber &fiber : fibers)
    if (fiber.failure.kind == Failure::Race)
      return makeError(RunError::Race, weak->describeRace());
  for (const Fiber &fiber : fibers)
    if (fiber.state == Fiber::Dead && fiber.failure.kind != Failure::None)
      return makeError(fiber.failure.kind == Failure::OutOfBounds ||
                               fiber.failure.kind == Failure::Cell
                           ? RunError::Bounds
                           : RunError::Other,
                       describeFailure(fiber));
  int64_t left = allBlocks - finishedBlocks;
  auto ofAll = [&] {
    return std::to_string(left) + " of " + std::to_string(allBlocks) +
           " block programs have not ended";
  };
  if (onlyPolls)
    return makeError(RunError::Deadlock,
                     "deadlock: blocks poll, nothing has changed for " +
                         std::to_string(kQuietSteps) + " steps and " + ofAll());
  if (stuck)
    return makeError(RunError::Deadlock,
                     "deadlock: nothing can run and " + ofAll());
  if (left != 0 && interrupted)
    return makeError(RunError::Interrupted, "interrupted: " + ofAll());
  if (left != 0 && timedOut) {
    std::string seconds;
    raw_string_ostream(seconds) << format("%g", options.timeLimit);
    return makeError(RunError::TimeLimit, "the limit of " + seconds +
                                              " s is reached and " + ofAll());
  }
  if (left != 0)
    return makeError(RunError::StepLimit,
                     "the limit of " + std::to_string(options.maxSteps) +
                         " steps is reached and " + ofAll());
  RunStats stats;
  auto micros = [](Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  Clock::time_point end = begun;
  for (const RankState &rank : rankStates) {
    stats.rankMicroseconds.push_back(micros(rank.last - rank.first));
    end = std::max(end, rank.last);
  }
  stats.totalMicroseconds = micros(end - begun);
  for (const Worker &worker : workers) {
    stats.steps += worker.steps;
    stats.bytesMoved += worker.bytesMoved;
  }
  return stats;
}
