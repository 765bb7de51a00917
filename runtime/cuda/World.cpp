//===- World.cpp - N GPUs of one process as N ranks -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/World.h"

#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Kernel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

using namespace commsir;
using namespace commsir::cuda;
using Clock = std::chrono::steady_clock;

namespace {

/// Seconds for what needs no kernel of ours: starting NCCL, copying memory.
constexpr double kSetupSeconds = 120;
/// Seconds that a kernel has to end after its abort word is set.
constexpr double kAbortSeconds = 5;
/// Launches that one graph may hold.
constexpr int64_t kMaxGraphLaunches = 4096;

std::atomic<bool> anyStuck{false};
std::atomic<bool> keepOpen{false};

llvm::Error fail(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool isShared(const jit::ArgInfo &argument) {
  return argument.kind == jit::ArgKind::Window ||
         argument.kind == jit::ArgKind::Signal;
}

/// Offsets of the arguments in the window and in the rank's own memory.
struct Layout {
  std::vector<size_t> offsets;
  size_t windowBytes = 0, memoryBytes = 0;

  llvm::Error compute(llvm::ArrayRef<jit::ArgInfo> arguments) {
    constexpr size_t alignment = mlir::comms::nvvm::kAlignment;
    for (const jit::ArgInfo &argument : arguments) {
      size_t &total = isShared(argument) ? windowBytes : memoryBytes;
      offsets.push_back(total);
      if (argument.kind == jit::ArgKind::Scalar)
        continue;
      size_t bytes = argument.bytes(), end;
      if (__builtin_add_overflow(total, bytes, &end) ||
          __builtin_add_overflow(end, alignment - 1, &end))
        return fail("argument '" + argument.name + "' is too large");
      total = end / alignment * alignment;
    }
    return llvm::Error::success();
  }
};

/// What belongs to one rank.
struct RankState {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Window> window;
  std::unique_ptr<DeviceComm> deviceComm;
  std::optional<Memory> memory;
  std::unique_ptr<LoadedKernel> kernel;
  CUstream stream = nullptr;
  CUevent start = nullptr, stop = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec replay = nullptr;
  /// By argument; empty for channel memory.
  std::vector<std::vector<char>> host;
  double microseconds = 0;
  llvm::Error destroy();
};

/// Frees in the order that the owners need.
llvm::Error RankState::destroy() {
  if (!device)
    return llvm::Error::success();
  const Driver &cu = device->driver();
  {
    ContextGuard guard(cu, device->context());
    if (replay)
      cu.GraphExecDestroy(replay);
    if (graph)
      cu.GraphDestroy(graph);
    if (start)
      cu.EventDestroy(start);
    if (stop)
      cu.EventDestroy(stop);
    if (stream)
      cu.StreamDestroy(stream);
    kernel.reset();
    memory.reset();
    deviceComm.reset();
    window.reset();
    communicator.reset();
  }
  return llvm::Error::success();
}

} // namespace

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

llvm::Expected<std::string>
commsir::cuda::checkMachine(int64_t ranks, llvm::ArrayRef<int> devices) {
  auto count = getDeviceCount();
  if (!count)
    return count.takeError();
  if (*count == 0)
    return fail("the CUDA driver shows no GPU (CUDA_VISIBLE_DEVICES hides all, "
                "if it is empty); run on the CPU world (--target cpu)");
  if (!devices.empty() && int64_t(devices.size()) != ranks)
    return fail(
        llvm::formatv("{0} GPUs are named for {1} ranks", devices.size(), ranks)
            .str());
  if (devices.empty() && ranks > *count)
    return fail(
        llvm::formatv(
            "{0} ranks need {0} GPUs, and this machine shows {1}: a GPU "
            "cannot be two ranks, because their kernels wait for each "
            "other. Take --ranks {1}, or run on the CPU world (--target "
            "cpu)",
            ranks, *count)
            .str());
  std::string chip;
  llvm::StringMap<int> ordinals;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int ordinal = devices.empty() ? int(rank) : devices[rank];
    if (llvm::is_contained(devices.take_front(devices.empty() ? 0 : rank),
                           ordinal))
      return fail(llvm::formatv("GPU {0} is named twice: a GPU cannot be two "
                                "ranks, because their kernels wait for each "
                                "other",
                                ordinal)
                      .str());
    auto found = getChip(ordinal);
    if (!found)
      return found.takeError();
    auto uuid = getUuid(ordinal);
    if (!uuid)
      return uuid.takeError();
    auto [known, isNew] = ordinals.try_emplace(*uuid, ordinal);
    if (!isNew)
      return fail(llvm::formatv("GPUs {0} and {1} are one GPU ({2}): a GPU "
                                "cannot be two ranks, because their kernels "
                                "wait for each other. Show each GPU once "
                                "(CUDA_VISIBLE_DEVICES), or take fewer ranks",
                                known->second, ordinal,
                                llvm::toHex(*uuid, /*LowerCase=*/true))
                      .str());
    if (!chip.empty() && chip != *found)
      return fail("the GPUs are of different kinds (" + chip + " and " +
                  *found + "); name GPUs of one kind with --devices");
    chip = *found;
    if (!keepOpen)
      continue;
    // One more reference to the primary context, which nobody gives back.
    auto device = Device::open(ordinal);
    if (!device)
      return device.takeError();
    (void)new Device(std::move(*device));
  }
  return chip;
}

void commsir::cuda::keepDevicesOpen() { keepOpen = true; }

bool commsir::cuda::isAnyWorldStuck() { return anyStuck; }

//===----------------------------------------------------------------------===//
// World
//===----------------------------------------------------------------------===//

struct World::Impl {
  Impl(const jit::CudaKernel &kernel, const RunOptions &options)
      : kernel(kernel), options(options), ranks(kernel.ranks()) {}

  llvm::Error create();
  void destroy();
  std::variant<cpu::RunStats, cpu::RunError> run();

  /// One thread a rank; an error ends the world.
  llvm::Error together(llvm::StringRef what, double seconds,
                       std::function<llvm::Error(RankState &, int)> work);

  llvm::Error openDevice(RankState &rank, int number);
  llvm::Error prepare(RankState &rank, int number);
  llvm::Error makeCommunicators();
  llvm::Error useNccl();
  llvm::Error usePlain(const llvm::Twine &why);
  llvm::Error makeWindow(RankState &rank, int number);
  llvm::Error makeDeviceComm(RankState &rank, int number);
  llvm::Error initialise(RankState &rank, int number);
  llvm::Error capture(RankState &rank);
  llvm::Error upload(RankState &rank);
  llvm::Error execute(RankState &rank);
  llvm::Error waitFor(RankState &rank);
  llvm::Error download(RankState &rank);
  CUdeviceptr addressOf(RankState &rank, unsigned arg) const;
  bool hasFailed() const;
  cpu::RunError explain(llvm::Error error, bool whileRunning);
  double runSeconds() const;

  const jit::CudaKernel &kernel;
  RunOptions options;
  int64_t ranks;
  Layout layout;
  std::vector<RankState> states;
  std::string windowsNote;
  ncclUniqueId id{};
  std::atomic<int> ready{0};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> stuck{false};
  bool broken = false;
};

void World::Impl::destroy() {
  if (stuck || states.empty())
    return;
  ParallelResult result =
      forEachRank(int(ranks), "freeing GPU memory", 30,
                  [this](int rank) { return states[rank].destroy(); });
  if (result.stuck)
    anyStuck = stuck = true;
}

llvm::Error
World::Impl::together(llvm::StringRef what, double seconds,
                      std::function<llvm::Error(RankState &, int)> work) {
  ParallelResult result = forEachRank(
      int(ranks), what, seconds, [this, work](int number) -> llvm::Error {
        RankState &rank = states[number];
        if (!rank.device)
          return work(rank, number);
        ContextGuard guard(rank.device->driver(), rank.device->context());
        return work(rank, number);
      });
  if (result.stuck)
    anyStuck = stuck = true;
  if (result)
    return llvm::Error::success();
  broken = true;
  return fail(result.error);
}

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

llvm::Error World::Impl::openDevice(RankState &rank, int number) {
  int ordinal = options.devices.empty() ? number : options.devices[number];
  auto device = Device::open(ordinal);
  if (!device)
    return device.takeError();
  rank.device = std::make_unique<Device>(std::move(*device));
  return llvm::Error::success();
}

/// What needs no peer: code, streams, memory.
llvm::Error World::Impl::prepare(RankState &rank, int number) {
  const Driver &cu = rank.device->driver();
  size_t free = 0, total = 0;
  if (auto error = cu.check(cu.MemGetInfo(&free, &total), "cuMemGetInfo"))
    return error;
  size_t needed;
  if (__builtin_add_overflow(layout.windowBytes, layout.memoryBytes, &needed) ||
      needed > free)
    return fail(llvm::formatv(
                    "the kernel needs {0} MiB on each GPU for its "
                    "arguments and channels; GPU {1} has {2} MiB free "
                    "of {3}",
                    (layout.windowBytes >> 20) + (layout.memoryBytes >> 20) + 1,
                    rank.device->getOrdinal(), free >> 20, total >> 20)
                    .str());
  StateOptions state;
  state.timeout = options.timeout;
  state.firstLaunch = uint64_t(options.firstLaunch);
  auto loaded = LoadedKernel::load(*rank.device, kernel, number, state);
  if (!loaded)
    return loaded.takeError();
  rank.kernel = std::move(*loaded);
  for (auto [result, what] :
       {std::pair(cu.StreamCreate(&rank.stream, CU_STREAM_NON_BLOCKING),
                  "cuStreamCreate"),
        std::pair(cu.EventCreate(&rank.start, CU_EVENT_DEFAULT),
                  "cuEventCreate"),
        std::pair(cu.EventCreate(&rank.stop, CU_EVENT_DEFAULT),
                  "cuEventCreate")})
    if (auto error = cu.check(result, what))
      return error;
  auto memory = Memory::allocate(*rank.device, layout.memoryBytes);
  if (!memory)
    return memory.takeError();
  rank.memory.emplace(std::move(*memory));
  rank.host.resize(kernel.args().size());
  for (auto [i, argument] : llvm::enumerate(kernel.args()))
    if (!argument.hidden && argument.kind != jit::ArgKind::Scalar)
      rank.host[i].resize(argument.bytes());
  return llvm::Error::success();
}

llvm::Error World::Impl::usePlain(const llvm::Twine &why) {
  std::vector<const Device *> devices;
  for (RankState &rank : states)
    devices.push_back(rank.device.get());
  auto communicators = Communicator::createLocal(devices);
  if (!communicators)
    return communicators.takeError();
  for (auto [rank, communicator] : llvm::zip(states, *communicators))
    rank.communicator = std::move(communicator);
  windowsNote = ("plain device memory, peer access (" + why + ")").str();
  return llvm::Error::success();
}

llvm::Error World::Impl::useNccl() {
  auto nccl = Nccl::get();
  if (!nccl)
    return nccl.takeError();
  if (auto error = checkDeviceLibrary(**nccl))
    return error;
  {
    ContextGuard guard(states[0].device->driver(), states[0].device->context());
    if (auto error =
            (*nccl)->check((*nccl)->GetUniqueId(&id), "ncclGetUniqueId"))
      return error;
  }
  windowsNote =
      llvm::formatv("NCCL {0}.{1}.{2} ({3})", (*nccl)->version / 10000,
                    (*nccl)->version / 100 % 100, (*nccl)->version % 100,
                    (*nccl)->path)
          .str();
  auto meeting = std::make_shared<Exchange>(int(ranks));
  return together("starting NCCL", kSetupSeconds,
                  [this, meeting](RankState &rank, int number) -> llvm::Error {
                    auto made = Communicator::create(
                        *rank.device, id, int(ranks), number,
                        makeAgreement(meeting, number));
                    if (!made)
                      return made.takeError();
                    rank.communicator = std::move(*made);
                    return llvm::Error::success();
                  });
}

llvm::Error World::Impl::makeCommunicators() {
  if (options.windows == WindowKind::Plain)
    return usePlain("as asked for");
  if (options.windows == WindowKind::Nccl)
    return useNccl();
  if (kernel.nccl()) // Which it has been compiled for.
    return useNccl();
  if (ranks == 1)
    return usePlain("one rank");
  // Only what can be known beforehand falls back: a failure of NCCL itself is
  // an error, because some ranks may be inside it.
  std::string why;
  if (auto nccl = Nccl::get()) {
    llvm::Error mismatch = checkDeviceLibrary(**nccl);
    if (!mismatch)
      return useNccl();
    why = llvm::toString(std::move(mismatch));
  } else {
    why = llvm::toString(nccl.takeError());
  }
  return usePlain(why);
}

CUdeviceptr World::Impl::addressOf(RankState &rank, unsigned arg) const {
  CUdeviceptr base = isShared(kernel.args()[arg]) ? rank.window->base()
                                                  : rank.memory->address();
  return base + layout.offsets[arg];
}

llvm::Error World::Impl::makeWindow(RankState &rank, int number) {
  auto window = rank.communicator->allocate(layout.windowBytes);
  if (!window)
    return window.takeError();
  rank.window = std::move(*window);
  if (rank.communicator->getReachSize() < kernel.lsaSize())
    return fail(
        llvm::formatv("the kernel expects {0} ranks in load/store reach; "
                      "these GPUs give {1}",
                      kernel.lsaSize(), rank.communicator->getReachSize())
            .str());
  for (auto [i, argument] : llvm::enumerate(kernel.args())) {
    if (argument.kind == jit::ArgKind::Scalar)
      continue;
    if (!isShared(argument)) {
      rank.kernel->bindBase(i, addressOf(rank, i));
      continue;
    }
    std::vector<CUdeviceptr> parts(rank.window->parts().begin(),
                                   rank.window->parts().end());
    for (CUdeviceptr &part : parts)
      if (part)
        part += layout.offsets[i];
    rank.kernel->bindParts(i, parts);
    rank.kernel->bindNcclWindow(i, rank.window->ncclHandle(),
                                layout.offsets[i]);
  }
  return llvm::Error::success();
}

/// Of a kernel that calls NCCL's device library.
llvm::Error World::Impl::makeDeviceComm(RankState &rank, int) {
  auto made = rank.communicator->createDeviceComm(*kernel.nccl());
  if (!made)
    return made.takeError();
  rank.deviceComm = std::move(*made);
  rank.kernel->bindDeviceComm(rank.deviceComm->address());
  return llvm::Error::success();
}

/// Zeros and poison.
llvm::Error World::Impl::initialise(RankState &rank, int number) {
  const Driver &cu = rank.device->driver();
  for (auto [i, argument] : llvm::enumerate(kernel.args())) {
    size_t bytes = argument.bytes();
    if (argument.kind == jit::ArgKind::Scalar || bytes == 0)
      continue;
    CUresult result =
        argument.poisoned
            ? cu.MemsetD16(addressOf(rank, i),
                           uint16_t(mlir::comms::nvvm::kPoison32 & 0xFFFF),
                           bytes / 2)
            : cu.MemsetD8(addressOf(rank, i), 0, bytes);
    if (auto error = cu.check(result, "filling '" + argument.name + "'"))
      return error;
  }
  return cu.check(cu.CtxSynchronize(), "filling memory");
}

llvm::Error World::Impl::capture(RankState &rank) {
  const Driver &cu = rank.device->driver();
  if (auto error =
          cu.check(cu.StreamBeginCapture(rank.stream,
                                         CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   "cuStreamBeginCapture"))
    return error;
  llvm::Error failure = llvm::Error::success();
  for (int64_t i = 0; i < options.launches && !failure; ++i)
    failure = rank.kernel->launch(rank.stream);
  CUresult ended = cu.StreamEndCapture(rank.stream, &rank.graph);
  if (failure)
    return failure;
  if (auto error = cu.check(ended, "cuStreamEndCapture"))
    return error;
  return cu.check(cu.GraphInstantiate(&rank.replay, rank.graph, 0),
                  "cuGraphInstantiate");
}

llvm::Error World::Impl::create() {
  if (options.graph && options.launches > kMaxGraphLaunches)
    return fail(llvm::formatv("{0} launches in one graph are too many; at most "
                              "{1}",
                              options.launches, kMaxGraphLaunches)
                    .str());
  if (auto error = layout.compute(kernel.args()))
    return error;
  states = std::vector<RankState>(ranks);
  using std::placeholders::_1, std::placeholders::_2;
  auto bind = [this](llvm::Error (Impl::*step)(RankState &, int)) {
    return std::bind(step, this, _1, _2);
  };
  if (auto error =
          together("opening its GPU", kSetupSeconds, bind(&Impl::openDevice)))
    return error;
  if (auto error =
          together("loading the kernel", kSetupSeconds, bind(&Impl::prepare)))
    return error;
  if (auto error = makeCommunicators())
    return error;
  if (auto error =
          together("making windows", kSetupSeconds, bind(&Impl::makeWindow)))
    return error;
  if (kernel.nccl())
    if (auto error = together("making NCCL's device communicator",
                              kSetupSeconds, bind(&Impl::makeDeviceComm)))
      return error;
  return together("filling memory", kSetupSeconds, bind(&Impl::initialise));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

llvm::Error World::Impl::upload(RankState &rank) {
  const Driver &cu = rank.device->driver();
  for (auto [i, bytes] : llvm::enumerate(rank.host))
    if (!bytes.empty())
      if (auto error = cu.check(
              cu.MemcpyHtoD(addressOf(rank, i), bytes.data(), bytes.size()),
              "copying '" + kernel.args()[i].name + "' to the GPU"))
        return error;
  if (options.graph && !rank.replay)
    if (auto error = capture(rank))
      return error;
  return cu.check(cu.CtxSynchronize(), "copying to the GPU");
}

llvm::Error World::Impl::download(RankState &rank) {
  const Driver &cu = rank.device->driver();
  for (auto [i, bytes] : llvm::enumerate(rank.host))
    if (!bytes.empty())
      if (auto error = cu.check(
              cu.MemcpyDtoH(bytes.data(), addressOf(rank, i), bytes.size()),
              "copying '" + kernel.args()[i].name + "' from the GPU"))
        return error;
  return llvm::Error::success();
}

bool World::Impl::hasFailed() const {
  return cancelled || llvm::any_of(states, [](const RankState &rank) {
           return rank.kernel->failure().has_value();
         });
}

double World::Impl::runSeconds() const {
  if (options.timeLimit > 0)
    return options.timeLimit;
  // One poll that times out ends a rank, and its peers one timeout later.
  double polls = options.timeout > 0 ? 3 * options.timeout : 3600;
  return polls + 20 + 1e-3 * double(options.launches);
}

/// Waits until the rank's stream is empty, with a limit.
llvm::Error World::Impl::waitFor(RankState &rank) {
  const Driver &cu = rank.device->driver();
  auto start = Clock::now();
  std::optional<Clock::time_point> failed, aborted;
  while (true) {
    CUresult result = cu.StreamQuery(rank.stream);
    if (result == CUDA_SUCCESS)
      return llvm::Error::success();
    if (result != CUDA_ERROR_NOT_READY) {
      // After such an error (an illegal address, say) the driver refuses all
      // further work of this process.
      cancelled = true;
      anyStuck = stuck = true;
      return cu.check(result, "running kernel '" + kernel.name() + "'");
    }
    double elapsed = secondsSince(start);
    if (!failed && (hasFailed() || elapsed > runSeconds())) {
      cancelled = cancelled || elapsed > runSeconds();
      failed = Clock::now();
    }
    // The peers of a rank that has failed get the time to say for what they
    // wait themselves.
    if (failed && !aborted &&
        (elapsed > runSeconds() ||
         secondsSince(*failed) > options.timeout + 1)) {
      if (auto error = rank.kernel->abort())
        return error;
      aborted = Clock::now();
    }
    if (aborted && secondsSince(*aborted) > kAbortSeconds) {
      anyStuck = stuck = true;
      return fail("the kernel does not end, although it was asked to");
    }
    // Short runs are told at once, long ones do not take the processor.
    if (elapsed > 0.01)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else
      std::this_thread::yield();
  }
}

llvm::Error World::Impl::execute(RankState &rank) {
  const Driver &cu = rank.device->driver();
  // Ranks start together, so that their times say something.
  ++ready;
  auto start = Clock::now();
  while (ready < ranks && !cancelled && secondsSince(start) < 10)
    std::this_thread::yield();
  llvm::Error failure =
      cu.check(cu.EventRecord(rank.start, rank.stream), "cuEventRecord");
  if (!failure && rank.replay)
    failure =
        cu.check(cu.GraphLaunch(rank.replay, rank.stream), "cuGraphLaunch");
  for (int64_t i = 0;
       i < options.launches && !failure && !rank.replay && !cancelled; ++i)
    failure = rank.kernel->launch(rank.stream);
  if (!failure)
    failure = cu.check(cu.EventRecord(rank.stop, rank.stream), "cuEventRecord");
  if (failure)
    cancelled = true; // Peers must not wait for launches that do not come.
  llvm::Error ended = waitFor(rank);
  if (failure || ended)
    return llvm::joinErrors(std::move(failure), std::move(ended));
  float milliseconds = 0;
  if (auto error =
          cu.check(cu.EventElapsedTime(&milliseconds, rank.start, rank.stop),
                   "cuEventElapsedTime"))
    return error;
  rank.microseconds = double(milliseconds) * 1000;
  return llvm::Error::success();
}

/// A report of all that is known: records of the ranks that gave up, else the
/// error.
cpu::RunError World::Impl::explain(llvm::Error error, bool whileRunning) {
  broken = true;
  std::string text = llvm::toString(std::move(error));
  cpu::RunError report;
  report.message = text;
  if (!whileRunning)
    return report;
  for (auto [number, rank] : llvm::enumerate(states)) {
    auto record = rank.kernel->failure();
    if (!record)
      continue;
    cpu::Waiting waiting;
    waiting.rank = int64_t(number);
    waiting.block = record->block;
    if (record->site < kernel.sites().size()) {
      waiting.op = kernel.sites()[record->site].op;
      waiting.location = kernel.sites()[record->site].location;
    }
    waiting.what = describeFailure(*record);
    bool bounds = mlir::comms::nvvm::PollKind(record->kind) ==
                  mlir::comms::nvvm::PollKind::Bounds;
    if (report.waiting.empty() || bounds)
      report.kind = bounds ? cpu::RunError::Bounds : cpu::RunError::Deadlock;
    report.waiting.push_back(std::move(waiting));
  }
  if (report.waiting.empty()) {
    if (text.empty()) {
      report.kind = cpu::RunError::TimeLimit;
      report.message =
          llvm::formatv("the run has not ended after {0} s and was "
                        "stopped",
                        runSeconds());
    }
    return report;
  }
  report.message = llvm::formatv(
      report.kind == cpu::RunError::Bounds
          ? "{0} of {1} ranks stopped at an access outside its memory{2}"
          : "{0} of {1} ranks gave up waiting after {3} s{2}",
      report.waiting.size(), ranks, text.empty() ? "" : " (" + text + ")",
      options.timeout);
  return report;
}

std::variant<cpu::RunStats, cpu::RunError> World::Impl::run() {
  if (broken)
    return explain(fail("the world has failed before; make a new one"), false);
  if (auto error =
          together("copying to the GPU", kSetupSeconds,
                   [this](RankState &rank, int) { return upload(rank); }))
    return explain(std::move(error), false);
  ready = 0;
  auto start = Clock::now();
  llvm::Error error = together(
      "running the kernel", runSeconds() + options.timeout + kAbortSeconds + 20,
      [this](RankState &rank, int) { return execute(rank); });
  double seconds = secondsSince(start);
  if (error || hasFailed())
    return explain(std::move(error), true);
  if (auto failure =
          together("copying from the GPU", kSetupSeconds,
                   [this](RankState &rank, int) { return download(rank); }))
    return explain(std::move(failure), false);
  cpu::RunStats stats;
  stats.totalMicroseconds = seconds * 1e6;
  for (const RankState &rank : states)
    stats.rankMicroseconds.push_back(rank.microseconds);
  return stats;
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

World::World(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}

World::~World() {
  impl->destroy();
  // Threads that are stuck still use it.
  if (impl->stuck)
    (void)impl.release();
}

llvm::Expected<std::unique_ptr<World>>
World::create(const jit::CudaKernel &kernel, const RunOptions &options) {
  auto chip = checkMachine(kernel.ranks(), options.devices);
  if (!chip)
    return chip.takeError();
  std::unique_ptr<World> world(
      new World(std::make_unique<Impl>(kernel, options)));
  if (auto error = world->impl->create())
    return std::move(error);
  return world;
}

llvm::MutableArrayRef<char> World::memory(unsigned arg, int64_t rank) {
  return impl->states[rank].host[arg];
}

void World::setScalar(unsigned arg, int64_t rank, llvm::ArrayRef<char> bytes) {
  impl->states[rank].kernel->bindScalar(arg, bytes);
}

std::variant<cpu::RunStats, cpu::RunError> World::run() { return impl->run(); }

llvm::StringRef World::getWindowsNote() const { return impl->windowsNote; }

bool World::isStuck() const { return impl->stuck; }
