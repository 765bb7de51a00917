//===- Slots.cpp - Slots, for all protocols -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where slots lie and what moves in them are two questions: a protocol answers
// the first in its ChannelMemory, and the second by its choice of functions.
//
//===----------------------------------------------------------------------===//

#include "lowering/channels/Protocol.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::comms;

int64_t Protocol::getTileStep(Type elementType) const {
  int64_t bits = elementType.isIntOrFloat()
                     ? std::max<int64_t>(elementType.getIntOrFloatBitWidth(), 8)
                     : 8;
  return std::max<int64_t>(tileBytes * 8 / bits, 1);
}

//===----------------------------------------------------------------------===//
// Where slots lie
//===----------------------------------------------------------------------===//

StringRef mlir::comms::stringifySlotKind(SlotKind kind) {
  switch (kind) {
  case SlotKind::Data:
    return "data";
  case SlotKind::Packets:
    return "packets";
  case SlotKind::Lines:
    return "lines";
  case SlotKind::Poison:
    return "poison";
  }
  llvm_unreachable("unknown kind of slots");
}

ChannelMemory mlir::comms::layOutSlots(ChannelOp channel, int64_t teamSize,
                                       int64_t buffers, int64_t units,
                                       Type elementType) {
  ChannelMemory memory;
  memory.buffers = buffers;
  memory.rows = channel.getPattern() == ChannelPattern::Single ? 1 : teamSize;
  memory.slots = channel.getSlots();
  memory.units = units;
  memory.elementType = elementType;
  return memory;
}

/// Emits `base + index * stride`.
static Value emitScaled(OpBuilder &builder, Location loc, Value base,
                        Value index, int64_t stride) {
  Value factor = arith::ConstantIndexOp::create(builder, loc, stride);
  Value scaled = arith::MulIOp::create(builder, loc, index, factor);
  return arith::AddIOp::create(builder, loc, base, scaled);
}

Value mlir::comms::emitBuffer(OpBuilder &builder, Location loc,
                              const ChannelMemory &memory, int64_t delay) {
  if (memory.buffers == 1)
    return arith::ConstantIndexOp::create(builder, loc, 0);
  Value launch = EpochOp::create(builder, loc);
  Value buffers = arith::ConstantIndexOp::create(builder, loc, memory.buffers);
  Value turn = arith::RemUIOp::create(builder, loc, launch, buffers);
  if (delay != 0) { // Of the small turn: cheaper than another of the launch.
    Value later = arith::ConstantIndexOp::create(builder, loc, delay);
    turn = arith::AddIOp::create(builder, loc, turn, later);
    turn = arith::RemUIOp::create(builder, loc, turn, buffers);
  }
  Value size =
      arith::ConstantIndexOp::create(builder, loc, memory.bufferElements());
  return arith::MulIOp::create(builder, loc, turn, size);
}

Value mlir::comms::emitRow(OpBuilder &builder, Location loc,
                           const ChannelMemory &memory, Value base, Value row) {
  if (memory.rows == 1)
    return base;
  return emitScaled(builder, loc, base, row, memory.rowElements());
}

Value mlir::comms::emitSlot(OpBuilder &builder, Location loc,
                            const ChannelMemory &memory, Value row,
                            Value slot) {
  return emitScaled(builder, loc, row, slot, memory.units);
}

Value mlir::comms::emitPeer(OpBuilder &builder, Location loc,
                            const ChannelContext &context, Value peer) {
  auto window = cast<WindowType>(context.window.getType());
  return PeerOp::create(builder, loc, window.getLocalType(), context.window,
                        peer, context.team);
}

LogicalResult mlir::comms::beginSlots(OpBuilder &builder,
                                      ChannelContext &context) {
  Location loc = context.channel.getLoc();
  context.rank = RankOp::create(builder, loc, context.team);
  context.buffer = emitBuffer(builder, loc, context.memory);
  context.ownRow =
      emitRow(builder, loc, context.memory, context.buffer, context.rank);
  return success();
}

/// Runs `body` for the peer of a send, or for all ranks.
static void
forEachDestination(OpBuilder &builder, const ChannelContext &context, SendOp op,
                   llvm::function_ref<void(OpBuilder &, Value)> body) {
  if (op.getPeer())
    return body(builder, op.getPeer());
  Location loc = op.getLoc();
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value size = arith::ConstantIndexOp::create(builder, loc, context.teamSize);
  Value end =
      arith::ConstantIndexOp::create(builder, loc, context.teamSize + 1);
  scf::ForOp::create(
      builder, loc, one, end, one, ValueRange(),
      [&](OpBuilder &inner, Location, Value step, ValueRange) {
        Value sum = arith::AddIOp::create(inner, loc, context.rank, step);
        body(inner, arith::RemUIOp::create(inner, loc, sum, size));
        scf::YieldOp::create(inner, loc);
      });
}

void mlir::comms::emitForEachTarget(
    OpBuilder &builder, const ChannelContext &context, SendOp op,
    llvm::function_ref<void(OpBuilder &, const Slot &)> store) {
  Location loc = op.getLoc();
  const ChannelMemory &memory = context.memory;
  if (memory.atSender) { // One for all, or a row for each destination.
    Value row = emitRow(builder, loc, memory, context.buffer, op.getPeer());
    Value offset = emitSlot(builder, loc, memory, row, op.getSlot());
    return store(builder, {context.local, offset});
  }
  Value offset = emitSlot(builder, loc, memory, context.ownRow, op.getSlot());
  forEachDestination(builder, context, op, [&](OpBuilder &inner, Value peer) {
    store(inner, {emitPeer(inner, loc, context, peer), offset});
  });
}

Slot mlir::comms::emitSource(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op, Value buffer) {
  Location loc = op.getLoc();
  const ChannelMemory &memory = context.memory;
  Value row = context.ownRow;
  if (!memory.atSender)
    row = emitRow(builder, loc, memory, buffer ? buffer : context.buffer,
                  op.getPeer());
  Value offset = emitSlot(builder, loc, memory, row, op.getSlot());
  if (!memory.atSender)
    return {context.local, offset};
  return {emitPeer(builder, loc, context, op.getPeer()), offset};
}

//===----------------------------------------------------------------------===//
// Tiles as they are
//===----------------------------------------------------------------------===//

LogicalResult mlir::comms::sendTiles(OpBuilder &builder,
                                     const ChannelContext &context, SendOp op) {
  emitForEachTarget(
      builder, context, op, [&](OpBuilder &inner, const Slot &slot) {
        TileStoreOp::create(inner, op.getLoc(), op.getTile(), slot.part,
                            slot.offset, op.getValid());
      });
  return success();
}

FailureOr<Value> mlir::comms::recvTiles(OpBuilder &builder,
                                        const ChannelContext &context,
                                        RecvOp op) {
  Slot slot = emitSource(builder, context, op);
  return Value(TileLoadOp::create(builder, op.getLoc(), op.getTile().getType(),
                                  slot.part, slot.offset, op.getValid(),
                                  /*after=*/Value()));
}

LogicalResult mlir::comms::synchronizeRanks(OpBuilder &builder,
                                            const ChannelContext &context,
                                            ChannelBarrierOp op) {
  BarrierOp::create(builder, op.getLoc(), context.team, BarrierExtent::Block,
                    MemoryOrder::AcqRel);
  return success();
}

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

bool mlir::comms::canBePackets(Type elementType, bool, std::string &why) {
  unsigned width =
      elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (width == 8 || width == 16 || width == 32 || width == 64)
    return true;
  why = "packets carry elements of 8, 16, 32 or 64 bits";
  return false;
}

LogicalResult mlir::comms::beginPackets(OpBuilder &builder,
                                        ChannelContext &context) {
  Location loc = context.channel.getLoc();
  if (failed(beginSlots(builder, context)))
    return failure();
  Value epoch = EpochOp::create(builder, loc);
  context.flag =
      arith::IndexCastOp::create(builder, loc, builder.getI32Type(), epoch);
  return success();
}

LogicalResult mlir::comms::sendPackets(OpBuilder &builder,
                                       const ChannelContext &context,
                                       SendOp op) {
  emitForEachTarget(
      builder, context, op, [&](OpBuilder &inner, const Slot &slot) {
        PacketStoreOp::create(inner, op.getLoc(), op.getTile(), slot.part,
                              slot.offset, context.flag, op.getValid(),
                              context.memory.packets);
      });
  return success();
}

FailureOr<Value> mlir::comms::recvPackets(OpBuilder &builder,
                                          const ChannelContext &context,
                                          RecvOp op) {
  Slot slot = emitSource(builder, context, op);
  return Value(PacketLoadOp::create(
      builder, op.getLoc(), op.getTile().getType(), slot.part, slot.offset,
      context.flag, op.getValid(), context.memory.packets));
}

LogicalResult mlir::comms::needNoBarrier(OpBuilder &, const ChannelContext &,
                                         ChannelBarrierOp) {
  return success();
}
