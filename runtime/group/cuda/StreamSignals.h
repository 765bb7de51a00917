//===- StreamSignals.h - Signals that streams send and wait for -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sets and waits are stream operations of the driver. Before CUDA 13 the driver
// cannot add, so that a kernel of one thread does. Another kernel takes,
// because it needs a timeout. Small numbers are set by a copy: after a copy by
// a copy engine it takes 3 µs; a kernel takes 20 µs, and within a graph the
// driver's operation waits for later copies (4×H100, driver 580).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_STREAMSIGNALS_H
#define COMMSIR_RUNTIME_GROUP_CUDA_STREAMSIGNALS_H

#include "runtime/cuda/Cuda.h"

#include <mutex>

namespace commsir::cuda {

/// Signals of one GPU, whose context must be current in all calls. All
/// functions enqueue in `stream`, which may be capturing. Thread-safe.
class StreamSignals {
public:
  explicit StreamSignals(const Device &device) : device(device) {}
  ~StreamSignals();
  StreamSignals(const StreamSignals &) = delete;
  StreamSignals &operator=(const StreamSignals &) = delete;

  /// Smaller numbers are set by copies.
  static constexpr int64_t kCopied = 16;
  /// Sets the cell. A rank that sees the value also sees all earlier work of
  /// the stream.
  llvm::Error set(CUdeviceptr cell, int64_t value, CUstream stream);
  /// Adds to cells of several GPUs, `kAtOnce` in a launch.
  llvm::Error add(llvm::ArrayRef<CUdeviceptr> cells, int64_t value,
                  CUstream stream);
  /// `exactly`: waits until the cell equals `value`; else until it is at least
  /// `value`.
  llvm::Error wait(CUdeviceptr cell, int64_t value, bool exactly,
                   CUstream stream);

  /// Limit of a `take`: its timeout, and where it reports one.
  struct Limit {
    uint64_t nanoseconds = 0;
    /// Address of an ErrorRecord in host memory. Once it is valid, no later
    /// `take` with it waits for more than a millisecond.
    CUdeviceptr record = 0;
  };
  struct Awaited {
    CUdeviceptr cell = 0;
    /// For the record: number of the cell, and the rank whose signal is
    /// missing.
    uint32_t number = 0, peer = 0;
  };
  /// Waits until each cell holds at least `value`, then subtracts `value` from
  /// it. `kAtOnce` cells in a launch.
  llvm::Error take(llvm::ArrayRef<Awaited> cells, int64_t value, Limit limit,
                   CUstream stream);
  static constexpr size_t kAtOnce = 32;

private:
  llvm::Error checkSupport();
  llvm::Error load();
  llvm::Error launch(CUfunction function, size_t threads, void **arguments,
                     CUstream stream, const char *what);

  const Device &device;
  /// Guards the members below, which the first signals initialize.
  std::mutex mutex;
  /// Support for the driver's operations: 0: unknown; -1: missing.
  int support = 0;
  CUmodule module = nullptr;
  CUfunction adder = nullptr, taker = nullptr;
  /// The numbers below `kCopied`.
  CUdeviceptr numbers = 0;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_STREAMSIGNALS_H
