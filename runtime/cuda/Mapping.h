//===- Mapping.h - Physical memory at addresses -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CUDA's virtual memory: physical memory, made here or handed over by a peer as
// files, and the one range of addresses that it is mapped at.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_MAPPING_H
#define COMMSIR_RUNTIME_CUDA_MAPPING_H

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Mesh.h"

#include "llvm/ADT/SmallVector.h"

namespace commsir::cuda {

/// Unmapped and given back at the end; a peer's memory lives as long as the
/// peer or a mapping holds it.
class Mapping {
public:
  Mapping(const Driver &cu, CUcontext context) : cu(&cu), context(context) {}
  Mapping(Mapping &&other) noexcept;
  Mapping &operator=(Mapping &&) = delete;
  ~Mapping();

  /// Adds new memory of `device`; `size` is a multiple of its granularity.
  llvm::Error create(const Device &device, size_t size);
  /// Adds memory of rank `peer`, behind what there is already.
  llvm::Error open(const File &file, size_t size, int peer);
  /// Takes over a reference to memory, and adds it.
  void add(CUmemGenericAllocationHandle handle, size_t size);

  /// Maps all of it, in the order of adding, for reads and writes of `device`.
  /// `peer`, whose memory it is, is for the error.
  llvm::Error map(const Device &device, int peer);

  /// The number of parts that were added.
  size_t parts() const { return handles.size(); }
  /// One part as a file, which a peer opens.
  llvm::Expected<File> share(size_t part = 0) const;
  /// Where the first part is mapped.
  CUdeviceptr get() const { return address; }

  static CUmemAllocationProp describe(const Device &device);

private:
  const Driver *cu;
  CUcontext context;
  CUdeviceptr address = 0;
  llvm::SmallVector<CUmemGenericAllocationHandle, 1> handles;
  llvm::SmallVector<size_t, 1> sizes;
  /// Of the addresses, and of those that are mapped so far.
  size_t bytes = 0, mapped = 0;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_MAPPING_H
