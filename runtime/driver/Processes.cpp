//===- Processes.cpp - One process a GPU ----------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifdef COMMSIR_CUDA

#include "runtime/driver/Processes.h"

#include "runtime/cuda/Group.h"
#include "runtime/group/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Process.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace commsir;
using namespace commsir::driver;
using Clock = std::chrono::steady_clock;
using group::GroupError;

extern char **environ;

namespace {

/// First argument of a process that runs a rank.
constexpr llvm::StringLiteral kRankProcess = "--rank-process";
/// Arrays begin at multiples of this, on the GPU and in shared memory.
constexpr size_t kAlignment = 256;
/// What a rank may say of its run.
constexpr size_t kTextBytes = size_t(60) << 10;
/// Launches that one graph may hold.
constexpr int64_t kMaxGraphLaunches = 4096;
/// Seconds for opening a GPU, starting NCCL, copying memory.
constexpr double kSetupSeconds = 120;
/// Seconds that a kernel has to end after it was told to.
constexpr double kAbortSeconds = 5;

llvm::Error fail(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Strings as one string, and back.
std::string join(llvm::ArrayRef<std::string> fields) {
  std::string bytes;
  for (const std::string &field : fields) {
    uint64_t size = field.size();
    bytes.append(reinterpret_cast<const char *>(&size), sizeof(size));
    bytes += field;
  }
  return bytes;
}

std::vector<std::string> split(llvm::StringRef bytes) {
  std::vector<std::string> fields;
  uint64_t size = 0;
  while (bytes.size() >= sizeof(size)) {
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes = bytes.drop_front(sizeof(size));
    fields.push_back(bytes.take_front(size).str());
    bytes = bytes.drop_front(std::min<size_t>(size, bytes.size()));
  }
  return fields;
}

int64_t toNumber(llvm::StringRef text) {
  int64_t number = 0;
  text.getAsInteger(10, number);
  return number;
}

double toSeconds(llvm::StringRef text) {
  double seconds = 0;
  text.getAsDouble(seconds);
  return seconds;
}

//===----------------------------------------------------------------------===//
// Tasks and outcomes as text
//===----------------------------------------------------------------------===//

std::string writeTask(const RankTask &task) {
  auto seconds = [](double value) {
    return llvm::formatv("{0:f9}", value).str();
  };
  const group::KernelRequest &request = task.request;
  return join({task.group.name, std::to_string(task.group.ranks),
               seconds(task.group.timeout), task.group.windows, request.source,
               request.name, request.algorithm, request.protocol,
               std::to_string(request.blocks), std::to_string(request.threads),
               std::to_string(request.cluster), std::to_string(request.check),
               std::to_string(request.checkEvents), request.impl,
               std::to_string(task.launches), std::to_string(task.graph),
               seconds(task.timeLimit), task.rendezvous,
               std::to_string(request.firstLaunch)});
}

std::optional<RankTask> readTask(llvm::StringRef bytes) {
  std::vector<std::string> fields = split(bytes);
  if (fields.size() != 19)
    return std::nullopt;
  RankTask task;
  task.group.name = fields[0];
  task.group.ranks = toNumber(fields[1]);
  task.group.timeout = toSeconds(fields[2]);
  task.group.windows = fields[3];
  task.request.source = fields[4];
  task.request.name = fields[5];
  task.request.algorithm = fields[6];
  task.request.protocol = fields[7];
  task.request.blocks = toNumber(fields[8]);
  task.request.threads = toNumber(fields[9]);
  task.request.cluster = toNumber(fields[10]);
  task.request.check = fields[11] == "1";
  task.request.checkEvents = toNumber(fields[12]);
  task.request.impl = fields[13];
  task.request.firstLaunch = uint64_t(toNumber(fields[18]));
  task.launches = toNumber(fields[14]);
  task.graph = fields[15] == "1";
  task.timeLimit = toSeconds(fields[16]);
  task.rendezvous = fields[17];
  return task;
}

/// What became of one rank.
struct Outcome {
  double microseconds = 0;
  std::string windows;
  std::optional<cpu::RunError> error;
};

std::string writeOutcome(const Outcome &outcome) {
  std::vector<std::string> fields{
      llvm::formatv("{0:f3}", outcome.microseconds).str(), outcome.windows};
  if (const auto &error = outcome.error) {
    fields.push_back(std::to_string(int(error->kind)));
    fields.push_back(error->message);
    for (const cpu::Waiting &waiting : error->waiting) {
      fields.push_back(std::to_string(waiting.rank));
      fields.push_back(std::to_string(waiting.block));
      fields.push_back(waiting.op);
      fields.push_back(waiting.location);
      fields.push_back(waiting.what);
    }
  }
  return join(fields);
}

Outcome readOutcome(llvm::StringRef bytes) {
  std::vector<std::string> fields = split(bytes);
  Outcome outcome;
  if (fields.size() < 2)
    return outcome;
  outcome.microseconds = toSeconds(fields[0]);
  outcome.windows = fields[1];
  if (fields.size() < 4)
    return outcome;
  cpu::RunError error;
  error.kind = cpu::RunError::Kind(toNumber(fields[2]));
  error.message = fields[3];
  for (size_t i = 4; i + 4 < fields.size(); i += 5)
    error.waiting.push_back({toNumber(fields[i]), toNumber(fields[i + 1]),
                             fields[i + 2], fields[i + 3], fields[i + 4]});
  outcome.error = std::move(error);
  return outcome;
}

cpu::RunError toRunError(llvm::Error error) {
  cpu::RunError report;
  llvm::handleAllErrors(
      std::move(error),
      [&](const GroupError &known) {
        report.message = known.getMessage();
        report.waiting = known.getWaiting().vec();
        bool waited = known.getKind() == GroupError::Kind::Peer ||
                      known.getKind() == GroupError::Kind::Disagree;
        if (known.getKind() == GroupError::Kind::Bounds)
          report.kind = cpu::RunError::Bounds;
        else if (waited && !report.waiting.empty())
          report.kind = cpu::RunError::Deadlock;
      },
      [&](const llvm::ErrorInfoBase &other) {
        report.message = other.message();
      });
  return report;
}

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

/// How a rank knows of the others of its run.
struct Neighbours {
  /// Waits until all are about to launch.
  std::function<void()> meet = [] {};
  /// The run was called off.
  std::function<bool()> isCancelled = [] { return false; };
};

/// A rank from its group to its results.
class RankRun {
public:
  explicit RankRun(const RankTask &task) : task(task) {}
  ~RankRun();

  /// `host` has the arrays of the arguments that are not hidden, and the
  /// scalars' bytes.
  Outcome run(llvm::ArrayRef<llvm::MutableArrayRef<char>> host,
              const Neighbours &neighbours);
  /// Its kernel does not end; the process should leave without cleaning up.
  bool isStuck() const { return stuck; }

private:
  llvm::Error start();
  llvm::Error allocate();
  llvm::Error launchAll(const Neighbours &neighbours, double &microseconds);
  llvm::Error launchOnce();
  llvm::Error capture();
  llvm::Error waitForEnd(const Neighbours &neighbours);
  llvm::Error copy(bool in);
  double limit() const;
  const cuda::Driver &driver() const {
    return cuda::getDevice(*group).driver();
  }
  bool isArray(size_t i) const {
    return kernel->args()[i].kind == jit::ArgKind::Window ||
           kernel->args()[i].kind == jit::ArgKind::Memory;
  }

  RankTask task;
  std::unique_ptr<group::Store> store;
  std::unique_ptr<group::Group> group;
  group::GroupKernel *kernel = nullptr;
  std::optional<cuda::Memory> memory;
  std::vector<llvm::MutableArrayRef<char>> host;
  std::vector<group::Argument> arguments;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec replay = nullptr;
  bool stuck = false, timedOut = false;
};

RankRun::~RankRun() {
  if (!group || stuck)
    return;
  const cuda::Driver &cu = driver();
  cuda::ContextGuard guard(cu, cuda::getDevice(*group).context());
  if (replay)
    cu.GraphExecDestroy(replay);
  if (graph)
    cu.GraphDestroy(graph);
  for (CUevent event : {begin, end})
    if (event)
      cu.EventDestroy(event);
  if (stream)
    cu.StreamDestroy(stream);
  memory.reset();
}

llvm::Error RankRun::start() {
  if (task.graph && task.launches > kMaxGraphLaunches)
    return fail(llvm::formatv("{0} launches in one graph are too many; at most "
                              "{1}",
                              task.launches, kMaxGraphLaunches)
                    .str());
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
  return allocate();
}

/// One window and one piece of memory for all arguments.
llvm::Error RankRun::allocate() {
  std::vector<size_t> offsets;
  size_t windowBytes = 0, memoryBytes = 0;
  for (const jit::ArgInfo &argument : kernel->args()) {
    size_t &total =
        argument.kind == jit::ArgKind::Window ? windowBytes : memoryBytes;
    offsets.push_back(total);
    if (argument.kind == jit::ArgKind::Window ||
        argument.kind == jit::ArgKind::Memory)
      total = llvm::alignTo(total + argument.bytes(), kAlignment);
  }
  auto window = group->allocate(windowBytes);
  if (!window)
    return window.takeError();
  auto own = cuda::Memory::allocate(cuda::getDevice(*group), memoryBytes);
  if (!own)
    return own.takeError();
  memory.emplace(std::move(*own));
  for (auto [i, argument] : llvm::enumerate(kernel->args())) {
    group::Argument value;
    if (argument.kind == jit::ArgKind::Scalar) {
      value = {host[i].data(), argument.elementBytes};
    } else if (isArray(i)) {
      char *base = argument.kind == jit::ArgKind::Window
                       ? static_cast<char *>(*window)
                       : reinterpret_cast<char *>(memory->address());
      value = {base + offsets[i], argument.bytes()};
    }
    arguments.push_back(value);
  }
  const cuda::Driver &cu = driver();
  for (auto [result, what] :
       {std::pair(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                  "cuStreamCreate"),
        std::pair(cu.EventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate"),
        std::pair(cu.EventCreate(&end, CU_EVENT_DEFAULT), "cuEventCreate")})
    if (auto error = cu.check(result, what))
      return error;
  return llvm::Error::success();
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

llvm::Error RankRun::launchOnce() {
  return group->launch(*kernel, arguments, stream);
}

llvm::Error RankRun::capture() {
  const cuda::Driver &cu = driver();
  if (auto error = cu.check(
          cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cuStreamBeginCapture"))
    return error;
  llvm::Error failure = llvm::Error::success();
  for (int64_t i = 0; i < task.launches && !failure; ++i)
    failure = launchOnce();
  CUresult ended = cu.StreamEndCapture(stream, &graph);
  if (failure)
    return failure;
  if (auto error = cu.check(ended, "cuStreamEndCapture"))
    return error;
  return cu.check(cu.GraphInstantiate(&replay, graph, 0), "cuGraphInstantiate");
}

double RankRun::limit() const {
  if (task.timeLimit > 0)
    return task.timeLimit;
  return 3 * task.group.timeout + 20 + 1e-3 * double(task.launches);
}

llvm::Error RankRun::waitForEnd(const Neighbours &neighbours) {
  const cuda::Driver &cu = driver();
  auto start = Clock::now();
  std::optional<Clock::time_point> stopped;
  llvm::Error failure = llvm::Error::success();
  while (true) {
    CUresult result = cu.StreamQuery(stream);
    if (result == CUDA_SUCCESS)
      break;
    if (result != CUDA_ERROR_NOT_READY) {
      stuck = true;
      return llvm::joinErrors(
          std::move(failure),
          cu.check(result, "running kernel '" + kernel->name() + "'"));
    }
    bool isLate = secondsSince(start) > limit();
    if (!stopped && (isLate || neighbours.isCancelled())) {
      timedOut = isLate;
      group->abort(isLate ? "the time is over" : "another rank has failed");
      stopped = Clock::now();
    }
    if (!stopped)
      if ((failure = group->poll()))
        stopped = Clock::now();
    if (stopped && secondsSince(*stopped) > kAbortSeconds) {
      stuck = true;
      return llvm::joinErrors(
          std::move(failure),
          fail("the kernel does not end, although it was asked to"));
    }
    if (secondsSince(start) > 0.01)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else
      std::this_thread::yield();
  }
  return failure ? std::move(failure) : group->poll();
}

llvm::Error RankRun::launchAll(const Neighbours &neighbours,
                               double &microseconds) {
  const cuda::Driver &cu = driver();
  if (task.graph)
    if (auto error = capture())
      return error;
  neighbours.meet();
  llvm::Error failure =
      cu.check(cu.EventRecord(begin, stream), "cuEventRecord");
  if (!failure && replay)
    failure = cu.check(cu.GraphLaunch(replay, stream), "cuGraphLaunch");
  for (int64_t i = 0; i < task.launches && !failure && !replay; ++i)
    failure = launchOnce();
  if (!failure)
    failure = cu.check(cu.EventRecord(end, stream), "cuEventRecord");
  llvm::Error ended = waitForEnd(neighbours);
  if (failure) { // Of both, what a launch refused is what came first.
    llvm::consumeError(std::move(ended));
    return failure;
  }
  if (ended)
    return ended;
  float milliseconds = 0;
  if (auto error = cu.check(cu.EventElapsedTime(&milliseconds, begin, end),
                            "cuEventElapsedTime"))
    return error;
  microseconds = double(milliseconds) * 1000;
  return llvm::Error::success();
}

Outcome RankRun::run(llvm::ArrayRef<llvm::MutableArrayRef<char>> given,
                     const Neighbours &neighbours) {
  host.assign(given.begin(), given.end());
  Outcome outcome;
  llvm::Error error = start();
  if (!error) {
    cuda::ContextGuard guard(driver(), cuda::getDevice(*group).context());
    outcome.windows = cuda::getWindowsNote(*group).str();
    error = copy(true);
    if (!error)
      error = launchAll(neighbours, outcome.microseconds);
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
                      limit())
            .str();
  }
  return outcome;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

struct RankSlot {
  std::atomic<uint32_t> isDone;
  uint32_t textBytes;
  char text[kTextBytes];
};

/// Start of what the processes of a run share; slots, task and arrays follow.
struct Shared {
  uint64_t ranks, taskOffset, taskBytes, arraysOffset, arraysBytes;
  /// Ranks that are about to launch; ranks that have ended.
  std::atomic<uint32_t> ready, ended;
  std::atomic<uint32_t> cancelled;

  RankSlot &slot(int64_t rank) {
    return reinterpret_cast<RankSlot *>(this + 1)[rank];
  }
  char *at(uint64_t offset) { return reinterpret_cast<char *>(this) + offset; }
};

/// Places of a rank's arrays, one after the other.
struct ArrayPlaces {
  /// Of the arguments that are not hidden.
  std::vector<size_t> offsets, sizes;
  size_t bytes = 0;

  void add(const jit::ArgInfo &argument) {
    offsets.push_back(bytes);
    sizes.push_back(argument.kind == jit::ArgKind::Scalar ? 8
                                                          : argument.bytes());
    bytes = llvm::alignTo(bytes + sizes.back(), kAlignment);
  }
};

/// Numbers, sizes, and no more: the child compares them with its own kernel.
std::string describeArrays(const ArrayPlaces &places) {
  std::string text;
  for (size_t size : places.sizes)
    text += std::to_string(size) + " ";
  return text;
}

//===----------------------------------------------------------------------===//
// Worlds
//===----------------------------------------------------------------------===//

/// What worlds of ranks in processes have in common.
class RanksWorld : public World {
public:
  RanksWorld(const RankTask &task, const jit::CudaKernel &kernel)
      : task(task), numbers(kernel.args().size(), -1) {
    for (auto [i, argument] : llvm::enumerate(kernel.args()))
      if (!argument.hidden) {
        numbers[i] = int(places.offsets.size());
        places.add(argument);
      }
  }
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank) override {
    if (numbers[arg] < 0 || !arraysOf(rank))
      return {};
    return {arraysOf(rank) + places.offsets[numbers[arg]],
            places.sizes[numbers[arg]]};
  }
  void setScalar(unsigned arg, int64_t rank,
                 llvm::ArrayRef<char> bytes) override {
    llvm::MutableArrayRef<char> place = memory(arg, rank);
    if (!place.empty())
      std::memcpy(place.data(), bytes.data(),
                  std::min(bytes.size(), place.size()));
  }
  std::string windows;

protected:
  virtual char *arraysOf(int64_t rank) = 0;
  static std::vector<llvm::MutableArrayRef<char>>
  arraysAt(const ArrayPlaces &places, char *base) {
    std::vector<llvm::MutableArrayRef<char>> arrays;
    for (auto [offset, size] : llvm::zip(places.offsets, places.sizes))
      arrays.push_back({base + offset, size});
    return arrays;
  }

  RankTask task;
  ArrayPlaces places;
  /// By argument: its number among those that are not hidden, or -1.
  std::vector<int> numbers;
};

/// This process is one rank.
class OneRankWorld final : public RanksWorld {
public:
  OneRankWorld(const RankTask &task, const jit::CudaKernel &kernel,
               JobPlace place)
      : RanksWorld(task, kernel), place(place),
        arrays(llvm::alignTo(std::max<size_t>(places.bytes, 1), 8) / 8) {}

  std::variant<cpu::RunStats, cpu::RunError> run() override {
    RankRun rank(task);
    Outcome outcome = rank.run(arraysAt(places, arraysOf(place.rank)), {});
    windows = outcome.windows;
    anyStuck = anyStuck || rank.isStuck();
    if (outcome.error)
      return *outcome.error;
    cpu::RunStats stats;
    stats.rankMicroseconds.assign(size_t(place.ranks), 0);
    stats.rankMicroseconds[place.rank] = outcome.microseconds;
    stats.totalMicroseconds = outcome.microseconds;
    return stats;
  }
  static std::atomic<bool> anyStuck;

  bool isLocal(int64_t rank) const override { return rank == place.rank; }

private:
  char *arraysOf(int64_t rank) override {
    return rank == place.rank ? reinterpret_cast<char *>(arrays.data())
                              : nullptr;
  }
  JobPlace place;
  std::vector<uint64_t> arrays;
};
std::atomic<bool> OneRankWorld::anyStuck{false};

/// Every rank is a process that this one starts.
class ProcessWorld final : public RanksWorld {
public:
  ProcessWorld(const RankTask &task, const jit::CudaKernel &kernel,
               llvm::ArrayRef<int> devices)
      : RanksWorld(task, kernel), devices(devices.begin(), devices.end()) {}
  ~ProcessWorld() override;
  llvm::Error create();
  std::variant<cpu::RunStats, cpu::RunError> run() override;

private:
  struct Child {
    pid_t pid = 0;
    int status = 0;
    bool isRunning = false;
  };
  char *arraysOf(int64_t rank) override {
    return shared->at(shared->arraysOffset) + size_t(rank) * places.bytes;
  }
  int64_t ranks() const { return task.group.ranks; }
  llvm::Error spawn(int64_t rank);
  void await();
  void collect();
  cpu::RunError explain(llvm::ArrayRef<Outcome> outcomes) const;

  std::vector<int> devices;
  int file = -1;
  size_t bytes = 0;
  Shared *shared = nullptr;
  llvm::SmallString<128> folder;
  std::vector<Child> children;
};

ProcessWorld::~ProcessWorld() {
  for (Child &child : children)
    if (child.isRunning) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  if (shared)
    munmap(shared, bytes);
  if (file >= 0)
    close(file);
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

llvm::Error ProcessWorld::create() {
  if (auto error = llvm::sys::fs::createUniqueDirectory("commsir-run", folder))
    return fail("no folder for the ranks to meet in: " + error.message());
  task.rendezvous = std::string(folder);
  std::string text = join({writeTask(task), describeArrays(places)});
  size_t slots = sizeof(Shared) + sizeof(RankSlot) * size_t(ranks());
  size_t arrays = llvm::alignTo(slots + text.size(), 4096);
  if (__builtin_mul_overflow(places.bytes, size_t(ranks()), &bytes) ||
      __builtin_add_overflow(bytes, arrays, &bytes))
    return fail("the kernel's arguments are too large");
  file = memfd_create("commsir-run", 0);
  if (file < 0 || ftruncate(file, off_t(bytes)))
    return fail(llvm::Twine("memory to share with the ranks: ") +
                std::strerror(errno));
  void *mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    return fail(llvm::Twine("memory to share with the ranks: ") +
                std::strerror(errno));
  shared = new (mapped) Shared{};
  shared->ranks = uint64_t(ranks());
  shared->taskOffset = slots;
  shared->taskBytes = text.size();
  shared->arraysOffset = arrays;
  shared->arraysBytes = places.bytes;
  std::memcpy(shared->at(slots), text.data(), text.size());
  return llvm::Error::success();
}

llvm::Error ProcessWorld::spawn(int64_t rank) {
  int device = devices.empty() ? int(rank) : devices[rank];
  std::string words[] = {"comms-run", kRankProcess.str(), std::to_string(file),
                         std::to_string(rank), std::to_string(device)};
  char *arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  // Standard output is the report's alone.
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  int failed = posix_spawn(&children[rank].pid, "/proc/self/exe", &actions,
                           nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    return fail("rank " + llvm::Twine(rank) +
                " could not be started: " + std::strerror(failed));
  children[rank].isRunning = true;
  return llvm::Error::success();
}

/// Takes note of processes that have ended.
void ProcessWorld::collect() {
  for (Child &child : children)
    if (child.isRunning &&
        waitpid(child.pid, &child.status, WNOHANG) == child.pid)
      child.isRunning = false;
}

/// Waits for all processes; those that stay after one has failed are stopped.
void ProcessWorld::await() {
  auto start = Clock::now();
  double timeout = task.group.timeout;
  double limit = task.timeLimit > 0
                     ? task.timeLimit
                     : 3 * timeout + 20 + 1e-3 * double(task.launches);
  std::optional<Clock::time_point> failed;
  auto isRunning = [](const Child &child) { return child.isRunning; };
  while (llvm::any_of(children, isRunning)) {
    collect();
    bool broken = llvm::any_of(children, [](const Child &child) {
      return !child.isRunning && child.status != 0;
    });
    if (!failed && broken)
      failed = Clock::now();
    // Peers of a rank that has failed get the time to say for what they wait.
    if (failed && secondsSince(*failed) > timeout + 2)
      shared->cancelled = 1;
    bool isLate = secondsSince(start) > limit + kSetupSeconds + 2 * timeout;
    if (isLate ||
        (failed && secondsSince(*failed) > timeout + 2 + 2 * kAbortSeconds))
      for (Child &child : children)
        if (child.isRunning)
          kill(child.pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Text without numbers: what ranks say of the same thing differs in those.
std::string withoutNumbers(llvm::StringRef text) {
  std::string rest;
  llvm::copy_if(text, std::back_inserter(rest),
                [](char c) { return !llvm::isDigit(c); });
  return rest;
}

/// One report of all that the ranks say; what several say is told once.
cpu::RunError ProcessWorld::explain(llvm::ArrayRef<Outcome> outcomes) const {
  cpu::RunError report;
  std::vector<std::string> told;
  for (auto [rank, outcome] : llvm::enumerate(outcomes)) {
    if (!outcome.error)
      continue;
    const cpu::RunError &error = *outcome.error;
    bool isWorse = report.kind == cpu::RunError::Other ||
                   error.kind == cpu::RunError::Bounds;
    if (isWorse && error.kind != cpu::RunError::Other)
      report.kind = error.kind;
    llvm::append_range(report.waiting, error.waiting);
    std::string text = error.message;
    if (!llvm::StringRef(text).starts_with("rank "))
      text = "rank " + std::to_string(rank) + ": " + text;
    std::string bare = withoutNumbers(text);
    // "rank 0: rank 2: no memory" and rank 2's own "rank 2: no memory" are one.
    bool known = llvm::any_of(told, [&](llvm::StringRef earlier) {
      return earlier.ends_with(bare) ||
             llvm::StringRef(bare).ends_with(earlier);
    });
    if (known && error.waiting.empty())
      continue;
    told.push_back(bare);
    report.message += (report.message.empty() ? "" : "\n") + text;
  }
  return report;
}

std::variant<cpu::RunStats, cpu::RunError> ProcessWorld::run() {
  children.assign(size_t(ranks()), Child());
  for (int64_t rank = 0; rank < ranks(); ++rank)
    if (auto error = spawn(rank))
      return cpu::RunError{
          cpu::RunError::Other, llvm::toString(std::move(error)), {}};
  await();
  std::vector<Outcome> outcomes;
  cpu::RunStats stats;
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    RankSlot &slot = shared->slot(rank);
    Outcome outcome;
    if (slot.isDone)
      outcome = readOutcome({slot.text, slot.textBytes});
    else
      outcome.error = cpu::RunError{
          cpu::RunError::Other,
          WIFSIGNALED(children[rank].status)
              ? llvm::formatv("rank {0}: its process was ended by signal {1}",
                              rank, WTERMSIG(children[rank].status))
                    .str()
              : llvm::formatv("rank {0}: its process ended with status {1}",
                              rank, WEXITSTATUS(children[rank].status))
                    .str(),
          {}};
    if (windows.empty())
      windows = outcome.windows;
    stats.rankMicroseconds.push_back(outcome.microseconds);
    outcomes.push_back(std::move(outcome));
  }
  if (llvm::any_of(outcomes, [](const Outcome &o) { return o.error; }))
    return explain(outcomes);
  stats.totalMicroseconds = *llvm::max_element(stats.rankMicroseconds);
  return stats;
}

//===----------------------------------------------------------------------===//
// A rank's process
//===----------------------------------------------------------------------===//

/// Waits for the other ranks, so that times say something.
void meet(Shared &shared) {
  ++shared.ready;
  auto start = Clock::now();
  while (shared.ready < shared.ranks && !shared.ended && !shared.cancelled &&
         secondsSince(start) < 10)
    std::this_thread::yield();
}

int runRank(int file, int64_t rank, int device) {
  // Nobody would read what it computes.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  off_t bytes = lseek(file, 0, SEEK_END);
  void *mapped = bytes < off_t(sizeof(Shared))
                     ? MAP_FAILED
                     : mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    return ExitUsage;
  auto &shared = *static_cast<Shared *>(mapped);
  std::vector<std::string> texts =
      split({shared.at(shared.taskOffset), shared.taskBytes});
  std::optional<RankTask> task;
  if (texts.size() == 2)
    task = readTask(texts[0]);
  if (!task || rank < 0 || rank >= int64_t(shared.ranks))
    return ExitUsage;
  task->group.rank = rank;
  task->group.device = device;

  std::vector<llvm::MutableArrayRef<char>> arrays;
  char *base =
      shared.at(shared.arraysOffset) + size_t(rank) * shared.arraysBytes;
  llvm::SmallVector<llvm::StringRef> sizes;
  llvm::StringRef(texts[1]).split(sizes, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef size : sizes) {
    arrays.push_back({base, size_t(toNumber(size))});
    base += llvm::alignTo(arrays.back().size(), kAlignment);
  }
  Neighbours neighbours;
  neighbours.meet = [&] { meet(shared); };
  neighbours.isCancelled = [&] { return shared.cancelled != 0; };
  auto run = std::make_unique<RankRun>(*task);
  Outcome outcome = run->run(arrays, neighbours);
  ++shared.ended;
  RankSlot &slot = shared.slot(rank);
  std::string text = writeOutcome(outcome);
  slot.textBytes = uint32_t(std::min(text.size(), kTextBytes));
  std::memcpy(slot.text, text.data(), slot.textBytes);
  slot.isDone = 1;
  if (outcome.error)
    _exit(1); // Cleaning up may wait for peers.
  run.reset();
  return 0;
}

} // namespace

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

llvm::Expected<JobPlace> JobPlace::find() {
  auto read = [](std::initializer_list<const char *> names,
                 int64_t &out) -> bool {
    for (const char *name : names)
      if (auto text = llvm::sys::Process::GetEnv(name))
        return !llvm::StringRef(*text).getAsInteger(10, out);
    return false;
  };
  JobPlace place;
  int64_t local = 0;
  if (!read({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"},
            place.rank) ||
      !read({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"},
            place.ranks))
    return fail("--rendezvous makes this process one rank of a job: the "
                "variables RANK and WORLD_SIZE (as torchrun sets them) must "
                "say which");
  if (place.ranks < 1 || place.rank < 0 || place.rank >= place.ranks)
    return fail(llvm::formatv("RANK is {0} and WORLD_SIZE {1}: ranks count "
                              "from 0",
                              place.rank, place.ranks)
                    .str());
  if (!read({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
             "SLURM_LOCALID"},
            local))
    local = place.rank;
  place.local = int(local);
  return place;
}

llvm::Expected<std::unique_ptr<World>>
commsir::driver::createProcessWorld(const RankTask &task,
                                    const jit::CudaKernel &kernel,
                                    llvm::ArrayRef<int> devices) {
  auto world = std::make_unique<ProcessWorld>(task, kernel, devices);
  if (auto error = world->create())
    return std::move(error);
  return world;
}

llvm::Expected<std::unique_ptr<World>> commsir::driver::createRankWorld(
    const RankTask &task, const jit::CudaKernel &kernel, JobPlace place) {
  return std::make_unique<OneRankWorld>(task, kernel, place);
}

std::string commsir::driver::getWindowsNote(const World &world) {
  return static_cast<const RanksWorld &>(world).windows;
}

bool commsir::driver::isRankStuck() { return OneRankWorld::anyStuck; }

std::optional<int>
commsir::driver::runAsRank(llvm::ArrayRef<const char *> arguments) {
  if (arguments.size() != 5 || arguments[1] != kRankProcess)
    return std::nullopt;
  return runRank(int(toNumber(arguments[2])), toNumber(arguments[3]),
                 int(toNumber(arguments[4])));
}

#endif // COMMSIR_CUDA
