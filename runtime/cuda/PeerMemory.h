//===- PeerMemory.h - Memory that was not made for peers --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes existing memory, from any allocator, accessible to the ranks of a mesh:
// CUDA virtual memory (ncclMemAlloc, torch's pools over it, expandable
// segments) through files, and memory of cudaMalloc through CUDA IPC handles.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_PEERMEMORY_H
#define COMMSIR_RUNTIME_CUDA_PEERMEMORY_H

#include "runtime/cuda/Mapping.h"

#include <memory>
#include <vector>

namespace commsir::cuda {

/// This rank's mappings of its peers' memory; unmapped by the destructor.
class PeerMemory {
public:
  /// Shares `bytes` bytes at `own` with all ranks of the mesh and maps theirs.
  /// Addresses may differ between ranks. Collective: all ranks pass the same
  /// size, and all succeed or fail. `device` must outlive the result.
  static llvm::Expected<std::unique_ptr<PeerMemory>>
  share(const Device &device, Mesh &mesh, CUdeviceptr own, size_t bytes,
        double timeout);
  ~PeerMemory();

  /// Address of every rank's bytes as this rank reaches them; this rank's are
  /// at `own`.
  const std::vector<CUdeviceptr> &parts() const { return table; }

  /// From now on the destructor unmaps nothing, because kernels may still run.
  void abandon();

private:
  struct Offer;
  explicit PeerMemory(const Device &device) : device(device) {}
  llvm::Error openMapped(Mesh &mesh, llvm::StringRef what,
                         const std::vector<Offer> &offers,
                         const Mapping &shared, double timeout);
  llvm::Error openAllocated(const Offer &offer, size_t bytes, int peer);

  const Device &device;
  std::vector<CUdeviceptr> table;
  std::vector<Mapping> mappings;
  /// Memory opened through CUDA IPC handles.
  std::vector<CUdeviceptr> opened;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_PEERMEMORY_H
