//===- World.cpp - N ranks in one process ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/World.h"

#include "runtime/cpu/Scheduler.h"
#include "runtime/cpu/WeakMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace llvm;
using namespace commsir;
using namespace commsir::cpu;

ArrayRef<BreakableAssumption> cpu::getBreakableAssumptions() {
  static constexpr BreakableAssumption all[] = {
      {"store8_whole", Broken::Store8Whole},
      {"store16_whole", Broken::Store16Whole},
      {"store128_whole", Broken::Store128Whole},
      {"launch_is_fence", Broken::LaunchIsFence},
      {"packets_cumulative", Broken::PacketsCumulative}};
  return all;
}

struct World::Impl {
  Impl(const jit::Kernel &kernel, const RunOptions &options)
      : options(options), scheduler(kernel, this->options) {
    this->options.shuffle |= options.weak;
  }
  RunOptions options;
  Scheduler scheduler;
};

World::World(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
World::~World() = default;

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static Error checkOptions(const jit::Kernel &kernel,
                          const RunOptions &options) {
  if (kernel.ranks() < 1)
    return createStringError("kernel @" + kernel.name() +
                             " does not specify a number of ranks");
  if (options.blocks < 1)
    return createStringError("the number of blocks is " +
                             Twine(options.blocks) + "; it must be at least 1");
  if (kernel.blocks() && kernel.blocks() != options.blocks)
    return createStringError("kernel @" + kernel.name() + " is written for " +
                             Twine(kernel.blocks()) +
                             " blocks a rank, not for " +
                             Twine(options.blocks));
  if (options.launches < 1)
    return createStringError("the number of launches is " +
                             Twine(options.launches) +
                             "; it must be at least 1");
  if (options.fast && options.shuffle)
    return createStringError(
        "a fast run has the machine's schedule: it cannot be drawn from a "
        "seed too");
  if (options.fast && options.weak)
    return createStringError("a run with weak memory is drawn from a seed: it "
                             "cannot be fast too");
  // 2^24 blocks with the smallest stacks are 512 GiB of addresses.
  if (options.blocks > (int64_t(1) << 24) / kernel.ranks())
    return createStringError(
        Twine(kernel.ranks()) + " ranks of " + Twine(options.blocks) +
        " blocks are more than 16,777,216 block programs: use fewer");
  return Error::success();
}

/// Distance between the parts of two ranks. Parts of whole pages would lie in
/// the same sets of a cache for all ranks: they are moved apart.
static bool getStride(const jit::ArgInfo &info, int64_t &stride,
                      int64_t canaries) {
  uint64_t bytes = info.elementBytes;
  for (int64_t dim : info.shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, uint64_t(dim), &bytes) ||
        bytes > (uint64_t(1) << 46))
      return false;
  stride = static_cast<int64_t>(
      alignTo(std::max<uint64_t>(bytes, 8), mlir::comms::cpu::kAlignment));
  if (stride % 4096 == 0)
    stride += 3 * mlir::comms::cpu::kAlignment;
  stride += canaries;
  return true;
}

/// Bytes of canaries before each part of an argument; behind it there are as
/// many or a few more.
static int64_t countCanaries(const RunOptions &options) {
  return options.guardArrays ? 4096 : 0;
}

static constexpr char kCanary = '\xA5';

/// Calls `visit` with the canaries before and behind each part.
static void visitCanaries(Scheduler &scheduler,
                          function_ref<void(MutableArrayRef<char>)> visit) {
  int64_t canaries = countCanaries(scheduler.options);
  for (auto [info, table, mapping] :
       zip_equal(scheduler.kernel.args(), scheduler.args, scheduler.memory)) {
    char *at = mapping.data();
    for (int64_t rank = 0; canaries && rank < scheduler.ranks; ++rank) {
      char *part = table.base + rank * table.stride;
      visit({at, part});
      at = part + info.bytes();
    }
    visit({at, mapping.data() + mapping.size()});
  }
}

static void checkCanaries(Scheduler &scheduler) {
  if (!scheduler.options.guardArrays)
    return;
  visitCanaries(scheduler, [](MutableArrayRef<char> canaries) {
    if (!all_of(canaries, [](char one) { return one == kCanary; }))
      report_fatal_error("a kernel has written outside its arrays");
  });
}

static std::string formatBytes(uint64_t bytes) {
  double gibi = double(bytes) / (uint64_t(1) << 30);
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", gibi);
  return text;
}

/// Maps the memory of every argument. Channel memory that starts as zero is
/// mapped but not counted: a run touches what it uses.
static Error allocate(Scheduler &scheduler) {
  uint64_t needed = 0;
  int64_t canaries = countCanaries(scheduler.options);
  for (const jit::ArgInfo &info : scheduler.kernel.args()) {
    int64_t stride = 0, total = 0;
    if (!getStride(info, stride, canaries) ||
        __builtin_mul_overflow(stride, scheduler.ranks, &total) ||
        __builtin_add_overflow(total, canaries, &total))
      return createStringError("argument '" + info.name + "' of " +
                               Twine(scheduler.ranks) +
                               " ranks has more bytes than can be addressed");
    if (!info.hidden || info.poisoned)
      needed += total;
    if (needed > getMachineBytes())
      return createStringError("the arguments up to '" + info.name + "' of " +
                               Twine(scheduler.ranks) + " ranks need " +
                               formatBytes(needed) + ", the machine has " +
                               formatBytes(getMachineBytes()) +
                               ": use fewer ranks or smaller arrays");
    Expected<Mapping> mapping = Mapping::create(total, info.name.c_str());
    if (!mapping)
      return mapping.takeError();
    if (stride >= (int64_t(1) << 23))
      mapping->preferLargePages();
    if (info.poisoned)
      for (int64_t i = 0; i < total; i += 2)
        std::memcpy(mapping->data() + i, &mlir::comms::cpu::kPoison16, 2);
    scheduler.args.push_back({mapping->data() + canaries, stride});
    scheduler.memory.push_back(std::move(*mapping));
  }
  if (canaries)
    visitCanaries(scheduler, [](MutableArrayRef<char> free) {
      llvm::fill(free, kCanary);
    });
  return Error::success();
}

/// Stack that the runtime's own functions and the dynamic linker need, below
/// the kernel's frame; a user's callback needs far more.
static size_t getStackBytes(const Scheduler &scheduler) {
  size_t headroom = scheduler.options.record || scheduler.options.weak
                        ? 256 * 1024
                        : 16 * 1024;
  return scheduler.kernel.frameBytes() + headroom;
}

static Error makeFibers(Scheduler &scheduler) {
  const RunOptions &options = scheduler.options;
  size_t count = size_t(scheduler.ranks) * size_t(scheduler.blocks);
  unsigned threads = 1;
  if (options.fast)
    threads = options.workers
                  ? options.workers
                  : std::max(1u, std::thread::hardware_concurrency());
  threads = static_cast<unsigned>(std::min<size_t>({threads, count, 1024}));
  for (unsigned i = 0; i < threads; ++i)
    scheduler.workers.emplace_back().scheduler = &scheduler;
  Expected<StackPool> stacks = StackPool::create(
      count, getStackBytes(scheduler), scheduler.kernel.arenaBytes());
  if (!stacks)
    return stacks.takeError();
  scheduler.stacks = std::move(*stacks);
  scheduler.fibers.resize(count);
  int64_t lsaSize = scheduler.kernel.lsaSize();
  for (size_t i = 0; i < count; ++i) {
    Fiber &fiber = scheduler.fibers[i];
    Context &context = fiber.context;
    context.rank = static_cast<int64_t>(i) / scheduler.blocks;
    context.ranks = scheduler.ranks;
    context.lsaSize = lsaSize ? lsaSize : scheduler.ranks;
    context.block = static_cast<int64_t>(i) % scheduler.blocks;
    context.blocks = scheduler.blocks;
    context.args = scheduler.args.data();
    context.stop = reinterpret_cast<const volatile uint32_t *>(&scheduler.stop);
    context.fiber = &fiber;
  }
  return Error::success();
}

Expected<std::unique_ptr<World>> World::create(const jit::Kernel &kernel,
                                               const RunOptions &options) {
  if (Error error = checkOptions(kernel, options))
    return std::move(error);
  auto impl = std::make_unique<Impl>(kernel, options);
  if (Error error = allocate(impl->scheduler))
    return std::move(error);
  if (Error error = makeFibers(impl->scheduler))
    return std::move(error);
  if (impl->options.weak)
    impl->scheduler.weak = std::make_shared<WeakMemory>(impl->scheduler);
  return std::unique_ptr<World>(new World(std::move(impl)));
}

//===----------------------------------------------------------------------===//
// Use
//===----------------------------------------------------------------------===//

MutableArrayRef<char> World::memory(unsigned arg, int64_t rank) {
  const mlir::comms::cpu::ArgTable &table = impl->scheduler.args[arg];
  return {table.base + rank * table.stride,
          impl->scheduler.kernel.args()[arg].bytes()};
}

void World::setScalar(unsigned arg, int64_t rank, ArrayRef<char> bytes) {
  MutableArrayRef<char> place = memory(arg, rank);
  std::memcpy(place.data(), bytes.data(), std::min(bytes.size(), place.size()));
}

std::variant<RunStats, RunError> World::run() {
  std::variant<RunStats, RunError> ended = impl->scheduler.run();
  checkCanaries(impl->scheduler);
  return ended;
}
