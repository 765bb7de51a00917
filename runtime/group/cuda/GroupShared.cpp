//===- GroupShared.cpp - Channel memory that a group's kernels share ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group has one such memory for small launches that are not captured, which
// follow each other (`follow`), one for small launches of graphs, and one for
// all large ones; and each of them twice, for kernels whose slots hold poison
// and for the others. Graphs are launched without a look at the group, so that
// each waits for the one before it by an event: the first node of a graph waits
// for it, the last one records it. That is how launches of two graphs in two
// streams follow each other. A large launch takes so long that one which is not
// captured can wait for the event and record it, too.
//
// A memory grows by a larger one that takes its place. Graphs keep what they
// were captured with.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroupState.h"

#include "runtime/support/Size.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;
using group::makeError;
using Kind = group::GroupError::Kind;

/// Smallest shared memory, so that small kernels need no new one: blocks, and
/// bytes of a buffer of each region.
static constexpr int64_t kLeastBlocks = 264;
static constexpr size_t kLeastBytes = size_t(128) << 10;
/// Bytes of a buffer up to which a launch is small.
static constexpr size_t kSmallBytes = size_t(1) << 20;
/// Bytes of a buffer of lines, or of poison, that the memory of large launches
/// has at least. Each memory that graphs have outgrown stays as long as they
/// do, so that there are to be few.
static constexpr size_t kUsualBytes = size_t(4) << 20;
/// Blocks of such launches: an occupancy of four on 132 multiprocessors. Their
/// states take 32 bytes each, a memory for more of them all its buffers again.
static constexpr int64_t kUsualBlocks = 528;
/// Bytes of channels, all buffers counted, that a kernel may have in shared
/// memory: what is larger is cut into pieces, or goes in rounds.
static constexpr uint64_t kSharedKernelBytes = uint64_t(136) << 20;

/// The most that a kernel may have that asks for so much, or leaves it open.
uint64_t CudaGroup::sharedKernelBytes(uint64_t asked) const {
  // Of a small limit it may have all, and graphs nothing.
  uint64_t limit = pool->getLimit();
  uint64_t most = limit < kSharedKernelBytes
                      ? limit
                      : std::min(kSharedKernelBytes, limit / 6);
  return asked ? std::min(asked, most) : most;
}

/// The most that small launches need.
static SharedChannelSizes smallSizes() {
  SharedChannelSizes most;
  most.blocks = abi::kMostSharedBlocks;
  most.bytes.fill(kSmallBytes);
  return most;
}

static SharedChannels::Slots slotsOf(const SharedChannelSizes &needs) {
  return needs.arePoison() ? SharedChannels::Poison : SharedChannels::Others;
}

static SharedChannels::Use useOf(const SharedChannelSizes &needs,
                                 bool isGraph) {
  if (!smallSizes().hold(needs))
    return SharedChannels::Both;
  return isGraph ? SharedChannels::Graphs : SharedChannels::Eager;
}

/// Returns the memory of a kernel's future launches; null if there was no room.
SharedChannels *&CudaGroup::memoryFor(const CudaGroupKernel &kernel,
                                      bool isGraph) {
  SharedChannelSizes needs = SharedChannelSizes::of(*kernel.kernel);
  return nowOf(useOf(needs, isGraph), slotsOf(needs));
}

/// Channels of launches that are not captured, and of captures. Collective.
llvm::Error CudaGroup::makeSharedSets(CudaGroupKernel &kernel) {
  if (kernel.kernel->shape().blocks > abi::kMostSharedBlocks)
    return usage(kernel.describe() + " has more blocks than the " +
                 llvm::Twine(abi::kMostSharedBlocks) +
                 " of shared channel memory");
  SharedChannelSizes needs = SharedChannelSizes::of(*kernel.kernel);
  // The caller cuts the message.
  uint64_t most = kernel.channelBytes;
  if (uint64_t wanted = needs.countBuffers(); wanted > most)
    return makeError(Kind::Limit,
                     llvm::formatv("{0} needs {1} of channels, of which a "
                                   "kernel may have {2} in shared memory",
                                   kernel.describe(),
                                   renderSize(int64_t(wanted)),
                                   renderSize(int64_t(most)))
                         .str());
  bool isLarge = useOf(needs, /*isGraph=*/false) == SharedChannels::Both;
  if (auto error = growShared(useOf(needs, /*isGraph=*/false), needs))
    return error;
  // Where there is no room for both, captures are refused.
  if (!isLarge)
    if (auto error = growShared(SharedChannels::Graphs, needs)) {
      if (!group::isLimit(error))
        return error;
      kernel.uncapturable = llvm::toString(std::move(error));
    }
  llvm::Error bound = llvm::Error::success();
  size_t before = kernel.sets.size();
  auto bind = [&](bool isGraph) -> ChannelSet * {
    SharedChannels *memory = memoryFor(kernel, isGraph);
    if (!memory || bound)
      return nullptr;
    auto made = bindShared(kernel, nullptr, *memory);
    if (made)
      return *made;
    bound = made.takeError();
    return nullptr;
  };
  // Both here, for a record's memory cannot be made while a stream is captured.
  kernel.eager = bind(/*isGraph=*/false);
  kernel.graph = isLarge ? kernel.eager : bind(/*isGraph=*/true);
  if (auto error = mesh->agree("making channels",
                               asGroupError(std::move(bound)), patience())) {
    dropSets(kernel, before);
    kernel.eager = kernel.graph = nullptr;
    return error;
  }
  return llvm::Error::success();
}

/// Returns the size of the first memory of a use.
static SharedChannelSizes leastOf(SharedChannels::Use use,
                                  SharedChannels::Slots slots) {
  SharedChannelSizes least;
  bool isLarge = use == SharedChannels::Both;
  least.blocks = isLarge ? kUsualBlocks : kLeastBlocks;
  auto usual = SharedChannelSizes::Poison;
  if (slots == SharedChannels::Others) {
    least.bytes.fill(kLeastBytes);
    least.bytes[SharedChannelSizes::Poison] = 0;
    usual = SharedChannelSizes::Lines;
  }
  if (isLarge)
    least.bytes[usual] = kUsualBytes;
  else if (slots == SharedChannels::Poison)
    least.bytes[usual] = kSmallBytes; // Two of them fit the first window.
  return least;
}

/// Returns the largest reserve of a use's memory.
static SharedChannelSizes maxReserve(SharedChannels::Use use,
                                     uint64_t kernelBytes) {
  if (use == SharedChannels::Both)
    return SharedChannelSizes::ofRegions(abi::kMostSharedBlocks, kernelBytes);
  return smallSizes();
}

/// Returns the new size of a use's memory for `needs`. A buffer of small
/// launches has one of two sizes, so it is replaced at most once.
static SharedChannelSizes stepUp(SharedChannels::Use use,
                                 SharedChannelSizes needs) {
  if (use != SharedChannels::Both)
    for (size_t &bytes : needs.bytes)
      if (bytes > kLeastBytes)
        bytes = kSmallBytes;
  return needs;
}

/// Makes the memory of a use hold `needs`. Collective; an error of kind Limit
/// leaves all ranks with what they had.
llvm::Error CudaGroup::growShared(SharedChannels::Use use,
                                  const SharedChannelSizes &needs) {
  SharedChannels::Slots slots = slotsOf(needs);
  const SharedChannels *now = nowOf(use, slots);
  if (now && now->has().hold(needs))
    return llvm::Error::success();
  // The first has no reserve: an engine that captures its largest batch first
  // needs no second one.
  SharedChannelSizes stepped = stepUp(use, needs);
  SharedChannelSizes wanted =
      now ? now->has().grownBy(stepped, maxReserve(use, sharedKernelBytes(0)))
          : leastOf(use, slots).grownBy(stepped, stepped);
  auto reserve = [&] {
    size_t bytes = SharedChannels::countBytes(wanted, settings.ranks);
    // Graphs' memory follows, of the same size: one window for both.
    if (use == SharedChannels::Eager && pool->mayHave(2 * bytes))
      bytes *= 2;
    return mesh->agree("making channel memory",
                       asGroupError(pool->reserve(bytes)), patience());
  };
  llvm::Error reserved = reserve();
  if (reserved && group::isLimit(reserved)) {
    // Of the group's limit, or the driver's: with nothing in reserve.
    llvm::consumeError(std::move(reserved));
    wanted = (now ? now->has() : SharedChannelSizes()).grownBy(needs, needs);
    reserved = reserve();
  }
  if (reserved)
    return reserved;
  size_t bytes = SharedChannels::countBytes(wanted, settings.ranks);
  SharedChannels *made;
  {
    std::scoped_lock lock(kernelsMutex, controlMutex);
    made = &shared.emplace_back(use, slots, wanted, settings.ranks,
                                pool->take(bytes));
    made->timeout = timeout();
  }
  llvm::Error filled = llvm::Error::success();
  {
    std::lock_guard lock(controlMutex);
    filled = made->fill(cu, control, staging->host());
    if (!filled)
      filled = waitForControl("filling channels", patience());
    if (!filled && use != SharedChannels::Eager)
      filled = cu.check(cu.EventCreate(&made->order, CU_EVENT_DISABLE_TIMING),
                        "cuEventCreate");
  }
  // No peer may write to channels that are not filled.
  if (auto error = mesh->agree("filling channels",
                               asGroupError(std::move(filled)), patience())) {
    std::scoped_lock lock(kernelsMutex, controlMutex);
    pool->give(made->state(), made->bytes());
    shared.pop_back();
    return error;
  }
  return replaceShared(made);
}

/// Puts `made` in the place of that of its use. What no launch can use any more
/// is given back: once launches that were not captured have ended on all ranks,
/// and where there is no graph. Collective.
llvm::Error CudaGroup::replaceShared(SharedChannels *made) {
  SharedChannels *old = std::exchange(nowOf(made->use, made->slots), made);
  if (!old)
    return llvm::Error::success();
  bool isUnused = old->capture == 0 &&
                  (made->use == SharedChannels::Graphs || isEagerIdle());
  auto all = mesh->all("replacing channel memory", isUnused ? "yes" : "no",
                       patience());
  if (!all)
    return all.takeError();
  if (!llvm::all_of(*all, [](llvm::StringRef said) { return said == "yes"; }))
    return llvm::Error::success();
  for (CudaGroupKernel &kernel : kernels)
    for (ChannelSet &set : kernel.sets)
      if (set.shared == old)
        if (auto bound = bindShared(kernel, &set, *made); !bound)
          return bound.takeError();
  std::scoped_lock lock(kernelsMutex, controlMutex);
  pool->give(old->state(), old->bytes());
  if (old->order)
    cu.EventDestroy(old->order);
  shared.remove_if([&](const SharedChannels &one) { return &one == old; });
  pool->trim();
  return llvm::Error::success();
}

/// Binds `set` to a memory; null: a new one. Needs no peer.
llvm::Expected<ChannelSet *> CudaGroup::bindShared(CudaGroupKernel &kernel,
                                                   ChannelSet *set,
                                                   SharedChannels &memory) {
  std::scoped_lock lock(kernelsMutex, controlMutex);
  ChannelSet made;
  if (!set) {
    auto record = records.take(*device);
    if (!record)
      return record.takeError();
    made.record = *record;
  }
  ChannelSet &bound = set ? *set : made;
  bound.shared = &memory;
  bound.state = memory.state();
  bound.states.assign(memory.states().begin(), memory.states().end());
  bound.params = kernel.code->makeParams(int(settings.rank));
  bound.bound.assign(kernel.visible.size(), nullptr);
  memory.bind(*kernel.kernel, *kernel.code, bound.record.device, kernel.digest,
              bound.params.data());
  if (set)
    return set;
  kernel.sets.push_back(std::move(made));
  return &kernel.sets.back();
}

/// Binds the kernel's launches to the memory that there is by now. Needs no
/// peer.
llvm::Error CudaGroup::followShared(CudaGroupKernel &kernel) {
  ChannelSet *set = kernel.eager;
  if (!set)
    return llvm::Error::success();
  SharedChannels *now = nowOf(set->shared->use, set->shared->slots);
  if (set->shared == now)
    return llvm::Error::success();
  // Graphs keep the memory, and the record, that they were captured with.
  auto bound = bindShared(kernel, set->capture ? nullptr : set, *now);
  if (!bound)
    return bound.takeError();
  if (kernel.graph == set)
    kernel.graph = *bound;
  kernel.eager = *bound;
  return llvm::Error::success();
}

/// The channels of a capture. Nothing is agreed on with the peers, so that a
/// capture needs no meeting.
llvm::Expected<ChannelSet *>
CudaGroup::sharedSetFor(CudaGroupKernel &kernel, unsigned long long capture) {
  SharedChannels *memory = memoryFor(kernel, /*isGraph=*/true);
  if (!memory || !memory->has().hold(SharedChannelSizes::of(*kernel.kernel)))
    return makeError(Kind::Limit,
                     "no channel memory is left for a capture of " +
                         kernel.describe() + ": " + kernel.uncapturable);
  // Graphs keep the memory, and the record, that they were captured with.
  if (!kernel.graph || kernel.graph->shared != memory) {
    RelaxedCaptureGuard outside(cu);
    auto made = bindShared(kernel, nullptr, *memory);
    if (!made)
      return made.takeError();
    kernel.graph = *made;
  }
  {
    std::lock_guard lock(kernelsMutex);
    kernel.graph->capture = capture;
  }
  // Graphs are launched without a look at it.
  if (memory->timeout != timeout())
    if (auto error = writeTimeouts())
      return std::move(error);
  return kernel.graph;
}

//===----------------------------------------------------------------------===//
// Graphs that follow each other
//===----------------------------------------------------------------------===//

/// Before a launch: the first of a graph, and each that is not captured, waits
/// for the last graph, and for the last launch that was not captured.
llvm::Error CudaGroup::awaitShared(SharedChannels &memory, CUstream stream,
                                   unsigned long long capture) {
  const char *what = "ordering a graph after others";
  if (!capture)
    return memory.use == SharedChannels::Both
               ? cu.check(cu.StreamWaitEvent(stream, memory.order, 0), what)
               : llvm::Error::success();
  if (memory.capture == capture)
    return llvm::Error::success();
  memory.capture = capture;
  memory.recorder = nullptr;
  memory.recorded.clear();
  return cu.check(
      cu.StreamWaitEvent(stream, memory.order, CU_EVENT_WAIT_EXTERNAL), what);
}

/// After a launch: what `awaitShared` waits for.
llvm::Error CudaGroup::recordShared(SharedChannels &memory, CUstream stream,
                                    unsigned long long capture) {
  if (capture)
    return recordGraph(memory, stream);
  if (memory.use != SharedChannels::Both)
    return llvm::Error::success();
  return cu.check(cu.EventRecord(memory.order, stream),
                  "ordering graphs after a launch");
}

/// After each launch of a capture: the graph's one node that records moves
/// behind it. No node of the stream depends on that node.
llvm::Error CudaGroup::recordGraph(SharedChannels &memory, CUstream stream) {
  const char *what = "ordering other graphs after a graph";
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  const CUgraphNode *last = nullptr;
  size_t count = 0;
  const CUgraphEdgeData *edges = nullptr;
  if (auto error =
          cu.check(cu.StreamGetCaptureInfo(stream, &status, nullptr, &graph,
                                           &last, &edges, &count),
                   what))
    return error;
  llvm::SmallVector<CUgraphNode, 2> now(last, last + count);
  if (!memory.recorder) {
    if (auto error = cu.check(cu.GraphAddEventRecordNode(&memory.recorder,
                                                         graph, now.data(),
                                                         count, memory.order),
                              what))
      return error;
    memory.recorded = std::move(now);
    return llvm::Error::success();
  }
  auto targets = [&](size_t size) {
    return llvm::SmallVector<CUgraphNode, 2>(size, memory.recorder);
  };
  size_t before = memory.recorded.size();
  if (auto error = cu.check(
          cu.GraphRemoveDependencies(graph, memory.recorded.data(),
                                     targets(before).data(), nullptr, before),
          what))
    return error;
  memory.recorded.clear();
  if (auto error = cu.check(cu.GraphAddDependencies(graph, now.data(),
                                                    targets(count).data(),
                                                    nullptr, count),
                            what))
    return error;
  memory.recorded = std::move(now);
  return llvm::Error::success();
}
