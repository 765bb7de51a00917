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
// the state of a rank that does not answer.
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

/// Symmetric memory that is handed out from windows, which it keeps. All ranks
/// take and give the same, in the same order, so that every part of a piece
/// lies at the same offset.
class ChannelPool {
public:
  ChannelPool(Communicator &communicator, uint64_t limit)
      : communicator(communicator), limit(limit) {}

  /// A piece of it: this rank's own, and all parts.
  struct Piece {
    CUdeviceptr own = 0;
    std::vector<CUdeviceptr> parts;
    /// Another had it before: it is not zero.
    bool isUsed = false;
  };
  /// Whether `bytes` are there, without a new window.
  bool has(size_t bytes) const;
  /// Whether `bytes` are there, or a new window within the limit holds them.
  bool mayHave(size_t bytes) const {
    return has(bytes) || (bytes <= limit && total <= limit - bytes);
  }
  /// Bytes of the largest piece that there can be, when all are given back.
  uint64_t most() const {
    uint64_t largest = limit < total ? 0 : limit - total;
    for (const Block &block : blocks)
      largest = std::max<uint64_t>(largest, block.bytes);
    return largest;
  }
  /// Makes a window where `bytes` are not there. Collective: all ranks succeed
  /// or fail, and have the same windows then.
  llvm::Error reserve(size_t bytes);
  /// `bytes` that `reserve` or `has` has promised.
  Piece take(size_t bytes);
  /// Takes back a piece of `bytes`, which no rank uses any more.
  void give(CUdeviceptr own, size_t bytes);
  /// Ends windows of which nobody has a piece, except for the first.
  /// Collective, once no rank's launches use what was given back.
  void trim();
  /// The window that a piece lies in.
  const Window *windowOf(CUdeviceptr own) const;
  /// Bytes of its windows. Any thread.
  uint64_t size() const { return total; }
  uint64_t getLimit() const { return limit; }
  void abandon();

private:
  Communicator &communicator;
  const uint64_t limit;
  std::atomic<uint64_t> total{0};
  struct Block {
    std::unique_ptr<Window> window;
    /// What was asked for; behind it lies a mark that peers may still read.
    size_t bytes = 0;
    /// Behind it nothing was ever handed out.
    size_t touched = 0;
    /// What nobody has: offsets and bytes. No two of them touch.
    std::map<size_t, size_t> spans;
  };
  std::vector<Block> blocks;
};

/// Records of failures, in memory of the host that kernels write to.
class Records {
public:
  using ErrorRecord = mlir::comms::nvvm::ErrorRecord;
  struct Place {
    ErrorRecord *host = nullptr;
    CUdeviceptr device = 0;
  };
  llvm::Expected<Place> take(const Device &device);
  /// Whether a kernel has written to one of them: for each call of some
  /// callers, who may have hundreds of kernels.
  bool isAnyWritten() const;
  /// Takes back one that nothing was written to.
  void give(Place place) { free.push_back(place); }

private:
  std::deque<Memory> pages;
  size_t used = 0;
  llvm::SmallVector<Place> free;
};

class SharedChannels;

/// One instance of a kernel's channels.
struct ChannelSet {
  /// The memory that they share with other kernels'; null: it is their own.
  SharedChannels *shared = nullptr;
  /// Own state, and every rank's as this rank reaches it.
  CUdeviceptr state = 0;
  std::vector<CUdeviceptr> states;
  Records::Place record;
  /// The parameter struct of the next launch, and what is bound in it, by
  /// visible argument.
  std::vector<uint64_t> params;
  std::vector<const void *> bound;
  /// Of a kernel that calls NCCL's device library.
  std::unique_ptr<DeviceComm> deviceComm;
  /// Number of the set of windows that `bound` was found in.
  uint64_t windowsVersion = 0;
  /// Capture that it belongs to; 0: launches that are not captured.
  unsigned long long capture = 0;
  /// Seconds that the polls of its next launch may take. Of shared memory,
  /// SharedChannels::timeout counts.
  double timeout = 0;
};

/// Where a kernel's channel memory lies in its piece.
struct ChannelLayout {
  /// By argument, of those that are the group's. The state is at 0.
  std::vector<size_t> offsets;
  size_t bytes = 0;

  static llvm::Expected<ChannelLayout> of(const jit::CudaKernel &kernel);
};

/// Whether the group makes the argument's memory, and not the caller.
bool isGroups(const jit::ArgInfo &argument);

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_CHANNELS_H
