//===- CudaGroup.cpp - Starting and ending a group of GPUs ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroup.h"

#include "runtime/choose/ChannelMemory.h"
#include "runtime/cuda/RankDevices.h"
#include "runtime/group/cuda/CudaGroupState.h"
#include "runtime/support/ForeignText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <unistd.h>

using namespace commsir;
using namespace commsir::cuda;
using group::GroupCounts;
using group::GroupOptions;

/// Channel memory that a new group has, so that small kernels need no window of
/// their own, and can be prepared while a graph is captured.
static constexpr size_t kFirstChannels = size_t(8) << 20;
/// Value that the host writes into abort words; a kernel writes 1.
static constexpr uint64_t kAbortedByHost = 2;
/// Seconds that a rank waits for others that end the group, too.
static constexpr double kEndPatience = 5;

//===----------------------------------------------------------------------===//
// Starting
//===----------------------------------------------------------------------===//

/// Whether each rank's NCCL fits, and if not, what the first that does not
/// says.
llvm::Expected<bool> CudaGroup::agreeOnNccl(std::string &why) {
  std::string mine;
  if (settings.windows == "plain" && !settings.ncclComm) {
    mine = "as asked for";
  } else if (gpuIsShared) {
    mine = "ranks share a GPU, which NCCL refuses";
  } else if (auto nccl = Nccl::get()) {
    if (llvm::Error mismatch = checkDeviceLibrary(**nccl))
      mine = llvm::toString(std::move(mismatch));
  } else {
    mine = llvm::toString(nccl.takeError());
  }
  auto all = mesh->all("finding NCCL", mine, opening());
  if (!all)
    return all.takeError();
  for (auto [rank, text] : llvm::enumerate(*all))
    if (!text.empty()) {
      why = showForeign(text);
      return false;
    }
  return true;
}

namespace {

/// A rank's GPU and its host.
struct RankDevice {
  std::string uuid;
  int64_t pid = 0;

  std::string write() const { return std::to_string(pid) + ' ' + uuid; }
  /// Parses what a rank has written; none if it is invalid.
  static std::optional<RankDevice> read(llvm::StringRef text) {
    RankDevice place;
    auto [pid, uuid] = text.split(' ');
    if (pid.getAsInteger(10, place.pid) || place.pid < 1 ||
        uuid.size() != sizeof(CUuuid::bytes))
      return std::nullopt;
    place.uuid = uuid.str();
    return place;
  }
};

} // namespace

/// Ranks must have GPUs of their own, or be processes that may share one: in
/// one process, what loads code would wait for a kernel that waits for it.
llvm::Error CudaGroup::identifyPeers() {
  auto uuid = getUuid(device->getOrdinal());
  if (auto error = mesh->agree(
          "naming GPUs",
          asGroupError(uuid ? llvm::Error::success() : uuid.takeError()),
          opening()))
    return error;
  auto all =
      mesh->all("naming GPUs", RankDevice{*uuid, getpid()}.write(), opening());
  if (!all)
    return all.takeError();
  std::vector<RankDevice> places;
  for (llvm::StringRef text : *all) {
    auto place = RankDevice::read(text);
    if (!place)
      return usage(llvm::formatv("rank {0} has sent what does not name a GPU: "
                                 "do all ranks load one version of CommsIR?",
                                 places.size())
                       .str());
    places.push_back(std::move(*place));
  }
  for (size_t a = 0; a < places.size(); ++a)
    for (size_t b = a + 1; b < places.size(); ++b) {
      if (places[a].uuid != places[b].uuid)
        continue;
      gpuIsShared = true;
      bool processes = places[a].pid != places[b].pid;
      if (!processes || !mayShareGpus())
        return usage(
            llvm::formatv("ranks {0} and {1} have the same GPU ({2}): {3}. "
                          "Give each rank a GPU of its own (by its local rank)",
                          a, b, llvm::toHex(places[a].uuid, /*LowerCase=*/true),
                          explainOneGpu(processes))
                .str());
    }
  return llvm::Error::success();
}

llvm::Error CudaGroup::makeCommunicator() {
  if (settings.ranks == 1 && !settings.ncclComm) {
    auto local = Communicator::createLocal({device.get()});
    if (!local)
      return local.takeError();
    communicator = std::move(local->front());
    windowsNote = "plain device memory (one rank)";
    return llvm::Error::success();
  }
  std::string why;
  auto useNccl = agreeOnNccl(why);
  if (!useNccl)
    return useNccl.takeError();
  if (!*useNccl && (settings.windows == "nccl" || settings.ncclComm))
    return usage("NCCL's windows were asked for: " + why);
  if (!*useNccl) {
    windowsNote = "CUDA's memory, shared between processes (" + why + ")";
    auto made = Communicator::createShared(*device, *mesh, opening());
    if (!made)
      return made.takeError();
    communicator = std::move(*made);
    return llvm::Error::success();
  }
  const Nccl &nccl = **Nccl::get();
  auto agreement = [this](llvm::StringRef what, llvm::Error mine) {
    return mesh->agree(what, asGroupError(std::move(mine)), opening());
  };
  windowsNote =
      llvm::formatv("NCCL {0}.{1}.{2} ({3})", nccl.version / 10000,
                    nccl.version / 100 % 100, nccl.version % 100, nccl.path)
          .str();
  if (settings.ncclComm) {
    auto made = Communicator::adopt(
        *device, static_cast<ncclComm_t>(settings.ncclComm), agreement);
    if (!made)
      return made.takeError();
    communicator = std::move(*made);
    if (communicator->getRank() == settings.rank &&
        communicator->getRanks() == settings.ranks)
      return llvm::Error::success();
    return usage(llvm::formatv("the communicator is rank {0} of {1}, the group "
                               "rank {2} of {3}",
                               communicator->getRank(),
                               communicator->getRanks(), settings.rank,
                               settings.ranks)
                     .str());
  }
  ncclUniqueId id{};
  llvm::Error error = llvm::Error::success();
  if (settings.rank == 0)
    error = nccl.check(nccl.GetUniqueId(&id), "ncclGetUniqueId");
  if (auto failed = mesh->agree("starting NCCL", std::move(error), opening()))
    return failed;
  auto ids =
      mesh->all("starting NCCL",
                llvm::StringRef(id.internal, sizeof(id.internal)), opening());
  if (!ids)
    return ids.takeError();
  if (ids->front().size() != sizeof(id.internal))
    return usage("rank 0 has sent an invalid NCCL unique id: do "
                 "all ranks load one version of NCCL?");
  std::memcpy(id.internal, ids->front().data(), sizeof(id.internal));
  auto made = Communicator::create(*device, id, int(settings.ranks),
                                   int(settings.rank), agreement);
  if (!made)
    return made.takeError();
  communicator = std::move(*made);
  return llvm::Error::success();
}

/// Bytes of channel memory, CTAs of collectives that run concurrently with
/// others, and multiprocessors: the least that any rank has, because all choose
/// by it.
llvm::Error CudaGroup::agreeOnLimits() {
  limits = {settings.channelBytes,
            settings.ctas < 0 ? group::kSharedCtas : settings.ctas,
            device->getMultiprocessors()};
  llvm::Error wrong = llvm::Error::success();
  auto ctas = tune::getCtaLimit();
  if (!ctas)
    wrong = usage(llvm::toString(ctas.takeError()));
  else if (*ctas)
    limits.ctas = **ctas;
  if (!limits.memory && !wrong) {
    auto read = tune::getChannelLimit();
    if (read)
      limits.memory = *read;
    else
      wrong = usage(llvm::toString(read.takeError()));
  }
  if (auto error = mesh->agree("reading limits", std::move(wrong), opening()))
    return error;
  auto all = mesh->all("comparing limits",
                       llvm::formatv("{0} {1} {2}", limits.memory, limits.ctas,
                                     limits.multiprocessors)
                           .str(),
                       opening());
  if (!all)
    return all.takeError();
  for (auto [rank, text] : llvm::enumerate(*all)) {
    auto [memoryText, rest] = llvm::StringRef(text).split(' ');
    auto [ctasText, multiprocessorsText] = rest.split(' ');
    uint64_t memory = 0;
    int64_t most = 0, multiprocessors = 0;
    if (memoryText.getAsInteger(10, memory) ||
        ctasText.getAsInteger(10, most) || most < 0 ||
        multiprocessorsText.getAsInteger(10, multiprocessors) ||
        multiprocessors < 1)
      return usage("rank " + std::to_string(rank) +
                   " has sent invalid limits: '" +
                   showForeign(text.substr(0, 100)) + "'");
    limits.memory = std::min(limits.memory, memory);
    if (most)
      limits.ctas = limits.ctas ? std::min(limits.ctas, most) : most;
    limits.multiprocessors = std::min(limits.multiprocessors, multiprocessors);
  }
  return llvm::Error::success();
}

llvm::Error CudaGroup::start() {
  CurrentContext current(cu, device->context());
  if (auto error = mesh->agree("opening GPUs", identifyPeers(), opening()))
    return error;
  // Agreed at once: a rank that failed here must not be waited for in a window.
  llvm::Error made = makeCommunicator();
  if (!made)
    made = cu.check(cu.StreamCreate(&control, CU_STREAM_NON_BLOCKING),
                    "cuStreamCreate");
  for (CUevent *event : {&order, &captureOrder})
    if (!made)
      made = cu.check(cu.EventCreate(event, CU_EVENT_DISABLE_TIMING),
                      "cuEventCreate");
  for (auto [place, bytes] : {std::pair(&staging, kStagingBytes),
                              std::pair(&abortWord, sizeof(uint64_t))})
    if (!made) {
      auto memory = Memory::allocate(*device, bytes, Memory::Place::PinnedHost);
      if (memory)
        place->emplace(std::move(*memory));
      else
        made = memory.takeError();
    }
  if (auto error = mesh->agree("starting the group",
                               asGroupError(std::move(made)), opening()))
    return error;
  *static_cast<uint64_t *>(abortWord->host()) = kAbortedByHost;
  if (auto error = agreeOnLimits())
    return error;
  pool = std::make_unique<ChannelPool>(*communicator, limits.memory);
  llvm::Error reserved =
      pool->reserve(std::min<uint64_t>(kFirstChannels, limits.memory));
  return mesh->agree("making channel memory", asGroupError(std::move(reserved)),
                     opening());
}

llvm::Expected<std::unique_ptr<group::Group>>
commsir::group::createCudaGroup(const GroupOptions &options, Store &store) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    return usage(llvm::formatv("rank {0} of {1}: ranks count from 0",
                               options.rank, options.ranks)
                     .str());
  if (!(options.timeout > 0) || options.timeout > 1e6)
    return usage(llvm::formatv("a timeout of {0} s: it must be more than 0",
                               options.timeout)
                     .str());
  // The first pages of memory are nobody's: this is a number, not an address.
  if (auto address = reinterpret_cast<uintptr_t>(options.ncclComm);
      address && (address < 65536 || address % alignof(void *)))
    return usage(llvm::formatv("{0} is not the address of an NCCL "
                               "communicator: pass an ncclComm_t as NCCL gave "
                               "it, or null for one of the group's own",
                               address)
                     .str());
  if (options.windows != "" && options.windows != "nccl" &&
      options.windows != "plain")
    return usage("windows '" + options.windows +
                 "': write nccl or plain, or leave them open");
  // Peers are told what is wrong here, instead of waiting for this rank.
  std::unique_ptr<Device> device;
  llvm::Error opened = llvm::Error::success();
  if (auto found = Device::open(options.device)) {
    device = std::make_unique<Device>(std::move(*found));
    freeDeferred(*device);
  } else {
    opened = asGroupError(found.takeError());
  }
  auto mesh = Mesh::connect(store, options.name, int(options.rank),
                            int(options.ranks), options.timeout);
  if (!mesh) {
    if (!opened)
      return mesh.takeError();
    llvm::consumeError(mesh.takeError());
    return std::move(opened);
  }
  if (auto error = (*mesh)->agree("opening GPUs", std::move(opened),
                                  std::max(options.timeout, kOpeningSeconds)))
    return std::move(error);
  auto group =
      std::make_unique<CudaGroup>(options, std::move(device), std::move(*mesh));
  if (auto error = group->start())
    return asGroupError(std::move(error));
  return group;
}

//===----------------------------------------------------------------------===//
// Ending
//===----------------------------------------------------------------------===//

/// Whether what is here can be given back: nothing is that a kernel may still
/// use, here or at a peer that has not ended.
void CudaGroup::noteIdle(llvm::function_ref<bool()> wait) {
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  for (int64_t peer = 0; peer < settings.ranks && !isStopped; ++peer)
    if (!mesh->absenceReason(int(peer)).empty())
      leaving = true;
  isIdle = !isStopped && wait();
}

/// NCCL's communicator is not ended, which waits for all ranks, unless all are
/// at it: one may give up. Twice: who gives up waiting for another has told
/// that one that it is here, but does not come again.
void CudaGroup::rendezvousAtEnd(double seconds) {
  if (!communicator || !communicator->endsTogether())
    return;
  for (int meeting = 0; meeting < 2 && *isIdle && !leaving; ++meeting) {
    auto met = mesh->all(kEnding, "", seconds);
    leaving = !met;
    if (!met)
      llvm::consumeError(met.takeError());
  }
}

bool CudaGroup::isKept() const {
  return getpid() != process || hasCaptured ||
         llvm::any_of(kernels, [](const CudaGroupKernel &kernel) {
           return llvm::any_of(
               kernel.sets, [](const ChannelSet &set) { return set.capture; });
         });
}

void CudaGroup::awaitIdle() {
  deferFreesInThisThread();
  // Whose communicator it is may end it meanwhile, or be in a call of NCCL's:
  // what hangs on it is lost to the process.
  if (settings.ncclComm)
    leaving = true;
  // For the rest of the group's end, too.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cu.ThreadExchangeStreamCaptureMode(&mode);
  noteIdle([&] {
    llvm::Error error = awaitWork(*device);
    bool isDone = !error;
    llvm::consumeError(std::move(error));
    return isDone;
  });
}

CudaGroup::~CudaGroup() {
  if (!isIdle) {
    noteIdle([&] { return cu.CtxSynchronize() == CUDA_SUCCESS; });
    rendezvousAtEnd(kEndPatience);
    freeDeferred(*device);
  }
  CurrentContext current(cu, device->context());
  RelaxedCaptureGuard outside(cu);
  // A peer that has ended its own group is no failure, but NCCL would wait.
  if (!*isIdle || leaving) {
    if (pool)
      pool->abandon();
    for (const auto &range : windows.list()) {
      if (range->window)
        range->window->abandon();
      if (range->shared)
        range->shared->abandon();
    }
    for (CudaGroupKernel &kernel : kernels)
      for (ChannelSet &set : kernel.sets)
        if (set.deviceComm)
          set.deviceComm->abandon();
    if (communicator)
      communicator->abandon();
  }
  for (CUevent event : {order, captureOrder})
    if (event)
      cu.EventDestroy(event);
  for (SharedChannels &memory : shared)
    if (memory.order)
      cu.EventDestroy(memory.order);
  if (control)
    cu.StreamDestroy(control);
  kernels.clear();
  pool.reset();
  windows.clear();
  communicator.reset();
}

llvm::Expected<std::unique_ptr<group::Group>>
CudaGroup::shrink(llvm::ArrayRef<int64_t> survivors, group::Store &store) {
  const auto *place = llvm::find(survivors, settings.rank);
  bool ascends = llvm::is_sorted(survivors) &&
                 llvm::adjacent_find(survivors) == survivors.end();
  if (place == survivors.end() || !ascends || survivors.front() < 0 ||
      survivors.back() >= settings.ranks)
    return usage("survivors must be ranks of the group, ascending, this one "
                 "among them");
  abort("it was shrunk");
  GroupOptions next = settings;
  next.timeout = timeout();
  next.rank = place - survivors.begin();
  next.ranks = int64_t(survivors.size());
  next.ncclComm = nullptr;
  // Its own place in the store: every group of survivors is another.
  for (auto [i, rank] : llvm::enumerate(survivors))
    next.name += (i ? "." : "-") + std::to_string(rank);
  return createCudaGroup(next, store);
}

GroupCounts CudaGroup::counts() const {
  GroupCounts result = done;
  result.channelBytes = pool->size();
  return result;
}

//===----------------------------------------------------------------------===//
// Particulars
//===----------------------------------------------------------------------===//

llvm::StringRef commsir::cuda::getWindowsNote(const group::Group &group) {
  return static_cast<const CudaGroup &>(group).getWindowsNote();
}

const Device &commsir::cuda::getDevice(const group::Group &group) {
  return static_cast<const CudaGroup &>(group).getDevice();
}

const jit::CudaKernel &
commsir::cuda::getCode(const group::GroupKernel &kernel) {
  return *static_cast<const CudaGroupKernel &>(kernel).kernel;
}

namespace commsir::group {
const GroupKind &getCudaGroup() {
  static const GroupKind kind = {/*onGpu=*/true, createCudaGroup};
  return kind;
}
} // namespace commsir::group
