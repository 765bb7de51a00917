//===- Pull.cpp - Tiles stay with the sender ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sender writes a tile to its own part of the window, the barrier of the
// channel publishes it, and receivers read it from there. A multicast tile is
// stored once and read by all.
//
// Memory: [2 buffers][rows][slots][tile] of the wire type. A pairwise channel
// has one row for each destination; the others have one row.
//
// Reuse: launch k + 2 writes the buffer of launch k. Between them stands the
// barrier of launch k + 1: a sender that has passed it knows that every rank's
// same block has entered launch k + 1, and so has made its reads of launch k.
// Within a launch a sender writes a slot again when it knows that the readers
// have read it (a `reused` channel: comms-check-sync proves it).
//
//===----------------------------------------------------------------------===//

#include "lowering/Protocol.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::comms;

static bool supports(Type, bool, std::string &) { return true; }

static double overhead(Type) { return 1.0; }

static bool isPairwise(ChannelOp channel) {
  return channel.getPattern() == ChannelPattern::Pairwise;
}

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  ChannelMemory memory;
  memory.buffers = 2;
  memory.rows = isPairwise(channel) ? teamSize : 1;
  memory.slots = channel.getSlots();
  memory.units = type.getTileSize();
  memory.elementType = type.getElementType();
  return memory;
}

static LogicalResult begin(OpBuilder &builder, ChannelContext &context) {
  Location loc = context.channel.getLoc();
  ChannelMemory layout = memory(context.channel, context.teamSize);
  context.buffer = emitBuffer(builder, loc, layout);
  if (isPairwise(context.channel)) {
    context.rank = RankOp::create(builder, loc, context.channel.getTeam());
    context.ownRow =
        emitRow(builder, loc, layout, context.buffer, context.rank);
  }
  auto window = cast<WindowType>(context.window.getType());
  context.local =
      LocalOp::create(builder, loc, window.getLocalType(), context.window);
  return success();
}

static LogicalResult send(OpBuilder &builder, const ChannelContext &context,
                          SendOp op) {
  ChannelMemory layout = memory(context.channel, context.teamSize);
  Value row = context.buffer;
  if (isPairwise(context.channel))
    row = emitRow(builder, op.getLoc(), layout, row, op.getPeer());
  Value offset = emitSlot(builder, op.getLoc(), layout, row, op.getSlot());
  TileStoreOp::create(builder, op.getLoc(), op.getTile(), context.local, offset,
                      op.getValid());
  return success();
}

static FailureOr<Value> recv(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op) {
  ChannelMemory layout = memory(context.channel, context.teamSize);
  Value row = isPairwise(context.channel) ? context.ownRow : context.buffer;
  Value offset = emitSlot(builder, op.getLoc(), layout, row, op.getSlot());
  Value peer = emitPeer(builder, op.getLoc(), context, op.getPeer());
  return Value(TileLoadOp::create(builder, op.getLoc(), op.getTile().getType(),
                                  peer, offset, op.getValid(),
                                  /*after=*/Value()));
}

static LogicalResult barrier(OpBuilder &builder, const ChannelContext &context,
                             ChannelBarrierOp op) {
  BarrierOp::create(builder, op.getLoc(), context.team, BarrierExtent::Block,
                    MemoryOrder::AcqRel);
  return success();
}

namespace mlir::comms {
const Protocol &getPullProtocol() {
  static const Protocol protocol = {"pull",
                                    "tiles stay with the sender; a barrier "
                                    "publishes them, receivers read them",
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
