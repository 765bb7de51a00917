//===- GroupFailure.cpp - Explains failures of a group --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroupState.h"

#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::cuda;
using group::GroupError;
using group::makeError;
using Kind = group::GroupError::Kind;

/// Seconds that reading the states of peers may take.
static constexpr double kReadSeconds = 2;

/// Waits for what is queued on the control stream.
llvm::Error CudaGroup::waitForControl(const llvm::Twine &what, double seconds) {
  auto start = std::chrono::steady_clock::now();
  while (true) {
    CUresult result = cu.StreamQuery(control);
    if (result == CUDA_SUCCESS)
      return llvm::Error::success();
    if (result != CUDA_ERROR_NOT_READY)
      return cu.check(result, what);
    if (secondsSince(start) > seconds)
      return makeError(Kind::Peer, what + " took longer than " +
                                       llvm::Twine(int64_t(seconds)) + " s");
    std::this_thread::yield();
  }
}

llvm::Error CudaGroup::stopped() const {
  std::lock_guard lock(stopMutex);
  return llvm::make_error<GroupError>(stopKind, stopReason, stopWaiting);
}

/// The state that lies at `state` of `peer`, with `blocks` block states behind
/// it. Under `controlMutex`.
llvm::Expected<CudaGroup::View>
CudaGroup::readView(int64_t peer, CUdeviceptr state, int64_t blocks) {
  auto *bytes = static_cast<char *>(staging->host());
  std::string what = "reading the state of rank " + std::to_string(peer);
  if (auto error = cu.check(
          cu.MemcpyDtoHAsync(bytes, state, size_t(abi::getStateBytes(blocks)),
                             control),
          what))
    return std::move(error);
  if (auto error = waitForControl(what, kReadSeconds))
    return std::move(error);
  View view{nullptr, nullptr, nullptr, {}, UINT64_MAX, 0};
  std::memcpy(&view.state, bytes, sizeof(view.state));
  for (int64_t block = 0; block < blocks; ++block) {
    abi::BlockState words;
    std::memcpy(&words, bytes + abi::getBlockOffset(block), sizeof(words));
    view.epoch = std::min(view.epoch, words.epoch);
    view.busy += words.busy != 0;
  }
  return view;
}

/// State, epochs and busy words of `peer`, of all sets of channels.
llvm::Expected<std::vector<CudaGroup::View>> CudaGroup::readPeer(int64_t peer) {
  std::lock_guard lock(controlMutex);
  std::vector<View> views;
  auto fits = [](int64_t blocks) {
    return size_t(abi::getStateBytes(blocks)) <= kStagingBytes;
  };
  for (const CudaGroupKernel &kernel : kernels) {
    auto blocks = kernel.kernel->shape().blocks;
    for (const ChannelSet &set : kernel.sets) {
      if (set.shared || !set.states[peer] || !fits(blocks))
        continue;
      auto view = readView(peer, set.states[peer], blocks);
      if (!view)
        return view.takeError();
      view->kernel = &kernel;
      view->set = &set;
      views.push_back(*view);
    }
  }
  for (const SharedChannels &memory : shared) {
    if (!memory.states()[peer] || !fits(memory.has().blocks))
      continue;
    auto view = readView(peer, memory.states()[peer], memory.has().blocks);
    if (!view)
      return view.takeError();
    view->shared = &memory;
    for (const CudaGroupKernel &kernel : kernels)
      if (kernel.isShared() && kernel.digest == view->state.digest)
        view->kernel = &kernel;
    views.push_back(*view);
  }
  return views;
}

/// Whether graphs alone launch what the view is of.
bool CudaGroup::isLaunchedByGraphsOnly(const View &view) const {
  return view.shared ? view.shared->use == SharedChannels::Graphs
                     : view.set->capture != 0;
}

/// "rank 2 runs launch 7 of kernel 'b' (…) instead"; `differs`: it runs, or
/// gave up in, something else.
std::string CudaGroup::describePeer(int64_t peer, const CudaGroupKernel &kernel,
                                    const ChannelSet &set, uint64_t launch,
                                    bool &differs) {
  std::string whom = "rank " + std::to_string(peer) + ": ";
  std::string why = mesh->absenceReason(int(peer));
  if (!why.empty())
    whom += why + ", and before that it ";
  else
    whom += "it ";
  auto views = readPeer(peer);
  if (!views) {
    std::string text = llvm::toString(views.takeError());
    return why.empty() ? whom + "cannot be asked what it runs: " + text
                       : "rank " + std::to_string(peer) + ": " + why;
  }
  const View *same = nullptr, *other = nullptr;
  for (const View &view : *views) {
    if (set.shared ? view.shared == set.shared : view.set == &set)
      same = &view;
    else if (view.busy || view.state.abort == 1)
      other = &view;
  }
  bool isOther = same && same->state.digest != kernel.digest;
  if (isOther && !set.shared) {
    differs = true;
    return whom +
           "keeps another kernel where this rank keeps the channels of " +
           kernel.describe();
  }
  // In shared memory it may run another kernel, or have run it last.
  if (isOther && (same->busy || same->state.abort == 1)) {
    other = same;
    same = nullptr;
  }
  bool gaveUp = same && same->state.abort;
  if (same && same->busy && same->epoch + 1 == launch) {
    uint64_t mine = set.params[KernelCode::kExtentPlace];
    differs |= set.shared && same->state.extent != mine;
    return whom + "is in this launch too" +
           (differs ? llvm::formatv(", with {0} elements where this rank has "
                                    "{1}",
                                    same->state.extent, mine)
                          .str()
                    : std::string());
  }
  if (gaveUp && same->epoch == launch)
    return whom + "gave up in this launch too";
  if (same && same->busy)
    return whom +
           llvm::formatv("is in launch {0} of this kernel", same->epoch + 1)
               .str();
  if (other) {
    differs = true;
    uint64_t number = other->epoch + (other->busy ? 1 : 0);
    return whom +
           llvm::formatv("{0} launch {1} of {2}{3} instead",
                         other->busy ? "runs" : "gave up in", number,
                         other->kernel ? other->kernel->describe()
                                       : "a kernel that this rank does "
                                         "not have",
                         isLaunchedByGraphsOnly(*other) ? ", in a graph" : "")
               .str();
  }
  if (same && same->epoch >= launch)
    return whom + "has finished this launch";
  return whom +
         llvm::formatv("has not begun this launch: it has finished {0} "
                       "of {1} and runs nothing of the group",
                       same ? same->epoch : 0,
                       set.shared ? "the group's kernels" : "this kernel")
             .str();
}

/// Number of the launch that block `block` of this rank runs or has ended.
uint64_t CudaGroup::launchNumber(const CudaGroupKernel &kernel,
                                 const ChannelSet &set, uint32_t block) {
  std::lock_guard lock(controlMutex);
  auto blocks = kernel.kernel->shape().blocks;
  auto size = size_t(abi::getStateBytes(blocks));
  auto *bytes = static_cast<char *>(staging->host());
  if (size > kStagingBytes || int64_t(block) >= blocks ||
      cu.MemcpyDtoHAsync(bytes, set.state, size, control) != CUDA_SUCCESS)
    return 0;
  if (auto error = waitForControl("reading the own state", kReadSeconds)) {
    llvm::consumeError(std::move(error));
    return 0;
  }
  abi::BlockState words;
  std::memcpy(&words, bytes + abi::getBlockOffset(block), sizeof(words));
  return words.epoch + (words.busy ? 1 : 0);
}

/// The error that a record stands for, with what the peers do.
llvm::Error CudaGroup::explain(const CudaGroupKernel &kernel,
                               const ChannelSet &set,
                               const abi::ErrorRecord &record) {
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  cpu::Waiting waiting{settings.rank, record.block, "", "", ""};
  if (record.site < kernel.kernel->sites().size()) {
    waiting.op = kernel.kernel->sites()[record.site].op;
    waiting.location = kernel.kernel->sites()[record.site].location;
  }
  waiting.what = describeFailure(record);
  uint64_t launch = launchNumber(kernel, set, record.block);
  std::string text =
      llvm::formatv(
          "rank {0}, launch {1} of {2}{3}, block {4}: ", settings.rank, launch,
          kernel.describe(), set.capture ? " in a graph" : "", record.block)
          .str();
  auto poll = abi::PollKind(record.kind);
  if (poll == abi::PollKind::Bounds)
    return llvm::make_error<GroupError>(
        Kind::Bounds, text + "stopped at an access outside its memory",
        std::vector{waiting});
  if (poll == abi::PollKind::Busy)
    return llvm::make_error<GroupError>(Kind::Usage, text + waiting.what,
                                        std::vector{waiting});
  double timeout = set.shared ? set.shared->timeout : set.timeout;
  text += llvm::formatv("gave up waiting after {0} s", timeout).str();
  bool differs = false;
  for (int64_t peer = 0; peer < settings.ranks; ++peer)
    if (peer != settings.rank)
      text += "\n  " + describePeer(peer, kernel, set, launch, differs);
  return llvm::make_error<GroupError>(differs ? Kind::Disagree : Kind::Peer,
                                      text, std::vector{waiting});
}

llvm::Error CudaGroup::poll() {
  if (isStopped)
    return stopped();
  Kind kind = Kind::Peer;
  std::string message;
  auto note = [&](const GroupError &error) {
    kind = error.getKind();
    message = error.getMessage();
    std::lock_guard lock(stopMutex);
    stopWaiting = error.getWaiting().vec();
  };
  std::unique_lock lock(kernelsMutex);
  if (!records.isAnyWritten())
    return llvm::Error::success();
  if (llvm::Error error = failedTake()) {
    llvm::handleAllErrors(std::move(error), note);
    lock.unlock();
    stop(message, kind);
    return stopped();
  }
  for (const CudaGroupKernel &kernel : kernels)
    for (const ChannelSet &set : kernel.sets) {
      if (!__atomic_load_n(&set.record.host->valid, __ATOMIC_ACQUIRE))
        continue;
      abi::ErrorRecord record = *set.record.host;
      llvm::handleAllErrors(explain(kernel, set, record), note);
      lock.unlock();
      stop(message, kind);
      return stopped();
    }
  return llvm::Error::success();
}

std::optional<std::string> CudaGroup::ended() const {
  if (!isStopped) {
    std::string why = mesh->lossReason();
    return why.empty() ? std::nullopt : std::optional(std::move(why));
  }
  std::lock_guard lock(stopMutex);
  return stopReason;
}

/// Whether a kernel has given up on these channels, or on memory that they
/// share.
bool CudaGroup::hasFailed(const ChannelSet &set) const {
  auto isWritten = [](const ChannelSet &one) {
    return __atomic_load_n(&one.record.host->valid, __ATOMIC_ACQUIRE) != 0;
  };
  if (!set.shared)
    return isWritten(set);
  return llvm::any_of(kernels, [&](const CudaGroupKernel &kernel) {
    return llvm::any_of(kernel.sets, [&](const ChannelSet &one) {
      return one.shared == set.shared && isWritten(one);
    });
  });
}

/// The first reason counts; abort words are written every time.
void CudaGroup::stop(llvm::StringRef reason, Kind kind) {
  {
    std::lock_guard lock(stopMutex);
    if (!isStopped) {
      stopReason = reason.str();
      stopKind = kind;
    }
    isStopped = true;
  }
  mesh->giveUp(reason);
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  std::lock_guard lock(controlMutex);
  // Takes that wait give up.
  if (takes.host)
    __atomic_store_n(&takes.host->valid, 1, __ATOMIC_RELEASE);
  for (const CudaGroupKernel &kernel : kernels)
    for (const ChannelSet &set : kernel.sets)
      // What a kernel wrote itself tells peers more.
      if (!hasFailed(set))
        cu.MemcpyHtoDAsync(set.state + abi::kAbortOffset, abortWord->host(),
                           sizeof(uint64_t), control);
}

void CudaGroup::abort(llvm::StringRef reason) {
  stop(llvm::formatv("rank {0}: the group was aborted: {1}", settings.rank,
                     reason)
           .str(),
       Kind::Aborted);
}
