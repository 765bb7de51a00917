//===- TimedStream.h - Launches in a row, and their time --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_TIMEDSTREAM_H
#define COMMSIR_RUNTIME_CUDA_TIMEDSTREAM_H

#include "runtime/cuda/Cuda.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace commsir::cuda {

/// A stream of one GPU that takes launches, one by one or as one graph, between
/// two events. The GPU's context is current wherever this is used.
///
/// Nothing goes by itself: whose kernel does not end must leave all as it is.
class TimedStream {
public:
  /// Adds one launch to the stream.
  using Launch = llvm::function_ref<llvm::Error(CUstream)>;

  /// Fails when one graph cannot hold that many launches.
  static llvm::Error checkGraph(int64_t launches);

  llvm::Error create(const Driver &driver);
  void destroy();

  /// Makes the graph that `start` replays from now on.
  llvm::Error capture(int64_t launches, Launch launch);
  bool isCaptured() const { return replay; }

  /// Gives the stream all launches, and does not wait for them. No more where
  /// `stops` says so.
  llvm::Error start(int64_t launches, Launch launch,
                    llvm::function_ref<bool()> stops = nullptr);

  /// CUDA_ERROR_NOT_READY as long as some run.
  CUresult query() const { return driver->StreamQuery(stream); }

  /// From the first launch's begin to the last one's end, once they have ended.
  llvm::Expected<double> microseconds() const;

private:
  const Driver *driver = nullptr;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec replay = nullptr;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_TIMEDSTREAM_H
