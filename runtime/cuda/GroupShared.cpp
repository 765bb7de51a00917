//===- GroupShared.cpp - Channel memory that a group's kernels share ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group has one such memory for launches that are not captured, which follow
// each other (`follow`), and one for graphs. Graphs are launched without a look
// at the group, so that each waits for the one before it by an event: the first
// node of a graph waits for it, the last one records it. That is how launches
// of two graphs in two streams follow each other.
//
// A memory grows by a larger one that takes its place. Graphs keep what they
// were captured with.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaGroup.h"

#include "runtime/tune/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;
using group::makeError;
using Kind = group::GroupError::Kind;

/// What a memory has at least, so that small kernels make no new one: blocks,
/// and bytes of a buffer of each region.
static constexpr int64_t kLeastBlocks = 264;
static constexpr size_t kLeastBytes = size_t(256) << 10;
/// Bytes of a buffer of lines, and of poison, that a memory has once it has
/// more than the least of anything: what an all_reduce of 4 MiB takes. Each
/// memory that graphs have outgrown stays as long as they do, so that there are
/// to be few.
static constexpr size_t kUsualBytes = size_t(8) << 20;
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

/// Channels of launches that are not captured, and of captures. Collective.
llvm::Error CudaGroup::makeSharedSets(CudaGroupKernel &kernel) {
  if (kernel.kernel->shape().blocks > abi::kMostSharedBlocks)
    return usage(kernel.describe() + " has more blocks than the " +
                 llvm::Twine(abi::kMostSharedBlocks) +
                 " of shared channel memory");
  SharedNeeds needs = SharedNeeds::of(*kernel.kernel);
  // The caller cuts the message.
  uint64_t most = kernel.channelBytes;
  if (uint64_t wanted = needs.countBuffers(); wanted > most)
    return makeError(Kind::Limit,
                     llvm::formatv("{0} needs {1} of channels, of which a "
                                   "kernel may have {2} in shared memory",
                                   kernel.describe(),
                                   tune::renderSize(int64_t(wanted)),
                                   tune::renderSize(int64_t(most)))
                         .str());
  if (auto error = growShared(eagerShared, needs, /*isEager=*/true))
    return error;
  // Where there is no room for both, captures are refused.
  if (auto error = growShared(graphShared, needs, /*isEager=*/false)) {
    if (!group::isLimit(error))
      return error;
    llvm::consumeError(std::move(error));
  }
  llvm::Error bound = llvm::Error::success();
  size_t before = kernel.sets.size();
  // Both here, for a record's memory cannot be made while a stream is captured.
  for (auto [set, memory] : {std::pair(&kernel.eager, eagerShared),
                             std::pair(&kernel.graph, graphShared)})
    if (memory && !bound) {
      auto made = bindShared(kernel, nullptr, *memory);
      if (made)
        *set = *made;
      else
        bound = made.takeError();
    }
  if (auto error = mesh->agree("making channels",
                               asGroupError(std::move(bound)), patience())) {
    dropSets(kernel, before);
    kernel.eager = kernel.graph = nullptr;
    return error;
  }
  return llvm::Error::success();
}

/// Makes `which` hold `needs`. Collective; an error of kind Limit leaves all
/// ranks with what they had.
llvm::Error CudaGroup::growShared(SharedChannels *&which,
                                  const SharedNeeds &needs, bool isEager) {
  if (which && which->has().hold(needs))
    return llvm::Error::success();
  SharedNeeds least;
  least.blocks = kLeastBlocks;
  least.bytes.fill(kLeastBytes);
  SharedNeeds wanted =
      (which ? which->has() : least).grownBy(needs, /*reserve=*/true);
  if (!least.hold(needs))
    for (auto region : {SharedNeeds::Lines, SharedNeeds::Poison})
      wanted.bytes[region] = std::max(wanted.bytes[region], kUsualBytes);
  auto reserve = [&] {
    size_t bytes = SharedChannels::countBytes(wanted, settings.ranks);
    return mesh->agree("making channel memory",
                       asGroupError(pool->reserve(bytes)), patience());
  };
  llvm::Error reserved = reserve();
  if (reserved && group::isLimit(reserved)) {
    // Of the group's limit, or the driver's: with nothing in reserve.
    llvm::consumeError(std::move(reserved));
    wanted = (which ? which->has() : SharedNeeds())
                 .grownBy(needs, /*reserve=*/false);
    reserved = reserve();
  }
  if (reserved)
    return reserved;
  size_t bytes = SharedChannels::countBytes(wanted, settings.ranks);
  SharedChannels *made;
  {
    std::scoped_lock lock(kernelsMutex, controlMutex);
    made = &shared.emplace_back(wanted, settings.ranks, pool->take(bytes));
    made->timeout = timeout();
  }
  llvm::Error filled = llvm::Error::success();
  {
    std::lock_guard lock(controlMutex);
    filled = made->fill(cu, control, staging->host());
    if (!filled)
      filled = waitForControl("filling channels", patience());
    if (!filled && !isEager)
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
  return replaceShared(which, made, isEager);
}

/// Puts `made` in the place of `which`. What no launch can use any more is
/// given back: that of launches that were not captured, once they have ended on
/// all ranks, and that of graphs, where there is none. Collective.
llvm::Error CudaGroup::replaceShared(SharedChannels *&which,
                                     SharedChannels *made, bool isEager) {
  SharedChannels *old = std::exchange(which, made);
  if (!old)
    return llvm::Error::success();
  bool isUnused = isEager ? isEagerIdle() : old->capture == 0;
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

/// The channels of a capture. Nothing is agreed on with the peers, so that a
/// capture needs no meeting.
llvm::Expected<ChannelSet *>
CudaGroup::sharedSetFor(CudaGroupKernel &kernel, unsigned long long capture) {
  if (!graphShared || !graphShared->has().hold(SharedNeeds::of(*kernel.kernel)))
    return makeError(
        Kind::Limit,
        llvm::formatv(
            "no channel memory is left for a capture of {0}: the group's limit "
            "is {1}. Give the group more (channelBytes, COMMSIR_CHANNEL_BYTES)",
            kernel.describe(), tune::renderSize(int64_t(pool->getLimit())))
            .str());
  // Graphs keep the memory, and the record, that they were captured with.
  if (!kernel.graph || kernel.graph->shared != graphShared) {
    OutsideCapture outside(cu);
    auto made = bindShared(kernel, nullptr, *graphShared);
    if (!made)
      return made.takeError();
    kernel.graph = *made;
  }
  {
    std::lock_guard lock(kernelsMutex);
    kernel.graph->capture = capture;
  }
  // Graphs are launched without a look at it.
  if (graphShared->timeout != timeout())
    if (auto error = writeTimeouts())
      return std::move(error);
  return kernel.graph;
}

//===----------------------------------------------------------------------===//
// Graphs that follow each other
//===----------------------------------------------------------------------===//

/// Before the first launch of a capture: its graph waits for the last graph.
llvm::Error CudaGroup::awaitGraphs(SharedChannels &memory, CUstream stream,
                                   unsigned long long capture) {
  if (memory.capture == capture)
    return llvm::Error::success();
  memory.capture = capture;
  memory.recorder = nullptr;
  memory.recorded.clear();
  return cu.check(
      cu.StreamWaitEvent(stream, memory.order, CU_EVENT_WAIT_EXTERNAL),
      "ordering a graph after others");
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
