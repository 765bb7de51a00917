//===- GpuRanks.h - GPUs of one process that measure together ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_CUDA_GPURANKS_H
#define COMMSIR_RUNTIME_BENCH_CUDA_GPURANKS_H

#include "runtime/cuda/Communicator.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace commsir::tune {

/// One GPU.
struct Rank {
  std::unique_ptr<cuda::Device> device;
  std::unique_ptr<cuda::Communicator> communicator;
  /// Null without NCCL.
  ncclComm_t comm = nullptr;
  CUstream stream = nullptr;
  CUevent start = nullptr, stop = nullptr;

  const cuda::Driver &driver() const { return device->driver(); }
};

/// GPU r is rank r. Collective steps run on one thread per rank.
class GpuRanks {
public:
  /// Opens the GPUs (0: all) and connects them by NCCL, or by peer access if
  /// NCCL is missing and `needNccl` is false.
  static llvm::Expected<std::unique_ptr<GpuRanks>> create(int ranks,
                                                          bool needNccl);
  ~GpuRanks();

  int size() const { return int(ranks.size()); }
  Rank &operator[](int number) { return ranks[number]; }
  /// Null if GPUs are connected by peer access.
  const cuda::Nccl *nccl() const { return library; }
  bool isStuck() const { return stuck; }
  /// Whether a rank is stuck, or its context reports an error for an empty
  /// stream: it then reports this error for every later call.
  bool isBroken() const;

  /// Runs `work` for every rank with its context current. Once a thread has not
  /// returned, every call fails.
  llvm::Error
  together(llvm::StringRef what,
           const std::function<llvm::Error(Rank &rank, int number)> &work);

  /// Enqueues work in every rank's stream at the same moment and waits for it.
  /// Returns the slowest rank's microseconds between events around it.
  llvm::Expected<double>
  time(const std::function<llvm::Error(Rank &rank, int number)> &enqueue);

private:
  GpuRanks() = default;
  llvm::Error open(int count);
  llvm::Error joinByNccl();
  llvm::Error joinByPeerAccess();
  llvm::Error makeStreams();
  static llvm::Error waitFor(Rank &rank);

  std::vector<Rank> ranks;
  const cuda::Nccl *library = nullptr;
  bool stuck = false;
};

/// A graph of `calls` calls, captured in a rank's stream.
class Graph {
public:
  /// Captures. The context of `rank` must be current.
  static llvm::Expected<std::unique_ptr<Graph>>
  capture(Rank &rank, int64_t calls, const std::function<llvm::Error()> &call);
  /// The context must be current.
  ~Graph();
  llvm::Error launch() const;

private:
  explicit Graph(Rank &rank) : rank(rank) {}
  Rank &rank;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
};

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_CUDA_GPURANKS_H
