//===- Cuda.h - The CUDA driver, loaded when it is needed -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver's functions, loaded by dlopen, so that programs that never use a
// GPU run without a driver. Compilation needs only headers.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_CUDA_H
#define COMMSIR_RUNTIME_CUDA_CUDA_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <cuda.h>

#include <cstddef>
#include <string>

namespace commsir::cuda {

/// The driver functions that CommsIR calls, named as in the driver without
/// `cu`. One table per process; all fields are set.
struct Driver {
#define COMMSIR_CUDA_FUNCTION(name) decltype(&::cu##name) name = nullptr;
#include "runtime/cuda/CudaFunctions.inc"
#undef COMMSIR_CUDA_FUNCTION

  /// Loads libcuda.so.1 and calls cuInit, once. The error says what is missing
  /// (no driver, a driver older than CUDA 12.8, no GPU) and what to do.
  static llvm::Expected<const Driver *> get();

  /// Success, or an error "<what>: <driver's name of the error> (<its text>)".
  llvm::Error check(CUresult result, const llvm::Twine &what) const;
};

/// Makes a device's primary context current for the calling thread in this
/// scope.
class ContextGuard {
public:
  ContextGuard(const Driver &driver, CUcontext context);
  ~ContextGuard();
  ContextGuard(const ContextGuard &) = delete;
  ContextGuard &operator=(const ContextGuard &) = delete;

private:
  const Driver &driver;
};

/// One GPU and its primary context, which is retained by this object.
class Device {
public:
  /// `ordinal` is relative to CUDA_VISIBLE_DEVICES.
  static llvm::Expected<Device> open(int ordinal);
  Device(Device &&other) noexcept;
  Device &operator=(Device &&) = delete;
  ~Device();

  const Driver &driver() const { return *table; }
  CUcontext context() const { return primary; }
  CUdevice handle() const { return device; }
  int getOrdinal() const { return ordinal; }
  int getMultiprocessors() const { return multiprocessors; }
  /// "sm_90".
  const std::string &getChip() const { return chip; }

private:
  Device() = default;
  const Driver *table = nullptr;
  CUdevice device = 0;
  CUcontext primary = nullptr;
  int ordinal = 0, multiprocessors = 0;
  std::string chip;
};

/// Lets this thread allocate and copy in this scope while a stream is being
/// captured. These operations do not become part of the graph.
class RelaxedCaptureGuard {
public:
  explicit RelaxedCaptureGuard(const Driver &cu) : cu(cu) {
    cu.ThreadExchangeStreamCaptureMode(&mode);
  }
  ~RelaxedCaptureGuard() { cu.ThreadExchangeStreamCaptureMode(&mode); }
  RelaxedCaptureGuard(const RelaxedCaptureGuard &) = delete;
  RelaxedCaptureGuard &operator=(const RelaxedCaptureGuard &) = delete;

private:
  const Driver &cu;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Number of GPUs of the machine.
llvm::Expected<int> getDeviceCount();

/// Chip of a GPU ("sm_90"), without opening it.
llvm::Expected<std::string> getChip(int ordinal);

/// UUID (16 bytes) of a GPU. Several ordinals may refer to the same GPU.
llvm::Expected<std::string> getUuid(int ordinal);

/// Waits until the GPU has finished all work. Unlike cuCtxSynchronize, which
/// invalidates every capture in any mode, it does not affect captures if the
/// thread's mode is relaxed; unloading code waits for kernels that may use it.
/// (Measured with driver 580, as are the statements about freeing below.)
llvm::Error awaitWork(const Device &device);

/// Frees memory of cuMemAlloc (`pointer`) or cuMemHostAlloc (`host`).
void freeMemory(const Device &device, CUdeviceptr pointer,
                void *host = nullptr);
/// From now on this thread leaves freeing of memory to `freeDeferred`. Freeing
/// waits for all work of a GPU and blocks launches of other threads; a running
/// kernel may wait for a peer that needs one of those launches.
void deferFreesInThisThread();
/// Frees the memory that such threads have left. Call it where waiting is safe.
void freeDeferred(const Device &device);

/// Device memory, or host memory that the device can access; freed by the
/// destructor.
class Memory {
public:
  enum class Place { Device, PinnedHost };
  /// Allocates zeroed memory.
  static llvm::Expected<Memory> allocate(const Device &device, size_t bytes,
                                         Place place = Place::Device);
  Memory(Memory &&other) noexcept;
  Memory &operator=(Memory &&other) noexcept;
  ~Memory();

  CUdeviceptr address() const { return pointer; }
  /// Address on the host of pinned memory; null for device memory.
  void *host() const { return hostPointer; }
  size_t size() const { return bytes; }

private:
  Memory() = default;
  void release();
  const Device *device = nullptr;
  CUdeviceptr pointer = 0;
  void *hostPointer = nullptr;
  size_t bytes = 0;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_CUDA_H
