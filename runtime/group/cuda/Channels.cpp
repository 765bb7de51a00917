//===- Channels.cpp - Channel memory of a group of GPUs -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/Channels.h"

#include "runtime/support/GroupError.h"
#include "runtime/support/Size.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace commsir;
using namespace commsir::cuda;
using group::GroupError;
using group::makeError;
namespace abi = mlir::comms::nvvm;

/// Windows of the pool are at least this large: registering one takes
/// milliseconds.
static constexpr size_t kLeastWindow = size_t(4) << 20;
/// Records of one page.
static constexpr size_t kRecordsPerPage = 64;

bool ChannelPool::has(size_t bytes) const {
  for (const Block &block : blocks)
    for (auto [offset, size] : block.spans)
      if (size >= bytes)
        return true;
  return false;
}

llvm::Error ChannelPool::reserve(size_t bytes) {
  if (has(bytes))
    return llvm::Error::success();
  size_t wanted = std::max(llvm::alignTo(bytes, abi::kAlignment), kLeastWindow);
  if (limit < total || wanted > limit - total)
    wanted = bytes;
  if (wanted > limit || total > limit - wanted)
    return makeError(
        GroupError::Kind::Limit,
        llvm::formatv(
            "{0} of channel memory are needed in addition to {1} in use, and "
            "the group's limit is {2}. Raise the limit "
            "(channelBytes, COMMSIR_CHANNEL_BYTES), or take fewer "
            "kernels or another algorithm or protocol",
            renderSize(int64_t(bytes)), renderSize(int64_t(total)),
            renderSize(int64_t(limit)))
            .str());
  auto window = communicator.allocate(wanted);
  if (!window)
    return window.takeError();
  const Device &device = communicator.getDevice();
  const Driver &cu = device.driver();
  // Not what lies behind: peers may still read this rank's mark.
  const char *what = "zeroing channel memory";
  llvm::Error zeroed =
      cu.check(cu.MemsetD8((*window)->base(), 0, wanted), what);
  if (!zeroed)
    zeroed = cu.check(cu.StreamSynchronize(nullptr), what);
  // All ranks have the window, or none.
  if (auto error = communicator.agree(what, std::move(zeroed)))
    return error;
  total += (*window)->size();
  blocks.push_back({std::move(*window), wanted, 0, {{0, wanted}}});
  return llvm::Error::success();
}

ChannelPool::Piece ChannelPool::take(size_t bytes) {
  for (Block &block : blocks)
    for (auto [offset, size] : block.spans) {
      if (size < bytes)
        continue;
      // Only the last span of a block can be shorter than that.
      size_t taken = std::min(llvm::alignTo(bytes, abi::kAlignment), size);
      Piece piece;
      piece.own = block.window->base() + offset;
      for (CUdeviceptr part : block.window->parts())
        piece.parts.push_back(part ? part + offset : 0);
      piece.isUsed = offset < block.touched;
      block.touched = std::max(block.touched, offset + taken);
      size_t rest = offset + taken, left = size - taken;
      block.spans.erase(offset);
      if (left)
        block.spans[rest] = left;
      return piece;
    }
  llvm_unreachable("take without reserve");
}

void ChannelPool::give(CUdeviceptr own, size_t bytes) {
  for (Block &block : blocks) {
    CUdeviceptr base = block.window->base();
    if (own < base || own - base >= block.bytes)
      continue;
    size_t offset = own - base;
    size_t end =
        std::min(offset + llvm::alignTo(bytes, abi::kAlignment), block.bytes);
    auto after = block.spans.lower_bound(offset);
    if (after != block.spans.end() && after->first == end) {
      end += after->second;
      after = block.spans.erase(after);
    }
    if (after != block.spans.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        block.spans.erase(before);
      }
    }
    block.spans[offset] = end - offset;
    return;
  }
}

void ChannelPool::trim() {
  auto isFree = [](const Block &block) {
    return block.spans.size() == 1 && block.spans.begin()->first == 0 &&
           block.spans.begin()->second == block.bytes;
  };
  for (size_t i = blocks.size(); i-- > 1;)
    if (isFree(blocks[i])) {
      total -= blocks[i].window->size();
      blocks.erase(blocks.begin() + ptrdiff_t(i));
    }
}

const Window *ChannelPool::windowOf(CUdeviceptr own) const {
  for (const Block &block : blocks)
    if (own >= block.window->base() && own - block.window->base() < block.bytes)
      return block.window.get();
  return nullptr;
}

void ChannelPool::abandon() {
  for (Block &block : blocks)
    block.window->abandon();
}

llvm::Expected<Records::Place> Records::take(const Device &device) {
  if (!free.empty())
    return free.pop_back_val();
  if (pages.empty() || used == kRecordsPerPage) {
    auto page = Memory::allocate(device, kRecordsPerPage * sizeof(ErrorRecord),
                                 Memory::Place::PinnedHost);
    if (!page)
      return page.takeError();
    pages.push_back(std::move(*page));
    used = 0;
  }
  Place place;
  place.host = static_cast<ErrorRecord *>(pages.back().host()) + used;
  place.device = pages.back().address() + used * sizeof(ErrorRecord);
  ++used;
  return place;
}

bool Records::isAnyWritten() const {
  size_t left = pages.empty() ? 0 : (pages.size() - 1) * kRecordsPerPage + used;
  for (const Memory &page : pages) {
    auto *record = static_cast<const ErrorRecord *>(page.host());
    for (size_t i = std::min(left, kRecordsPerPage); i; --i, --left, ++record)
      if (__atomic_load_n(&record->valid, __ATOMIC_ACQUIRE))
        return true;
  }
  return false;
}

bool commsir::cuda::isGroups(const jit::ArgInfo &argument) {
  // Hidden scalars are words of the parameters.
  bool isHidden = argument.hidden && argument.kind != jit::ArgKind::Scalar;
  return isHidden || argument.kind == jit::ArgKind::Signal ||
         argument.kind == jit::ArgKind::Counter;
}

llvm::Expected<ChannelLayout> ChannelLayout::of(const jit::CudaKernel &kernel) {
  ChannelLayout layout;
  // The state first: a peer that reads it needs no other offset.
  size_t end = llvm::alignTo(size_t(abi::getStateBytes(kernel.shape().blocks)),
                             abi::kAlignment);
  for (const jit::ArgInfo &argument : kernel.args()) {
    layout.offsets.push_back(end);
    if (!isGroups(argument))
      continue;
    if (__builtin_add_overflow(end, argument.bytes(), &end) ||
        __builtin_add_overflow(end, abi::kAlignment, &end))
      return makeError(GroupError::Kind::Limit, "the channels of kernel '" +
                                                    kernel.name() +
                                                    "' are too large");
    end = end / abi::kAlignment * abi::kAlignment;
  }
  layout.bytes = end;
  return layout;
}
