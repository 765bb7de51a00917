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

/// A stream of one GPU that runs launches, one by one or as one graph, between
/// two events. The GPU's context must be current.
///
/// Nothing is freed automatically: if a kernel does not end, the caller must
/// leave everything in place.
class TimedStream {
public:
  /// Enqueues one launch in the stream.
  using Launch = llvm::function_ref<llvm::Error(CUstream)>;

  /// Fails if one graph cannot hold that many launches.
  static llvm::Error checkGraph(int64_t launches);

  llvm::Error create(const Driver &driver);
  void destroy();

  /// Captures the graph that `start` replays from now on.
  llvm::Error capture(int64_t launches, Launch launch);
  bool isCaptured() const { return replay; }

  /// Enqueues all launches without waiting for them. Stops early once `stops`
  /// returns true.
  llvm::Error start(int64_t launches, Launch launch,
                    llvm::function_ref<bool()> stops = nullptr);

  /// Returns CUDA_ERROR_NOT_READY while launches are running.
  CUresult query() const { return driver->StreamQuery(stream); }

  /// Time from the start of the first launch to the end of the last. Call it
  /// once they have ended.
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
