//===- Mapping.h - Physical memory at addresses -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CUDA virtual memory: physical memory, allocated here or received from a peer
// as files, mapped at one range of addresses.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_MAPPING_H
#define COMMSIR_RUNTIME_CUDA_MAPPING_H

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Mesh.h"

#include "llvm/ADT/SmallVector.h"

namespace commsir::cuda {

/// Unmapped and released by the destructor. A peer's memory lives as long as
/// the peer or a mapping refers to it.
class Mapping {
public:
  Mapping(const Driver &cu, CUcontext context) : cu(&cu), context(context) {}
  Mapping(Mapping &&other) noexcept;
  Mapping &operator=(Mapping &&) = delete;
  ~Mapping();

  /// Adds newly allocated memory of `device`. `size` must be a multiple of the
  /// device's granularity.
  llvm::Error create(const Device &device, size_t size);
  /// Adds memory of rank `peer` behind the existing parts.
  llvm::Error open(const File &file, size_t size, int peer);
  /// Adds memory and takes over the reference.
  void add(CUmemGenericAllocationHandle handle, size_t size);

  /// Maps all parts in the order they were added, readable and writable by
  /// `device`. `peer`, the owner of the memory, is named in errors.
  llvm::Error map(const Device &device, int peer);

  /// Number of parts.
  size_t parts() const { return handles.size(); }
  /// Exports one part as a file that a peer can open.
  llvm::Expected<File> share(size_t part = 0) const;
  /// Address of the first part.
  CUdeviceptr get() const { return address; }

  static CUmemAllocationProp describe(const Device &device);

private:
  const Driver *cu;
  CUcontext context;
  CUdeviceptr address = 0;
  llvm::SmallVector<CUmemGenericAllocationHandle, 1> handles;
  llvm::SmallVector<size_t, 1> sizes;
  /// Size of the reserved addresses, and of the mapped ones so far, in bytes.
  size_t bytes = 0, mapped = 0;
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_MAPPING_H
