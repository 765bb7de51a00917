//===- Cuda.h - The CUDA driver, loaded when it is needed -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver's functions by dlopen: a program that never asks for a GPU runs
// where there is no driver. Only headers are needed to compile.
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

/// The functions of the driver that CommsIR calls, with the driver's names less
/// their `cu`. One table a process; all fields are set.
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

/// Makes a device's primary context current for the calling thread while it
/// lives.
class ContextGuard {
public:
  ContextGuard(const Driver &driver, CUcontext context);
  ~ContextGuard();
  ContextGuard(const ContextGuard &) = delete;
  ContextGuard &operator=(const ContextGuard &) = delete;

private:
  const Driver &driver;
};

/// One GPU and its primary context, retained while this lives.
class Device {
public:
  /// `ordinal` counts as CUDA_VISIBLE_DEVICES does.
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

/// Lets this thread allocate and copy while some stream is being captured:
/// what it does is no part of the graph.
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

/// "sm_90" of a GPU, which is not opened.
llvm::Expected<std::string> getChip(int ordinal);

/// The 16 bytes that name the GPU of an ordinal; the same GPU may have several
/// ordinals.
llvm::Expected<std::string> getUuid(int ordinal);

/// Waits until all that the GPU has been given is done. Other than
/// cuCtxSynchronize, which ends all captures in any mode, it leaves them alone
/// in a thread whose mode is relaxed: to unload code waits for whoever may run
/// it (measured, driver 580, as is what the functions below say of freeing).
llvm::Error awaitWork(const Device &device);

/// Frees what cuMemAlloc (`pointer`) or cuMemHostAlloc (`host`) has given.
void freeMemory(const Device &device, CUdeviceptr pointer,
                void *host = nullptr);
/// To free memory waits for all work of a GPU, and other threads' launches wait
/// meanwhile: a kernel may wait for a peer that waits for one of these. From
/// now on this thread leaves it to `freeDeferred`.
void deferFreesInThisThread();
/// Frees what such threads have left, where that may wait.
void freeDeferred(const Device &device);

/// Device memory, or host memory that the device can reach; freed at the end.
class Memory {
public:
  enum class Place { Device, PinnedHost };
  /// Zeroed.
  static llvm::Expected<Memory> allocate(const Device &device, size_t bytes,
                                         Place place = Place::Device);
  Memory(Memory &&other) noexcept;
  Memory &operator=(Memory &&other) noexcept;
  ~Memory();

  CUdeviceptr address() const { return pointer; }
  /// Of pinned host memory; null for device memory.
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
