//===- Communicator.h - Ranks that share windows ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A communicator is one rank's membership in a group of GPUs; a window is
// memory on every rank that peers access by load and store. With NCCL these are
// its communicators and symmetric windows. Without NCCL, the ranks of one
// process share plain device memory by peer access, and the ranks of one host
// share memory that they exchange as files.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_COMMUNICATOR_H
#define COMMSIR_RUNTIME_CUDA_COMMUNICATOR_H

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Mesh.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/Parallel.h"
#include "runtime/jit/cuda/NcclRequirements.h"

#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <memory>

namespace commsir::cuda {

/// One rank's part of symmetric memory, and the addresses of its peers' parts.
class Window {
public:
  virtual ~Window() = default;
  /// As Communicator::abandon.
  virtual void abandon() {}
  /// This rank's part, as the driver's memory functions take it.
  CUdeviceptr base() const { return own; }
  /// Size of one part in bytes; at least the requested size.
  size_t size() const { return bytes; }
  /// Base address of every world rank's part as kernels of this rank reach it;
  /// 0: out of reach.
  llvm::ArrayRef<CUdeviceptr> parts() const { return table; }
  /// NCCL's handle for use with its device API; 0: the window is not NCCL's.
  virtual uint64_t ncclHandle() const { return 0; }

protected:
  CUdeviceptr own = 0;
  size_t bytes = 0;
  std::vector<CUdeviceptr> table;
};

/// An NCCL device communicator (ncclDevComm). All launches that use it must be
/// ordered, because its barriers count them.
class DeviceComm {
public:
  virtual ~DeviceComm() = default;
  /// As Communicator::abandon.
  virtual void abandon() {}
  /// Device address of the ncclDevComm.
  CUdeviceptr address() const { return place; }

protected:
  CUdeviceptr place = 0;
};

/// Exchanges errors between all ranks: all succeed, or all fail with the name
/// of the rank that failed. Called before and after every operation that waits
/// for all ranks without a time limit.
using Agreement =
    std::function<llvm::Error(llvm::StringRef what, llvm::Error mine)>;

/// The agreement of rank `rank` among the threads that share `meeting`.
Agreement makeAgreement(std::shared_ptr<Exchange> meeting, int rank);

/// One rank of a group. Functions need the device's context to be current, and
/// one thread at a time.
class Communicator {
public:
  virtual ~Communicator() = default;
  /// Whether the destructor waits for the other ranks' destructors, without a
  /// time limit.
  virtual bool endsTogether() const { return false; }

  /// Makes rank `rank` of `ranks` ranks that share `id` (from ncclGetUniqueId
  /// on one of them). Collective: all succeed or fail. `device` must outlive
  /// the result.
  static llvm::Expected<std::unique_ptr<Communicator>>
  create(const Device &device, const ncclUniqueId &id, int ranks, int rank,
         Agreement agreement);

  /// Wraps a communicator that the caller made and owns. Not collective.
  static llvm::Expected<std::unique_ptr<Communicator>>
  adopt(const Device &device, ncclComm_t comm, Agreement agreement);

  /// Makes one communicator per device without NCCL: windows are plain device
  /// memory, which peers reach because all ranks are in this process. Fails and
  /// names the pair that lacks peer access. The devices must outlive the
  /// result.
  static llvm::Expected<std::vector<std::unique_ptr<Communicator>>>
  createLocal(llvm::ArrayRef<const Device *> devices);

  /// Makes one rank of a mesh without NCCL: windows are CUDA virtual memory
  /// whose parts peers map. Fails and names the pair that lacks peer access.
  /// Collective. `device` and `mesh` must outlive the result.
  static llvm::Expected<std::unique_ptr<Communicator>>
  createShared(const Device &device, Mesh &mesh, double timeout);

  /// See Agreement. Collective.
  llvm::Error agree(llvm::StringRef what, llvm::Error mine) const {
    return agreement ? agreement(what, std::move(mine)) : std::move(mine);
  }

  /// From now on the destructor frees nothing, because peers are gone and
  /// freeing may wait for them.
  virtual void abandon() {}

  int getRank() const { return rank; }
  int getRanks() const { return ranks; }
  const Device &getDevice() const { return *device; }
  /// Number of ranks in load/store reach. Known once a window exists.
  int getReachSize() const { return reachSize; }

  /// Allocates a window of at least `bytes` bytes on every rank, uninitialized.
  /// Collective: all ranks request the same sizes in the same order, and all
  /// succeed or fail. Destroy the window before the communicator.
  virtual llvm::Expected<std::unique_ptr<Window>> allocate(size_t bytes) = 0;

  /// Makes a device communicator with the resources that `needs` lists.
  /// Collective; not allowed while a stream is captured. Destroy it before the
  /// communicator. Fails if windows are not NCCL's or NCCL lacks a required
  /// GIN.
  virtual llvm::Expected<std::unique_ptr<DeviceComm>>
  createDeviceComm(const jit::NcclRequirements &needs);

protected:
  const Device *device = nullptr;
  /// Empty: there is no other rank.
  Agreement agreement;
  int rank = 0, ranks = 1, reachSize = 1;
};

/// Succeeds if a device library for the loaded NCCL exists or can be built
/// (runtime/jit/cuda/DeviceLibrary.h); else the error names both releases.
llvm::Error checkDeviceLibrary(const Nccl &nccl);

/// Describes the loaded NCCL for the compiler.
llvm::Expected<jit::NcclInstallation> findNccl();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_COMMUNICATOR_H
