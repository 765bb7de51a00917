//===- StreamSignals.h - Signals that streams send and wait for -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Setting and waiting are the driver's operations on streams. It has none that
// adds before CUDA 13: a kernel of one thread does. Another kernel takes: it
// gives up in the end. Small numbers are set by a copy: behind a copy of data
// by a copy engine, it takes 3 µs, where a kernel takes 20 and, in a graph, the
// driver's operation waits for copies behind it (4×H100, driver 580).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_STREAMSIGNALS_H
#define COMMSIR_RUNTIME_GROUP_CUDA_STREAMSIGNALS_H

#include "runtime/cuda/Cuda.h"

#include <mutex>

namespace commsir::cuda {

/// Of one GPU, whose context is current in all calls. All put their work into
/// `stream`, which may be capturing.
/// Any thread.
class StreamSignals {
public:
  explicit StreamSignals(const Device &device) : device(device) {}
  ~StreamSignals();
  StreamSignals(const StreamSignals &) = delete;
  StreamSignals &operator=(const StreamSignals &) = delete;

  /// Numbers below this are set by copies.
  static constexpr int64_t kCopied = 16;
  /// All that the stream has done before is visible to who sees the value.
  llvm::Error set(CUdeviceptr cell, int64_t value, CUstream stream);
  llvm::Error add(CUdeviceptr cell, int64_t value, CUstream stream);
  /// `exactly`: until the cell holds `value`; else: that or more.
  llvm::Error wait(CUdeviceptr cell, int64_t value, bool exactly,
                   CUstream stream);

  /// Of a `take`: how long it waits, and where it says that it has given up.
  struct Limit {
    uint64_t nanoseconds = 0;
    /// An ErrorRecord, in memory of the host. Once it is valid, no other `take`
    /// with it waits for more than a millisecond.
    CUdeviceptr record = 0;
    /// For the record: the number of the cell, and whose signal is missing.
    uint32_t number = 0, peer = 0;
  };
  /// Waits until the cell holds `value` or more, and takes so much from it.
  llvm::Error take(CUdeviceptr cell, int64_t value, Limit limit,
                   CUstream stream);

private:
  llvm::Error checkSupport();
  llvm::Error load();
  llvm::Error launch(CUfunction function, void **arguments, CUstream stream,
                     const char *what);

  const Device &device;
  /// Of what follows, which the first signals find out.
  std::mutex mutex;
  /// Of the driver's operations: 0: not asked yet; -1: missing.
  int support = 0;
  CUmodule module = nullptr;
  CUfunction adder = nullptr, taker = nullptr;
  /// The numbers below `kCopied`.
  CUdeviceptr numbers = 0;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_STREAMSIGNALS_H
