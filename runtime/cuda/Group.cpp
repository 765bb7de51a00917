//===- Group.cpp - One GPU of a group of processes ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Group.h"

#include "dialect/Comms.h"
#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "runtime/cuda/Channels.h"
#include "runtime/cuda/Mesh.h"
#include "runtime/cuda/OneSided.h"
#include "runtime/group/Error.h"
#include "runtime/tune/ChannelMemory.h"
#include "runtime/tune/Kernel.h"
#include "runtime/tune/Recipe.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <thread>

using namespace commsir;
using namespace commsir::cuda;
using group::Argument;
using group::CellSignal;
using group::CellWait;
using group::GroupCounts;
using group::GroupError;
using group::GroupKernel;
using group::GroupOptions;
using group::KernelRequest;
using group::makeError;
using group::SignalKind;
using group::WaitKind;
namespace abi = mlir::comms::nvvm;
using Kind = GroupError::Kind;

namespace {

/// Channel memory that a new group has, so that small kernels need no window of
/// their own, and can be prepared while a graph is captured.
constexpr size_t kFirstChannels = size_t(32) << 20;
/// Kernels with channels up to this size get a set for a capture beforehand.
constexpr size_t kSpareBytes = size_t(64) << 20;
/// CTAs of NCCL's kernels, which each may take a whole multiprocessor.
constexpr int kNcclBlocks = 32;
/// What the host writes into abort words; a kernel writes 1.
constexpr uint64_t kAbortedByHost = 2;
/// Seconds that ranks wait at least for peers that compile or start NCCL.
constexpr double kPatience = 60;
/// Seconds that reading the states of peers may take.
constexpr double kReadSeconds = 2;
/// Bytes of pinned memory for such reads.
constexpr size_t kStagingBytes = size_t(256) << 10;

llvm::Error usage(const llvm::Twine &text) {
  return makeError(Kind::Usage, text);
}

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// An error of the driver or of NCCL as one of the group.
llvm::Error asGroupError(llvm::Error error) {
  if (!error || error.isA<GroupError>())
    return error;
  return usage(llvm::toString(std::move(error)));
}

/// Makes the context current for calls of a thread that may have another, or
/// none.
class Current {
public:
  Current(const Driver &cu, CUcontext wanted) : cu(cu) {
    CUcontext now = nullptr;
    pushed = cu.CtxGetCurrent(&now) != CUDA_SUCCESS || now != wanted;
    if (pushed)
      cu.CtxPushCurrent(wanted);
  }
  ~Current() {
    CUcontext popped;
    if (pushed)
      cu.CtxPopCurrent(&popped);
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

private:
  const Driver &cu;
  bool pushed;
};

/// Lets this thread allocate and copy while some stream is being captured:
/// what it does is no part of the graph.
class OutsideCapture {
public:
  explicit OutsideCapture(const Driver &cu) : cu(cu) {
    cu.ThreadExchangeStreamCaptureMode(&mode);
  }
  ~OutsideCapture() { cu.ThreadExchangeStreamCaptureMode(&mode); }
  OutsideCapture(const OutsideCapture &) = delete;
  OutsideCapture &operator=(const OutsideCapture &) = delete;

private:
  const Driver &cu;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

class CudaGroupKernel final : public GroupKernel {
public:
  llvm::StringRef name() const override { return kernel->name(); }
  llvm::ArrayRef<jit::ArgInfo> args() const override { return visible; }
  llvm::ArrayRef<jit::Choice> choices() const override {
    return kernel->choices();
  }

  /// "all_reduce 'k' by one_shot/lamport, 8 blocks of 1 x 512 threads".
  std::string describe() const {
    jit::LaunchShape shape = kernel->shape();
    std::string text = "kernel '" + name().str() + "' (";
    for (const jit::Choice &choice : choices())
      text +=
          choice.op + " by " + choice.algorithm + "/" + choice.protocol + ", ";
    return text + llvm::formatv("{0} blocks of {1} x {2} threads)",
                                shape.blocks, shape.cluster, shape.threads)
                      .str();
  }

  std::unique_ptr<jit::CudaKernel> kernel;
  std::unique_ptr<KernelCode> code;
  ChannelLayout layout;
  uint64_t digest = 0;
  bool concurrent = false;
  /// How often it was prepared and not discarded.
  unsigned users = 1;
  /// Arguments of `launch`, and their numbers in the kernel.
  std::vector<jit::ArgInfo> visible;
  std::vector<unsigned> numbers;
  /// Of launches that are not captured.
  ChannelSet *eager = nullptr;
  /// All, `eager` among them.
  std::deque<ChannelSet> sets;
  std::vector<ChannelSet *> spares;
};

/// What all ranks must agree on, the machine code left out: source, arguments,
/// algorithm, protocol and grid.
uint64_t digestOf(const KernelRequest &request, const jit::CudaKernel &kernel) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << request.source << '\0' << kernel.name() << '\0' << kernel.ranks();
  for (const jit::ArgInfo &argument : kernel.args()) {
    out << '\0' << argument.name << ' ' << int(argument.kind) << ' '
        << argument.elementType << ' ' << argument.hidden << argument.poisoned;
    for (int64_t size : argument.shape)
      out << ' ' << size;
  }
  for (const jit::Choice &choice : kernel.choices())
    out << '\0' << choice.op << ' ' << choice.algorithm << ' '
        << choice.protocol << ' ' << choice.tileSize << ' ' << choice.tiles;
  jit::LaunchShape shape = kernel.shape();
  out << '\0' << shape.blocks << ' ' << shape.threads << ' ' << shape.cluster
      << ' ' << request.impl;
  return llvm::xxh3_64bits(text) | 1; // 0 says that it is not known.
}

/// Identity of a request within a group.
std::string keyOf(const KernelRequest &request) {
  return llvm::formatv("{0}\n{1}\n{2}\n{3} {4} {5} {6} {7} {8}\n{9}",
                       request.name, request.algorithm, request.protocol,
                       request.blocks, request.threads, request.cluster,
                       request.check, request.concurrent, request.impl,
                       request.source)
      .str();
}

/// A module's source, parsed; what is wrong with it, and with what is made of
/// it, is kept.
class Source {
public:
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  parse(const std::string &text) {
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    mlir::comms::registerLLVMIRTranslationInterfaces(registry);
    context = std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
    context->printOpOnDiagnostic(false);
    handler = std::make_unique<mlir::ScopedDiagnosticHandler>(
        context.get(), [&](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            llvm::raw_string_ostream(said)
                << "\n  " << diagnostic.getLocation() << ": " << diagnostic;
          return mlir::success();
        });
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    if (!module)
      return llvm::createStringError("the kernel could not be parsed");
    return module;
  }
  const std::string &errors() const { return said; }

private:
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
  std::string said;
};

/// Fills in what the request leaves open, from tables or the cost model.
void chooseOpen(mlir::ModuleOp module, const KernelRequest &request,
                const Device &device, uint64_t memory,
                jit::CudaOptions &options) {
  mlir::comms::KernelOp kernel;
  for (auto candidate : module.getOps<mlir::comms::KernelOp>())
    if (request.name.empty() || candidate.getSymName() == request.name)
      kernel = candidate;
  if (!kernel)
    return; // The compiler says so.
  tune::Question wish;
  wish.ranks = options.ranks;
  wish.chip = options.chip;
  char name[128] = "";
  if (device.driver().DeviceGetName(name, sizeof(name), device.handle()) ==
      CUDA_SUCCESS)
    wish.device = name;
  wish.multiprocessors = device.getMultiprocessors();
  wish.memory = memory;
  wish.algorithm = request.algorithm;
  wish.protocol = request.protocol;
  wish.blocks = request.blocks;
  wish.threads = request.threads;
  // NCCL's barriers are of one CTA.
  wish.cluster = request.impl.empty() ? request.cluster : 1;
  tune::KernelAnswer answer = tune::chooseForKernel(kernel, wish);
  if (!options.blocks && !kernel.getBlocks())
    options.blocks = answer.blocks;
  if (!options.threads)
    options.threads = answer.threads;
  if (!options.cluster)
    options.cluster = answer.cluster;
}

/// A request's source in machine code, with no more than `memory` bytes of
/// channels where there is a choice.
llvm::Expected<std::unique_ptr<jit::CudaKernel>>
compileRequest(const KernelRequest &request, int64_t ranks,
               const Device &device, uint64_t memory) {
  jit::CudaOptions options;
  options.ranks = ranks;
  options.blocks = request.blocks;
  options.threads = request.threads;
  options.cluster = request.cluster;
  options.impl = request.impl;
  options.nccl = findNccl;
  options.chip = device.getChip();
  options.algorithm = request.algorithm;
  options.protocol = request.protocol;
  options.check = request.check;
  options.checkEvents = request.checkEvents;

  Source source;
  bool isSettled = !request.algorithm.empty() && !request.protocol.empty() &&
                   request.blocks && request.threads && request.cluster;
  auto compile = [&]() -> llvm::Expected<std::unique_ptr<jit::CudaKernel>> {
    auto parse = [&] { return source.parse(request.source); };
    if (isSettled) // What is in the cache needs no parser.
      return jit::compileCudaSource(request.source, "", request.name, options,
                                    parse);
    auto module = parse();
    if (!module)
      return module.takeError();
    chooseOpen(**module, request, device, memory, options);
    return jit::compileCuda(std::move(*module), request.name, options);
  };
  auto kernel = compile();
  // The choice did not know the registers of this kernel.
  if (kernel && !request.blocks && options.blocks) {
    tune::Question machine;
    machine.multiprocessors = device.getMultiprocessors();
    jit::LaunchShape shape = (*kernel)->shape();
    int64_t fitting = tune::countFitting(machine, (*kernel)->registers(),
                                         shape.threads, shape.cluster);
    if (shape.blocks > fitting && fitting > 0) {
      options.blocks = fitting;
      kernel = compile();
    }
  }
  if (kernel)
    return kernel;
  return usage(llvm::toString(kernel.takeError()) + source.errors());
}

//===----------------------------------------------------------------------===//
// The group
//===----------------------------------------------------------------------===//

class CudaGroup final : public group::Group {
public:
  CudaGroup(GroupOptions options, std::unique_ptr<Device> device,
            std::unique_ptr<Mesh> mesh)
      : Group(std::move(options)), device(std::move(device)),
        cu(this->device->driver()), mesh(std::move(mesh)) {}
  ~CudaGroup() override;
  llvm::Error start();

  llvm::Expected<void *> allocate(size_t bytes) override;
  llvm::Error release(void *base) override;
  llvm::Error adopt(void *own, size_t bytes,
                    llvm::ArrayRef<uint64_t> parts) override;
  void forget(void *own) override;
  bool isSymmetric(const void *data, size_t bytes) const override;
  void *peerAddress(const void *data, int64_t peer) const override;
  llvm::Expected<GroupKernel *> prepare(const KernelRequest &request) override;
  llvm::Error discard(GroupKernel &which) override;
  llvm::Expected<void *> allocateOwn(size_t bytes) override;
  void releaseOwn(void *memory) override;
  llvm::Error copy(void *to, size_t toPitch, const void *from, size_t fromPitch,
                   size_t bytes, int64_t rows, void *stream) override;
  uint64_t captureOf(void *stream) const override;
  size_t alignment() const override { return abi::kAlignment; }
  llvm::Error finish(void *stream) override;
  llvm::Error checkPeer(int64_t peer) override;
  llvm::Error move(void *to, const void *from, size_t bytes,
                   void *stream) override;
  llvm::Error signalCell(const CellSignal &signal, void *stream) override;
  llvm::Error waitCell(const CellWait &wait, void *stream) override;
  llvm::Expected<int64_t> readCell(const int64_t *own) override;
  llvm::Error launch(GroupKernel &kernel, llvm::ArrayRef<Argument> arguments,
                     void *stream) override;
  llvm::Error poll() override;
  void abort(llvm::StringRef reason) override;
  llvm::Expected<std::unique_ptr<Group>>
  shrink(llvm::ArrayRef<int64_t> survivors, group::Store &store) override;
  GroupCounts counts() const override;
  llvm::StringRef getWindowsNote() const { return windowsNote; }
  const Device &getDevice() const { return *device; }

private:
  /// Memory that ranks reach at each other.
  struct Range {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    std::vector<CUdeviceptr> parts;
    /// Null: others made it.
    std::unique_ptr<Window> window;
  };
  /// The last launch of a chain: launches of a group follow each other.
  struct Last {
    CUstream stream = nullptr;
    bool any = false;
  };
  /// What a peer's state says of one set of channels.
  struct View {
    const CudaGroupKernel *kernel;
    const ChannelSet *set;
    abi::State state;
    /// Of all blocks the least, and the number of busy blocks.
    uint32_t epoch = 0, busy = 0;
  };

  /// Seconds that ranks wait for each other before they launch: a peer may be
  /// compiling. One that is gone is seen at once.
  double patience() const { return std::max(settings.timeout, kPatience); }
  llvm::Error makeCommunicator();
  llvm::Expected<bool> agreeOnNccl(std::string &why);
  llvm::Expected<uint64_t> agreeOnLimit();
  llvm::Error identifyPeers();
  const Range *find(CUdeviceptr address, size_t bytes) const;
  llvm::Error checkRange(const void *own, size_t bytes) const;

  llvm::Error prepareOwn(const KernelRequest &request, CudaGroupKernel &made);
  double shareOf(const CudaGroupKernel &kernel) const;
  llvm::Error checkConcurrent(const CudaGroupKernel &made) const;
  llvm::Error comparePeers(const CudaGroupKernel &made);
  llvm::Expected<ChannelSet *>
  makeSet(CudaGroupKernel &kernel, std::unique_ptr<DeviceComm> deviceComm = {});
  llvm::Error makeSets(CudaGroupKernel &kernel);
  llvm::Expected<std::vector<std::unique_ptr<DeviceComm>>>
  makeDeviceComms(const CudaGroupKernel &kernel, int count);
  llvm::Expected<bool> awaitLaunches(const CudaGroupKernel &kernel);
  llvm::Error fillSet(const CudaGroupKernel &kernel, const ChannelSet &set,
                      const ChannelPool::Piece &piece);
  llvm::Expected<ChannelSet *> setFor(CudaGroupKernel &kernel,
                                      unsigned long long capture);
  llvm::Error bind(const CudaGroupKernel &kernel, ChannelSet &set,
                   llvm::ArrayRef<Argument> arguments);
  llvm::Error bindOne(const CudaGroupKernel &kernel, ChannelSet &set, size_t i,
                      const Argument &argument);
  llvm::Error follow(CUstream stream, unsigned long long capture);

  llvm::Error explain(const CudaGroupKernel &kernel, const ChannelSet &set,
                      const abi::ErrorRecord &record);
  llvm::Expected<std::vector<View>> readPeer(int64_t peer);
  std::string describePeer(int64_t peer, const CudaGroupKernel &kernel,
                           const ChannelSet &set, uint32_t launch,
                           bool &differs);
  uint32_t launchNumber(const CudaGroupKernel &kernel, const ChannelSet &set,
                        uint32_t block);
  llvm::Error waitForControl(const llvm::Twine &what, double seconds);
  llvm::Error waitOnHost(const CellWait &wait);
  void stop(llvm::StringRef reason, Kind kind);
  llvm::Error stopped() const;

  std::unique_ptr<Device> device;
  const Driver &cu;
  std::unique_ptr<Mesh> mesh;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ChannelPool> pool;
  Records records;
  std::string windowsNote;
  /// For what is not the caller's: copies, fills, abort words.
  CUstream control = nullptr;
  /// Serialises the use of `control` and `staging`, which `abort` shares.
  std::mutex controlMutex;
  std::optional<Memory> staging, abortWord;
  CUevent order = nullptr, captureOrder = nullptr;
  StreamSignals signals{*device};

  std::map<CUdeviceptr, Range> ranges;
  mutable const Range *lastFound = nullptr;
  uint64_t windowsVersion = 1;

  llvm::StringMap<CudaGroupKernel *> byRequest;
  /// Changed under `controlMutex`.
  std::list<CudaGroupKernel> kernels;
  Last eagerLast, captureLast;
  unsigned long long captureId = 0;

  GroupCounts done;
  std::atomic<bool> isStopped{false};
  mutable std::mutex stopMutex;
  Kind stopKind = Kind::Aborted;
  std::string stopReason;
  std::vector<cpu::Waiting> stopWaiting;
  bool leaving = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Starting and ending
//===----------------------------------------------------------------------===//

/// Whether each rank's NCCL fits, and if not, what the first that does not
/// says.
llvm::Expected<bool> CudaGroup::agreeOnNccl(std::string &why) {
  std::string mine;
  if (settings.windows == "plain" && !settings.ncclComm) {
    mine = "as asked for";
  } else if (auto nccl = Nccl::get()) {
    if (llvm::Error mismatch = checkDeviceLibrary(**nccl))
      mine = llvm::toString(std::move(mismatch));
  } else {
    mine = llvm::toString(nccl.takeError());
  }
  auto all = mesh->all("finding NCCL", mine, patience());
  if (!all)
    return all.takeError();
  for (auto [rank, text] : llvm::enumerate(*all))
    if (!text.empty()) {
      why = text;
      return false;
    }
  return true;
}

/// Ranks must have GPUs of their own: a GPU that is two ranks would wait for
/// itself.
llvm::Error CudaGroup::identifyPeers() {
  CUuuid uuid{};
  if (auto error = cu.check(cu.DeviceGetUuid(&uuid, device->handle()),
                            "cuDeviceGetUuid"))
    return error;
  auto all =
      mesh->all("naming GPUs", llvm::StringRef(uuid.bytes, sizeof(uuid.bytes)),
                patience());
  if (!all)
    return all.takeError();
  for (size_t a = 0; a < all->size(); ++a)
    for (size_t b = a + 1; b < all->size(); ++b)
      if ((*all)[a] == (*all)[b])
        return usage(
            llvm::formatv("ranks {0} and {1} have the same GPU ({2}): a GPU "
                          "cannot be two ranks, because their kernels wait for "
                          "each other. Give each rank a GPU of its own (by "
                          "its local rank)",
                          a, b, llvm::toHex((*all)[a], /*LowerCase=*/true))
                .str());
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
    auto made = Communicator::createShared(*device, *mesh, patience());
    if (!made)
      return made.takeError();
    communicator = std::move(*made);
    return llvm::Error::success();
  }
  const Nccl &nccl = **Nccl::get();
  windowsNote =
      llvm::formatv("NCCL {0}.{1}.{2} ({3})", nccl.version / 10000,
                    nccl.version / 100 % 100, nccl.version % 100, nccl.path)
          .str();
  if (settings.ncclComm) {
    auto made = Communicator::adopt(*device,
                                    static_cast<ncclComm_t>(settings.ncclComm));
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
  if (auto failed = mesh->agree("starting NCCL", std::move(error), patience()))
    return failed;
  auto ids =
      mesh->all("starting NCCL",
                llvm::StringRef(id.internal, sizeof(id.internal)), patience());
  if (!ids)
    return ids.takeError();
  std::memcpy(id.internal, ids->front().data(), sizeof(id.internal));
  auto made = Communicator::create(*device, id, int(settings.ranks),
                                   int(settings.rank));
  if (!made)
    return made.takeError();
  communicator = std::move(*made);
  return llvm::Error::success();
}

/// Bytes of channel memory: the least that any rank allows, because all choose
/// by it.
llvm::Expected<uint64_t> CudaGroup::agreeOnLimit() {
  uint64_t limit = settings.channelBytes;
  llvm::Error wrong = llvm::Error::success();
  if (!limit) {
    auto read = tune::getChannelLimit();
    if (read)
      limit = *read;
    else
      wrong = usage(llvm::toString(read.takeError()));
  }
  if (auto error = mesh->agree("reading the limit on channel memory",
                               std::move(wrong), patience()))
    return std::move(error);
  auto all = mesh->all("comparing the limits on channel memory",
                       std::to_string(limit), patience());
  if (!all)
    return all.takeError();
  for (llvm::StringRef text : *all)
    if (uint64_t other; !text.getAsInteger(10, other))
      limit = std::min(limit, other);
  return limit;
}

llvm::Error CudaGroup::start() {
  Current current(cu, device->context());
  if (auto error = mesh->agree("opening GPUs", identifyPeers(), patience()))
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
                               asGroupError(std::move(made)), patience()))
    return error;
  *static_cast<uint64_t *>(abortWord->host()) = kAbortedByHost;
  auto limit = agreeOnLimit();
  if (!limit)
    return limit.takeError();
  pool = std::make_unique<ChannelPool>(*communicator, *limit);
  llvm::Error reserved =
      pool->reserve(std::min<uint64_t>(kFirstChannels, *limit));
  return mesh->agree("making channel memory", asGroupError(std::move(reserved)),
                     patience());
}

CudaGroup::~CudaGroup() {
  Current current(cu, device->context());
  for (int64_t peer = 0; peer < settings.ranks && !isStopped; ++peer)
    if (!mesh->whyAbsent(int(peer)).empty())
      leaving = true;
  // Nothing is given back that a kernel may still use, here or at a peer that
  // has not ended.
  bool idle = !isStopped && cu.CtxSynchronize() == CUDA_SUCCESS;
  // A peer that has ended its own group is no failure, but NCCL would wait.
  if (!idle || leaving) {
    if (pool)
      pool->abandon();
    for (auto &[base, range] : ranges)
      if (range.window)
        range.window->abandon();
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
  if (control)
    cu.StreamDestroy(control);
  kernels.clear();
  pool.reset();
  ranges.clear();
  communicator.reset();
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
  if (options.windows != "" && options.windows != "nccl" &&
      options.windows != "plain")
    return usage("windows '" + options.windows +
                 "': write nccl or plain, or leave them open");
  // Peers are told what is wrong here, instead of waiting for this rank.
  std::unique_ptr<Device> device;
  llvm::Error opened = llvm::Error::success();
  if (auto found = Device::open(options.device))
    device = std::make_unique<Device>(std::move(*found));
  else
    opened = asGroupError(found.takeError());
  double patience = std::max(options.timeout, kPatience);
  auto mesh = Mesh::connect(store, options.name, int(options.rank),
                            int(options.ranks), patience);
  if (!mesh) {
    if (!opened)
      return mesh.takeError();
    llvm::consumeError(mesh.takeError());
    return std::move(opened);
  }
  if (auto error = (*mesh)->agree("opening GPUs", std::move(opened), patience))
    return std::move(error);
  auto group =
      std::make_unique<CudaGroup>(options, std::move(device), std::move(*mesh));
  if (auto error = group->start())
    return asGroupError(std::move(error));
  return group;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

const CudaGroup::Range *CudaGroup::find(CUdeviceptr address,
                                        size_t bytes) const {
  auto holds = [&](const Range &range) {
    return address >= range.base && address - range.base <= range.bytes &&
           bytes <= range.bytes - (address - range.base);
  };
  if (lastFound && holds(*lastFound))
    return lastFound;
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin() || !holds(std::prev(after)->second))
    return nullptr;
  return lastFound = &std::prev(after)->second;
}

/// Whether a new range lies beside the others.
llvm::Error CudaGroup::checkRange(const void *own, size_t bytes) const {
  auto base = reinterpret_cast<CUdeviceptr>(own);
  auto after = ranges.lower_bound(base);
  bool clash = after != ranges.end() && after->first < base + bytes;
  if (after != ranges.begin()) {
    const Range &before = std::prev(after)->second;
    clash |= before.base + before.bytes > base;
  }
  if (clash)
    return usage(llvm::formatv("memory at {0:x} is a window of the group "
                               "already",
                               base)
                     .str());
  return llvm::Error::success();
}

llvm::Expected<void *> CudaGroup::allocate(size_t bytes) {
  if (isStopped)
    return stopped();
  Current current(cu, device->context());
  std::string what = llvm::formatv("allocating {0} bytes", bytes);
  if (auto error = mesh->agree(what, llvm::Error::success(), patience()))
    return std::move(error);
  bytes = std::max<size_t>(bytes, 1);
  auto window = communicator->allocate(bytes);
  llvm::Error filled = llvm::Error::success();
  if (!window)
    filled = window.takeError();
  else if (!(filled = cu.check(cu.MemsetD8((*window)->base(), 0, bytes),
                               "zeroing a window")))
    filled = cu.check(cu.CtxSynchronize(), "zeroing a window");
  // Peers may write to it from here on.
  if (auto error =
          mesh->agree(what, asGroupError(std::move(filled)), patience()))
    return std::move(error);
  Range range;
  range.base = (*window)->base();
  range.bytes = bytes;
  range.parts.assign((*window)->parts().begin(), (*window)->parts().end());
  range.window = std::move(*window);
  done.windowBytes += range.window->size();
  CUdeviceptr base = range.base;
  ranges[base] = std::move(range);
  ++windowsVersion;
  return reinterpret_cast<void *>(base);
}

llvm::Error CudaGroup::release(void *base) {
  auto found = ranges.find(reinterpret_cast<CUdeviceptr>(base));
  if (found == ranges.end() || !found->second.window)
    return usage("release of memory that the group did not allocate");
  Current current(cu, device->context());
  llvm::Error idle = llvm::Error::success();
  if (isStopped)
    idle = stopped();
  else
    idle = cu.check(cu.CtxSynchronize(), "waiting for kernels");
  bool failed = bool(idle);
  if (auto error = mesh->agree("releasing a window",
                               asGroupError(std::move(idle)), patience())) {
    found->second.window->abandon();
    if (!failed)
      llvm::consumeError(std::move(error));
    else
      return error;
  }
  done.windowBytes -= found->second.window->size();
  lastFound = nullptr;
  ++windowsVersion;
  ranges.erase(found);
  return llvm::Error::success();
}

llvm::Error CudaGroup::adopt(void *own, size_t bytes,
                             llvm::ArrayRef<uint64_t> parts) {
  if (int64_t(parts.size()) != settings.ranks)
    return usage(
        llvm::formatv("{0} parts for {1} ranks", parts.size(), settings.ranks)
            .str());
  if (!own || !bytes || reinterpret_cast<uint64_t>(own) % abi::kAlignment)
    return usage(llvm::formatv("memory at {0:x} cannot be a window: it must be "
                               "aligned to {1} bytes and not empty",
                               reinterpret_cast<uint64_t>(own), abi::kAlignment)
                     .str());
  if (auto error = checkRange(own, bytes))
    return error;
  Range range;
  range.base = reinterpret_cast<CUdeviceptr>(own);
  range.bytes = bytes;
  range.parts.assign(parts.begin(), parts.end());
  // Own accesses go by the own address, whatever the table calls it.
  range.parts[settings.rank] = range.base;
  ranges[range.base] = std::move(range);
  ++windowsVersion;
  return llvm::Error::success();
}

void CudaGroup::forget(void *own) {
  auto found = ranges.find(reinterpret_cast<CUdeviceptr>(own));
  if (found == ranges.end() || found->second.window)
    return;
  lastFound = nullptr;
  ++windowsVersion;
  ranges.erase(found);
}

bool CudaGroup::isSymmetric(const void *data, size_t bytes) const {
  return find(reinterpret_cast<CUdeviceptr>(data), bytes) != nullptr;
}

void *CudaGroup::peerAddress(const void *data, int64_t peer) const {
  auto address = reinterpret_cast<CUdeviceptr>(data);
  const Range *range = find(address, 1);
  if (!range || peer < 0 || peer >= settings.ranks || !range->parts[peer])
    return nullptr;
  return reinterpret_cast<void *>(range->parts[peer] + (address - range->base));
}

//===----------------------------------------------------------------------===//
// Preparing kernels
//===----------------------------------------------------------------------===//

/// What needs no peer.
llvm::Error CudaGroup::prepareOwn(const KernelRequest &request,
                                  CudaGroupKernel &made) {
  auto compiled =
      compileRequest(request, settings.ranks, *device, pool->most());
  if (!compiled)
    return compiled.takeError();
  made.kernel = std::move(*compiled);
  ++(made.kernel->cached() ? done.fromCache : done.compiled);
  if (made.kernel->ranks() != settings.ranks)
    return usage(llvm::formatv("kernel '{0}' is for {1} ranks, the group has "
                               "{2}",
                               made.name(), made.kernel->ranks(),
                               settings.ranks)
                     .str());
  auto code = KernelCode::load(*device, *made.kernel);
  if (!code)
    return code.takeError();
  made.code = std::move(*code);
  auto layout = ChannelLayout::of(*made.kernel);
  if (!layout)
    return layout.takeError();
  made.layout = std::move(*layout);
  made.digest = digestOf(request, *made.kernel);
  made.concurrent = request.concurrent;
  for (auto [number, argument] : llvm::enumerate(made.kernel->args()))
    if (!argument.hidden) {
      made.visible.push_back(argument);
      made.numbers.push_back(unsigned(number));
    }
  return checkConcurrent(made);
}

/// How much of each multiprocessor a launch takes, at most, where it has those
/// that NCCL leaves.
double CudaGroup::shareOf(const CudaGroupKernel &kernel) const {
  int64_t all = device->getMultiprocessors();
  int64_t cluster = kernel.kernel->shape().cluster;
  int64_t wanted = llvm::divideCeil(kernel.kernel->shape().blocks * cluster,
                                    std::max<int64_t>(all - kNcclBlocks, 1));
  int64_t most =
      std::max<int64_t>(kernel.code->getResident() * cluster / all, 1);
  return double(wanted) / double(most);
}

/// Concurrent kernels run beside each other, one of the others, and NCCL, in an
/// order that differs by rank: unless all fit, ranks wait for kernels that wait
/// for a place.
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
  return usage(llvm::formatv(
                   "{0} does not fit on GPU {1} beside NCCL and the group's "
                   "others: of each multiprocessor that NCCL leaves, {2} "
                   "concurrent kernels take {3:P0} and the largest of those "
                   "that follow each other {4:P0}. Kernels that wait for a "
                   "place can hang the ranks: ask for fewer blocks or threads, "
                   "or do not declare kernels concurrent",
                   made.describe(), settings.device, count, together, largest)
                   .str());
}

/// Whether all ranks prepare the same.
llvm::Error CudaGroup::comparePeers(const CudaGroupKernel &made) {
  std::string mine = llvm::utohexstr(made.digest) + "\n" + made.describe();
  auto all = mesh->all("comparing a kernel", mine, patience());
  if (!all)
    return all.takeError();
  for (auto [peer, text] : llvm::enumerate(*all)) {
    auto [digest, says] = llvm::StringRef(text).split('\n');
    auto [own, ours] = llvm::StringRef(mine).split('\n');
    if (digest == own)
      continue;
    std::string why = says == ours ? " from another source" : "";
    return makeError(Kind::Disagree,
                     llvm::formatv("ranks disagree: rank {0} prepares {1}, "
                                   "rank {2} {3}{4}. All ranks must prepare "
                                   "the same kernels in the same order",
                                   settings.rank, ours, peer, says, why)
                         .str());
  }
  return llvm::Error::success();
}

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
  PollLimits limits;
  limits.timeout = settings.timeout;
  auto *state = static_cast<abi::State *>(staging->host());
  *state = makeState(*kernel.kernel, limits, set.record.device);
  state->digest = kernel.digest;
  if (auto error = cu.check(
          cu.MemcpyHtoDAsync(set.state, state, sizeof(*state), control),
          "writing a kernel's state"))
    return error;
  return waitForControl("filling channels", patience());
}

/// One more set of channels, from memory that the pool has.
llvm::Expected<ChannelSet *>
CudaGroup::makeSet(CudaGroupKernel &kernel,
                   std::unique_ptr<DeviceComm> deviceComm) {
  auto record = records.take(*device);
  if (!record)
    return record.takeError();
  ChannelPool::Piece piece = pool->take(kernel.layout.bytes);
  ChannelSet set;
  set.record = *record;
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
  if (auto error = fillSet(kernel, set, piece))
    return std::move(error);
  std::lock_guard lock(controlMutex);
  kernel.sets.push_back(std::move(set));
  return &kernel.sets.back();
}

/// For a kernel that calls NCCL's device library, one for each set of channels;
/// null for others.
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
  std::string key = keyOf(request);
  auto known = byRequest.find(key);
  bool isKnown = known != byRequest.end();
  if (isKnown &&
      (!known->second->kernel->nccl() || !known->second->spares.empty())) {
    ++known->second->users;
    return known->second;
  }
  if (isStopped)
    return stopped();
  Current current(cu, device->context());
  OutsideCapture outside(cu);
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
    std::lock_guard lock(controlMutex);
    kernel = &kernels.emplace_back(std::move(*made));
  }
  if (auto error = makeSets(*kernel)) {
    std::lock_guard lock(controlMutex);
    if (kernel->sets.empty())
      kernels.pop_back();
    return std::move(error);
  }
  byRequest[key] = kernel;
  return kernel;
}

/// Channels of launches that are not captured, where there are none, and of one
/// capture. Collective.
llvm::Error CudaGroup::makeSets(CudaGroupKernel &kernel) {
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
  for (int i = 0; i < count && !filled; ++i)
    if (auto set = makeSet(kernel, std::move((*deviceComms)[i])); !set)
      filled = set.takeError();
    else if (!kernel.eager)
      kernel.eager = *set;
    else
      kernel.spares.push_back(*set);
  // No peer may write to channels that are not filled.
  return mesh->agree("filling channels", asGroupError(std::move(filled)),
                     patience());
}

/// Whether all that was launched on the kernel's own channels has ended, on all
/// ranks; false: that cannot be known.
llvm::Expected<bool> CudaGroup::awaitLaunches(const CudaGroupKernel &kernel) {
  // Launches follow each other, but for concurrent ones. A stream that is
  // captured by now cannot be asked.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  bool isKnown =
      !kernel.concurrent &&
      (!eagerLast.any ||
       (cu.StreamIsCapturing(eagerLast.stream, &status) == CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_NONE &&
        cu.EventRecord(order, eagerLast.stream) == CUDA_SUCCESS &&
        cu.EventSynchronize(order) == CUDA_SUCCESS));
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
  Current current(cu, device->context());
  OutsideCapture outside(cu);
  for (auto it = byRequest.begin(); it != byRequest.end(); ++it)
    if (it->second == &kernel) {
      byRequest.erase(it);
      break;
    }
  auto idle = awaitLaunches(kernel);
  if (!idle)
    return idle.takeError();
  if (!*idle)
    return llvm::Error::success();
  std::list<CudaGroupKernel> gone;
  std::lock_guard lock(controlMutex);
  std::deque<ChannelSet> captured;
  for (ChannelSet &set : kernel.sets)
    if (set.capture) {
      captured.push_back(std::move(set));
    } else {
      pool->give(set.state, kernel.layout.bytes);
      records.give(set.record);
    }
  kernel.sets = std::move(captured);
  kernel.eager = nullptr;
  kernel.spares.clear();
  if (kernel.sets.empty())
    gone.splice(gone.begin(), kernels, llvm::find_if(kernels, [&](auto &one) {
                  return &one == &kernel;
                }));
  return llvm::Error::success();
}

/// The channels of a capture, its own: a graph is replayed beside launches that
/// are not captured, and beside other graphs.
llvm::Expected<ChannelSet *> CudaGroup::setFor(CudaGroupKernel &kernel,
                                               unsigned long long capture) {
  for (ChannelSet &set : llvm::reverse(kernel.sets))
    if (set.capture == capture)
      return &set;
  ChannelSet *set = nullptr;
  if (!kernel.spares.empty()) {
    set = kernel.spares.back();
    kernel.spares.pop_back();
  } else {
    OutsideCapture outside(cu);
    llvm::Error error = llvm::Error::success();
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
                        asGroupError(std::move(error)), patience()))
      return std::move(failed);
  }
  set->capture = capture;
  return set;
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

llvm::Error CudaGroup::bindOne(const CudaGroupKernel &kernel, ChannelSet &set,
                               size_t i, const Argument &argument) {
  const jit::ArgInfo &info = kernel.visible[i];
  auto bad = [&](const llvm::Twine &why) {
    return usage("argument '" + info.name + "' of kernel '" + kernel.name() +
                 "' " + why);
  };
  uint64_t *place = &set.params[kernel.code->placeOf(kernel.numbers[i])];
  if (isGroups(info))
    return argument.data ? bad("is the group's own: give no memory for it")
                         : llvm::Error::success();
  if (info.kind == jit::ArgKind::Scalar) {
    if (!argument.data || argument.bytes != info.elementBytes)
      return bad(llvm::formatv("is a scalar of {0} bytes, {1} were given",
                               info.elementBytes, argument.bytes)
                     .str());
    *place = 0;
    std::memcpy(place, argument.data, argument.bytes);
    return llvm::Error::success();
  }
  auto address = reinterpret_cast<CUdeviceptr>(argument.data);
  if (argument.bytes < info.bytes() || (!address && info.bytes()))
    return bad(llvm::formatv("takes {0} bytes, {1} were given", info.bytes(),
                             address ? argument.bytes : 0)
                   .str());
  if (address % abi::kAlignment)
    return bad(llvm::formatv("lies at {0:x}, which is not a multiple of {1} "
                             "bytes",
                             address, abi::kAlignment)
                   .str());
  if (info.kind == jit::ArgKind::Memory) {
    *place = address;
  } else {
    const Range *range = find(address, info.bytes());
    if (!range)
      return bad(llvm::formatv("at {0:x} is not symmetric memory of the group: "
                               "allocate it by the group, or adopt it",
                               address)
                     .str());
    uint64_t offset = address - range->base;
    uint64_t handle = range->window ? range->window->ncclHandle() : 0;
    if (kernel.kernel->nccl() && !handle)
      return bad("is memory that NCCL has not registered for this group, which "
                 "its device library does not reach: allocate it by the group");
    kernel.code->bindNcclWindow(set.params.data(), kernel.numbers[i], handle,
                                offset);
    for (auto [peer, part] : llvm::enumerate(range->parts))
      place[peer] = part ? part + offset : 0;
  }
  set.bound[i] = argument.data;
  return llvm::Error::success();
}

llvm::Error CudaGroup::bind(const CudaGroupKernel &kernel, ChannelSet &set,
                            llvm::ArrayRef<Argument> arguments) {
  if (arguments.size() != kernel.visible.size())
    return usage(llvm::formatv("kernel '{0}' takes {1} arguments, {2} were "
                               "given",
                               kernel.name(), kernel.visible.size(),
                               arguments.size())
                     .str());
  if (set.windowsVersion != windowsVersion) {
    llvm::fill(set.bound, nullptr);
    set.windowsVersion = windowsVersion;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    // Mostly the arrays of the launch before.
    if (arguments[i].data && arguments[i].data == set.bound[i] &&
        arguments[i].bytes >= kernel.visible[i].bytes())
      continue;
    set.bound[i] = nullptr;
    if (auto error = bindOne(kernel, set, i, arguments[i]))
      return error;
  }
  return llvm::Error::success();
}

/// Makes `stream` wait for the group's last launch, if that is in another: two
/// ranks that start two kernels in opposite order would wait for each other.
llvm::Error CudaGroup::follow(CUstream stream, unsigned long long capture) {
  if (capture && capture != captureId) {
    captureId = capture;
    captureLast = Last();
  }
  Last &last = capture ? captureLast : eagerLast;
  if (last.any && last.stream != stream) {
    CUevent event = capture ? captureOrder : order;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    // A stream that is captured by now is in another order of things.
    bool joins = cu.StreamIsCapturing(last.stream, &status) == CUDA_SUCCESS &&
                 (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) == (capture != 0);
    if (joins) {
      if (auto error = cu.check(cu.EventRecord(event, last.stream),
                                "ordering a launch after the last one"))
        return error;
      if (auto error = cu.check(cu.StreamWaitEvent(stream, event, 0),
                                "ordering a launch after the last one"))
        return error;
    }
  }
  last.stream = stream;
  last.any = true;
  return llvm::Error::success();
}

llvm::Expected<void *> CudaGroup::allocateOwn(size_t bytes) {
  Current current(cu, device->context());
  OutsideCapture outside(cu);
  CUdeviceptr memory = 0;
  if (cu.MemAlloc(&memory, std::max<size_t>(bytes, 1)) != CUDA_SUCCESS)
    return makeError(
        Kind::Limit,
        llvm::formatv("GPU {0} has no {1} KiB left for copies of arrays",
                      settings.device, bytes >> 10)
            .str());
  return reinterpret_cast<void *>(memory);
}

void CudaGroup::releaseOwn(void *memory) {
  Current current(cu, device->context());
  OutsideCapture outside(cu);
  cu.MemFree(reinterpret_cast<CUdeviceptr>(memory));
}

uint64_t CudaGroup::captureOf(void *stream) const {
  Current current(cu, device->context());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUresult known =
      cu.StreamGetCaptureInfo(static_cast<CUstream>(stream), &status, &id,
                              nullptr, nullptr, nullptr, nullptr);
  return known == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id
                                                                            : 0;
}

llvm::Error CudaGroup::copy(void *to, size_t toPitch, const void *from,
                            size_t fromPitch, size_t bytes, int64_t rows,
                            void *streamPointer) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  auto stream = static_cast<CUstream>(streamPointer);
  uint64_t capture = captureOf(stream);
  Current current(cu, device->context());
  // The memory may be what the group's last launch reads, in another stream.
  if (auto error = follow(stream, capture))
    return asGroupError(std::move(error));
  auto target = reinterpret_cast<CUdeviceptr>(to);
  auto source = reinterpret_cast<CUdeviceptr>(from);
  for (int64_t row = 0; row < rows && bytes; ++row)
    if (auto error =
            cu.check(cu.MemcpyAsync(target + row * toPitch,
                                    source + row * fromPitch, bytes, stream),
                     "copying an array of a collective"))
      return asGroupError(std::move(error));
  return llvm::Error::success();
}

llvm::Error CudaGroup::finish(void *stream) {
  {
    Current current(cu, device->context());
    if (auto error =
            cu.check(cu.StreamSynchronize(static_cast<CUstream>(stream)),
                     "waiting for a collective"))
      return asGroupError(std::move(error));
  }
  return poll();
}

//===----------------------------------------------------------------------===//
// One-sided access
//===----------------------------------------------------------------------===//

llvm::Error CudaGroup::checkPeer(int64_t peer) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  if (peer == settings.rank)
    return llvm::Error::success();
  std::string why = mesh->whyAbsent(int(peer));
  if (why.empty())
    return llvm::Error::success();
  return makeError(Kind::Peer,
                   "rank " + llvm::Twine(peer) + " is gone: " + why);
}

/// Not after the group's last launch, as `copy`: that may wait for a peer that
/// waits for this.
llvm::Error CudaGroup::move(void *to, const void *from, size_t bytes,
                            void *stream) {
  Current current(cu, device->context());
  return asGroupError(
      cu.check(cu.MemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                              reinterpret_cast<CUdeviceptr>(from), bytes,
                              static_cast<CUstream>(stream)),
               "copying between windows"));
}

llvm::Error CudaGroup::signalCell(const CellSignal &signal,
                                  void *streamPointer) {
  Current current(cu, device->context());
  auto cell = reinterpret_cast<CUdeviceptr>(signal.cell);
  auto stream = static_cast<CUstream>(streamPointer);
  return asGroupError(signal.kind == SignalKind::Set
                          ? signals.set(cell, signal.value, stream)
                          : signals.add(cell, signal.value, stream));
}

llvm::Error CudaGroup::waitCell(const CellWait &wait, void *stream) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  if (wait.timeout > 0)
    return waitOnHost(wait);
  Current current(cu, device->context());
  return asGroupError(signals.wait(reinterpret_cast<CUdeviceptr>(wait.cell),
                                   wait.value, wait.kind == WaitKind::Equal,
                                   static_cast<CUstream>(stream)));
}

llvm::Expected<int64_t> CudaGroup::readCell(const int64_t *own) {
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  Current current(cu, device->context());
  OutsideCapture outside(cu);
  std::lock_guard guard(controlMutex);
  if (auto error =
          cu.check(cu.MemcpyDtoHAsync(staging->host(),
                                      reinterpret_cast<CUdeviceptr>(own),
                                      sizeof(int64_t), control),
                   "reading a signal"))
    return asGroupError(std::move(error));
  if (auto error = waitForControl("reading a signal", patience()))
    return asGroupError(std::move(error));
  int64_t value;
  std::memcpy(&value, staging->host(), sizeof(value));
  return value;
}

/// The host looks, and sees who dies and how long it takes.
llvm::Error CudaGroup::waitOnHost(const CellWait &wait) {
  auto start = std::chrono::steady_clock::now();
  auto whyNot = [&]() -> std::string {
    for (int64_t peer = 0; peer < settings.ranks; ++peer) {
      if (peer == settings.rank || (wait.source >= 0 && peer != wait.source))
        continue;
      std::string why = mesh->whyAbsent(int(peer));
      if (!why.empty())
        return llvm::formatv("rank {0} is gone: {1}", peer, why).str();
    }
    if (secondsSince(start) > wait.timeout)
      return llvm::formatv("{0:f1} s are over", wait.timeout).str();
    return "";
  };
  while (true) {
    // Asked before the look: who goes may have signalled before.
    std::string why = whyNot();
    auto value = readCell(wait.cell);
    if (!value)
      return value.takeError();
    if (wait.kind == WaitKind::Equal ? *value == wait.value
                                     : *value >= wait.value)
      return llvm::Error::success();
    if (!why.empty())
      return makeError(
          Kind::Peer,
          llvm::formatv(
              "rank {0} of group '{1}' waits in vain for a signal of "
              "{2}: {3}\n  cell {4} of the group holds {5}, not {6} {7}",
              settings.rank, settings.name,
              wait.source < 0 ? std::string("any rank")
                              : llvm::formatv("rank {0}", wait.source).str(),
              why, wait.number, *value,
              wait.kind == WaitKind::Equal ? "eq" : "ge", wait.value)
              .str());
    if (group::isInterrupted())
      return makeError(Kind::Aborted, "interrupted while it waited");
    std::this_thread::yield();
  }
}

llvm::Error CudaGroup::launch(GroupKernel &which,
                              llvm::ArrayRef<Argument> arguments,
                              void *streamPointer) {
  auto &kernel = static_cast<CudaGroupKernel &>(which);
  auto stream = static_cast<CUstream>(streamPointer);
  if (isStopped.load(std::memory_order_relaxed))
    return stopped();
  Current current(cu, device->context());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUresult known = cu.StreamGetCaptureInfo(stream, &status, &id, nullptr,
                                           nullptr, nullptr, nullptr);
  if (known != CUDA_SUCCESS)
    return usage(llvm::toString(
        cu.check(known, "launching kernel '" + kernel.name() + "'")));
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
    return usage("the capture of the stream has failed before");
  unsigned long long capture =
      status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
  ChannelSet *set = kernel.eager;
  if (capture) {
    auto own = setFor(kernel, capture);
    if (!own)
      return own.takeError();
    set = *own;
  }
  // A failure of these channels is told before more is launched on them.
  if (__atomic_load_n(&set->record.host->valid, __ATOMIC_RELAXED))
    return poll();
  if (auto error = bind(kernel, *set, arguments))
    return error;
  if (!kernel.concurrent)
    if (auto error = follow(stream, capture))
      return asGroupError(std::move(error));
  CUresult result = kernel.code->launch(set->params.data(), stream);
  if (result != CUDA_SUCCESS)
    return asGroupError(kernel.code->explain(result));
  ++done.launches;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Failing
//===----------------------------------------------------------------------===//

llvm::Error CudaGroup::stopped() const {
  std::lock_guard lock(stopMutex);
  return llvm::make_error<GroupError>(stopKind, stopReason, stopWaiting);
}

/// State, epochs and busy words of `peer`, of all sets of channels.
llvm::Expected<std::vector<CudaGroup::View>> CudaGroup::readPeer(int64_t peer) {
  std::lock_guard lock(controlMutex);
  std::vector<View> views;
  auto *bytes = static_cast<char *>(staging->host());
  for (const CudaGroupKernel &kernel : kernels) {
    auto blocks = kernel.kernel->shape().blocks;
    auto size = size_t(abi::getStateBytes(blocks));
    for (const ChannelSet &set : kernel.sets) {
      if (!set.states[peer] || size > kStagingBytes)
        continue;
      if (auto error = cu.check(
              cu.MemcpyDtoHAsync(bytes, set.states[peer], size, control),
              "reading the state of rank " + llvm::Twine(peer)))
        return std::move(error);
      if (auto error = waitForControl(
              "reading the state of rank " + llvm::Twine(peer), kReadSeconds))
        return std::move(error);
      View view{&kernel, &set, {}, UINT32_MAX, 0};
      std::memcpy(&view.state, bytes, sizeof(view.state));
      for (int64_t block = 0; block < blocks; ++block) {
        uint32_t epoch, busy;
        std::memcpy(&epoch, bytes + abi::kEpochOffset + 4 * block, 4);
        std::memcpy(&busy, bytes + abi::getBusyOffset(blocks) + 4 * block, 4);
        view.epoch = std::min(view.epoch, epoch);
        view.busy += busy != 0;
      }
      views.push_back(view);
    }
  }
  return views;
}

/// "rank 2 runs launch 7 of kernel 'b' (…) instead"; `differs`: it runs, or
/// gave up in, something else.
std::string CudaGroup::describePeer(int64_t peer, const CudaGroupKernel &kernel,
                                    const ChannelSet &set, uint32_t launch,
                                    bool &differs) {
  std::string whom = "rank " + std::to_string(peer) + ": ";
  std::string why = mesh->whyAbsent(int(peer));
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
    if (view.set == &set)
      same = &view;
    else if (view.busy || view.state.abort == 1)
      other = &view;
  }
  if (same && same->state.digest != kernel.digest) {
    differs = true;
    return whom +
           "keeps another kernel where this rank keeps the channels of " +
           kernel.describe();
  }
  bool gaveUp = same && same->state.abort;
  if (same && same->busy && same->epoch + 1 == launch)
    return whom + "is in this launch too";
  if (gaveUp && same->epoch == launch)
    return whom + "gave up in this launch too";
  if (same && same->busy)
    return whom +
           llvm::formatv("is in launch {0} of this kernel", same->epoch + 1)
               .str();
  if (other) {
    differs = true;
    uint32_t number = other->epoch + (other->busy ? 1 : 0);
    return whom + llvm::formatv("{0} launch {1} of {2}{3} instead",
                                other->busy ? "runs" : "gave up in", number,
                                other->kernel->describe(),
                                other->set->capture ? ", in a graph" : "")
                      .str();
  }
  if (same && same->epoch >= launch)
    return whom + "has finished this launch";
  return whom + llvm::formatv("has not begun this launch: it has finished {0} "
                              "of this kernel and runs nothing of the group",
                              same ? same->epoch : 0)
                    .str();
}

/// Number of the launch that block `block` of this rank runs or has ended.
uint32_t CudaGroup::launchNumber(const CudaGroupKernel &kernel,
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
  uint32_t epoch, busy;
  std::memcpy(&epoch, bytes + abi::kEpochOffset + 4 * int64_t(block), 4);
  std::memcpy(&busy, bytes + abi::getBusyOffset(blocks) + 4 * int64_t(block),
              4);
  return epoch + (busy ? 1 : 0);
}

/// The error that a record stands for, with what the peers do.
llvm::Error CudaGroup::explain(const CudaGroupKernel &kernel,
                               const ChannelSet &set,
                               const abi::ErrorRecord &record) {
  Current current(cu, device->context());
  OutsideCapture outside(cu);
  cpu::Waiting waiting{settings.rank, record.block, "", "", ""};
  if (record.site < kernel.kernel->sites().size()) {
    waiting.op = kernel.kernel->sites()[record.site].op;
    waiting.location = kernel.kernel->sites()[record.site].location;
  }
  waiting.what = describeFailure(record);
  uint32_t launch = launchNumber(kernel, set, record.block);
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
  text += llvm::formatv("gave up waiting after {0} s", settings.timeout).str();
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
  for (const CudaGroupKernel &kernel : kernels)
    for (const ChannelSet &set : kernel.sets) {
      if (!__atomic_load_n(&set.record.host->valid, __ATOMIC_ACQUIRE))
        continue;
      abi::ErrorRecord record = *set.record.host;
      Kind kind = Kind::Peer;
      std::string message;
      std::vector<cpu::Waiting> waiting;
      llvm::handleAllErrors(explain(kernel, set, record),
                            [&](const GroupError &error) {
                              kind = error.getKind();
                              message = error.getMessage();
                              waiting = error.getWaiting().vec();
                            });
      {
        std::lock_guard lock(stopMutex);
        stopWaiting = std::move(waiting);
      }
      stop(message, kind);
      return stopped();
    }
  return llvm::Error::success();
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
  mesh->cancel();
  Current current(cu, device->context());
  OutsideCapture outside(cu);
  std::lock_guard lock(controlMutex);
  for (const CudaGroupKernel &kernel : kernels)
    for (const ChannelSet &set : kernel.sets)
      // What a kernel wrote itself tells peers more.
      if (!__atomic_load_n(&set.record.host->valid, __ATOMIC_ACQUIRE))
        cu.MemcpyHtoDAsync(set.state + abi::kAbortOffset, abortWord->host(),
                           sizeof(uint64_t), control);
}

void CudaGroup::abort(llvm::StringRef reason) {
  stop(llvm::formatv("rank {0}: the group was aborted: {1}", settings.rank,
                     reason)
           .str(),
       Kind::Aborted);
}

llvm::Expected<std::unique_ptr<group::Group>>
CudaGroup::shrink(llvm::ArrayRef<int64_t> survivors, group::Store &store) {
  const auto *place = llvm::find(survivors, settings.rank);
  bool ascends =
      llvm::is_sorted(survivors) &&
      std::adjacent_find(survivors.begin(), survivors.end()) == survivors.end();
  if (place == survivors.end() || !ascends || survivors.front() < 0 ||
      survivors.back() >= settings.ranks)
    return usage("survivors must be ranks of the group, ascending, this one "
                 "among them");
  abort("it was shrunk");
  GroupOptions next = settings;
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
