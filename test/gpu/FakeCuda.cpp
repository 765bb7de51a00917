//===- FakeCuda.cpp - A CUDA driver without a GPU -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces libcuda.so.1, so that the CUDA runtime's own work (memory, windows,
// parameters, streams, limits, reports) is tested on any machine. Device memory
// is the host's; processes can share virtual memory. Streams run in order and
// without delay: a launch returns after its kernel has ended. Captured launches
// run when the graph is launched. No code runs: the fake knows the kernels of
// the device library by name, and COMMSIR_FAKE_KERNEL defines the effect of all
// other kernels:
//
//   sum N     two windows x, y of N f32: y of this rank is the sum of all x
//   exchange N  the same, by ranks that run separately: they synchronize before
//             and after, over the barrier of one_shot/pull, mark their channels
//             busy, and time out as real kernels do
//   nccl N,A,B,C,D,E  the same as sum, by kernels that call NCCL: A to E are
//             the words of the parameters that hold the device communicator,
//             x's window and offset, and y's; the ranks synchronize before and
//             after over the device communicator (FakeNccl.cpp)
//   identity N,M,…  two arrays x, y of N bytes in the first launch, of M in the
//             next, and so on in turns: y is x, as for a group of one rank
//   timeout   reports a timeout, and ends
//   hang      runs until its abort word is set
//   stuck     runs forever
//
// COMMSIR_FAKE_GPUS is the number of GPUs. COMMSIR_FAKE_FAIL is the name,
// without `cu`, of a function that fails; a number after a blank limits this to
// the contexts of one GPU. COMMSIR_FAKE_ONE makes all GPUs the same one; with
// COMMSIR_FAKE_ALONE, none reaches another's memory. COMMSIR_FAKE_VERSION is
// the driver's version (13000), COMMSIR_FAKE_NAME the name of the GPUs
// ("fake"). COMMSIR_FAKE_MEMORY is the maximum size in bytes of an allocation
// for windows, COMMSIR_FAKE_RESIDENT the number of blocks per multiprocessor
// (2). With COMMSIR_FAKE_GUARD, freeing memory under a kernel that runs forever
// ends the process; the real driver would wait.
//
// fakeCalls returns how often a function was called, and how often an
// `exchange` began; fakeCounts returns it for all. fakeExhaust makes one of the
// next allocations fail. With COMMSIR_FAKE_QUICK
// nothing is counted, fails or runs, so that callers can be timed over a driver
// that takes almost no time.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/Abi.h"
#include "test/gpu/FakeNccl.h"

#include <cuda.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace abi = mlir::comms::nvvm;

namespace {

/// A captured launch, by value, a copy, or an operation on a cell.
struct Launch {
  std::vector<char> params;
  CUdeviceptr to = 0, from = 0;
  size_t bytes = 0;
  std::function<void()> cell = nullptr;
};

struct Graph {
  unsigned long long id = 0;
  std::vector<Launch> launches;
  bool isInvalid = false;
  /// Whose stream it is captured from.
  CUcontext context = nullptr;
};

struct Stream {
  /// What is captured, or null.
  Graph *capture = nullptr;
  /// State of a kernel that runs until it is aborted, or null.
  volatile uint64_t *running = nullptr;
  bool forever = false;
  CUcontext context = nullptr;
};

struct Event {
  std::chrono::steady_clock::time_point time;
};

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

std::mutex mutex;
/// Device memory; from kShared bytes on it has a file, by which other processes
/// open it.
struct Allocation {
  size_t bytes = 0;
  int file = -1;
};
constexpr size_t kShared = size_t(64) << 10;
std::map<char *, Allocation> allocated;
/// Virtual memory: what is mapped where.
std::map<char *, std::pair<size_t, int>> mappings;
std::map<std::string, unsigned long, std::less<>> calls;
unsigned long long captures = 0;
/// Those that are under way.
std::set<Graph *> capturing;
/// A kernel of this process runs forever.
std::atomic<bool> runsForever{false};
/// Functions that allocate, and how many more of their calls succeed before one
/// fails; negative: all do.
const std::set<std::string> allocating = {"MemAlloc",
                                          "MemHostAlloc",
                                          "MemCreate",
                                          "MemMap",
                                          "MemAddressReserve",
                                          "MemSetAccess",
                                          "ModuleLoadDataEx",
                                          "StreamCreate",
                                          "EventCreate",
                                          "GraphInstantiate",
                                          "MemHostRegister",
                                          "IpcOpenMemHandle",
                                          "MemImportFromShareableHandle"};
std::atomic<long> untilExhausted{-1};
thread_local std::vector<CUcontext> contexts;
thread_local CUstreamCaptureMode captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// The thread's current context, or null.
CUcontext current() { return contexts.empty() ? nullptr : contexts.back(); }

bool fails(const char *function) {
  std::string what = environment("COMMSIR_FAKE_FAIL");
  size_t space = what.find(' ');
  if (what.compare(0, space, function) != 0)
    return false;
  if (space == std::string::npos)
    return true;
  uintptr_t device = std::strtoull(what.c_str() + space, nullptr, 10);
  return reinterpret_cast<uintptr_t>(current()) == device + 1;
}

/// Functions that work on the current context, or on something of it that they
/// would not find without.
const std::set<std::string> needContext = {
    "CtxSynchronize",  "ModuleLoadDataEx", "LaunchKernelEx", "MemAlloc",
    "MemHostAlloc",    "MemcpyHtoD",       "MemcpyDtoH",     "MemsetD8",
    "MemsetD16",       "StreamCreate",     "EventCreate",    "MemGetInfo",
    "MemcpyHtoDAsync", "MemcpyDtoHAsync",  "MemcpyAsync",    "MemsetD8Async",
    "MemsetD16Async",  "MemsetD32Async"};

const bool isQuick = std::getenv("COMMSIR_FAKE_QUICK") != nullptr;

/// Blocks of any kernel that a multiprocessor holds.
const int residentBlocks = [] {
  std::string text = environment("COMMSIR_FAKE_RESIDENT");
  return text.empty() ? 2 : std::stoi(text);
}();

/// Takes memory for the first one alone: callers count what they take.
void note(const char *function) {
  std::lock_guard lock(mutex);
  if (auto known = calls.find(function); known != calls.end())
    ++known->second;
  else
    calls[function] = 1;
}

/// Counts the call; how it fails, if it is to.
CUresult enter(const char *function) {
  if (isQuick)
    return CUDA_SUCCESS;
  note(function);
  if (fails(function))
    return CUDA_ERROR_UNKNOWN;
  if (untilExhausted >= 0 && allocating.count(function) && !untilExhausted--)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (contexts.empty() && needContext.count(function))
    return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_SUCCESS;
}

CUresult allocate(void **pointer, size_t bytes) {
  // As coarse as the driver's, and dirty.
  Allocation made{(bytes + 511) / 512 * 512};
  if (bytes < kShared) {
    *pointer = std::aligned_alloc(512, made.bytes);
  } else {
    made.file = memfd_create("fake", MFD_CLOEXEC);
    *pointer = ftruncate(made.file, off_t(made.bytes))
                   ? MAP_FAILED
                   : mmap(nullptr, made.bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED, made.file, 0);
    if (*pointer == MAP_FAILED)
      *pointer = nullptr;
  }
  if (!*pointer)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*pointer, 0xAB, bytes);
  std::lock_guard lock(mutex);
  allocated[static_cast<char *>(*pointer)] = made;
  return CUDA_SUCCESS;
}

CUresult release(void *pointer) {
  std::lock_guard lock(mutex);
  auto found = allocated.find(static_cast<char *>(pointer));
  if (found == allocated.end())
    return CUDA_ERROR_INVALID_VALUE;
  if (found->second.file < 0) {
    std::free(pointer);
  } else {
    munmap(pointer, found->second.bytes);
    close(found->second.file);
  }
  allocated.erase(found);
  return CUDA_SUCCESS;
}

/// The entry of `map` that holds `address`; null: none.
template <typename Map, typename Size>
auto *findRange(Map &map, CUdeviceptr address, Size size) {
  auto *at = reinterpret_cast<char *>(address);
  auto after = map.upper_bound(at);
  bool found = after != map.begin() &&
               at < std::prev(after)->first + size(std::prev(after)->second);
  return found ? &*std::prev(after) : nullptr;
}
auto *findMapping(CUdeviceptr address) {
  return findRange(mappings, address, [](auto &one) { return one.first; });
}
auto *findAllocation(CUdeviceptr address) {
  return findRange(allocated, address, [](auto &one) { return one.bytes; });
}

/// What a handle for another process says.
struct IpcHandle {
  pid_t pid;
  int file;
  size_t bytes;
};

template <typename T>
T argument(void **arguments, int i) {
  return *static_cast<T *>(arguments[i]);
}

void probe(void **arguments) {
  auto *table = argument<char **>(arguments, 0);
  auto offset = argument<uint64_t>(arguments, 1);
  auto *out = argument<uint64_t *>(arguments, 2);
  for (int32_t i = 0; i < argument<int32_t>(arguments, 3); ++i)
    std::memcpy(out + i, table[i] + offset, sizeof(uint64_t));
}

/// The kernels of the device library that know NCCL's structures.
void resolve(void **arguments) {
  const auto &window = *argument<commsir::fake::FakeWindow *>(arguments, 0);
  auto **table = argument<char **>(arguments, 1);
  auto ranks = argument<int32_t>(arguments, 2);
  for (int32_t rank = 0; rank < ranks; ++rank)
    table[rank] = window.parts[rank];
  table[ranks] = reinterpret_cast<char *>(uint64_t(NCCL_VERSION_CODE));
}

void require(void **arguments) {
  auto *out = argument<commsir::fake::Requirements *>(arguments, 0);
  auto *sizes = argument<uint64_t *>(arguments, 1);
  const auto *needs = static_cast<const int32_t *>(arguments[2]);
  *out = {commsir::fake::kRequirementsMark,
          needs[0],
          needs[1],
          needs[2],
          needs[3],
          needs[4]};
  sizes[0] = sizeof(commsir::fake::Requirements);
  sizes[1] = sizeof(commsir::fake::DevComm);
}

void describeComm(void **arguments) {
  const auto &comm = *argument<commsir::fake::DevComm *>(arguments, 0);
  auto *out = argument<int64_t *>(arguments, 1);
  int64_t facts[] = {comm.rank,         comm.ranks,       comm.ranks,
                     comm.has.contexts, comm.has.signals, comm.has.counters,
                     comm.adapter};
  std::memcpy(out, facts, sizeof(facts));
}

/// Of a kernel that calls NCCL; `numbers` are those of COMMSIR_FAKE_KERNEL.
void sumByNccl(const abi::Launch &launch, const char *params,
               const std::string &numbers) {
  std::vector<size_t> n;
  for (const char *next = numbers.c_str(); n.size() < 6; ++next) {
    char *end = nullptr;
    n.push_back(std::strtoull(next, &end, 10));
    next = end;
  }
  auto word = [&](size_t place) {
    return reinterpret_cast<const uint64_t *>(params)[place];
  };
  auto *comm = reinterpret_cast<commsir::fake::DevComm *>(word(n[1]));
  auto *x = reinterpret_cast<commsir::fake::FakeWindow *>(word(n[2]));
  auto *y = reinterpret_cast<commsir::fake::FakeWindow *>(word(n[4]));
  uint64_t offset = word(n[3]), target = word(n[5]);
  bool fits = comm->mark == commsir::fake::kDevCommMark &&
              x->mark == commsir::fake::kWindowMark &&
              y->mark == commsir::fake::kWindowMark &&
              comm->rank == int(launch.rank) &&
              comm->ranks == int(launch.ranks);
  if (!fits || !meet(*comm->meeting, comm->ranks))
    return;
  for (size_t i = 0; i < n[0]; ++i) {
    float total = 0;
    for (uint32_t rank = 0; rank < launch.ranks; ++rank)
      total += reinterpret_cast<float *>(x->parts[rank] + offset)[i];
    reinterpret_cast<float *>(y->parts[launch.rank] + target)[i] = total;
  }
  meet(*comm->meeting, comm->ranks);
}

void sum(const abi::Launch &launch, const char *params, size_t count) {
  auto *x = reinterpret_cast<float *const *>(params + abi::kArgumentsOffset);
  float *y = x[launch.ranks + launch.rank];
  for (size_t i = 0; i < count; ++i) {
    float total = 0;
    for (uint32_t rank = 0; rank < launch.ranks; ++rank)
      total += x[rank][i];
    y[i] = total;
  }
}

void identity(const char *params, const std::string &sizes) {
  static std::string last;
  static size_t next = 0;
  if (sizes != last || next >= sizes.size())
    next = 0;
  last = sizes;
  char *end = nullptr;
  size_t bytes = std::strtoull(sizes.c_str() + next, &end, 10);
  next = size_t(end - sizes.c_str()) + 1;
  auto *arrays =
      reinterpret_cast<char *const *>(params + abi::kArgumentsOffset);
  std::memcpy(arrays[1], arrays[0], bytes);
}

/// Where a kernel reports its failures.
abi::ErrorRecord &recordOf(const abi::Launch &launch, const abi::State &state) {
  return *reinterpret_cast<abi::ErrorRecord *>(launch.record ? launch.record
                                                             : state.record);
}

void timeOut(const abi::Launch &launch, abi::State &state) {
  auto &record = recordOf(launch, state);
  record.kind = uint32_t(abi::PollKind::Barrier);
  record.site = 0;
  record.rank = launch.rank;
  record.block = 0;
  record.peer = (launch.rank + 1) % launch.ranks;
  record.seen = 3;
  record.wanted = 4;
  state.abort = 1;
  __atomic_store_n(&record.valid, 1u, __ATOMIC_RELEASE);
}

/// Waits until all ranks have come `generation` times; false: given up.
bool meet(const abi::Launch &launch, abi::State &state,
          uint32_t *const *barrier, uint32_t generation) {
  for (uint32_t peer = 0; peer < launch.ranks; ++peer)
    __atomic_store_n(barrier[peer] + launch.rank, generation, __ATOMIC_RELEASE);
  auto start = std::chrono::steady_clock::now();
  for (uint32_t peer = 0; peer < launch.ranks; ++peer)
    while (true) {
      uint32_t seen =
          __atomic_load_n(barrier[launch.rank] + peer, __ATOMIC_ACQUIRE);
      if (int32_t(seen - generation) >= 0)
        break;
      if (__atomic_load_n(&state.abort, __ATOMIC_ACQUIRE))
        return false;
      auto waited = std::chrono::steady_clock::now() - start;
      if (uint64_t(std::chrono::nanoseconds(waited).count()) > state.timeout) {
        auto &record = recordOf(launch, state);
        record.kind = uint32_t(abi::PollKind::Barrier);
        record.site = 0;
        record.rank = launch.rank;
        record.block = 0;
        record.peer = peer;
        record.seen = seen;
        record.wanted = generation;
        state.abort = 1;
        __atomic_store_n(&record.valid, 1u, __ATOMIC_RELEASE);
        return false;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  return true;
}

/// A kernel with the arguments x, y, a hidden window and the barrier.
void exchange(const abi::Launch &launch, abi::State &state, const char *params,
              size_t count) {
  auto *windows =
      reinterpret_cast<char *const *>(params + abi::kArgumentsOffset);
  auto *x = reinterpret_cast<float *const *>(windows);
  auto *barrier =
      reinterpret_cast<uint32_t *const *>(windows + 3 * launch.ranks);
  float *y = x[launch.ranks + launch.rank];
  auto *own = reinterpret_cast<abi::BlockState *>(
      reinterpret_cast<char *>(&state) + abi::getBlockOffset(0));
  uint32_t before = __atomic_exchange_n(&own->busy, 1u, __ATOMIC_ACQ_REL);
  note("exchange");
  uint64_t running = own->epoch + 1;
  if (meet(launch, state, barrier, uint32_t(2 * running - 1))) {
    for (size_t i = 0; i < count; ++i) {
      float total = 0;
      for (uint32_t rank = 0; rank < launch.ranks; ++rank)
        total += x[rank][i];
      y[i] = total;
    }
    meet(launch, state, barrier, uint32_t(2 * running));
  }
  if (before) {
    auto &record = recordOf(launch, state);
    record.kind = uint32_t(abi::PollKind::Busy);
    record.site = 1;
    state.abort = 1;
    __atomic_store_n(&record.valid, 1u, __ATOMIC_RELEASE);
  }
  for (uint32_t block = 0; block < state.grid[0]; ++block)
    own[block].epoch = running;
  __atomic_store_n(&own->busy, 0u, __ATOMIC_RELEASE);
}

/// Bytes of the parameters that a kernel known here reads.
size_t paramBytes(const char *params) {
  abi::Launch launch;
  std::memcpy(&launch, params, sizeof(launch));
  std::string what = environment("COMMSIR_FAKE_KERNEL");
  bool isNccl = what.rfind("nccl ", 0) == 0;
  bool four = isNccl || what.rfind("exchange ", 0) == 0;
  return abi::kArgumentsOffset + 8 * size_t(launch.ranks) * (four ? 4 : 2) +
         (isNccl ? 64 : 0);
}

void runKernel(Stream &stream, const char *params) {
  if (isQuick)
    return;
  abi::Launch launch;
  std::memcpy(&launch, params, sizeof(launch));
  auto &state = *reinterpret_cast<abi::State *>(launch.state);
  std::string what = environment("COMMSIR_FAKE_KERNEL");
  if (state.abort)
    return;
  if (what.rfind("sum ", 0) == 0)
    sum(launch, params, std::strtoull(what.c_str() + 4, nullptr, 10));
  else if (what.rfind("nccl ", 0) == 0)
    sumByNccl(launch, params, what.substr(5));
  else if (what.rfind("identity ", 0) == 0)
    identity(params, what.substr(9));
  else if (what.rfind("exchange ", 0) == 0)
    exchange(launch, state, params,
             std::strtoull(what.c_str() + 9, nullptr, 10));
  else if (what == "timeout")
    timeOut(launch, state);
  else if (what == "hang")
    stream.running = &state.abort;
  else if (what == "stuck")
    stream.forever = runsForever = true;
}

/// Operates on a cell of signals, now or when the graph runs.
void operate(CUstream stream, std::function<void()> cell) {
  auto *own = reinterpret_cast<Stream *>(stream);
  if (own && own->capture)
    own->capture->launches.push_back({{}, 0, 0, 0, std::move(cell)});
  else
    cell();
}

uint64_t *cellAt(CUdeviceptr cell) {
  return reinterpret_cast<uint64_t *>(cell);
}

/// The kernel that adds to a cell.
void addTo(CUstream stream, unsigned count, void **arguments) {
  auto *cells = static_cast<CUdeviceptr *>(arguments[0]);
  uint64_t value = *static_cast<uint64_t *>(arguments[1]);
  for (unsigned one = 0; one < count; ++one)
    operate(stream, [cell = cellAt(cells[one]), value] {
      __atomic_fetch_add(cell, value, __ATOMIC_RELEASE);
    });
}

/// As StreamSignals::Awaited, whose header needs LLVM.
struct Awaited {
  CUdeviceptr cell;
  uint32_t number, peer;
};

/// The kernel that waits for what it takes from cells, or says in an
/// ErrorRecord that it has given up.
void takeFrom(CUstream stream, unsigned count, void **arguments) {
  auto *cells = static_cast<Awaited *>(arguments[0]);
  auto value = *static_cast<int64_t *>(arguments[1]);
  auto limit = std::chrono::nanoseconds(
      std::min(*static_cast<uint64_t *>(arguments[2]), uint64_t(1) << 62));
  auto *record = reinterpret_cast<mlir::comms::nvvm::ErrorRecord *>(
      *static_cast<CUdeviceptr *>(arguments[3]));
  auto take = [=](Awaited awaited) {
    auto *cell = cellAt(awaited.cell);
    auto start = std::chrono::steady_clock::now();
    uint64_t seen = 0;
    while (int64_t(seen = __atomic_load_n(cell, __ATOMIC_ACQUIRE)) < value) {
      if (std::chrono::steady_clock::now() - start < limit &&
          !__atomic_load_n(&record->valid, __ATOMIC_ACQUIRE)) {
        std::this_thread::yield();
        continue;
      }
      if (__atomic_load_n(&record->valid, __ATOMIC_ACQUIRE))
        return;
      record->site = awaited.number;
      record->peer = awaited.peer;
      record->seen = seen;
      record->wanted = uint64_t(value);
      __atomic_store_n(&record->valid, 1, __ATOMIC_RELEASE);
      return;
    }
    __atomic_fetch_sub(cell, uint64_t(value), __ATOMIC_RELAXED);
  };
  for (unsigned one = 0; one < count; ++one)
    operate(stream, [=, awaited = cells[one]] { take(awaited); });
}

/// This driver's streams do what they are given at once: so waits last.
void await(CUdeviceptr where, uint64_t value, unsigned flags) {
  while (true) {
    uint64_t now = __atomic_load_n(cellAt(where), __ATOMIC_ACQUIRE);
    if (flags == CU_STREAM_WAIT_VALUE_EQ ? now == value
                                         : int64_t(now - value) >= 0)
      return;
    std::this_thread::yield();
  }
}

void copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  auto *own = reinterpret_cast<Stream *>(stream);
  if (own && own->capture)
    own->capture->launches.push_back({{}, to, from, bytes});
  else
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
                bytes);
}

} // namespace

#define FAKE(name, ...)                                                        \
  extern "C" CUresult cu##name(__VA_ARGS__) {                                  \
    if (CUresult bad = enter(#name))                                           \
      return bad;
#define END                                                                    \
  return CUDA_SUCCESS;                                                         \
  }

FAKE(Init, unsigned)
// As the driver, which shows GPUs to nobody then.
if (environment("COMMSIR_FAKE_GPUS") == "0")
  return CUDA_ERROR_NO_DEVICE;
END FAKE(DriverGetVersion, int *version) *version =
    environment("COMMSIR_FAKE_VERSION").empty()
        ? 13000
        : std::atoi(environment("COMMSIR_FAKE_VERSION").c_str());
END FAKE(GetErrorName, CUresult, const char **text) *text = "FAKE_ERROR";
END FAKE(GetErrorString, CUresult, const char **text) *text = "as asked for";
END FAKE(DeviceGetCount, int *count) *count =
    std::atoi(environment("COMMSIR_FAKE_GPUS").c_str());
END FAKE(DeviceGet, CUdevice *device, int ordinal) *device = ordinal;
END FAKE(DeviceGetName, char *name, int size,
         CUdevice) std::strncpy(name,
                                environment("COMMSIR_FAKE_NAME").empty()
                                    ? "fake"
                                    : environment("COMMSIR_FAKE_NAME").c_str(),
                                size);
END FAKE(DeviceGetAttribute, int *value, CUdevice_attribute attribute,
         CUdevice) *value =
    attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
    : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                : 132;
END FAKE(DeviceGetUuid, CUuuid *uuid,
         CUdevice device) std::memset(uuid, 0, sizeof(*uuid));
uuid->bytes[0] = environment("COMMSIR_FAKE_ONE").empty() ? char(device + 1) : 1;
END FAKE(DeviceCanAccessPeer, int *can, CUdevice,
         CUdevice) *can = environment("COMMSIR_FAKE_ALONE").empty();
END FAKE(DevicePrimaryCtxRetain, CUcontext *context, CUdevice device) *context =
    reinterpret_cast<CUcontext>(uintptr_t(device) + 1);
END FAKE(DevicePrimaryCtxRelease, CUdevice)
END FAKE(DevicePrimaryCtxGetState, CUdevice, unsigned *flags,
         int *active) *flags = 0;
*active = 1;
END FAKE(CtxPushCurrent, CUcontext context) contexts.push_back(context);
END FAKE(CtxPopCurrent, CUcontext *context) if (
    contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
*context = contexts.back();
contexts.pop_back();
END FAKE(CtxGetCurrent, CUcontext *context) *context = current();
END FAKE(CtxSetCurrent, CUcontext context) contexts.assign(1, context);
END FAKE(CtxSynchronize) std::lock_guard lock(mutex);
// Whatever the thread's mode, as on an H200; those of other GPUs go on.
bool ended = false;
for (Graph *graph : capturing)
  if (graph->context == current())
    ended = graph->isInvalid = true;
if (ended)
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
END FAKE(CtxEnablePeerAccess, CUcontext, unsigned) END
    FAKE(ModuleLoadDataEx, CUmodule *module, const void *, unsigned,
         CUjit_option *, void **) *module = reinterpret_cast<CUmodule>(1);
END FAKE(ModuleUnload, CUmodule)
END FAKE(ModuleGetFunction, CUfunction *function, CUmodule,
         const char *name) *function =
    reinterpret_cast<CUfunction>(
        uintptr_t(!std::strcmp(name, "commsir_probe_window")     ? 2
                  : !std::strcmp(name, "commsir_add_signal")     ? 4
                  : !std::strcmp(name, "commsir_take_signal")    ? 8
                  : !std::strcmp(name, "commsir_resolve_window") ? 5
                  : !std::strcmp(name, "commsir_require")        ? 6
                  : !std::strcmp(name, "commsir_describe_comm")  ? 7
                                                                 : 3));
END FAKE(ModuleGetGlobal, CUdeviceptr *pointer, size_t *, CUmodule,
         const char *name)
    // The one global that the runtime asks for.
    static const uint64_t numbers[] = {
      0,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
      8,
      9,
      10,
      11,
      12,
      13,
      14,
      15
    };
if (std::strcmp(name, "commsir_numbers") != 0)
  return CUDA_ERROR_NOT_FOUND;
*pointer = reinterpret_cast<CUdeviceptr>(numbers);
END FAKE(FuncLoad, CUfunction)
END FAKE(FuncGetAttribute, int *value, CUfunction_attribute,
         CUfunction) *value = 40;
END FAKE(FuncSetAttribute, CUfunction, CUfunction_attribute, int) END
    FAKE(OccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, CUfunction,
         int, size_t) *blocks = residentBlocks;
END FAKE(OccupancyMaxActiveClusters, int *clusters, CUfunction,
         const CUlaunchConfig *) *clusters = 100;
END FAKE(LaunchKernelEx, const CUlaunchConfig *config, CUfunction function,
         void **arguments,
         void **) if (function == reinterpret_cast<CUfunction>(2)) {
  probe(arguments);
  return CUDA_SUCCESS;
}
if (function == reinterpret_cast<CUfunction>(5)) {
  resolve(arguments);
  return CUDA_SUCCESS;
}
if (function == reinterpret_cast<CUfunction>(6)) {
  require(arguments);
  return CUDA_SUCCESS;
}
if (function == reinterpret_cast<CUfunction>(7)) {
  describeComm(arguments);
  return CUDA_SUCCESS;
}
if (function == reinterpret_cast<CUfunction>(4)) {
  addTo(config->hStream, config->blockDimX, arguments);
  return CUDA_SUCCESS;
}
if (function == reinterpret_cast<CUfunction>(8)) {
  takeFrom(config->hStream, config->blockDimX, arguments);
  return CUDA_SUCCESS;
}
static Stream whole;
auto &stream =
    config->hStream ? *reinterpret_cast<Stream *>(config->hStream) : whole;
auto *params = static_cast<const char *>(arguments[0]);
if (stream.capture)
  stream.capture->launches.push_back(
      {std::vector<char>(params, params + paramBytes(params)), 0, 0, 0});
else
  runKernel(stream, params);
END FAKE(MemAlloc, CUdeviceptr *pointer,
         size_t bytes) return allocate(reinterpret_cast<void **>(pointer),
                                       bytes);
END FAKE(MemFree,
         CUdeviceptr pointer) if (runsForever &&
                                  !environment("COMMSIR_FAKE_GUARD").empty()) {
  std::fputs("memory is freed under a kernel that runs forever\n", stderr);
  std::abort();
}
return release(reinterpret_cast<void *>(pointer));
END FAKE(MemGetInfo, size_t *free, size_t *total) *free = *total = size_t(1)
                                                                   << 30;
END FAKE(MemHostAlloc, void **pointer, size_t bytes,
         unsigned) return allocate(pointer, bytes);
END FAKE(MemHostGetDevicePointer, CUdeviceptr *device, void *host,
         unsigned) *device = reinterpret_cast<CUdeviceptr>(host);
END FAKE(MemFreeHost, void *pointer) return release(pointer);
END FAKE(MemcpyHtoD, CUdeviceptr to, const void *from,
         size_t bytes) std::memcpy(reinterpret_cast<void *>(to), from, bytes);
END FAKE(MemcpyDtoH, void *to, CUdeviceptr from,
         size_t bytes) std::memcpy(to, reinterpret_cast<void *>(from), bytes);
END FAKE(MemcpyHtoDAsync, CUdeviceptr to, const void *from, size_t bytes,
         CUstream) std::memcpy(reinterpret_cast<void *>(to), from, bytes);
END FAKE(MemcpyDtoHAsync, void *to, CUdeviceptr from, size_t bytes,
         CUstream) std::memcpy(to, reinterpret_cast<void *>(from), bytes);
END FAKE(MemcpyAsync, CUdeviceptr to, CUdeviceptr from, size_t bytes,
         CUstream stream) copy(stream, to, from, bytes);
END FAKE(MemsetD8, CUdeviceptr to, unsigned char value,
         size_t count) std::memset(reinterpret_cast<void *>(to), value, count);
END FAKE(MemsetD8Async, CUdeviceptr to, unsigned char value, size_t count,
         CUstream) std::memset(reinterpret_cast<void *>(to), value, count);
END FAKE(MemsetD16, CUdeviceptr to, unsigned short value, size_t count) for (
    size_t i = 0; i < count;
    ++i) reinterpret_cast<unsigned short *>(to)[i] = value;
END FAKE(MemsetD16Async, CUdeviceptr to, unsigned short value, size_t count,
         CUstream) for (size_t i = 0; i < count;
                        ++i) reinterpret_cast<unsigned short *>(to)[i] = value;
END FAKE(MemsetD32Async, CUdeviceptr to, unsigned value, size_t count,
         CUstream) for (size_t i = 0; i < count;
                        ++i) reinterpret_cast<unsigned *>(to)[i] = value;
END FAKE(MemGetAllocationGranularity, size_t *bytes,
         const CUmemAllocationProp *,
         CUmemAllocationGranularity_flags) *bytes = size_t(64) << 10;
END FAKE(MemCreate, CUmemGenericAllocationHandle *handle, size_t bytes,
         const CUmemAllocationProp *, unsigned long long) std::string most =
    environment("COMMSIR_FAKE_MEMORY");
if (!most.empty() && bytes > std::stoull(most))
  return CUDA_ERROR_OUT_OF_MEMORY;
int file = memfd_create("fake", MFD_CLOEXEC);
if (file < 0 || ftruncate(file, off_t(bytes)))
  return CUDA_ERROR_OUT_OF_MEMORY;
*handle = CUmemGenericAllocationHandle(file) + 1;
END FAKE(MemRelease, CUmemGenericAllocationHandle handle)
    close(int(handle) - 1);
END FAKE(MemAddressReserve, CUdeviceptr *pointer, size_t bytes, size_t,
         CUdeviceptr, unsigned long long) *pointer =
    reinterpret_cast<CUdeviceptr>(mmap(nullptr, bytes, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
END FAKE(MemAddressFree, CUdeviceptr pointer, size_t bytes)
    munmap(reinterpret_cast<void *>(pointer), bytes);
END FAKE(MemMap, CUdeviceptr pointer, size_t bytes, size_t,
         CUmemGenericAllocationHandle handle, unsigned long long)
    // No more than the memory has, as with the driver.
    struct stat status;
if (fstat(int(handle) - 1, &status) || bytes > size_t(status.st_size))
  return CUDA_ERROR_INVALID_VALUE;
// Reached once access is set.
if (mmap(reinterpret_cast<void *>(pointer), bytes, PROT_NONE,
         MAP_SHARED | MAP_FIXED, int(handle) - 1, 0) == MAP_FAILED)
  return CUDA_ERROR_INVALID_VALUE;
std::lock_guard lock(mutex);
mappings[reinterpret_cast<char *>(pointer)] = {bytes, int(handle) - 1};
END FAKE(MemUnmap, CUdeviceptr pointer, size_t bytes)
    mmap(reinterpret_cast<void *>(pointer), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
std::lock_guard lock(mutex);
mappings.erase(reinterpret_cast<char *>(pointer));
END FAKE(MemSetAccess, CUdeviceptr pointer, size_t bytes,
         const CUmemAccessDesc *, size_t)
    mprotect(reinterpret_cast<void *>(pointer), bytes, PROT_READ | PROT_WRITE);
END FAKE(MemExportToShareableHandle, void *file,
         CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
         unsigned long long)
    // A rank that shares another file in place of its memory.
    std::string other = environment("COMMSIR_FAKE_EXPORT");
int shared = other.empty() ? dup(int(handle) - 1)
                           : open(other.c_str(), O_RDONLY | O_NONBLOCK);
if (shared < 0)
  return CUDA_ERROR_INVALID_VALUE;
*static_cast<int *>(file) = shared;
END FAKE(MemImportFromShareableHandle, CUmemGenericAllocationHandle *handle,
         void *file, CUmemAllocationHandleType)
// As the driver, which knows its own.
int given = int(reinterpret_cast<intptr_t>(file));
char link[64] = {};
if (readlink(("/proc/self/fd/" + std::to_string(given)).c_str(), link,
             sizeof link - 1) < 0 ||
    std::string(link).rfind("/memfd:fake", 0) != 0)
  return CUDA_ERROR_INVALID_VALUE;
*handle = CUmemGenericAllocationHandle(dup(given)) + 1;
END FAKE(MemRetainAllocationHandle, CUmemGenericAllocationHandle *handle,
         void *address) std::lock_guard lock(mutex);
auto *found = findMapping(reinterpret_cast<CUdeviceptr>(address));
if (!found)
  return CUDA_ERROR_INVALID_VALUE;
*handle = CUmemGenericAllocationHandle(dup(found->second.second)) + 1;
END FAKE(MemGetAddressRange, CUdeviceptr *base, size_t *bytes,
         CUdeviceptr address) std::lock_guard lock(mutex);
if (auto *found = findMapping(address)) {
  *base = reinterpret_cast<CUdeviceptr>(found->first);
  *bytes = found->second.first;
  return CUDA_SUCCESS;
}
auto *found = findAllocation(address);
if (!found)
  return CUDA_ERROR_NOT_FOUND;
*base = reinterpret_cast<CUdeviceptr>(found->first);
*bytes = found->second.bytes;
END FAKE(IpcGetMemHandle, CUipcMemHandle *handle,
         CUdeviceptr address) std::lock_guard lock(mutex);
auto *found = findAllocation(address);
if (!found || found->second.file < 0)
  return CUDA_ERROR_INVALID_VALUE;
IpcHandle said{getpid(), found->second.file, found->second.bytes};
std::memcpy(handle, &said, sizeof(said));
END FAKE(IpcOpenMemHandle, CUdeviceptr *pointer, CUipcMemHandle handle,
         unsigned) IpcHandle said;
std::memcpy(&said, &handle, sizeof(said));
if (said.pid == getpid())
  return CUDA_ERROR_INVALID_CONTEXT;
std::string path =
    "/proc/" + std::to_string(said.pid) + "/fd/" + std::to_string(said.file);
int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
void *mapped =
    mmap(nullptr, said.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
close(file);
if (mapped == MAP_FAILED)
  return CUDA_ERROR_INVALID_VALUE;
*pointer = reinterpret_cast<CUdeviceptr>(mapped);
std::lock_guard lock(mutex);
allocated[static_cast<char *>(mapped)] = {said.bytes, -1};
END FAKE(IpcCloseMemHandle, CUdeviceptr pointer) std::lock_guard lock(mutex);
allocated.erase(reinterpret_cast<char *>(pointer));
END FAKE(StreamCreate, CUstream *stream,
         unsigned) *stream = reinterpret_cast<CUstream>(new Stream);
reinterpret_cast<Stream *>(*stream)->context = current();
END FAKE(StreamDestroy,
         CUstream stream) delete reinterpret_cast<Stream *>(stream);
END FAKE(StreamQuery,
         CUstream stream) auto &s = *reinterpret_cast<Stream *>(stream);
if (s.forever || (s.running && !*s.running))
  return CUDA_ERROR_NOT_READY;
END FAKE(StreamSynchronize, CUstream)
END FAKE(StreamBeginCapture, CUstream stream,
         CUstreamCaptureMode) std::lock_guard lock(mutex);
auto *own = reinterpret_cast<Stream *>(stream);
own->capture = new Graph{++captures, {}, false, own->context};
capturing.insert(own->capture);
END FAKE(StreamEndCapture, CUstream stream, CUgraph *graph) std::lock_guard
    lock(mutex);
auto *own = std::exchange(reinterpret_cast<Stream *>(stream)->capture, nullptr);
capturing.erase(own);
if (own->isInvalid)
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
*graph = reinterpret_cast<CUgraph>(own);
END FAKE(StreamGetCaptureInfo, CUstream stream, CUstreamCaptureStatus *status,
         cuuint64_t *id, CUgraph *, const CUgraphNode **,
         const CUgraphEdgeData **,
         size_t *) auto *own = reinterpret_cast<Stream *>(stream);
bool active = own && own->capture;
*status =
    active ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
if (active && id)
  *id = own->capture->id;
END FAKE(StreamIsCapturing, CUstream stream,
         CUstreamCaptureStatus *status) auto *own =
    reinterpret_cast<Stream *>(stream);
*status = own && own->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                              : CU_STREAM_CAPTURE_STATUS_NONE;
END FAKE(StreamWriteValue64, CUstream stream, CUdeviceptr cell,
         cuuint64_t value, unsigned) operate(stream, [=] {
  __atomic_store_n(cellAt(cell), value, __ATOMIC_RELEASE);
});
END FAKE(StreamWaitValue64, CUstream stream, CUdeviceptr cell, cuuint64_t value,
         unsigned flags) operate(stream, [=] { await(cell, value, flags); });
END FAKE(StreamWaitEvent, CUstream, CUevent, unsigned) END
    FAKE(ThreadExchangeStreamCaptureMode,
         CUstreamCaptureMode *mode) std::swap(*mode, captureMode);
END FAKE(GraphInstantiate, CUgraphExec *exec, CUgraph graph,
         unsigned long long) *exec =
    reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph *>(graph)));
END FAKE(GraphLaunch, CUgraphExec exec,
         CUstream stream) for (const Launch &launch :
                               reinterpret_cast<Graph *>(exec)
                                   -> launches) if (launch.bytes)
    copy(nullptr, launch.to, launch.from, launch.bytes);
else if (launch.cell) launch.cell();
else runKernel(*reinterpret_cast<Stream *>(stream), launch.params.data());
END FAKE(GraphAddEventRecordNode, CUgraphNode *node, CUgraph,
         const CUgraphNode *, size_t,
         CUevent event) *node = reinterpret_cast<CUgraphNode>(event);
END FAKE(GraphAddDependencies, CUgraph, const CUgraphNode *,
         const CUgraphNode *, const CUgraphEdgeData *, size_t)
END FAKE(GraphRemoveDependencies, CUgraph, const CUgraphNode *,
         const CUgraphNode *, const CUgraphEdgeData *, size_t)
END FAKE(GraphDestroy, CUgraph graph) delete reinterpret_cast<Graph *>(graph);
END FAKE(GraphExecDestroy,
         CUgraphExec exec) delete reinterpret_cast<Graph *>(exec);
END FAKE(EventCreate, CUevent *event,
         unsigned) *event = reinterpret_cast<CUevent>(new Event);
END FAKE(EventRecord, CUevent event, CUstream) reinterpret_cast<Event *>(event)
    -> time = std::chrono::steady_clock::now();
END FAKE(EventSynchronize, CUevent)
END FAKE(EventElapsedTime, float *time, CUevent start, CUevent stop) *time =
    std::chrono::duration<float, std::milli>(
        reinterpret_cast<Event *>(stop) -> time -
        reinterpret_cast<Event *>(start)->time)
        .count();
END FAKE(EventDestroy, CUevent event) delete reinterpret_cast<Event *>(event);
END

    /// How often `function` (less its `cu`) was called.
    extern "C" unsigned long fakeCalls(const char *function) {
  std::lock_guard lock(mutex);
  return calls[function];
}

/// From now on `count` allocations succeed, and the next one fails; negative:
/// none does. Returns how many of the last `count` are left, negative where an
/// allocation has failed.
extern "C" long fakeExhaust(long count) {
  return untilExhausted.exchange(count);
}

/// Of FakeCudart.cpp, for what it does itself.
extern "C" void fakeCount(const char *function) {
  if (!isQuick)
    note(function);
}

/// Whether this thread has said that captures of others are none of its
/// business.
extern "C" int fakeMayAskInCaptures() {
  return captureMode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

/// "function count" lines of all that was called; the caller's until its next
/// call.
extern "C" const char *fakeCounts() {
  static thread_local std::string text;
  std::lock_guard lock(mutex);
  text.clear();
  for (const auto &[function, count] : calls)
    text += function + " " + std::to_string(count) + "\n";
  return text.c_str();
}
