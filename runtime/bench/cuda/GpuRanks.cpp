//===- GpuRanks.cpp - GPUs of one process that measure together -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/cuda/GpuRanks.h"

#include "runtime/cuda/RankDevices.h"

#include "llvm/ADT/STLExtras.h"
#include <atomic>
#include <chrono>
#include <thread>

using namespace commsir;
using namespace commsir::tune;
using Clock = std::chrono::steady_clock;

/// Seconds that ranks wait for each other, and for a GPU, before they give up.
/// A kernel of ours gives up much sooner.
static constexpr double kPatience = 60;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

static bool isPast(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count() >
         kPatience;
}

//===----------------------------------------------------------------------===//
// Start and end
//===----------------------------------------------------------------------===//

llvm::Error GpuRanks::open(int count) {
  ranks.resize(count);
  for (int number = 0; number < count; ++number) {
    auto device = cuda::Device::open(number);
    if (!device)
      return device.takeError();
    ranks[number].device = std::make_unique<cuda::Device>(std::move(*device));
  }
  return llvm::Error::success();
}

llvm::Error GpuRanks::joinByNccl() {
  ncclUniqueId id{};
  const cuda::Nccl &nccl = *library;
  {
    cuda::ContextGuard guard(ranks[0].driver(), ranks[0].device->context());
    if (auto error = nccl.check(nccl.GetUniqueId(&id), "ncclGetUniqueId"))
      return error;
  }
  int count = size();
  auto meeting = std::make_shared<cuda::Exchange>(count);
  return together(
      "starting NCCL",
      [&nccl, id, count, meeting](Rank &rank, int number) -> llvm::Error {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        if (auto error = nccl.check(
                nccl.CommInitRankConfig(&rank.comm, count, id, number, &config),
                "ncclCommInitRankConfig"))
          return error;
        auto adopted = cuda::Communicator::adopt(
            *rank.device, rank.comm, cuda::makeAgreement(meeting, number));
        if (!adopted)
          return adopted.takeError();
        rank.communicator = std::move(*adopted);
        return llvm::Error::success();
      });
}

llvm::Error GpuRanks::joinByPeerAccess() {
  std::vector<const cuda::Device *> devices;
  for (Rank &rank : ranks)
    devices.push_back(rank.device.get());
  auto joined = cuda::Communicator::createLocal(devices);
  if (!joined)
    return joined.takeError();
  for (int number = 0; number < size(); ++number)
    ranks[number].communicator = std::move((*joined)[number]);
  return llvm::Error::success();
}

llvm::Error GpuRanks::makeStreams() {
  return together("making a stream", [](Rank &rank, int) -> llvm::Error {
    const cuda::Driver &cu = rank.driver();
    if (auto error =
            cu.check(cu.StreamCreate(&rank.stream, CU_STREAM_NON_BLOCKING),
                     "cuStreamCreate"))
      return error;
    for (CUevent *event : {&rank.start, &rank.stop})
      if (auto error = cu.check(cu.EventCreate(event, CU_EVENT_DEFAULT),
                                "cuEventCreate"))
        return error;
    return llvm::Error::success();
  });
}

llvm::Expected<std::unique_ptr<GpuRanks>> GpuRanks::create(int ranks,
                                                           bool needNccl) {
  auto count = cuda::getDeviceCount();
  if (!count)
    return count.takeError();
  if (ranks == 0)
    ranks = *count;
  auto chip = cuda::checkMachine(ranks, {});
  if (!chip)
    return chip.takeError();
  std::unique_ptr<GpuRanks> machine(new GpuRanks);
  auto nccl = cuda::Nccl::get();
  llvm::Error missing =
      nccl ? cuda::checkDeviceLibrary(**nccl) : nccl.takeError();
  if (!missing)
    machine->library = *nccl;
  else if (needNccl)
    return bad(llvm::toString(std::move(missing)) +
               "; --no-baselines measures CommsIR without NCCL");
  else
    llvm::consumeError(std::move(missing));
  if (auto error = machine->open(ranks))
    return error;
  if (auto error = machine->library ? machine->joinByNccl()
                                    : machine->joinByPeerAccess())
    return error;
  if (auto error = machine->makeStreams())
    return error;
  return machine;
}

GpuRanks::~GpuRanks() {
  if (stuck)
    return;
  llvm::consumeError(together("leaving", [this](Rank &rank, int) {
    const cuda::Driver &cu = rank.driver();
    for (CUevent event : {rank.start, rank.stop})
      if (event)
        cu.EventDestroy(event);
    if (rank.stream)
      cu.StreamDestroy(rank.stream);
    rank.communicator.reset();
    if (rank.comm)
      library->CommDestroy(rank.comm);
    return llvm::Error::success();
  }));
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

llvm::Error GpuRanks::together(
    llvm::StringRef what,
    const std::function<llvm::Error(Rank &rank, int number)> &work) {
  if (stuck)
    return bad("an earlier step has not returned");
  cuda::ParallelResult result = cuda::forEachRank(
      size(), what, 2 * kPatience, [this, work](int number) -> llvm::Error {
        Rank &rank = ranks[number];
        cuda::ContextGuard guard(rank.driver(), rank.device->context());
        return work(rank, number);
      });
  stuck |= result.stuck;
  return result ? llvm::Error::success() : bad(result.error);
}

llvm::Error GpuRanks::waitFor(Rank &rank) {
  const cuda::Driver &cu = rank.driver();
  Clock::time_point since = Clock::now();
  CUresult state;
  while ((state = cu.StreamQuery(rank.stream)) == CUDA_ERROR_NOT_READY) {
    if (isPast(since))
      return bad("the GPU has not finished within a minute");
    std::this_thread::yield();
  }
  return cu.check(state, "running on the GPU");
}

bool GpuRanks::isBroken() const {
  return stuck || llvm::any_of(ranks, [](const Rank &rank) {
           cuda::ContextGuard guard(rank.driver(), rank.device->context());
           CUresult state = rank.driver().StreamQuery(rank.stream);
           return state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY;
         });
}

llvm::Expected<double> GpuRanks::time(
    const std::function<llvm::Error(Rank &rank, int number)> &enqueue) {
  // Shared: threads that are stuck outlive this call.
  struct Shared {
    explicit Shared(int ranks) : microseconds(ranks) {}
    std::atomic<int> arrived{0};
    std::atomic<bool> failed{false};
    std::vector<double> microseconds;
  };
  auto shared = std::make_shared<Shared>(size());
  int count = size();
  auto measure = [shared, enqueue, count](Rank &rank,
                                          int number) -> llvm::Error {
    // A spinning barrier: one that sleeps wakes the ranks microseconds apart.
    ++shared->arrived;
    Clock::time_point since = Clock::now();
    while (shared->arrived < count)
      if (isPast(since))
        return bad("the other ranks have not arrived within a minute");
    const cuda::Driver &cu = rank.driver();
    if (auto error =
            cu.check(cu.EventRecord(rank.start, rank.stream), "cuEventRecord"))
      return error;
    if (auto error = enqueue(rank, number))
      return error;
    if (auto error =
            cu.check(cu.EventRecord(rank.stop, rank.stream), "cuEventRecord"))
      return error;
    if (auto error = waitFor(rank))
      return error;
    float milliseconds = 0;
    if (auto error =
            cu.check(cu.EventElapsedTime(&milliseconds, rank.start, rank.stop),
                     "cuEventElapsedTime"))
      return error;
    shared->microseconds[number] = double(milliseconds) * 1000;
    return llvm::Error::success();
  };
  if (auto error = together("running", measure)) {
    // A GPU that did not finish still uses the memory of its contender.
    for (Rank &rank : ranks) {
      cuda::ContextGuard guard(rank.driver(), rank.device->context());
      stuck |= rank.driver().StreamQuery(rank.stream) == CUDA_ERROR_NOT_READY;
    }
    return error;
  }
  return *llvm::max_element(shared->microseconds);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Graph>>
Graph::capture(Rank &rank, int64_t calls,
               const std::function<llvm::Error()> &call) {
  const cuda::Driver &cu = rank.driver();
  std::unique_ptr<Graph> self(new Graph(rank));
  if (auto error =
          cu.check(cu.StreamBeginCapture(rank.stream,
                                         CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   "cuStreamBeginCapture"))
    return error;
  std::string failure;
  for (int64_t i = 0; i < calls && failure.empty(); ++i)
    if (auto error = call())
      failure = llvm::toString(std::move(error));
  CUresult ended = cu.StreamEndCapture(rank.stream, &self->graph);
  if (!failure.empty())
    return bad(failure);
  if (auto error = cu.check(ended, "cuStreamEndCapture"))
    return error;
  if (auto error = cu.check(cu.GraphInstantiate(&self->exec, self->graph, 0),
                            "cuGraphInstantiate"))
    return error;
  return self;
}

Graph::~Graph() {
  const cuda::Driver &cu = rank.driver();
  if (exec)
    cu.GraphExecDestroy(exec);
  if (graph)
    cu.GraphDestroy(graph);
}

llvm::Error Graph::launch() const {
  const cuda::Driver &cu = rank.driver();
  return cu.check(cu.GraphLaunch(exec, rank.stream), "cuGraphLaunch");
}
