//===- StreamSignals.h - Signals that streams send and wait for -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Setting and waiting are the driver's operations on streams. It has none that
// adds before CUDA 13: a kernel of one thread does.
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

  /// All that the stream has done before is visible to who sees the value.
  llvm::Error set(CUdeviceptr cell, int64_t value, CUstream stream);
  llvm::Error add(CUdeviceptr cell, int64_t value, CUstream stream);
  /// `exactly`: until the cell holds `value`; else: that or more.
  llvm::Error wait(CUdeviceptr cell, int64_t value, bool exactly,
                   CUstream stream);

private:
  llvm::Error checkSupport();
  llvm::Error load();

  const Device &device;
  /// Of what follows, which the first signals find out.
  std::mutex mutex;
  /// Of the driver's operations: 0: not asked yet; -1: missing.
  int support = 0;
  CUmodule module = nullptr;
  CUfunction adder = nullptr;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_STREAMSIGNALS_H
