//===- RankRun.cpp - One rank, from its group to its results --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/RankRun.h"

#include "runtime/cuda/Seconds.h"
#include "runtime/driver/cuda/RankArrays.h"
#include "runtime/group/cuda/CudaGroup.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace commsir;
using namespace commsir::driver;
using cuda::secondsSince;
using Clock = std::chrono::steady_clock;

const cuda::Driver &RankRun::driver() const {
  return cuda::getDevice(*group).driver();
}

RankRun::~RankRun() {
  if (!group)
    return;
  cuda::ContextGuard guard(driver(), cuda::getDevice(*group).context());
  stream.destroy();
  memory.reset();
}

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

llvm::Error RankRun::start() {
  if (task.graph)
    if (auto error = cuda::TimedStream::checkGraph(task.launches))
      return error;
  auto folder = group::createFileStore(task.rendezvous);
  if (!folder)
    return folder.takeError();
  store = std::move(*folder);
  auto made = group::createCudaGroup(task.group, *store);
  if (!made)
    return made.takeError();
  group = std::move(*made);
  cuda::ContextGuard guard(driver(), cuda::getDevice(*group).context());
  auto prepared = group->prepare(task.request);
  if (!prepared)
    return prepared.takeError();
  kernel = *prepared;
  if (auto error = checkArrays())
    return error;
  if (auto error = allocate())
    return error;
  return stream.create(driver());
}

/// The arrays are those of the kernel that was compiled to know them; this rank
/// has compiled its own.
llvm::Error RankRun::checkArrays() const {
  bool same = host.size() == kernel->args().size();
  for (size_t i = 0; same && i < host.size(); ++i)
    same = !isArray(i) || host[i].size() == kernel->args()[i].bytes();
  if (same)
    return llvm::Error::success();
  return llvm::createStringError("kernel '" + kernel->name() +
                                 "' has other arguments here than where it was "
                                 "checked");
}

/// One window and one piece of memory for all arguments.
llvm::Error RankRun::allocate() {
  std::vector<size_t> offsets;
  size_t windowBytes = 0, memoryBytes = 0;
  for (const jit::ArgInfo &argument : kernel->args()) {
    size_t &total =
        argument.kind == jit::ArgKind::Window ? windowBytes : memoryBytes;
    offsets.push_back(total);
    if (isArray(offsets.size() - 1))
      total = llvm::alignTo(total + argument.bytes(), kArrayAlignment);
  }
  auto window = group->allocate(windowBytes);
  if (!window)
    return window.takeError();
  auto own = cuda::Memory::allocate(cuda::getDevice(*group), memoryBytes);
  if (!own)
    return own.takeError();
  memory.emplace(std::move(*own));
  bindArguments(static_cast<char *>(*window), offsets);
  return llvm::Error::success();
}

void RankRun::bindArguments(char *window, llvm::ArrayRef<size_t> offsets) {
  for (auto [i, argument] : llvm::enumerate(kernel->args())) {
    group::Argument value;
    if (argument.kind == jit::ArgKind::Scalar) {
      value = {host[i].data(), argument.elementBytes};
    } else if (isArray(i)) {
      char *base = argument.kind == jit::ArgKind::Window
                       ? window
                       : reinterpret_cast<char *>(memory->address());
      value = {base + offsets[i], argument.bytes()};
    }
    arguments.push_back(value);
  }
}

/// To the GPU, or back.
llvm::Error RankRun::copy(bool in) {
  const cuda::Driver &cu = driver();
  for (auto [i, bytes] : llvm::enumerate(host)) {
    if (!isArray(i) || bytes.empty())
      continue;
    auto address = reinterpret_cast<CUdeviceptr>(arguments[i].data);
    CUresult result = in ? cu.MemcpyHtoD(address, bytes.data(), bytes.size())
                         : cu.MemcpyDtoH(bytes.data(), address, bytes.size());
    if (auto error =
            cu.check(result, "copying '" + kernel->args()[i].name +
                                 (in ? "' to" : "' from") + " the GPU"))
      return error;
  }
  return cu.check(cu.CtxSynchronize(), "copying arguments");
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

llvm::Error RankRun::launchOnce(CUstream into) {
  return group->launch(*kernel, arguments, into);
}

llvm::Error RankRun::waitForEnd(const RunPeers &runPeers) {
  auto start = Clock::now();
  std::optional<Clock::time_point> stopped;
  llvm::Error failure = llvm::Error::success();
  while (true) {
    CUresult result = stream.query();
    if (result == CUDA_SUCCESS)
      break;
    if (result != CUDA_ERROR_NOT_READY) {
      stuck = true;
      return llvm::joinErrors(
          std::move(failure),
          driver().check(result, "running kernel '" + kernel->name() + "'"));
    }
    bool isLate = secondsSince(start) > task.seconds();
    if (!stopped && (isLate || runPeers.isCanceled())) {
      timedOut = isLate;
      group->abort(isLate ? "the time is over" : "another rank has failed");
      stopped = Clock::now();
    }
    if (!stopped && (failure = group->poll()))
      stopped = Clock::now();
    if (stopped && secondsSince(*stopped) > cuda::kAbortSeconds) {
      stuck = true;
      return llvm::joinErrors(
          std::move(failure),
          llvm::createStringError(
              "the kernel does not end, although it was asked to"));
    }
    cuda::pause(start);
  }
  return failure ? std::move(failure) : group->poll();
}

llvm::Error RankRun::launchAll(const RunPeers &runPeers, double &microseconds) {
  auto launch = [this](CUstream into) { return launchOnce(into); };
  if (task.graph)
    if (auto error = stream.capture(task.launches, launch))
      return error;
  runPeers.meet();
  llvm::Error failure = stream.start(task.launches, launch);
  llvm::Error ended = waitForEnd(runPeers);
  if (failure) { // Of both, what a launch refused is what came first.
    llvm::consumeError(std::move(ended));
    return failure;
  }
  if (ended)
    return ended;
  auto time = stream.microseconds();
  if (!time)
    return time.takeError();
  microseconds = *time;
  return llvm::Error::success();
}

RankOutcome RankRun::run(llvm::ArrayRef<llvm::MutableArrayRef<char>> given,
                         const RunPeers &runPeers) {
  host.assign(given.begin(), given.end());
  RankOutcome outcome;
  llvm::Error error = start();
  if (!error) {
    cuda::ContextGuard guard(driver(), cuda::getDevice(*group).context());
    outcome.windows = cuda::getWindowsNote(*group).str();
    error = copy(true);
    if (!error)
      error = launchAll(runPeers, outcome.microseconds);
    if (!error)
      error = copy(false);
  }
  if (!error)
    return outcome;
  outcome.error = toRunError(std::move(error));
  if (timedOut) {
    outcome.error->kind = cpu::RunError::TimeLimit;
    outcome.error->message =
        llvm::formatv("the run has not ended after {0} s and was stopped",
                      task.seconds())
            .str();
  }
  return outcome;
}
