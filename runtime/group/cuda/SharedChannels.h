//===- SharedChannels.h - Channel memory of many kernels --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channel memory that the kernels of a group use in turn, so that it does not
// grow with their number. It has one state, one set of barrier cells, and a
// region for each kind of slots. lowering/nvvm/SharedChannels.cpp explains why
// launches of different kernels do not conflict in it. Launches on one such
// memory must be ordered.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_SHAREDCHANNELS_H
#define COMMSIR_RUNTIME_GROUP_CUDA_SHAREDCHANNELS_H

#include "runtime/group/cuda/Channels.h"

namespace commsir::cuda {

/// Shared channel memory that one launch needs, or that exists.
struct SharedChannelSizes {
  enum Region { Data, Packets, Lines, Poison, kRegions };
  /// Blocks per rank.
  int64_t blocks = 0;
  /// Bytes of one buffer of each region. For lines without the remainders,
  /// which take an eighth more.
  std::array<size_t, kRegions> bytes{};

  static SharedChannelSizes of(const jit::CudaKernel &kernel);
  /// Total bytes of all buffers.
  uint64_t countBuffers() const;
  /// Whether all its slots hold poison.
  bool arePoison() const;
  /// Whether a launch that needs `other` fits.
  bool hold(const SharedChannelSizes &other) const;
  /// The larger of both in each number. One that grows becomes at least half
  /// as large again, but by that no more than in `most`: few memories are made.
  SharedChannelSizes grownBy(const SharedChannelSizes &other,
                             const SharedChannelSizes &most) const;
  /// With `total` bytes in the buffers of each region.
  static SharedChannelSizes ofRegions(int64_t blocks, uint64_t total);
};

/// Whether the kernel was compiled for shared channel memory.
bool takesShared(const jit::CudaKernel &kernel);

/// One shared channel memory, allocated from a ChannelPool.
class SharedChannels {
public:
  /// Launches that use it: those outside of captures, those of graphs, or both.
  enum Use { Eager, Graphs, Both, kUses };
  /// Kind of slots. Poison needs three buffers and all others two, and messages
  /// of one size mostly use only one kind. Separate memory keeps each kind from
  /// growing, or being kept by old graphs, because of the other.
  enum Slots { Poison, Others, kSlots };

  /// Bytes of a piece that holds `needs` for `ranks` ranks.
  static size_t countBytes(const SharedChannelSizes &needs, int64_t ranks);

  SharedChannels(Use use, Slots slots, const SharedChannelSizes &needs,
                 int64_t ranks, ChannelPool::Piece piece);

  const Use use;
  const Slots slots;
  const SharedChannelSizes &has() const { return needs; }
  CUdeviceptr state() const { return piece.own; }
  llvm::ArrayRef<CUdeviceptr> states() const { return piece.parts; }
  size_t bytes() const { return size; }

  /// Initializes the memory in `stream`. The initial state is read from
  /// `staging`, which must stay unchanged until the stream has passed.
  llvm::Error fill(const Driver &cu, CUstream stream, void *staging) const;

  /// Binds the kernel's own arguments and state in its launch parameters.
  /// `record` is where the device reports failures.
  void bind(const jit::CudaKernel &kernel, const KernelCode &code,
            CUdeviceptr record, uint64_t digest, uint64_t *params) const;

  /// Poll timeout of its next launch in seconds; 0: not written yet.
  double timeout = 0;
  /// Event that orders the graphs that use the memory: recorded after the last
  /// launch of each and awaited before its first. Launches outside of captures
  /// use it too if both share the memory. Null: no graph uses the memory.
  CUevent order = nullptr;
  /// The last capture that launched on it, the node of its graph that records
  /// `order`, and the dependencies of that node.
  unsigned long long capture = 0;
  CUgraphNode recorder = nullptr;
  llvm::SmallVector<CUgraphNode, 2> recorded;

private:
  size_t strideOf(SharedChannelSizes::Region region) const;

  SharedChannelSizes needs;
  ChannelPool::Piece piece;
  size_t size = 0, barrier = 0;
  std::array<size_t, SharedChannelSizes::kRegions> offsets{};
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_SHAREDCHANNELS_H
