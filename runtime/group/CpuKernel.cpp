//===- CpuKernel.cpp - A kernel of a group on the CPU ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CpuKernel.h"

#include "runtime/group/KernelSource.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

#include <sched.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

static std::string number(int64_t value) { return std::to_string(value); }

/// Barriers that a kernel may have in addition to one per block, as teams that
/// blocks meet in.
static constexpr uint64_t kSpareBarriers = 15;

namespace {
/// An entry of the table of barriers in shared memory. Its key is set once.
struct alignas(64) BarrierEntry {
  /// 0: free; 1: being filled; 2: filled.
  std::atomic<uint32_t> state;
  cpu::BarrierKey key;
  alignas(64) std::atomic<uint64_t> arrived;
  // Behind it: uint32_t arrivals of each member.
};
} // namespace

static uint64_t entryBytes(const Subgroup &subgroup) {
  return sizeof(BarrierEntry) + llvm::alignTo(4 * subgroup.size(), 64);
}

static uint64_t barrierCount(int64_t blocks) {
  return llvm::PowerOf2Ceil(2 *
                            (static_cast<uint64_t>(blocks) + kSpareBarriers));
}

uint64_t CpuKernel::barrierBytes() const {
  return barrierCount(options.blocks) * entryBytes(subgroup);
}

//===----------------------------------------------------------------------===//
// Making one
//===----------------------------------------------------------------------===//

CpuKernel::CpuKernel(CpuGroup &group, Subgroup &subgroup,
                     std::unique_ptr<jit::Kernel> compiled, int64_t blocks)
    : group(group), subgroup(subgroup), code(std::move(compiled)),
      scheduler(*code, options) {
  options.blocks = blocks;
  scheduler.blocks = blocks;
  scheduler.peers = this;
  for (const jit::ArgInfo &info : code->args())
    if (!info.hidden)
      visible.push_back(info);
}

llvm::Expected<std::unique_ptr<CpuKernel>>
CpuKernel::create(CpuGroup &group, Subgroup &subgroup,
                  const KernelRequest &request) {
  jit::CompileOptions compile;
  compile.ranks = subgroup.size();
  compile.blocks = request.blocks;
  compile.algorithm = request.algorithm;
  compile.protocol = request.protocol;
  compile.check = request.check;
  auto code = compileSource(request.source, request.name, compile);
  if (!code)
    return code.takeError();
  int64_t blocks =
      std::max<int64_t>({code->kernel->blocks(), request.blocks, 1});
  if (blocks > 4096)
    return makeError(Kind::Usage, "a kernel of a group on the CPU has at most "
                                  "4096 blocks a rank, not " +
                                      number(blocks));
  ++(code->cached ? group.counted.fromCache : group.counted.compiled);
  std::unique_ptr<CpuKernel> kernel(
      new CpuKernel(group, subgroup, std::move(code->kernel), blocks));
  kernel->epoch = int64_t(request.firstLaunch) - 1;
  // The runtime's own functions, the dynamic linker's and a signal's handler
  // run on the stack of a block, too.
  constexpr size_t kHeadroom = 64 * 1024;
  auto stacks =
      cpu::StackPool::create(blocks, kernel->code->frameBytes() + kHeadroom,
                             kernel->code->arenaBytes());
  if (!stacks)
    return stacks.takeError();
  cpu::Scheduler &scheduler = kernel->scheduler;
  scheduler.stacks = std::move(*stacks);
  scheduler.workers.emplace_back().scheduler = &scheduler;
  scheduler.args.resize(kernel->code->args().size());
  kernel->scalars.resize(kernel->code->args().size());
  scheduler.fibers.resize(blocks);
  int64_t lsaSize = kernel->code->lsaSize();
  for (auto [block, fiber] : llvm::enumerate(scheduler.fibers)) {
    cpu::Context &context = fiber.context;
    context.rank = subgroup.own;
    context.ranks = subgroup.size();
    context.lsaSize = lsaSize ? lsaSize : subgroup.size();
    context.block = static_cast<int64_t>(block);
    context.blocks = blocks;
    context.args = scheduler.args.data();
    context.stop = reinterpret_cast<const volatile uint32_t *>(&scheduler.stop);
    context.fiber = &fiber;
  }
  return kernel;
}

/// Memory that all members hold a part of, which the group makes.
static bool isOurs(const jit::ArgInfo &info) {
  return info.hidden || info.kind == jit::ArgKind::Signal ||
         info.kind == jit::ArgKind::Counter;
}

/// Aligns parts to whole pages, as windows do.
static uint64_t partStride(const jit::ArgInfo &info) {
  uint64_t stride = llvm::alignTo(std::max<uint64_t>(info.bytes(), 64), 64);
  return stride % 4096 == 0 ? stride + 192 : stride;
}

llvm::Error CpuKernel::reserve() {
  bytes = barrierBytes();
  for (const jit::ArgInfo &info : code->args())
    if (isOurs(info))
      bytes += partStride(info) * subgroup.size();
  offset = subgroup.take(bytes);
  if (offset < 0)
    return makeError(
        Kind::Limit,
        "kernel @" + name() + " needs " + llvm::Twine(bytes) +
            " bytes of channel memory, and so much is not free of the " +
            llvm::Twine(subgroup.arenaBytes) +
            " of the group: make the group with more (channelBytes), or use "
            "fewer or "
            "smaller kernels");
  bool used = static_cast<uint64_t>(offset) < subgroup.touched;
  char *at = subgroup.arena + offset;
  if (used && subgroup.own == 0)
    std::memset(at, 0, barrierBytes());
  at += barrierBytes();
  for (auto [i, info] : llvm::enumerate(code->args())) {
    if (!isOurs(info))
      continue;
    auto stride = static_cast<int64_t>(partStride(info));
    char *own = at + subgroup.own * stride;
    if (info.poisoned)
      for (size_t k = 0; k + 2 <= info.bytes(); k += 2)
        std::memcpy(own + k, &mlir::comms::cpu::kPoison16, 2);
    else if (used)
      std::memset(own, 0, info.bytes());
    scheduler.args[i] = {at, stride};
    at += stride * subgroup.size();
  }
  subgroup.touched = std::max(subgroup.touched, offset + bytes);
  group.counted.channelBytes += bytes / subgroup.size();
  return llvm::Error::success();
}

void CpuKernel::releaseMemory() {
  if (offset < 0)
    return;
  subgroup.give(offset, bytes);
  group.counted.channelBytes -= bytes / subgroup.size();
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

llvm::Error CpuKernel::bindOne(size_t index, const Argument &argument) {
  const jit::ArgInfo &info = code->args()[index];
  auto refuse = [&](const llvm::Twine &why) {
    return makeError(Kind::Usage, "argument '" + llvm::Twine(info.name) +
                                      "' of kernel @" + name() + " " + why);
  };
  size_t needed = info.kind == jit::ArgKind::Scalar
                      ? std::max(info.elementBytes, 1u)
                      : info.bytes();
  if (argument.bytes < needed)
    return refuse("takes " + llvm::Twine(needed) + " bytes, not " +
                  llvm::Twine(argument.bytes));
  if (!argument.data && needed)
    return refuse("is a null pointer");
  auto *data = static_cast<char *>(argument.data);
  if (info.kind == jit::ArgKind::Scalar) {
    std::memcpy(scalars[index].data(), data, std::min<size_t>(needed, 16));
    scheduler.args[index] = {scalars[index].data(), 0};
    return llvm::Error::success();
  }
  if (info.kind == jit::ArgKind::Memory) {
    scheduler.args[index] = {data, 0};
    return llvm::Error::success();
  }
  auto window = group.windows.find(data, needed);
  if (!window)
    return refuse("is a window: it has to lie in symmetric memory of the "
                  "group, whole");
  // Of a pair, members are numbered 0 and 1.
  char *first = window->base + subgroup.members[0] * window->stride;
  int64_t stride =
      subgroup.size() < 2
          ? 0
          : (subgroup.members[1] - subgroup.members[0]) * window->stride;
  scheduler.args[index] = {first + (data - window->own), stride};
  return llvm::Error::success();
}

llvm::Error CpuKernel::bind(llvm::ArrayRef<Argument> arguments) {
  if (arguments.size() != visible.size())
    return makeError(Kind::Usage,
                     "kernel @" + name() + " takes " + number(visible.size()) +
                         " arguments, not " + number(arguments.size()));
  places = 0;
  size_t next = 0;
  for (auto [i, info] : llvm::enumerate(code->args())) {
    if (info.hidden)
      continue;
    const Argument &argument = arguments[next++];
    if (isOurs(info))
      continue;
    if (llvm::Error error = bindOne(i, argument))
      return error;
    // All ranks take the same window, at the same place.
    if (info.kind == jit::ArgKind::Window) {
      auto [window, from] = placeOf(argument);
      places = (places * 31 + window) * 31 + from + 1;
    }
  }
  return llvm::Error::success();
}

/// Number of an argument's window, and the offset in it.
std::pair<uint64_t, uint64_t>
CpuKernel::placeOf(const Argument &argument) const {
  auto window = group.windows.find(argument.data, 0);
  return {window->number, window->offsetOf(argument.data)};
}

/// Returns the description of a launch for peers. The text is built only if it
/// is new.
const std::string &CpuKernel::describe(llvm::ArrayRef<Argument> arguments) {
  if (!launchText.empty() && places == describedPlaces)
    return launchText;
  describedPlaces = places;
  launchText = "launch of kernel @" + name().str();
  const char *before = " with ";
  for (auto [info, argument] : llvm::zip_equal(visible, arguments)) {
    if (info.kind != jit::ArgKind::Window || isOurs(info))
      continue;
    auto [window, from] = placeOf(argument);
    launchText += before + info.name + " in window " + number(window);
    if (from)
      launchText += " from byte " + number(from) + " on";
    before = ", ";
  }
  return launchText;
}

llvm::Error CpuKernel::launch(llvm::ArrayRef<Argument> arguments) {
  if (llvm::Error error = bind(arguments))
    return error;
  if (!group.announced)
    group.announcedText = describe(arguments);
  if (llvm::Error error = group.begin(subgroup,
                                      group.announced * 0x9e3779b97f4a7c15 +
                                          uint64_t(offset) * 3 + places,
                                      group.announcedText))
    return error;
  subgroup.isCollective &= isOfCollectives();
  {
    std::lock_guard<std::mutex> guard(group.lock);
    group.running = &scheduler.stop;
    scheduler.stop = group.broken ? 1 : 0;
  }
  std::unique_ptr<cpu::RunError> report =
      scheduler.runShared(subgroup.own, ++epoch);
  {
    std::lock_guard<std::mutex> guard(group.lock);
    group.running = nullptr;
  }
  if (report)
    return fail(*report);
  ++group.counted.launches;
  return group.end(subgroup);
}

llvm::Error CpuKernel::fail(const cpu::RunError &report) {
  bool own = report.kind == cpu::RunError::Bounds ||
             report.kind == cpu::RunError::Other;
  Kind kind = report.kind == cpu::RunError::Bounds ? Kind::Bounds
              : scheduler.isPeersFault()           ? Kind::Peer
                                                   : Kind::Usage;
  if (own)
    group.endGroup(kind, report.message);
  std::lock_guard<std::mutex> guard(group.lock);
  std::vector<cpu::Waiting> waiting = report.waiting;
  // Of a pair, the report speaks of members.
  for (cpu::Waiting &one : waiting)
    one.rank = group.settings.rank;
  return llvm::make_error<GroupError>(group.failureKind, group.failureText,
                                      std::move(waiting));
}

//===----------------------------------------------------------------------===//
// What the scheduler asks for
//===----------------------------------------------------------------------===//

/// Tries between two looks whether a peer is there. Each gives up the
/// processor, for milliseconds where many others want it.
static constexpr unsigned kLook = 256;

/// For loops that wait for what a peer does at once: yields, and looks now and
/// then whether the peer is there, and at the clock. This is a block's stack:
/// signals of the caller's interpreter are left to later. `begun`: of the loop,
/// once it has looked.
bool CpuKernel::goesOn(unsigned tries, Waiter::Clock::time_point &begun) {
  ::sched_yield();
  if (tries % kLook == 0) {
    Waiter::Clock::time_point now = Waiter::Clock::now();
    if (begun == Waiter::Clock::time_point())
      begun = now;
    if (!group.findTrouble(subgroup))
      group.waiter.isTooLong(subgroup, now - begun);
  }
  return !group.broken.load(std::memory_order_relaxed);
}

/// Whether ranks of this kernel may meet there.
bool CpuKernel::mayBe(const cpu::BarrierKey &key) const {
  int64_t last = 0;
  return key.first >= 0 && key.stride >= 1 && key.size >= 1 &&
         key.block >= -1 && key.block < options.blocks &&
         !__builtin_mul_overflow(key.size - 1, key.stride, &last) &&
         !__builtin_add_overflow(last, key.first, &last) &&
         last < subgroup.size();
}

cpu::SharedBarrier CpuKernel::findBarrier(const cpu::BarrierKey &key) {
  uint64_t count = barrierCount(options.blocks), size = entryBytes(subgroup);
  uint64_t hash = llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(&key), sizeof(key)));
  for (uint64_t probe = 0; probe < count; ++probe) {
    auto *entry = reinterpret_cast<BarrierEntry *>(
        subgroup.arena + offset + (hash + probe) % count * size);
    uint32_t state = 0;
    if (entry->state.compare_exchange_strong(state, 1)) {
      entry->key = key;
      entry->state.store(2, std::memory_order_release);
      state = 2;
    }
    // Another rank is filling it, which takes it no time.
    Waiter::Clock::time_point begun;
    for (unsigned tries = 0; state == 1 && goesOn(++tries, begun);)
      state = entry->state.load(std::memory_order_acquire);
    cpu::BarrierKey seen = entry->key;
    if (seen == key)
      return {&entry->arrived,
              reinterpret_cast<std::atomic<uint32_t> *>(entry + 1)};
    if (state != 2 || !mayBe(seen))
      return {.isDamaged = true};
  }
  return {};
}

void CpuKernel::wrote(const char *address, int64_t) {
  // Packets, poison and cells lie in the memory of the rank that waits there.
  for (const auto &table : scheduler.args) {
    int64_t distance = address - table.base;
    if (!table.base || table.stride <= 0 || distance < 0 ||
        distance >= table.stride * subgroup.size())
      continue;
    int64_t member = distance / table.stride;
    if (member != subgroup.own)
      group.wakeRank(subgroup.members[member]);
    return;
  }
  group.wakeAll();
}

void CpuKernel::lock() {
  auto own = static_cast<uint32_t>(group.settings.rank + 1);
  std::atomic<uint32_t> &holder = group.board().lock;
  uint32_t seen = 0;
  Waiter::Clock::time_point begun;
  for (unsigned tries = 0;
       !holder.compare_exchange_weak(seen, own, std::memory_order_acquire);
       seen = 0) {
    if (!goesOn(++tries, begun))
      return;
    // It may hold it for another kernel, which says nothing to this one.
    if (seen && seen <= group.settings.ranks && tries % kLook == 0 &&
        group.isGone(seen - 1))
      group.endGroup(Kind::Peer, "rank " + number(seen - 1) +
                                     " has died while it updated memory that "
                                     "several ranks update");
  }
}

void CpuKernel::unlock() {
  // Of a group that has broken up, it may not be this rank's.
  auto own = static_cast<uint32_t>(group.settings.rank + 1);
  group.board().lock.compare_exchange_strong(own, 0, std::memory_order_release,
                                             std::memory_order_relaxed);
}

std::string CpuKernel::others() {
  llvm::SmallVector<std::string> names;
  for (int64_t member : subgroup.members)
    if (member != group.settings.rank)
      names.push_back(number(member));
  return (names.size() > 1 ? "one of ranks " : "rank ") +
         llvm::join(names, ", ");
}

std::string CpuKernel::describe(int64_t rank) {
  if (rank < 0 || rank >= subgroup.size())
    return "";
  const Step *last = nullptr;
  const MemberRecord &place = subgroup.memberRecords[rank];
  for (const Step &step : place.steps)
    if (!last || step.number.load() > last->number.load())
      last = &step;
  if (!last || !last->number.load())
    return "";
  return " (" + std::string(place.ended >= last->number ? "ended " : "is in ") +
         last->text.str() + ")";
}
