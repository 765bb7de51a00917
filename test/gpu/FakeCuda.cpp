//===- FakeCuda.cpp - A CUDA driver without a GPU -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for libcuda.so.1, so that the CUDA runtime's own work (memory,
// windows, parameters, streams, limits, reports) is tested on any machine.
// Device memory is the host's. Streams are in order and end at once. Code is
// not run: the kernels of the device library are known by name, and what any
// other kernel does is said by COMMSIR_FAKE_KERNEL:
//
//   sum N     two windows x, y of N f32: y of this rank is the sum of all x
//   timeout   reports that it waited, and ends
//   hang      runs until its abort word is set
//   stuck     runs for ever
//
// COMMSIR_FAKE_GPUS is the number of GPUs, COMMSIR_FAKE_FAIL the name of a
// function that fails, less its `cu`.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/Abi.h"

#include <cuda.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace abi = mlir::comms::nvvm;

namespace {

struct Stream {
  /// State of a kernel that runs until it is aborted, or null.
  volatile uint64_t *running = nullptr;
  bool forever = false;
};

struct Event {
  std::chrono::steady_clock::time_point time;
};

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

bool fails(const char *function) {
  return environment("COMMSIR_FAKE_FAIL") == function;
}

std::mutex mutex;
std::set<void *> allocated;

CUresult allocate(void **pointer, size_t bytes) {
  // As coarse as the driver's, and dirty.
  *pointer = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (!*pointer)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*pointer, 0xAB, bytes);
  std::lock_guard lock(mutex);
  allocated.insert(*pointer);
  return CUDA_SUCCESS;
}

CUresult release(void *pointer) {
  std::lock_guard lock(mutex);
  if (!allocated.erase(pointer))
    return CUDA_ERROR_INVALID_VALUE;
  std::free(pointer);
  return CUDA_SUCCESS;
}

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

void timeOut(const abi::Launch &launch, abi::State &state) {
  auto &record = *reinterpret_cast<abi::ErrorRecord *>(state.record);
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

void runKernel(Stream &stream, const char *params) {
  abi::Launch launch;
  std::memcpy(&launch, params, sizeof(launch));
  auto &state = *reinterpret_cast<abi::State *>(launch.state);
  std::string what = environment("COMMSIR_FAKE_KERNEL");
  if (state.abort)
    return;
  if (what.rfind("sum ", 0) == 0)
    sum(launch, params, std::strtoull(what.c_str() + 4, nullptr, 10));
  else if (what == "timeout")
    timeOut(launch, state);
  else if (what == "hang")
    stream.running = &state.abort;
  else if (what == "stuck")
    stream.forever = true;
}

} // namespace

#define FAKE(name, ...)                                                        \
  extern "C" CUresult cu##name(__VA_ARGS__) {                                  \
    if (fails(#name))                                                          \
      return CUDA_ERROR_UNKNOWN;
#define END                                                                    \
  return CUDA_SUCCESS;                                                         \
  }

FAKE(Init, unsigned) END FAKE(DriverGetVersion, int *version) *version = 13000;
END FAKE(GetErrorName, CUresult, const char **text) *text = "FAKE_ERROR";
END FAKE(GetErrorString, CUresult, const char **text) *text = "as asked for";
END FAKE(DeviceGetCount, int *count) *count =
    std::atoi(environment("COMMSIR_FAKE_GPUS").c_str());
END FAKE(DeviceGet, CUdevice *device, int ordinal) *device = ordinal;
END FAKE(DeviceGetName, char *name, int size,
         CUdevice) std::strncpy(name, "fake", size);
END FAKE(DeviceGetAttribute, int *value, CUdevice_attribute attribute,
         CUdevice) *value =
    attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
    : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                : 132;
END FAKE(DeviceCanAccessPeer, int *can, CUdevice, CUdevice) *can = 1;
END FAKE(DevicePrimaryCtxRetain, CUcontext *context, CUdevice device) *context =
    reinterpret_cast<CUcontext>(uintptr_t(device) + 1);
END FAKE(DevicePrimaryCtxRelease, CUdevice)
END FAKE(CtxPushCurrent, CUcontext)
END FAKE(CtxPopCurrent, CUcontext *context) *context = nullptr;
END FAKE(CtxSetCurrent, CUcontext)
END FAKE(CtxSynchronize)
END FAKE(CtxEnablePeerAccess, CUcontext, unsigned) END
    FAKE(ModuleLoadDataEx, CUmodule *module, const void *, unsigned,
         CUjit_option *, void **) *module = reinterpret_cast<CUmodule>(1);
END FAKE(ModuleUnload, CUmodule)
END FAKE(ModuleGetFunction, CUfunction *function, CUmodule,
         const char *name) *function =
    reinterpret_cast<CUfunction>(
        uintptr_t(!std::strcmp(name, "commsir_probe_window") ? 2 : 3));
END FAKE(FuncLoad, CUfunction)
END FAKE(FuncGetAttribute, int *value, CUfunction_attribute,
         CUfunction) *value = 40;
END FAKE(FuncSetAttribute, CUfunction, CUfunction_attribute, int) END
    FAKE(OccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, CUfunction,
         int, size_t) *blocks = 2;
END FAKE(OccupancyMaxActiveClusters, int *clusters, CUfunction,
         const CUlaunchConfig *) *clusters = 100;
END FAKE(LaunchKernelEx, const CUlaunchConfig *config, CUfunction function,
         void **arguments,
         void **) if (function == reinterpret_cast<CUfunction>(2)) {
  probe(arguments);
  return CUDA_SUCCESS;
}
static Stream whole;
runKernel(config->hStream ? *reinterpret_cast<Stream *>(config->hStream)
                          : whole,
          static_cast<const char *>(arguments[0]));
END FAKE(MemAlloc, CUdeviceptr *pointer,
         size_t bytes) return allocate(reinterpret_cast<void **>(pointer),
                                       bytes);
END FAKE(MemFree,
         CUdeviceptr pointer) return release(reinterpret_cast<void *>(pointer));
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
END FAKE(MemsetD8, CUdeviceptr to, unsigned char value,
         size_t count) std::memset(reinterpret_cast<void *>(to), value, count);
END FAKE(MemsetD8Async, CUdeviceptr to, unsigned char value, size_t count,
         CUstream) std::memset(reinterpret_cast<void *>(to), value, count);
END FAKE(MemsetD16, CUdeviceptr to, unsigned short value, size_t count) for (
    size_t i = 0; i < count;
    ++i) reinterpret_cast<unsigned short *>(to)[i] = value;
END FAKE(StreamCreate, CUstream *stream,
         unsigned) *stream = reinterpret_cast<CUstream>(new Stream);
END FAKE(StreamDestroy,
         CUstream stream) delete reinterpret_cast<Stream *>(stream);
END FAKE(StreamQuery,
         CUstream stream) auto &s = *reinterpret_cast<Stream *>(stream);
if (s.forever || (s.running && !*s.running))
  return CUDA_ERROR_NOT_READY;
END FAKE(StreamSynchronize, CUstream)
END FAKE(StreamBeginCapture, CUstream, CUstreamCaptureMode)
END FAKE(StreamEndCapture, CUstream,
         CUgraph *graph) *graph = reinterpret_cast<CUgraph>(1);
END FAKE(StreamIsCapturing, CUstream,
         CUstreamCaptureStatus *status) *status = CU_STREAM_CAPTURE_STATUS_NONE;
END FAKE(GraphInstantiate, CUgraphExec *exec, CUgraph,
         unsigned long long) *exec = reinterpret_cast<CUgraphExec>(1);
END FAKE(GraphLaunch, CUgraphExec, CUstream)
END FAKE(GraphDestroy, CUgraph)
END FAKE(GraphExecDestroy, CUgraphExec)
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
