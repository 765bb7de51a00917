//===- Cuda.cpp - The CUDA driver, loaded when it is needed ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Cuda.h"

#include "runtime/support/GroupError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

using namespace commsir::cuda;
using llvm::createStringError;

namespace {

/// The oldest driver that has all that is called: clusters, graphs with
/// programmatic launches, cuFuncLoad, cuEventElapsedTime_v2.
constexpr int kOldestDriver = 12080;

// cuda.h renames functions by macro (cuMemAlloc → cuMemAlloc_v2); two steps
// give the name after that.
#define COMMSIR_STRING(name) #name
#define COMMSIR_SYMBOL(name) COMMSIR_STRING(name)

llvm::Error loadFunctions(Driver &driver) {
  std::string why;
  auto library =
      llvm::sys::DynamicLibrary::getPermanentLibrary("libcuda.so.1", &why);
  if (!library.isValid())
    return createStringError(
        "no CUDA driver: %s. Install NVIDIA's driver, or run on the CPU world "
        "(--target cpu)",
        why.c_str());
#define COMMSIR_CUDA_FUNCTION(name)                                            \
  driver.name = reinterpret_cast<decltype(driver.name)>(                       \
      library.getAddressOfSymbol(COMMSIR_SYMBOL(cu##name)));                   \
  if (!driver.name)                                                            \
    return createStringError(                                                  \
        "the CUDA driver has no %s: it is too old; CUDA 12.8 or newer is "     \
        "needed. Update NVIDIA's driver (to release 570 or newer)",            \
        COMMSIR_SYMBOL(cu##name));
#include "runtime/cuda/CudaFunctions.inc"
#undef COMMSIR_CUDA_FUNCTION
  return llvm::Error::success();
}

llvm::Error start(Driver &driver) {
  if (auto error = loadFunctions(driver))
    return error;
  // A kernel that is loaded at its first launch may have to wait for kernels
  // that already run, and those may wait for this one.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  CUresult found = driver.Init(0);
  if (found == CUDA_ERROR_NO_DEVICE || found == CUDA_ERROR_INVALID_DEVICE)
    return createStringError(
        "%s. The driver shows no GPU: CUDA_VISIBLE_DEVICES may be empty, name "
        "a GPU twice, or name one that is not there (nvidia-smi -L lists "
        "them); without a GPU, run on the CPU world (--target cpu)",
        llvm::toString(driver.check(found, "cuInit")).c_str());
  if (auto error = driver.check(found, "cuInit"))
    return error;
  int version = 0;
  if (auto error =
          driver.check(driver.DriverGetVersion(&version), "cuDriverGetVersion"))
    return error;
  if (version < kOldestDriver)
    return createStringError(
        "the CUDA driver supports CUDA %d.%d; 12.8 or newer is needed. Update "
        "NVIDIA's driver (to release 570 or newer; nvidia-smi shows it), or "
        "run on the CPU world (--target cpu)",
        version / 1000, version % 1000 / 10);
  return llvm::Error::success();
}

} // namespace

llvm::Expected<const Driver *> Driver::get() {
  static Driver driver;
  static std::string failure;
  static std::once_flag once;
  std::call_once(once, [] {
    if (auto error = start(driver))
      failure = llvm::toString(std::move(error));
  });
  if (!failure.empty())
    return createStringError(failure);
  return &driver;
}

llvm::Error Driver::check(CUresult result, const llvm::Twine &what) const {
  if (result == CUDA_SUCCESS)
    return llvm::Error::success();
  const char *name = nullptr, *text = nullptr;
  GetErrorName(result, &name);
  GetErrorString(result, &text);
  std::string said =
      llvm::formatv("{0}: {1} ({2})", what.str(), name ? name : "unknown error",
                    text ? text : "no description");
  // Who can do with less, or give something back, tells it from others.
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return group::makeError(group::GroupError::Kind::Limit,
                            said + ". Request less memory, or end other "
                                   "processes that use the GPU (nvidia-smi)");
  return createStringError(said);
}

ContextGuard::ContextGuard(const Driver &driver, CUcontext context)
    : driver(driver) {
  driver.CtxPushCurrent(context);
}

ContextGuard::~ContextGuard() {
  CUcontext popped;
  driver.CtxPopCurrent(&popped);
}

llvm::Expected<int> commsir::cuda::getDeviceCount() {
  auto driver = Driver::get();
  if (!driver)
    return driver.takeError();
  int count = 0;
  if (auto error = (*driver)->check((*driver)->DeviceGetCount(&count),
                                    "cuDeviceGetCount"))
    return std::move(error);
  return count;
}

static llvm::Error checkOrdinal(int ordinal) {
  auto count = getDeviceCount();
  if (!count)
    return count.takeError();
  if (ordinal >= 0 && ordinal < *count)
    return llvm::Error::success();
  return createStringError("GPU %d was requested, but the machine shows %d "
                           "(CUDA_VISIBLE_DEVICES hides the others, if it is "
                           "set)",
                           ordinal, *count);
}

llvm::Expected<std::string> commsir::cuda::getChip(int ordinal) {
  auto driver = Driver::get();
  if (!driver)
    return driver.takeError();
  if (auto error = checkOrdinal(ordinal))
    return std::move(error);
  const Driver &cu = **driver;
  CUdevice device = 0;
  int major = 0, minor = 0;
  auto attribute = [&](int *value, CUdevice_attribute which) {
    return cu.DeviceGetAttribute(value, which, device);
  };
  CUresult result = cu.DeviceGet(&device, ordinal);
  if (result == CUDA_SUCCESS)
    result = attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  if (result == CUDA_SUCCESS)
    result = attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (auto error = cu.check(result, "asking for GPU " + llvm::Twine(ordinal)))
    return std::move(error);
  return "sm_" + std::to_string(major * 10 + minor);
}

llvm::Expected<std::string> commsir::cuda::getUuid(int ordinal) {
  auto driver = Driver::get();
  if (!driver)
    return driver.takeError();
  const Driver &cu = **driver;
  CUdevice device = 0;
  CUuuid uuid{};
  CUresult result = cu.DeviceGet(&device, ordinal);
  if (result == CUDA_SUCCESS)
    result = cu.DeviceGetUuid(&uuid, device);
  if (auto error =
          cu.check(result, "cuDeviceGetUuid of GPU " + llvm::Twine(ordinal)))
    return std::move(error);
  return std::string(uuid.bytes, sizeof(uuid.bytes));
}

llvm::Expected<Device> Device::open(int ordinal) {
  auto chip = commsir::cuda::getChip(ordinal);
  if (!chip)
    return chip.takeError();
  const Driver &cu = **Driver::get();
  Device device;
  device.table = &cu;
  device.ordinal = ordinal;
  device.chip = std::move(*chip);
  CUcontext context = nullptr;
  for (auto [result, what] :
       {std::pair(cu.DeviceGet(&device.device, ordinal), "cuDeviceGet"),
        std::pair(cu.DeviceGetAttribute(
                      &device.multiprocessors,
                      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device.device),
                  "cuDeviceGetAttribute"),
        std::pair(cu.DevicePrimaryCtxRetain(&context, device.device),
                  "cuDevicePrimaryCtxRetain")})
    if (auto error = cu.check(result, llvm::Twine(what) + " of GPU " +
                                          llvm::Twine(ordinal)))
      return std::move(error);
  device.primary = context;
  return std::move(device);
}

Device::Device(Device &&other) noexcept
    : table(other.table), device(other.device),
      primary(std::exchange(other.primary, nullptr)), ordinal(other.ordinal),
      multiprocessors(other.multiprocessors), chip(std::move(other.chip)) {}

Device::~Device() {
  if (primary)
    table->DevicePrimaryCtxRelease(device);
}

llvm::Error commsir::cuda::awaitWork(const Device &device) {
  static constexpr char empty[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry commsir_nothing()
{
  ret;
}
)";
  const Driver &cu = device.driver();
  ContextGuard guard(cu, device.context());
  CUmodule module = nullptr;
  if (auto error =
          cu.check(cu.ModuleLoadDataEx(&module, empty, 0, nullptr, nullptr),
                   "loading an empty kernel"))
    return error;
  return cu.check(cu.ModuleUnload(module), "waiting for kernels");
}

namespace {
/// Memory that threads have left, with the context that it is of.
class DeferredFrees {
public:
  static DeferredFrees &get() {
    static auto *made = new DeferredFrees;
    return *made;
  }
  void leave(const Device &device, CUdeviceptr pointer, void *host);
  void free(const Device &device);

private:
  struct Piece {
    CUdevice device;
    CUdeviceptr pointer;
    void *host;
  };
  std::mutex mutex;
  std::vector<Piece> pieces;
};

thread_local bool freesLater = false;
} // namespace

static CUresult freeNow(const Driver &cu, CUdeviceptr pointer, void *host) {
  return host ? cu.MemFreeHost(host) : cu.MemFree(pointer);
}

void DeferredFrees::leave(const Device &device, CUdeviceptr pointer,
                          void *host) {
  // The context must not go: another may have the same addresses.
  CUcontext context;
  if (device.driver().DevicePrimaryCtxRetain(&context, device.handle()))
    return;
  std::lock_guard lock(mutex);
  pieces.push_back({device.handle(), pointer, host});
}

void DeferredFrees::free(const Device &device) {
  std::vector<Piece> own;
  {
    std::lock_guard lock(mutex);
    auto others = llvm::partition(pieces, [&](const Piece &piece) {
      return piece.device != device.handle();
    });
    own.assign(others, pieces.end());
    pieces.erase(others, pieces.end());
  }
  for (const Piece &piece : own) {
    if (freeNow(device.driver(), piece.pointer, piece.host)) {
      // The next one tries again.
      std::lock_guard lock(mutex);
      pieces.push_back(piece);
      continue;
    }
    device.driver().DevicePrimaryCtxRelease(piece.device);
  }
}

void commsir::cuda::deferFreesInThisThread() { freesLater = true; }

void commsir::cuda::freeDeferred(const Device &device) {
  ContextGuard guard(device.driver(), device.context());
  RelaxedCaptureGuard outside(device.driver());
  DeferredFrees::get().free(device);
}

void commsir::cuda::freeMemory(const Device &device, CUdeviceptr pointer,
                               void *host) {
  if (freesLater)
    return DeferredFrees::get().leave(device, pointer, host);
  ContextGuard guard(device.driver(), device.context());
  freeNow(device.driver(), pointer, host);
}

llvm::Expected<Memory> Memory::allocate(const Device &device, size_t bytes,
                                        Place place) {
  const Driver &cu = device.driver();
  ContextGuard guard(cu, device.context());
  Memory memory;
  memory.device = &device;
  memory.bytes = bytes;
  size_t asked = bytes ? bytes : 1;
  std::string what = llvm::formatv("allocating {0} bytes on GPU {1}", bytes,
                                   device.getOrdinal());
  if (place == Place::PinnedHost) {
    if (auto error = cu.check(cu.MemHostAlloc(&memory.hostPointer, asked,
                                              CU_MEMHOSTALLOC_DEVICEMAP),
                              what))
      return std::move(error);
    if (auto error = cu.check(
            cu.MemHostGetDevicePointer(&memory.pointer, memory.hostPointer, 0),
            what))
      return std::move(error);
    std::memset(memory.hostPointer, 0, asked);
    return std::move(memory);
  }
  if (auto error = cu.check(cu.MemAlloc(&memory.pointer, asked), what))
    return std::move(error);
  if (auto error = cu.check(cu.MemsetD8(memory.pointer, 0, asked), what))
    return std::move(error);
  return std::move(memory);
}

Memory::Memory(Memory &&other) noexcept { *this = std::move(other); }

Memory &Memory::operator=(Memory &&other) noexcept {
  if (this == &other)
    return *this;
  release();
  device = other.device;
  pointer = std::exchange(other.pointer, 0);
  hostPointer = std::exchange(other.hostPointer, nullptr);
  bytes = std::exchange(other.bytes, 0);
  return *this;
}

Memory::~Memory() { release(); }

void Memory::release() {
  if (!pointer)
    return;
  freeMemory(*device, pointer, hostPointer);
  pointer = 0;
}
