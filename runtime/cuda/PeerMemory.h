//===- PeerMemory.h - Memory that was not made for peers --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes memory that is there already, by whomever it was allocated, reachable
// by the ranks of a mesh: CUDA's virtual memory (ncclMemAlloc, pools of torch
// over it, expandable segments) by files, cudaMalloc's by CUDA's handles for
// other processes.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_PEERMEMORY_H
#define COMMSIR_RUNTIME_CUDA_PEERMEMORY_H

#include "runtime/cuda/Mapping.h"

#include <memory>
#include <vector>

namespace commsir::cuda {

/// What this rank has mapped of its peers' memory; unmapped at the end.
class PeerMemory {
public:
  /// Shares `bytes` at `own` with all ranks of the mesh, and maps theirs; each
  /// may have another address. Collective: all ranks ask for the same number of
  /// bytes, and all succeed or fail. `device` must outlive it.
  static llvm::Expected<std::unique_ptr<PeerMemory>>
  share(const Device &device, Mesh &mesh, CUdeviceptr own, size_t bytes,
        double timeout);
  ~PeerMemory();

  /// Where this rank reaches every rank's bytes, its own at `own`.
  const std::vector<CUdeviceptr> &parts() const { return table; }

  /// From now on nothing is unmapped when this goes: kernels may still run.
  void abandon();

private:
  struct Offer;
  explicit PeerMemory(const Device &device) : device(device) {}
  llvm::Error openMapped(Mesh &mesh, llvm::StringRef what,
                         const std::vector<Offer> &offers,
                         const Mapping &shared, double timeout);
  llvm::Error openAllocated(const Offer &offer, int peer);

  const Device &device;
  std::vector<CUdeviceptr> table;
  std::vector<Mapping> mappings;
  /// Opened by CUDA's handles for other processes.
  std::vector<CUdeviceptr> opened;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_PEERMEMORY_H
