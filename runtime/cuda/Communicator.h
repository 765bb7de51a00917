//===- Communicator.h - Ranks that share windows ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A communicator is one rank's membership in a group of GPUs; a window is
// memory that every rank has and that peers reach by load and store. Over NCCL
// they are its communicators and symmetric windows. Where NCCL is not to be
// had, the ranks of one process can share plain device memory by peer access,
// and ranks of one host memory that they hand each other as files.
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

/// One rank's part of symmetric memory, and where its peers' parts are.
class Window {
public:
  virtual ~Window() = default;
  /// As Communicator::abandon.
  virtual void abandon() {}
  /// Own part, as this rank's memory functions take it.
  CUdeviceptr base() const { return own; }
  /// Of one part; at least what was asked for.
  size_t size() const { return bytes; }
  /// Base of every world rank's part as kernels of this rank reach it; 0: out
  /// of reach.
  llvm::ArrayRef<CUdeviceptr> parts() const { return table; }
  /// NCCL's handle of it, as its device API takes it; 0: it is not NCCL's.
  virtual uint64_t ncclHandle() const { return 0; }

protected:
  CUdeviceptr own = 0;
  size_t bytes = 0;
  std::vector<CUdeviceptr> table;
};

/// A device communicator of NCCL (ncclDevComm), for the launches of one kernel
/// that follow each other: its barriers count them.
class DeviceComm {
public:
  virtual ~DeviceComm() = default;
  /// As Communicator::abandon.
  virtual void abandon() {}
  /// Of the ncclDevComm, in device memory.
  CUdeviceptr address() const { return place; }

protected:
  CUdeviceptr place = 0;
};

/// Tells all ranks what has become of this one, and hears the same of them: all
/// succeed, or all fail, with the rank that has failed. Before whatever waits
/// for all ranks and knows no limit, and after it.
using Agreement =
    std::function<llvm::Error(llvm::StringRef what, llvm::Error mine)>;

/// That of rank `rank` of the threads that meet in `meeting`.
Agreement makeAgreement(std::shared_ptr<Exchange> meeting, int rank);

/// One rank of a group. Its functions are called with the device's context
/// current, from one thread at a time.
class Communicator {
public:
  virtual ~Communicator() = default;
  /// Whether its end waits for that of the other ranks, for ever if need be.
  virtual bool endsTogether() const { return false; }

  /// Rank `rank` of the `ranks` that share `id` (ncclGetUniqueId of one of
  /// them). Collective: all succeed or fail. `device` must outlive it.
  static llvm::Expected<std::unique_ptr<Communicator>>
  create(const Device &device, const ncclUniqueId &id, int ranks, int rank,
         Agreement agreement);

  /// Around a communicator that the caller made and keeps. Not collective.
  static llvm::Expected<std::unique_ptr<Communicator>>
  adopt(const Device &device, ncclComm_t comm, Agreement agreement);

  /// One for each device, without NCCL: windows are plain device memory that
  /// peers reach because all ranks are in this process. Fails with the pair
  /// that has no peer access. The devices must outlive them.
  static llvm::Expected<std::vector<std::unique_ptr<Communicator>>>
  createLocal(llvm::ArrayRef<const Device *> devices);

  /// One rank of a mesh, without NCCL: windows are CUDA's virtual memory, whose
  /// parts peers map. Fails with the pair that has no peer access. Collective.
  /// `device` and `mesh` must outlive it.
  static llvm::Expected<std::unique_ptr<Communicator>>
  createShared(const Device &device, Mesh &mesh, double timeout);

  /// As Agreement says. Collective.
  llvm::Error agree(llvm::StringRef what, llvm::Error mine) const {
    return agreement ? agreement(what, std::move(mine)) : std::move(mine);
  }

  /// From now on nothing is given back when this goes: peers are gone, and what
  /// gives back may wait for them.
  virtual void abandon() {}

  int getRank() const { return rank; }
  int getRanks() const { return ranks; }
  const Device &getDevice() const { return *device; }
  /// Ranks in load/store reach: first … first + size - 1. Known once a window
  /// exists.
  int getReachFirst() const { return reachFirst; }
  int getReachSize() const { return reachSize; }

  /// A window of at least `bytes` on every rank, its content undefined.
  /// Collective: all ranks ask for the same size, in the same order, and all
  /// succeed or fail. The window must go before the communicator.
  virtual llvm::Expected<std::unique_ptr<Window>> allocate(size_t bytes) = 0;

  /// A device communicator that has what `needs` says. Collective; not while a
  /// stream is captured. It must go before the communicator. Fails where
  /// windows are not NCCL's, and where NCCL has no GIN that is needed.
  virtual llvm::Expected<std::unique_ptr<DeviceComm>>
  createDeviceComm(const jit::NcclRequirements &needs);

protected:
  const Device *device = nullptr;
  /// None: there is no other rank.
  Agreement agreement;
  int rank = 0, ranks = 1, reachFirst = 0, reachSize = 1;
};

/// Whether there is a device library for the NCCL that is loaded, or one can be
/// made (runtime/jit/cuda/DeviceLibrary.h); else an error that names both
/// releases.
llvm::Error checkDeviceLibrary(const Nccl &nccl);

/// The NCCL that is loaded, as the compiler asks for it.
llvm::Expected<jit::NcclInstallation> findNccl();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_COMMUNICATOR_H
