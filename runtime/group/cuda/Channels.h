//===- Channels.h - Channel memory of a group of GPUs -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A channel set is one instance of what a kernel keeps between launches: its
// hidden windows, signals and counters, and its state. All of it lies in
// windows of the group, at the same offset on all ranks, so that peers can read
// the state of a rank that does not respond.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_CHANNELS_H
#define COMMSIR_RUNTIME_GROUP_CUDA_CHANNELS_H

#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Kernel.h"

#include <atomic>
#include <deque>
#include <map>

namespace commsir::cuda {

/// A pool of symmetric memory, allocated from windows that it owns. All ranks
/// allocate and free in the same order, so that every part of a piece has the
/// same offset.
class ChannelPool {
public:
  ChannelPool(Communicator &communicator, uint64_t limit)
      : communicator(communicator), limit(limit) {}

  /// An allocation: this rank's address, and that of every rank's part.
  struct Piece {
    CUdeviceptr own = 0;
    std::vector<CUdeviceptr> parts;
    /// The memory was used before: it is not zero.
    bool isUsed = false;
  };
  /// Whether `bytes` bytes are available without a new window.
  bool has(size_t bytes) const;
  /// Whether `bytes` bytes are available, or a new window within the limit can
  /// hold them.
  bool mayHave(size_t bytes) const {
    return has(bytes) || (bytes <= limit && total <= limit - bytes);
  }
  /// Size of the largest possible piece in bytes, once everything is freed.
  uint64_t most() const {
    uint64_t largest = limit < total ? 0 : limit - total;
    for (const Block &block : blocks)
      largest = std::max<uint64_t>(largest, block.bytes);
    return largest;
  }
  /// Allocates a window if `bytes` bytes are not available. Collective: all
  /// ranks succeed or fail, and have the same windows afterwards.
  llvm::Error reserve(size_t bytes);
  /// Allocates `bytes` bytes, which `reserve` or `has` has promised.
  Piece take(size_t bytes);
  /// Frees a piece of `bytes` bytes that no rank uses any more.
  void give(CUdeviceptr own, size_t bytes);
  /// Frees all unused windows except the first. Collective; no launch of any
  /// rank may still use the freed memory.
  void trim();
  /// The window that contains a piece.
  const Window *windowOf(CUdeviceptr own) const;
  /// Total size of its windows in bytes. Thread-safe.
  uint64_t size() const { return total; }
  uint64_t getLimit() const { return limit; }
  void abandon();

private:
  Communicator &communicator;
  const uint64_t limit;
  std::atomic<uint64_t> total{0};
  struct Block {
    std::unique_ptr<Window> window;
    /// Requested size; behind it lies a mark that peers may still read.
    size_t bytes = 0;
    /// No piece behind this offset was ever allocated.
    size_t touched = 0;
    /// Free ranges: offset to bytes. Adjacent ranges are merged.
    std::map<size_t, size_t> spans;
  };
  std::vector<Block> blocks;
};

/// Failure records in host memory that kernels write to.
class Records {
public:
  using ErrorRecord = mlir::comms::nvvm::ErrorRecord;
  struct Place {
    ErrorRecord *host = nullptr;
    CUdeviceptr device = 0;
  };
  llvm::Expected<Place> take(const Device &device);
  /// Whether a kernel has written to any record. Some callers ask in each call
  /// and have hundreds of kernels.
  bool isAnyWritten() const;
  /// Frees a record that no kernel has written to.
  void give(Place place) { free.push_back(place); }

private:
  std::deque<Memory> pages;
  size_t used = 0;
  llvm::SmallVector<Place> free;
};

class SharedChannels;

/// One instance of a kernel's channels.
struct ChannelSet {
  /// Memory shared with other kernels; null: the set has its own.
  SharedChannels *shared = nullptr;
  /// Address of this rank's state, and of every rank's state as this rank
  /// reaches it.
  CUdeviceptr state = 0;
  std::vector<CUdeviceptr> states;
  Records::Place record;
  /// Parameter struct of the next launch, and the bound values, by visible
  /// argument.
  std::vector<uint64_t> params;
  std::vector<const void *> bound;
  /// Set if the kernel calls NCCL's device library.
  std::unique_ptr<DeviceComm> deviceComm;
  /// Version of the window table that `bound` was computed with.
  uint64_t windowsVersion = 0;
  /// Capture that the set belongs to; 0: launches outside of captures.
  unsigned long long capture = 0;
  /// Poll timeout of its next launch in seconds. With shared memory,
  /// SharedChannels::timeout applies.
  double timeout = 0;
};

/// Layout of a kernel's channel memory in its piece.
struct ChannelLayout {
  /// Offset by argument, for arguments that the group allocates. The state is
  /// at 0.
  std::vector<size_t> offsets;
  size_t bytes = 0;

  static llvm::Expected<ChannelLayout> of(const jit::CudaKernel &kernel);
};

/// Whether the group, rather than the caller, allocates the argument's memory.
bool isGroups(const jit::ArgInfo &argument);

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_CHANNELS_H
