//===- Push.cpp - Tiles go to the receiver, a barrier publishes them ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sender writes a tile to the receiver's memory, the barrier of the channel
// publishes it, and the receiver reads its own memory. Stores cross the link
// without waiting for an answer; loads, as `pull` has them, wait for one.
//
// Memory: [2 buffers][rows][slots][tile] of the wire type, one row for each
// source (single: one row).
//
// Reuse: launch k + 2 writes the buffer of launch k. Between them stands the
// barrier of launch k + 1: a sender that has passed it knows that every rank's
// same block has entered launch k + 1, and so has made its reads of launch k.
// Within a launch a sender writes a slot again when it knows that the receiver
// has read it (a `reused` channel: comms-check-sync proves it).
//
//===----------------------------------------------------------------------===//

#include "lowering/Protocol.h"

using namespace mlir;
using namespace mlir::comms;

static bool supports(Type, bool, std::string &) { return true; }

static double overhead(Type) { return 1.0; }

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  ChannelMemory memory;
  memory.buffers = 2;
  memory.rows = channel.getPattern() == ChannelPattern::Single ? 1 : teamSize;
  memory.slots = channel.getSlots();
  memory.units = type.getTileSize();
  memory.elementType = type.getElementType();
  return memory;
}

static LogicalResult begin(OpBuilder &builder, ChannelContext &context) {
  Location loc = context.channel.getLoc();
  ChannelMemory layout = memory(context.channel, context.teamSize);
  context.rank = RankOp::create(builder, loc, context.team);
  context.buffer = emitBuffer(builder, loc, layout);
  context.ownRow = emitRow(builder, loc, layout, context.buffer,
                           layout.rows == 1 ? Value() : context.rank);
  auto window = cast<WindowType>(context.window.getType());
  context.local =
      LocalOp::create(builder, loc, window.getLocalType(), context.window);
  return success();
}

static LogicalResult send(OpBuilder &builder, const ChannelContext &context,
                          SendOp op) {
  Location loc = op.getLoc();
  ChannelMemory layout = memory(context.channel, context.teamSize);
  Value offset = emitSlot(builder, loc, layout, context.ownRow, op.getSlot());
  emitForEachDestination(builder, context, op,
                         [&](OpBuilder &inner, Value peer) {
                           Value part = emitPeer(inner, loc, context, peer);
                           TileStoreOp::create(inner, loc, op.getTile(), part,
                                               offset, op.getValid());
                         });
  return success();
}

static FailureOr<Value> recv(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op) {
  Location loc = op.getLoc();
  ChannelMemory layout = memory(context.channel, context.teamSize);
  Value row = emitRow(builder, loc, layout, context.buffer,
                      layout.rows == 1 ? Value() : op.getPeer());
  Value offset = emitSlot(builder, loc, layout, row, op.getSlot());
  return Value(TileLoadOp::create(builder, loc, op.getTile().getType(),
                                  context.local, offset, op.getValid(),
                                  /*after=*/Value()));
}

static LogicalResult barrier(OpBuilder &builder, const ChannelContext &context,
                             ChannelBarrierOp op) {
  BarrierOp::create(builder, op.getLoc(), context.team, BarrierExtent::Block,
                    MemoryOrder::AcqRel);
  return success();
}

namespace mlir::comms {
const Protocol &getPushProtocol() {
  static const Protocol protocol = {"push",
                                    "tiles go to the receiver's memory; a "
                                    "barrier publishes them",
                                    supports,
                                    overhead,
                                    memory,
                                    begin,
                                    send,
                                    recv,
                                    barrier,
                                    /*reusable=*/true};
  return protocol;
}
} // namespace mlir::comms
