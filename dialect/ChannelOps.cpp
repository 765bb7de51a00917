//===- ChannelOps.cpp - Channels, sends and receives ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/OpChecks.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

/// Tiles of all slots, one way, that one rank may hold: what keeps the sizes of
/// windows made from it (times ranks, buffers and flags) within 63 bits.
static constexpr int64_t maxChannelBytes = int64_t(1) << 40;

/// All channels of a kernel have different ids. The first one looks for all of
/// them; the others find in their own block that they are not the first, so
/// that the cost is linear.
static LogicalResult verifyIds(ChannelOp channel) {
  auto kernel = channel->getParentOfType<KernelOp>();
  if (!kernel)
    return success();
  for (Operation *op = channel->getPrevNode(); op; op = op->getPrevNode())
    if (isa<ChannelOp>(op))
      return success();
  ChannelOp first;
  kernel->walk([&](ChannelOp op) {
    first = op;
    return WalkResult::interrupt();
  });
  if (first != channel)
    return success();
  // Ids are compared as attributes: any number is a legal key.
  llvm::DenseMap<Attribute, ChannelOp> owners;
  WalkResult result = kernel->walk([&](ChannelOp op) {
    if (!op.getIdAttr())
      return WalkResult::advance();
    auto [owner, isNew] = owners.try_emplace(op.getIdAttr(), op);
    if (isNew)
      return WalkResult::advance();
    op.emitOpError() << "C3: the kernel already has a channel "
                     << op.getIdAttr().getInt()
                     << "; each must have its own id";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Whether the slots' tiles fit `maxChannelBytes`.
static bool isSmallEnough(ChannelOp channel) {
  ChannelType type = cast<ChannelType>(channel.getChannel().getType());
  int64_t bits = type.getElementType().isIntOrFloat()
                     ? type.getElementType().getIntOrFloatBitWidth()
                     : 64;
  int64_t bytes = llvm::divideCeil(bits, 8);
  return !__builtin_mul_overflow(bytes, type.getTileSize(), &bytes) &&
         !__builtin_mul_overflow(bytes, channel.getSlotsAttr().getInt(),
                                 &bytes) &&
         bytes <= maxChannelBytes;
}

LogicalResult ChannelOp::verify() {
  int64_t slots = getSlotsAttr().getInt(), id = getIdAttr().getInt();
  if (slots < 1)
    return emitOpError() << "C1: a channel must have at least one slot, not "
                         << slots;
  if (id < 0)
    return emitOpError() << "C2: the id " << id
                         << " is negative; ids count from 0";
  if (failed(verifyIds(*this)))
    return failure();
  if (failed(verifyTopLevel(*this, "C4")))
    return failure();
  if (!isSmallEnough(*this))
    return emitOpError()
           << "C5: " << slots << " slots of " << getChannel().getType()
           << " are more than 2^40 bytes; use fewer or smaller ones";
  return success();
}

/// The channel op that the operand comes from, or null after an error.
static ChannelOp getChannelOp(Operation *op, Value channel) {
  auto result = channel.getDefiningOp<ChannelOp>();
  // Its attributes may be missing when it follows its user, in broken IR.
  if (result && result.getSlotsAttr() && result.getPatternAttr())
    return result;
  op->emitOpError("C1: the channel must be the result of a comms.channel");
  return {};
}

static LogicalResult isChannelTile(Operation *op, StringRef constraint,
                                   Value channel, Type tile) {
  RankedTensorType wanted = cast<ChannelType>(channel.getType()).getTileType();
  if (tile == wanted)
    return success();
  return op->emitOpError() << constraint << ": the tile has the type " << tile
                           << ", the channel carries " << wanted;
}

/// A multicast goes to all: it names no peer. Others name one.
static LogicalResult namesItsPeer(SendOp op, ChannelOp channel) {
  bool isMulticast =
      channel.getPatternAttr().getValue() == ChannelPattern::Multicast;
  if (isMulticast != static_cast<bool>(op.getPeer()))
    return success();
  if (isMulticast)
    return op.emitOpError(
        "C4: a multicast channel sends to every rank; leave out the peer");
  return op.emitOpError() << "C4: a "
                          << stringifyChannelPattern(
                                 channel.getPatternAttr().getValue())
                          << " channel sends to one rank; write to %peer";
}

LogicalResult SendOp::verify() {
  ChannelOp channel = getChannelOp(*this, getChannel());
  Type tile = getTile().getType();
  if (!channel || failed(isChannelTile(*this, "C2", getChannel(), tile)) ||
      failed(isIndex(*this, "C3", getSlot(), channel.getSlotsAttr().getInt(),
                     "slot")) ||
      failed(namesItsPeer(*this, channel)) ||
      (getPeer() && failed(isPeer(*this, "C5", getPeer(), channel.getTeam()))))
    return failure();
  return isValid(*this, "C6", getValid(), tile);
}

LogicalResult RecvOp::verify() {
  ChannelOp channel = getChannelOp(*this, getChannel());
  Type tile = getTile().getType();
  if (!channel || failed(isChannelTile(*this, "C2", getChannel(), tile)) ||
      failed(isIndex(*this, "C3", getSlot(), channel.getSlotsAttr().getInt(),
                     "slot")) ||
      failed(isPeer(*this, "C4", getPeer(), channel.getTeam())))
    return failure();
  return isValid(*this, "C5", getValid(), tile);
}

LogicalResult ChannelBarrierOp::verify() {
  return success(getChannelOp(*this, getChannel()) != nullptr);
}
