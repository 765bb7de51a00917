//===- SharedChannels.h - Channel memory of many kernels --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channel memory that the kernels of a group take in turn, so that it does not
// grow with their number. It has one state, one set of barrier cells, and a
// region for each kind of slots. lowering/nvvm/SharedChannels.cpp says why
// launches of different kernels do not meet in it. Launches on one such memory
// must follow each other.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_CUDA_SHAREDCHANNELS_H
#define COMMSIR_RUNTIME_GROUP_CUDA_SHAREDCHANNELS_H

#include "runtime/group/cuda/Channels.h"

namespace commsir::cuda {

/// What one launch needs of shared channel memory, or what there is.
struct SharedNeeds {
  enum Region { Data, Packets, Lines, Poison, kRegions };
  /// Blocks of a rank.
  int64_t blocks = 0;
  /// Bytes of one buffer of each region. Of lines, without their rests, which
  /// are an eighth more.
  std::array<size_t, kRegions> bytes{};

  static SharedNeeds of(const jit::CudaKernel &kernel);
  /// Bytes of all buffers.
  uint64_t countBuffers() const;
  /// Whether poison is all that its slots hold.
  bool arePoison() const;
  /// Whether a launch that needs `other` fits.
  bool hold(const SharedNeeds &other) const;
  /// The larger of both in each number. One that grows becomes at least half
  /// as large again, but by that no more than in `most`: few memories are made.
  SharedNeeds grownBy(const SharedNeeds &other, const SharedNeeds &most) const;
  /// With `total` bytes in the buffers of each region.
  static SharedNeeds ofRegions(int64_t blocks, uint64_t total);
};

/// Whether the kernel was compiled for shared channel memory.
bool takesShared(const jit::CudaKernel &kernel);

/// One such memory, a piece of a ChannelPool.
class SharedChannels {
public:
  /// Launches that use it: those that are not captured, graphs', or both.
  enum Use { Eager, Graphs, Both, kUses };
  /// What the slots of its kernels hold. Poison takes three buffers, the rest
  /// two, and messages of one size mostly take only one of them: in a memory of
  /// their own, neither grows, nor stays with old graphs, because of the other.
  enum Slots { Poison, Others, kSlots };

  /// Bytes of a piece that holds `needs` of `ranks` ranks.
  static size_t countBytes(const SharedNeeds &needs, int64_t ranks);

  SharedChannels(Use use, Slots slots, const SharedNeeds &needs, int64_t ranks,
                 ChannelPool::Piece piece);

  const Use use;
  const Slots slots;
  const SharedNeeds &has() const { return needs; }
  CUdeviceptr state() const { return piece.own; }
  llvm::ArrayRef<CUdeviceptr> states() const { return piece.parts; }
  size_t bytes() const { return size; }

  /// Makes the memory what it is before the first launch, in `stream`. The
  /// state's bytes are read from `staging`, which must keep them until the
  /// stream has come so far.
  llvm::Error fill(const Driver &cu, CUstream stream, void *staging) const;

  /// Binds the kernel's own arguments and state in the parameters of its
  /// launches. `record` is where the device reports the kernel's failures.
  void bind(const jit::CudaKernel &kernel, const KernelCode &code,
            CUdeviceptr record, uint64_t digest, uint64_t *params) const;

  /// Seconds that the polls of its next launch may take; 0: not written yet.
  double timeout = 0;
  /// Graphs that use it wait for each other: recorded behind the last launch of
  /// each, waited for before its first. So it is by launches that are not
  /// captured, where both use it. Null: no graph uses it.
  CUevent order = nullptr;
  /// The capture that has put launches on it last, the node in its graph that
  /// records `order`, and what that node depends on.
  unsigned long long capture = 0;
  CUgraphNode recorder = nullptr;
  llvm::SmallVector<CUgraphNode, 2> recorded;

private:
  size_t strideOf(SharedNeeds::Region region) const;

  SharedNeeds needs;
  ChannelPool::Piece piece;
  size_t size = 0, barrier = 0;
  std::array<size_t, SharedNeeds::kRegions> offsets{};
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_GROUP_CUDA_SHAREDCHANNELS_H
