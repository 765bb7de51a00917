//===- SharedChannels.cpp - Channel memory of many kernels ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/SharedChannels.h"

#include "dialect/Packets.h"
#include "lowering/channels/Protocol.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace commsir;
using namespace commsir::cuda;
namespace abi = mlir::comms::nvvm;
using mlir::comms::SlotKind;
using mlir::comms::stringifySlotKind;

/// The region of a window, by the name that the compiler gives to what its
/// slots hold.
static std::optional<SharedChannelSizes::Region>
regionOf(const jit::ArgInfo &info) {
  for (auto [kind, region] :
       {std::pair(SlotKind::Data, SharedChannelSizes::Data),
        std::pair(SlotKind::Packets, SharedChannelSizes::Packets),
        std::pair(SlotKind::Lines, SharedChannelSizes::Lines),
        std::pair(SlotKind::Poison, SharedChannelSizes::Poison)})
    if (info.slots == stringifySlotKind(kind))
      return region;
  return std::nullopt;
}

/// Bytes that a window takes of a buffer of its region.
static size_t takenBy(const jit::ArgInfo &info,
                      SharedChannelSizes::Region region) {
  size_t bytes = info.bytes();
  if (region == SharedChannelSizes::Lines) {
    using namespace mlir::comms;
    bytes = bytes / size_t(kLineUnits + kRestUnits) * size_t(kLineUnits);
  }
  return llvm::alignTo(bytes, abi::kSharedAlignment);
}

static int64_t turnsOf(SharedChannelSizes::Region region) {
  return region == SharedChannelSizes::Poison ? abi::kSharedPoisonTurns
                                              : abi::kSharedTurns;
}

/// Bytes from one buffer to the next.
static size_t strideOf(const SharedChannelSizes &needs,
                       SharedChannelSizes::Region region) {
  size_t bytes = needs.bytes[region];
  return region == SharedChannelSizes::Lines ? bytes + bytes / 8 : bytes;
}

SharedChannelSizes SharedChannelSizes::of(const jit::CudaKernel &kernel) {
  SharedChannelSizes needs;
  needs.blocks = kernel.shape().blocks;
  for (const jit::ArgInfo &info : kernel.args())
    if (auto region = regionOf(info))
      needs.bytes[*region] += takenBy(info, *region);
  return needs;
}

bool SharedChannelSizes::arePoison() const {
  return bytes[Poison] &&
         llvm::all_of(llvm::seq<int>(kRegions), [&](int region) {
           return region == Poison || !bytes[region];
         });
}

bool SharedChannelSizes::hold(const SharedChannelSizes &other) const {
  return other.blocks <= blocks &&
         llvm::all_of(llvm::seq<int>(kRegions), [&](int region) {
           return other.bytes[region] <= bytes[region];
         });
}

SharedChannelSizes
SharedChannelSizes::grownBy(const SharedChannelSizes &other,
                            const SharedChannelSizes &most) const {
  auto grow = [](auto now, auto wanted, auto limit) {
    return wanted <= now ? now
                         : std::max(wanted, std::min(now + now / 2, limit));
  };
  SharedChannelSizes result;
  result.blocks = grow(blocks, other.blocks, most.blocks);
  for (int region = 0; region < kRegions; ++region)
    result.bytes[region] =
        grow(bytes[region], other.bytes[region], most.bytes[region]);
  return result;
}

SharedChannelSizes SharedChannelSizes::ofRegions(int64_t blocks,
                                                 uint64_t total) {
  SharedChannelSizes result;
  result.blocks = blocks;
  for (int region = 0; region < kRegions; ++region)
    result.bytes[region] = total / turnsOf(Region(region));
  return result;
}

uint64_t SharedChannelSizes::countBuffers() const {
  uint64_t total = 0;
  for (int region = 0; region < kRegions; ++region)
    total += strideOf(*this, Region(region)) * turnsOf(Region(region));
  return total;
}

bool commsir::cuda::takesShared(const jit::CudaKernel &kernel) {
  return kernel.shape().shared;
}

//===----------------------------------------------------------------------===//
// One memory
//===----------------------------------------------------------------------===//

size_t SharedChannels::strideOf(SharedChannelSizes::Region region) const {
  return ::strideOf(needs, region);
}

/// Visits the regions of a memory: `visit` gets the bytes of the state, of the
/// barrier cells, and of the buffers of each region.
static void forEachRegion(const SharedChannelSizes &needs, int64_t ranks,
                          llvm::function_ref<void(size_t)> visit) {
  visit(size_t(abi::getStateBytes(needs.blocks)));
  visit(size_t((abi::kBarrierRows + needs.blocks) * ranks) * sizeof(uint32_t));
  for (int i = 0; i < SharedChannelSizes::kRegions; ++i) {
    auto region = SharedChannelSizes::Region(i);
    visit(strideOf(needs, region) * size_t(turnsOf(region)));
  }
}

size_t SharedChannels::countBytes(const SharedChannelSizes &needs,
                                  int64_t ranks) {
  size_t total = 0;
  forEachRegion(needs, ranks, [&](size_t bytes) {
    total += llvm::alignTo(bytes, abi::kAlignment);
  });
  return total;
}

SharedChannels::SharedChannels(Use use, Slots slots,
                               const SharedChannelSizes &needs, int64_t ranks,
                               ChannelPool::Piece piece)
    : use(use), slots(slots), needs(needs), piece(std::move(piece)) {
  llvm::SmallVector<size_t> starts;
  forEachRegion(needs, ranks, [&](size_t bytes) {
    starts.push_back(size);
    size += llvm::alignTo(bytes, abi::kAlignment);
  });
  barrier = starts[1];
  for (int region = 0; region < SharedChannelSizes::kRegions; ++region)
    offsets[region] = starts[2 + region];
}

llvm::Error SharedChannels::fill(const Driver &cu, CUstream stream,
                                 void *staging) const {
  const char *what = "filling shared channel memory";
  if (piece.isUsed)
    if (auto error =
            cu.check(cu.MemsetD8Async(piece.own, 0, size, stream), what))
      return error;
  size_t poison =
      strideOf(SharedChannelSizes::Poison) * abi::kSharedPoisonTurns;
  if (poison)
    if (auto error =
            cu.check(cu.MemsetD16Async(
                         piece.own + offsets[SharedChannelSizes::Poison],
                         uint16_t(abi::kPoison32 & 0xFFFF), poison / 2, stream),
                     what))
      return error;
  abi::State start{};
  start.timeout = toNanoseconds(timeout);
  start.spin = StateOptions().spin;
  start.grid[0] = uint32_t(needs.blocks);
  std::memcpy(staging, &start, sizeof(start));
  return cu.check(cu.MemcpyHtoDAsync(piece.own, staging, sizeof(start), stream),
                  what);
}

void SharedChannels::bind(const jit::CudaKernel &kernel, const KernelCode &code,
                          CUdeviceptr record, uint64_t digest,
                          uint64_t *params) const {
  abi::Launch launch{};
  std::memcpy(&launch, params, sizeof(launch));
  launch.blocks = uint32_t(needs.blocks);
  launch.state = piece.own;
  launch.record = record;
  launch.digest = digest;
  std::memcpy(params, &launch, sizeof(launch));
  std::array<size_t, SharedChannelSizes::kRegions> taken{};
  for (auto [number, info] : llvm::enumerate(kernel.args())) {
    auto region = regionOf(info);
    if (!region && info.slots != abi::kBarrierName)
      continue;
    uint64_t *place = &params[code.placeOf(unsigned(number))];
    size_t offset = region ? offsets[*region] + taken[*region] : barrier;
    for (size_t peer = 0; peer < piece.parts.size(); ++peer)
      place[peer] = piece.parts[peer] ? piece.parts[peer] + offset : 0;
    if (!region)
      continue;
    uint64_t *words = place + piece.parts.size();
    words[0] = strideOf(*region);
    // Rests lie behind all lines of the buffer.
    bool isLines = *region == SharedChannelSizes::Lines;
    words[1] = isLines
                   ? needs.bytes[*region] + taken[*region] / 8 - taken[*region]
                   : 0;
    taken[*region] += takenBy(info, *region);
  }
}
