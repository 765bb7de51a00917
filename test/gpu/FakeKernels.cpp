//===- FakeKernels.cpp - The kernels of the fake driver -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/FakeDriver.h"

#include "lowering/nvvm/Abi.h"
#include "test/gpu/FakeNccl.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace abi = mlir::comms::nvvm;
using namespace commsir::fake;
using namespace commsir::fake::driver;

//===----------------------------------------------------------------------===//
// Kernels of the device library
//===----------------------------------------------------------------------===//

namespace {

template <typename T>
T argument(void **arguments, int i) {
  return *static_cast<T *>(arguments[i]);
}

void probe(const CUlaunchConfig &, void **arguments) {
  auto *table = argument<char **>(arguments, 0);
  auto offset = argument<uint64_t>(arguments, 1);
  auto *out = argument<uint64_t *>(arguments, 2);
  for (int32_t i = 0; i < argument<int32_t>(arguments, 3); ++i)
    std::memcpy(out + i, table[i] + offset, sizeof(uint64_t));
}

/// The kernels of the device library that know NCCL's structures.
void resolve(const CUlaunchConfig &, void **arguments) {
  const auto &window = *argument<commsir::fake::FakeWindow *>(arguments, 0);
  auto **table = argument<char **>(arguments, 1);
  auto ranks = argument<int32_t>(arguments, 2);
  for (int32_t rank = 0; rank < ranks; ++rank)
    table[rank] = window.parts[rank];
  table[ranks] = reinterpret_cast<char *>(uint64_t(NCCL_VERSION_CODE));
}

void require(const CUlaunchConfig &, void **arguments) {
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

void describeComm(const CUlaunchConfig &, void **arguments) {
  const auto &comm = *argument<commsir::fake::DevComm *>(arguments, 0);
  auto *out = argument<int64_t *>(arguments, 1);
  int64_t facts[] = {comm.rank,         comm.ranks,       comm.ranks,
                     comm.has.contexts, comm.has.signals, comm.has.counters,
                     comm.adapter};
  std::memcpy(out, facts, sizeof(facts));
}

/// The kernel that adds to a cell.
void addTo(const CUlaunchConfig &config, void **arguments) {
  auto *cells = static_cast<CUdeviceptr *>(arguments[0]);
  uint64_t value = *static_cast<uint64_t *>(arguments[1]);
  for (unsigned one = 0; one < config.blockDimX; ++one)
    operate(config.hStream, [cell = cellAt(cells[one]), value] {
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
void takeFrom(const CUlaunchConfig &config, void **arguments) {
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
  for (unsigned one = 0; one < config.blockDimX; ++one)
    operate(config.hStream, [=, awaited = cells[one]] { take(awaited); });
}

constexpr LibraryKernel libraryKernels[] = {
    {"commsir_probe_window", probe}, {"commsir_resolve_window", resolve},
    {"commsir_require", require},    {"commsir_describe_comm", describeComm},
    {"commsir_add_signal", addTo},   {"commsir_take_signal", takeFrom},
};
constexpr LibraryKernel otherKernel = {"", nullptr};

} // namespace

const LibraryKernel &driver::findLibraryKernel(const char *name) {
  for (const LibraryKernel &kernel : libraryKernels)
    if (!std::strcmp(name, kernel.name))
      return kernel;
  return otherKernel;
}

//===----------------------------------------------------------------------===//
// Kernels of CommsIR
//===----------------------------------------------------------------------===//

namespace {

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

} // namespace

size_t driver::paramBytes(const char *params) {
  abi::Launch launch;
  std::memcpy(&launch, params, sizeof(launch));
  std::string what = environment("COMMSIR_FAKE_KERNEL");
  bool isNccl = what.rfind("nccl ", 0) == 0;
  bool four = isNccl || what.rfind("exchange ", 0) == 0;
  return abi::kArgumentsOffset + 8 * size_t(launch.ranks) * (four ? 4 : 2) +
         (isNccl ? 64 : 0);
}

void driver::runKernel(Stream &stream, const char *params) {
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
