//===- GroupKernels.cpp - Kernels of a group, and their channels ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroupState.h"
#include "runtime/support/ForeignText.h"

#include "runtime/choose/Choose.h"
#include "runtime/group/cuda/GroupRequest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace commsir;
using namespace commsir::cuda;
using group::GroupKernel;
using group::KernelRequest;
using group::makeError;
using Kind = group::GroupError::Kind;

/// Kernels with channels up to this size get a set for a capture beforehand.
static constexpr size_t kSpareBytes = size_t(64) << 20;
/// CTAs of NCCL's kernels, which each may take a whole multiprocessor.
static constexpr int kNcclBlocks = 32;

/// Compiles a request, with what does not change while the group is there.
EarlyCode::Compile CudaGroup::compilerOf(const KernelRequest &request) const {
  // By the limit, not by what is left of it: a choice must not depend on what
  // was prepared before.
  uint64_t memory =
      request.shared ? sharedKernelBytes(request.channelBytes) : pool->most();
  RequestLimits given = {memory, limits.ctas, limits.multiprocessors};
  return [request, given, ranks = settings.ranks, on = device.get()] {
    return compileRequest(request, ranks, *on, given);
  };
}

llvm::Expected<bool> CudaGroup::compileEarly(const KernelRequest &request) {
  if (isStopped)
    return stopped();
  bool isOver = early.isOver(keyOf(request), compilerOf(request));
  auto all = mesh->all("asking who has compiled a kernel",
                       isOver ? "yes" : "no", patience());
  if (!all)
    return all.takeError();
  return llvm::all_of(*all, [](llvm::StringRef said) { return said == "yes"; });
}

/// Compiles and loads a request's code, or takes that of another label.
llvm::Error CudaGroup::loadCode(const KernelRequest &request,
                                CudaGroupKernel &made) {
  LoadedCode &known = loaded[keyOf(request)];
  made.kernel = known.kernel.lock();
  made.code = known.code.lock();
  if (made.kernel && made.code)
    return llvm::Error::success();
  made.kernel = early.take(keyOf(request));
  if (!made.kernel) {
    auto compiled = compilerOf(request)();
    if (!compiled)
      return compiled.takeError();
    made.kernel = std::move(*compiled);
  }
  ++(made.kernel->cached() ? done.fromCache : done.compiled);
  auto code = KernelCode::load(*device, *made.kernel);
  if (!code)
    return code.takeError();
  made.code = std::move(*code);
  known = {made.kernel, made.code};
  return llvm::Error::success();
}

/// Prepares what needs no peer.
llvm::Error CudaGroup::prepareOwn(const KernelRequest &request,
                                  CudaGroupKernel &made) {
  if (auto error = loadCode(request, made))
    return error;
  if (made.kernel->ranks() != settings.ranks)
    return usage(llvm::formatv("kernel '{0}' is for {1} ranks, the group has "
                               "{2}",
                               made.name(), made.kernel->ranks(),
                               settings.ranks)
                     .str());
  uint64_t memory =
      request.shared ? sharedKernelBytes(request.channelBytes) : pool->most();
  auto layout = ChannelLayout::of(*made.kernel);
  if (!layout)
    return layout.takeError();
  made.layout = std::move(*layout);
  made.label = request.label;
  made.digest = digestOf(request, *made.kernel) ^
                (made.label.empty() ? 0 : llvm::xxh3_64bits(made.label) << 1);
  made.concurrent = request.concurrent;
  made.channelBytes = memory;
  made.firstLaunch = request.firstLaunch;
  for (auto [number, argument] : llvm::enumerate(made.kernel->args()))
    if (!argument.hidden) {
      made.visible.push_back(argument);
      made.numbers.push_back(unsigned(number));
    }
  return checkConcurrent(made);
}

tune::Config CudaGroup::configOf(tune::ConfigQuery &query) const {
  query.ranks = settings.ranks;
  describeMachine(*device, limits, query);
  return tune::choose(query).config;
}

/// Returns the largest share of a multiprocessor that a launch takes, on those
/// that NCCL leaves free.
double CudaGroup::shareOf(const CudaGroupKernel &kernel) const {
  int64_t all = device->getMultiprocessors();
  int64_t cluster = kernel.kernel->shape().cluster;
  int64_t wanted = llvm::divideCeil(kernel.kernel->shape().blocks * cluster,
                                    std::max<int64_t>(all - kNcclBlocks, 1));
  int64_t most =
      std::max<int64_t>(kernel.code->getResident() * cluster / all, 1);
  return double(wanted) / double(most);
}

/// Concurrent kernels run together with each other, one of the others, and
/// NCCL, in an order that differs by rank: unless all fit, ranks wait for
/// kernels that wait for a place.
llvm::Error CudaGroup::checkConcurrent(const CudaGroupKernel &made) const {
  double together = 0, largest = 0;
  int count = 0;
  auto add = [&](const CudaGroupKernel &kernel) {
    double share = shareOf(kernel);
    count += kernel.concurrent;
    if (kernel.concurrent)
      together += share;
    else
      largest = std::max(largest, share);
  };
  add(made);
  for (const CudaGroupKernel &kernel : kernels)
    add(kernel);
  if (!count || together + largest <= 1)
    return llvm::Error::success();
  return usage(
      llvm::formatv(
          "{0} does not fit on GPU {1} together with NCCL and the group's "
          "other kernels: of each multiprocessor that NCCL leaves, {2} "
          "concurrent kernels take {3:P0} and the largest of those "
          "that follow each other {4:P0}. Kernels that wait for a "
          "place can hang the ranks: ask for fewer blocks or threads, "
          "or do not declare kernels concurrent",
          made.describe(), settings.device, count, together, largest)
          .str());
}

/// Returns "x 4x256 f32, y 4x256 f32", for errors.
static std::string describeArguments(llvm::ArrayRef<jit::ArgInfo> arguments) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::interleave(
      arguments, out,
      [&](const jit::ArgInfo &argument) {
        out << argument.name << " ";
        llvm::interleave(argument.shape, out, "x");
        out << (argument.shape.empty() ? "" : " ") << argument.elementType;
      },
      ", ");
  return text;
}

/// Whether all ranks prepare the same.
llvm::Error CudaGroup::comparePeers(const CudaGroupKernel &made) {
  std::string mine = llvm::utohexstr(made.digest) + "\n" +
                     llvm::utohexstr(tune::getTablesDigest()) + "\n" +
                     describeArguments(made.visible) + "\n" + made.describe();
  auto all = mesh->all("comparing a kernel", mine, patience());
  if (!all)
    return all.takeError();
  for (auto [peer, text] : llvm::enumerate(*all)) {
    auto [digest, theirs] = llvm::StringRef(text).split('\n');
    auto [own, rest] = llvm::StringRef(mine).split('\n');
    if (digest == own)
      continue;
    auto [theirTables, theirText] = theirs.split('\n');
    auto [tables, ownText] = rest.split('\n');
    auto [theirArguments, says] = theirText.split('\n');
    auto [arguments, ours] = ownText.split('\n');
    std::string why = says == ours ? " from another source" : "";
    if (theirArguments != arguments)
      why += llvm::formatv(" with {0}, where rank {1} has {2}",
                           showForeign(theirArguments.str()), settings.rank,
                           arguments)
                 .str();
    if (theirTables != tables)
      why += ", by other measured tables (COMMSIR_TABLES, load_tables): load "
             "the same on all ranks, between the same calls";
    return makeError(Kind::Disagree,
                     llvm::formatv("ranks disagree: rank {0} prepares {1}, "
                                   "rank {2} {3}{4}. All ranks must prepare "
                                   "the same kernels in the same order",
                                   settings.rank, ours, peer,
                                   showForeign(says.str()), why)
                         .str());
  }
  return llvm::Error::success();
}

llvm::Error CudaGroup::compare(llvm::StringRef text) {
  if (isStopped)
    return stopped();
  auto all = mesh->all("comparing a call", text.str(), patience());
  if (!all)
    return all.takeError();
  for (auto [peer, said] : llvm::enumerate(*all))
    if (said != text)
      return makeError(Kind::Disagree,
                       llvm::formatv("ranks disagree: rank {0} calls {1}, "
                                     "rank {2} calls {3}. All ranks must make "
                                     "the same calls in the same order",
                                     settings.rank, text, peer,
                                     showForeign(said))
                           .str());
  return llvm::Error::success();
}

/// Zeros where another kernel was, poison, and the state.
llvm::Error CudaGroup::fillSet(const CudaGroupKernel &kernel,
                               const ChannelSet &set,
                               const ChannelPool::Piece &piece) {
  std::lock_guard lock(controlMutex);
  CUdeviceptr base = piece.own;
  if (piece.isUsed)
    if (auto error =
            cu.check(cu.MemsetD8Async(base, 0, kernel.layout.bytes, control),
                     "zeroing channels"))
      return error;
  for (auto [number, argument] : llvm::enumerate(kernel.kernel->args())) {
    if (!isGroups(argument) || !argument.poisoned || !argument.bytes())
      continue;
    if (auto error =
            cu.check(cu.MemsetD16Async(base + kernel.layout.offsets[number],
                                       uint16_t(abi::kPoison32 & 0xFFFF),
                                       argument.bytes() / 2, control),
                     "filling channels"))
      return error;
  }
  StateOptions options;
  options.timeout = set.timeout;
  options.digest = kernel.digest;
  options.firstLaunch = kernel.firstLaunch;
  std::vector<char> state =
      makeState(*kernel.kernel, options, set.record.device);
  size_t size = std::min(state.size(), kStagingBytes);
  std::memcpy(staging->host(), state.data(), size);
  if (auto error = cu.check(
          cu.MemcpyHtoDAsync(set.state, staging->host(), size, control),
          "writing a kernel's state"))
    return error;
  return waitForControl("filling channels", patience());
}

/// One more set of channels, from memory that the pool has.
llvm::Expected<ChannelSet *>
CudaGroup::makeSet(CudaGroupKernel &kernel,
                   std::unique_ptr<DeviceComm> deviceComm) {
  std::unique_lock lock(kernelsMutex);
  auto record = records.take(*device);
  lock.unlock();
  if (!record)
    return record.takeError();
  ChannelPool::Piece piece = pool->take(kernel.layout.bytes);
  ChannelSet set;
  set.record = *record;
  set.timeout = timeout();
  set.state = piece.own;
  set.states = piece.parts;
  set.params = kernel.code->makeParams(int(settings.rank));
  set.params[KernelCode::kStatePlace] = set.state;
  set.bound.resize(kernel.visible.size());
  for (auto [number, argument] : llvm::enumerate(kernel.kernel->args())) {
    if (!isGroups(argument))
      continue;
    size_t offset = kernel.layout.offsets[number];
    uint64_t *place = &set.params[kernel.code->placeOf(unsigned(number))];
    bool shared = argument.kind == jit::ArgKind::Window ||
                  argument.kind == jit::ArgKind::Signal;
    if (!shared)
      *place = piece.own + offset;
    for (size_t peer = 0; shared && peer < piece.parts.size(); ++peer)
      place[peer] = piece.parts[peer] ? piece.parts[peer] + offset : 0;
    if (const Window *window = pool->windowOf(piece.own))
      kernel.code->bindNcclWindow(set.params.data(), unsigned(number),
                                  window->ncclHandle(),
                                  piece.own - window->base() + offset);
  }
  if (deviceComm)
    kernel.code->bindDeviceComm(set.params.data(), deviceComm->address());
  set.deviceComm = std::move(deviceComm);
  if (auto error = fillSet(kernel, set, piece)) {
    pool->give(set.state, kernel.layout.bytes);
    lock.lock();
    records.give(set.record);
    return std::move(error);
  }
  std::scoped_lock both(kernelsMutex, controlMutex);
  kernel.sets.push_back(std::move(set));
  return &kernel.sets.back();
}

/// Makes one device communicator per set of channels for a kernel that calls
/// NCCL's device library; null for others.
llvm::Expected<std::vector<std::unique_ptr<DeviceComm>>>
CudaGroup::makeDeviceComms(const CudaGroupKernel &kernel, int count) {
  std::vector<std::unique_ptr<DeviceComm>> made(count);
  if (!kernel.kernel->nccl())
    return made;
  llvm::Error error = llvm::Error::success();
  for (std::unique_ptr<DeviceComm> &one : made)
    if (!error) {
      auto comm = communicator->createDeviceComm(*kernel.kernel->nccl());
      if (comm)
        one = std::move(*comm);
      else
        error = comm.takeError();
    }
  if (auto failed = mesh->agree("making NCCL's device communicators",
                                asGroupError(std::move(error)), patience()))
    return std::move(failed);
  return made;
}

llvm::Expected<GroupKernel *> CudaGroup::prepare(const KernelRequest &request) {
  if (!request.members.empty())
    return usage("a group of GPUs has no kernels for a part of its ranks: make "
                 "a group of those ranks");
  std::string key = keyOf(request) + "\n" + request.label;
  auto known = byRequest.find(key);
  bool isKnown = known != byRequest.end();
  if (isKnown &&
      (!known->second->kernel->nccl() || !known->second->spares.empty())) {
    ++known->second->users;
    return known->second;
  }
  if (isStopped)
    return stopped();
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  if (isKnown) {
    // What a capture takes, and cannot make itself.
    if (auto error = makeSets(*known->second))
      return std::move(error);
    ++known->second->users;
    return known->second;
  }
  auto made = std::make_unique<CudaGroupKernel>();
  if (auto error =
          mesh->agree("preparing a kernel",
                      asGroupError(prepareOwn(request, *made)), patience()))
    return std::move(error);
  if (auto error = comparePeers(*made))
    return std::move(error);
  if (communicator->getReachSize() < made->kernel->lsaSize())
    return usage(llvm::formatv("kernel '{0}' expects {1} ranks in load/store "
                               "reach; these GPUs give {2}",
                               made->name(), made->kernel->lsaSize(),
                               communicator->getReachSize())
                     .str());
  CudaGroupKernel *kernel;
  {
    std::scoped_lock lock(kernelsMutex, controlMutex);
    kernel = &kernels.emplace_back(std::move(*made));
  }
  if (auto error = makeSets(*kernel)) {
    std::scoped_lock lock(kernelsMutex, controlMutex);
    kernels.pop_back();
    return std::move(error);
  }
  byRequest[key] = kernel;
  return kernel;
}

/// Channels of launches that are not captured, where there are none, and of one
/// capture. Collective.
llvm::Error CudaGroup::makeSets(CudaGroupKernel &kernel) {
  if (kernel.isShared())
    return makeSharedSets(kernel);
  size_t bytes = kernel.layout.bytes;
  bool spare =
      kernel.eager || (bytes <= kSpareBytes && pool->mayHave(2 * bytes));
  int count = (kernel.eager ? 0 : 1) + spare;
  llvm::Error error = pool->reserve(bytes * count);
  if (auto failed = mesh->agree("making channel memory",
                                asGroupError(std::move(error)), patience()))
    return failed;
  auto deviceComms = makeDeviceComms(kernel, count);
  if (!deviceComms)
    return deviceComms.takeError();
  llvm::Error filled = llvm::Error::success();
  llvm::SmallVector<ChannelSet *, 2> made;
  size_t before = kernel.sets.size();
  for (int i = 0; i < count && !filled; ++i)
    if (auto set = makeSet(kernel, std::move((*deviceComms)[i])))
      made.push_back(*set);
    else
      filled = set.takeError();
  // No peer may write to channels that are not filled.
  if (auto error = mesh->agree("filling channels",
                               asGroupError(std::move(filled)), patience())) {
    dropSets(kernel, before);
    return error;
  }
  for (ChannelSet *set : made)
    if (!kernel.eager)
      kernel.eager = set;
    else
      kernel.spares.push_back(set);
  return llvm::Error::success();
}

/// Gives back the sets from number `from` on, which some rank could not make:
/// the next pieces lie at the same place on all ranks again.
void CudaGroup::dropSets(CudaGroupKernel &kernel, size_t from) {
  std::scoped_lock lock(kernelsMutex, controlMutex);
  while (kernel.sets.size() > from) {
    if (!kernel.sets.back().shared)
      pool->give(kernel.sets.back().state, kernel.layout.bytes);
    records.give(kernel.sets.back().record);
    kernel.sets.pop_back();
  }
}

/// Waits for the launches that are not captured, which follow each other;
/// false: that cannot be done. A stream that is captured by now cannot be
/// asked.
bool CudaGroup::isEagerIdle() {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return !eagerLast.any ||
         (cu.StreamIsCapturing(eagerLast.stream, &status) == CUDA_SUCCESS &&
          status == CU_STREAM_CAPTURE_STATUS_NONE &&
          cu.EventRecord(order, eagerLast.stream) == CUDA_SUCCESS &&
          cu.EventSynchronize(order) == CUDA_SUCCESS);
}

/// Whether all that was launched on the kernel's own channels has ended, on all
/// ranks; false: that cannot be known.
llvm::Expected<bool> CudaGroup::awaitLaunches(const CudaGroupKernel &kernel) {
  bool isKnown = !kernel.concurrent && isEagerIdle();
  // A record that is written would be told of the next kernel that has it.
  for (const ChannelSet &set : kernel.sets)
    isKnown &= !__atomic_load_n(&set.record.host->valid, __ATOMIC_ACQUIRE);
  auto all = mesh->all("discarding kernel '" + kernel.name().str() + "'",
                       isKnown ? "yes" : "no", patience());
  if (!all)
    return all.takeError();
  return llvm::all_of(*all, [](llvm::StringRef said) { return said == "yes"; });
}

/// Graphs may be replayed for as long as the group lives: what they launch is
/// kept.
llvm::Error CudaGroup::discard(GroupKernel &which) {
  auto &kernel = static_cast<CudaGroupKernel &>(which);
  if (isStopped)
    return stopped();
  if (--kernel.users)
    return llvm::Error::success();
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  for (auto it = byRequest.begin(); it != byRequest.end(); ++it)
    if (it->second == &kernel) {
      byRequest.erase(it);
      break;
    }
  auto idle = awaitLaunches(kernel);
  if (!idle)
    return idle.takeError();
  if (!*idle) // What has failed is told once.
    return poll();
  std::list<CudaGroupKernel> gone;
  std::scoped_lock lock(kernelsMutex, controlMutex);
  std::deque<ChannelSet> captured;
  for (ChannelSet &set : kernel.sets)
    if (set.capture) {
      captured.push_back(std::move(set));
    } else {
      if (!set.shared)
        pool->give(set.state, kernel.layout.bytes);
      records.give(set.record);
    }
  kernel.sets = std::move(captured);
  kernel.eager = kernel.graph = nullptr;
  kernel.spares.clear();
  if (kernel.sets.empty())
    gone.splice(gone.begin(), kernels, llvm::find_if(kernels, [&](auto &one) {
                  return &one == &kernel;
                }));
  return llvm::Error::success();
}

/// The channels of a capture, its own: a graph is replayed concurrently with
/// launches that are not captured, and with other graphs.
llvm::Expected<ChannelSet *> CudaGroup::setFor(CudaGroupKernel &kernel,
                                               unsigned long long capture) {
  if (kernel.isShared())
    return sharedSetFor(kernel, capture);
  for (ChannelSet &set : llvm::reverse(kernel.sets))
    if (set.capture == capture)
      return &set;
  ChannelSet *set = nullptr;
  if (!kernel.spares.empty()) {
    set = kernel.spares.back();
    kernel.spares.pop_back();
  } else {
    RelaxedCaptureGuard outside(cu);
    llvm::Error error = llvm::Error::success();
    size_t before = kernel.sets.size();
    if (kernel.kernel->nccl()) {
      error = makeError(
          Kind::Limit,
          kernel.describe() +
              " calls NCCL's device library, and no device communicator is "
              "left for one more capture; none can be made while capturing. "
              "Prepare the kernel again between captures, or leave impl=nccl "
              "out");
    } else if (!pool->has(kernel.layout.bytes)) {
      error = makeError(
          Kind::Limit,
          llvm::formatv("no channel memory is left for one more capture of {0} "
                        "({1} KiB), and none can be made while capturing. Give "
                        "the group more (channelBytes, COMMSIR_CHANNEL_BYTES), "
                        "or prepare a kernel between captures",
                        kernel.describe(), kernel.layout.bytes >> 10)
              .str());
    } else if (auto more = makeSet(kernel)) {
      set = *more;
    } else {
      error = more.takeError();
    }
    if (auto failed =
            mesh->agree("channels of a capture of " + kernel.describe(),
                        asGroupError(std::move(error)), patience())) {
      dropSets(kernel, before);
      return std::move(failed);
    }
  }
  {
    std::lock_guard lock(kernelsMutex);
    set->capture = capture;
  }
  // Graphs are launched without a look at it.
  if (set->timeout != timeout())
    if (auto error = writeTimeouts())
      return std::move(error);
  return set;
}

//===----------------------------------------------------------------------===//
// Timeouts
//===----------------------------------------------------------------------===//

llvm::Error CudaGroup::setTimeout(double seconds) {
  if (seconds == timeout()) // Mostly: some callers ask before each call.
    return llvm::Error::success();
  llvm::cantFail(Group::setTimeout(seconds));
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  return asGroupError(writeTimeouts());
}

/// Writes timeouts into the channels of graphs at once, for their next
/// launches. Other channels get them before their next launch.
llvm::Error CudaGroup::writeTimeouts() {
  llvm::SmallVector<ChannelSet *> old;
  for (CudaGroupKernel &kernel : kernels)
    for (ChannelSet &set : kernel.sets)
      if (set.capture && timeoutOf(set) != timeout())
        old.push_back(&set);
  if (old.empty())
    return llvm::Error::success();
  std::scoped_lock lock(kernelsMutex, controlMutex);
  RelaxedCaptureGuard outside(cu);
  const char *what = "changing the timeout of graphs";
  uint64_t limit = toNanoseconds(timeout());
  std::memcpy(staging->host(), &limit, sizeof(limit));
  for (ChannelSet *set : old) {
    if (timeoutOf(*set) == timeout())
      continue; // Another kernel's, in the same memory.
    if (auto error = cu.check(
            cu.MemcpyHtoDAsync(set->state + abi::kTimeoutOffset,
                               staging->host(), sizeof(limit), control),
            what))
      return error;
    timeoutOf(*set) = timeout();
  }
  return waitForControl(what, patience());
}
