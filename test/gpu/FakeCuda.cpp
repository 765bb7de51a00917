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

#include "test/gpu/FakeDriver.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace commsir::fake;
using namespace commsir::fake::driver;

namespace {

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

/// Blocks of any kernel that a multiprocessor holds.
int residentBlocks() {
  std::string text = environment("COMMSIR_FAKE_RESIDENT");
  return text.empty() ? 2 : std::stoi(text);
}

} // namespace

std::string driver::environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

const bool driver::isQuick = std::getenv("COMMSIR_FAKE_QUICK") != nullptr;
std::atomic<bool> driver::runsForever{false};
std::mutex driver::mutex;

CUcontext driver::current() {
  return contexts.empty() ? nullptr : contexts.back();
}

/// Allocates for the first call of a function only, because callers count what
/// they allocate.
void driver::note(const char *function) {
  std::lock_guard lock(mutex);
  if (auto known = calls.find(function); known != calls.end())
    ++known->second;
  else
    calls[function] = 1;
}

CUresult driver::enter(const char *function) {
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

namespace {

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

} // namespace

extern "C" CUresult cuInit(unsigned) {
  ENTER(Init);
  // As the driver, which shows GPUs to nobody then.
  if (environment("COMMSIR_FAKE_GPUS") == "0")
    return CUDA_ERROR_NO_DEVICE;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDriverGetVersion(int *version) {
  ENTER(DriverGetVersion);
  *version = environment("COMMSIR_FAKE_VERSION").empty()
                 ? 13000
                 : std::atoi(environment("COMMSIR_FAKE_VERSION").c_str());
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGetErrorName(CUresult, const char **text) {
  ENTER(GetErrorName);
  *text = "FAKE_ERROR";
  return CUDA_SUCCESS;
}

extern "C" CUresult cuGetErrorString(CUresult, const char **text) {
  ENTER(GetErrorString);
  *text = "as asked for";
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetCount(int *count) {
  ENTER(DeviceGetCount);
  *count = std::atoi(environment("COMMSIR_FAKE_GPUS").c_str());
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(DeviceGet);
  *device = ordinal;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  ENTER(DeviceGetName);
  std::strncpy(name,
               environment("COMMSIR_FAKE_NAME").empty()
                   ? "fake"
                   : environment("COMMSIR_FAKE_NAME").c_str(),
               size);
  return CUDA_SUCCESS;
}

extern "C" CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  ENTER(DeviceGetAttribute);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                       : 132;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  ENTER(DeviceGetUuid);
  std::memset(uuid, 0, sizeof(*uuid));
  uuid->bytes[0] =
      environment("COMMSIR_FAKE_ONE").empty() ? char(device + 1) : 1;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDeviceCanAccessPeer(int *can, CUdevice, CUdevice) {
  ENTER(DeviceCanAccessPeer);
  *can = environment("COMMSIR_FAKE_ALONE").empty();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDevicePrimaryCtxRetain(CUcontext *context,
                                             CUdevice device) {
  ENTER(DevicePrimaryCtxRetain);
  *context = reinterpret_cast<CUcontext>(uintptr_t(device) + 1);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  ENTER(DevicePrimaryCtxRelease);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned *flags,
                                               int *active) {
  ENTER(DevicePrimaryCtxGetState);
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxPushCurrent(CUcontext context) {
  ENTER(CtxPushCurrent);
  contexts.push_back(context);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxPopCurrent(CUcontext *context) {
  ENTER(CtxPopCurrent);
  if (contexts.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxGetCurrent(CUcontext *context) {
  ENTER(CtxGetCurrent);
  *context = current();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER(CtxSetCurrent);
  contexts.assign(1, context);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxSynchronize() {
  ENTER(CtxSynchronize);
  if (invalidateCaptures(current()))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) {
  ENTER(CtxEnablePeerAccess);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuModuleLoadDataEx(CUmodule *module, const void *, unsigned,
                                       CUjit_option *, void **) {
  ENTER(ModuleLoadDataEx);
  *module = reinterpret_cast<CUmodule>(1);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuModuleUnload(CUmodule) {
  ENTER(ModuleUnload);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuModuleGetFunction(CUfunction *function, CUmodule,
                                        const char *name) {
  ENTER(ModuleGetFunction);
  *function = reinterpret_cast<CUfunction>(
      const_cast<LibraryKernel *>(&findLibraryKernel(name)));
  return CUDA_SUCCESS;
}

extern "C" CUresult cuModuleGetGlobal(CUdeviceptr *pointer, size_t *, CUmodule,
                                      const char *name) {
  ENTER(ModuleGetGlobal);
  // The one global that the runtime asks for.
  static const uint64_t numbers[] = {0, 1, 2,  3,  4,  5,  6,  7,
                                     8, 9, 10, 11, 12, 13, 14, 15};
  if (std::strcmp(name, "commsir_numbers") != 0)
    return CUDA_ERROR_NOT_FOUND;
  *pointer = reinterpret_cast<CUdeviceptr>(numbers);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuFuncLoad(CUfunction) {
  ENTER(FuncLoad);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuFuncGetAttribute(int *value, CUfunction_attribute,
                                       CUfunction) {
  ENTER(FuncGetAttribute);
  *value = 40;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  ENTER(FuncSetAttribute);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                CUfunction, int,
                                                                size_t) {
  ENTER(OccupancyMaxActiveBlocksPerMultiprocessor);
  *blocks = residentBlocks();
  return CUDA_SUCCESS;
}

extern "C" CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction,
                                                 const CUlaunchConfig *) {
  ENTER(OccupancyMaxActiveClusters);
  *clusters = 100;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuLaunchKernelEx(const CUlaunchConfig *config,
                                     CUfunction function, void **arguments,
                                     void **) {
  ENTER(LaunchKernelEx);
  auto *known = reinterpret_cast<const LibraryKernel *>(function);
  if (known->run) {
    known->run(*config, arguments);
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
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  ENTER(MemAlloc);
  return allocate(reinterpret_cast<void **>(pointer), bytes);
}

extern "C" CUresult cuMemFree(CUdeviceptr pointer) {
  ENTER(MemFree);
  if (runsForever && !environment("COMMSIR_FAKE_GUARD").empty()) {
    std::fputs("memory is freed under a kernel that runs forever\n", stderr);
    std::abort();
  }
  return release(reinterpret_cast<void *>(pointer));
}

extern "C" CUresult cuMemGetInfo(size_t *free, size_t *total) {
  ENTER(MemGetInfo);
  *free = *total = size_t(1) << 30;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  ENTER(MemHostAlloc);
  return allocate(pointer, bytes);
}

extern "C" CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host,
                                              unsigned) {
  ENTER(MemHostGetDevicePointer);
  *device = reinterpret_cast<CUdeviceptr>(host);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemFreeHost(void *pointer) {
  ENTER(MemFreeHost);
  return release(pointer);
}

extern "C" CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from,
                                 size_t bytes) {
  ENTER(MemcpyHtoD);
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  ENTER(MemcpyDtoH);
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from,
                                      size_t bytes, CUstream) {
  ENTER(MemcpyHtoDAsync);
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                                      CUstream) {
  ENTER(MemcpyDtoHAsync);
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from,
                                  size_t bytes, CUstream stream) {
  ENTER(MemcpyAsync);
  copy(stream, to, from, bytes);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemsetD8(CUdeviceptr to, unsigned char value,
                               size_t count) {
  ENTER(MemsetD8);
  std::memset(reinterpret_cast<void *>(to), value, count);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                    size_t count, CUstream) {
  ENTER(MemsetD8Async);
  std::memset(reinterpret_cast<void *>(to), value, count);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemsetD16(CUdeviceptr to, unsigned short value,
                                size_t count) {
  ENTER(MemsetD16);
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<unsigned short *>(to)[i] = value;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value,
                                     size_t count, CUstream) {
  ENTER(MemsetD16Async);
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<unsigned short *>(to)[i] = value;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value,
                                     size_t count, CUstream) {
  ENTER(MemsetD32Async);
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<unsigned *>(to)[i] = value;
  return CUDA_SUCCESS;
}

extern "C" CUresult
cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *,
                              CUmemAllocationGranularity_flags) {
  ENTER(MemGetAllocationGranularity);
  *bytes = size_t(64) << 10;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemCreate(CUmemGenericAllocationHandle *handle,
                                size_t bytes, const CUmemAllocationProp *,
                                unsigned long long) {
  ENTER(MemCreate);
  std::string most = environment("COMMSIR_FAKE_MEMORY");
  if (!most.empty() && bytes > std::stoull(most))
    return CUDA_ERROR_OUT_OF_MEMORY;
  int file = memfd_create("fake", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = CUmemGenericAllocationHandle(file) + 1;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER(MemRelease);
  close(int(handle) - 1);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes,
                                        size_t, CUdeviceptr,
                                        unsigned long long) {
  ENTER(MemAddressReserve);
  *pointer = reinterpret_cast<CUdeviceptr>(
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  ENTER(MemAddressFree);
  munmap(reinterpret_cast<void *>(pointer), bytes);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t,
                             CUmemGenericAllocationHandle handle,
                             unsigned long long) {
  ENTER(MemMap);
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
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  ENTER(MemUnmap);
  mmap(reinterpret_cast<void *>(pointer), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  std::lock_guard lock(mutex);
  mappings.erase(reinterpret_cast<char *>(pointer));
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes,
                                   const CUmemAccessDesc *, size_t) {
  ENTER(MemSetAccess);
  mprotect(reinterpret_cast<void *>(pointer), bytes, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

extern "C" CUresult
cuMemExportToShareableHandle(void *file, CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType, unsigned long long) {
  ENTER(MemExportToShareableHandle);
  // A rank that shares another file in place of its memory.
  std::string other = environment("COMMSIR_FAKE_EXPORT");
  int shared = other.empty() ? dup(int(handle) - 1)
                             : open(other.c_str(), O_RDONLY | O_NONBLOCK);
  if (shared < 0)
    return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int *>(file) = shared;
  return CUDA_SUCCESS;
}

extern "C" CUresult
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *file,
                               CUmemAllocationHandleType) {
  ENTER(MemImportFromShareableHandle);
  // As the driver, which knows its own.
  int given = int(reinterpret_cast<intptr_t>(file));
  char link[64] = {};
  if (readlink(("/proc/self/fd/" + std::to_string(given)).c_str(), link,
               sizeof link - 1) < 0 ||
      std::string(link).rfind("/memfd:fake", 0) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *handle = CUmemGenericAllocationHandle(dup(given)) + 1;
  return CUDA_SUCCESS;
}

extern "C" CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
                            void *address) {
  ENTER(MemRetainAllocationHandle);
  std::lock_guard lock(mutex);
  auto *found = findMapping(reinterpret_cast<CUdeviceptr>(address));
  if (!found)
    return CUDA_ERROR_INVALID_VALUE;
  *handle = CUmemGenericAllocationHandle(dup(found->second.second)) + 1;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes,
                                         CUdeviceptr address) {
  ENTER(MemGetAddressRange);
  std::lock_guard lock(mutex);
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
  return CUDA_SUCCESS;
}

extern "C" CUresult cuIpcGetMemHandle(CUipcMemHandle *handle,
                                      CUdeviceptr address) {
  ENTER(IpcGetMemHandle);
  std::lock_guard lock(mutex);
  auto *found = findAllocation(address);
  if (!found || found->second.file < 0)
    return CUDA_ERROR_INVALID_VALUE;
  IpcHandle said{getpid(), found->second.file, found->second.bytes};
  std::memcpy(handle, &said, sizeof(said));
  return CUDA_SUCCESS;
}

extern "C" CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer,
                                       CUipcMemHandle handle, unsigned) {
  ENTER(IpcOpenMemHandle);
  IpcHandle said;
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
  return CUDA_SUCCESS;
}

extern "C" CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  ENTER(IpcCloseMemHandle);
  std::lock_guard lock(mutex);
  allocated.erase(reinterpret_cast<char *>(pointer));
  return CUDA_SUCCESS;
}

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
