//===- Lamport.cpp - Data that is its own flag ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory that has not been written holds poison, one fixed NaN pattern. A
// sender writes tiles whose NaN have been made canonical to the receiver's
// memory; a receiver polls its own memory until no element is poison. No
// barrier, no additional bytes, but every slot has to be filled with poison
// again before it is used again.
//
// Memory: [3 buffers][rows][slots][tile] of the wire type, poisoned before the
// first launch; one row for each source (single: one row).
//
// Clearing: launch k receives in buffer k mod 3, and clears what launch k - 1
// received, in buffer (k + 2) mod 3, before it polls, so that the stores hide
// in the wait. That cannot race:
//   - nobody reads there: launch k - 1 of this rank has ended, and only this
//     rank reads its own memory;
//   - nobody writes there: that buffer was filled in launch k - 1 (all of it
//     that was received has been seen to arrive) and is filled next in launch
//     k + 2. A sender gets there when it has heard, in launch k + 1, from this
//     rank's same block, which has then made its clears of launch k. Where a
//     sender hears nothing back, whoever made the program puts a barrier at the
//     end of the launch.
// The extent is exact: the receive that was made in launch k - 1 is made in
// launch k with the same slot, source and `valid`, which isLaunchInvariant
// proves; a channel's memory belongs to one kernel and one number of blocks, so
// those do not differ either. A receive for which it cannot be proven (its
// extent depends on a scalar argument, or on memory) clears what it has just
// received, right after: also exact, and safe by the same argument one launch
// earlier, but not hidden, and the slot cannot be received from twice in a
// launch.
//
//===----------------------------------------------------------------------===//

#include "lowering/Protocol.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::comms;

static bool supports(Type elementType, bool reducing, std::string &why) {
  if (!elementType.isF32() && !elementType.isF16() && !elementType.isBF16()) {
    why = "it marks empty memory by a NaN of f32, f16 or bf16, and other "
          "elements have no "
          "pattern to spare; use 'll'";
    return false;
  }
  if (!reducing) {
    why = "it makes every NaN canonical, and a copy has to keep all bits; use "
          "'ll'";
    return false;
  }
  return true;
}

static double overhead(Type) { return 1.0; }

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  ChannelMemory memory;
  memory.buffers = 3;
  memory.rows = channel.getPattern() == ChannelPattern::Single ? 1 : teamSize;
  memory.slots = channel.getSlots();
  memory.units = type.getTileSize();
  memory.elementType = type.getElementType();
  memory.poisoned = true;
  return memory;
}

static LogicalResult begin(OpBuilder &builder, ChannelContext &context) {
  Location loc = context.channel.getLoc();
  ChannelMemory layout = memory(context.channel, context.teamSize);
  context.rank = RankOp::create(builder, loc, context.channel.getTeam());
  context.buffer = emitBuffer(builder, loc, layout);
  context.ownRow = emitRow(builder, loc, layout, context.buffer,
                           layout.rows == 1 ? Value() : context.rank);
  context.stale = emitBuffer(builder, loc, layout, /*delay=*/2);
  auto window = cast<WindowType>(context.window.getType());
  context.local =
      LocalOp::create(builder, loc, window.getLocalType(), context.window);
  return success();
}

static LogicalResult send(OpBuilder &builder, const ChannelContext &context,
                          SendOp op) {
  ChannelMemory layout = memory(context.channel, context.teamSize);
  Value offset =
      emitSlot(builder, op.getLoc(), layout, context.ownRow, op.getSlot());
  emitForEachDestination(
      builder, context, op, [&](OpBuilder &inner, Value peer) {
        Value memref = emitPeer(inner, op.getLoc(), context, peer);
        PoisonStoreOp::create(inner, op.getLoc(), op.getTile(), memref, offset,
                              op.getValid());
      });
  return success();
}

/// Fills what `op` receives with poison, in the buffer that begins at `buffer`.
static PoisonFillOp clear(OpBuilder &builder, const ChannelContext &context,
                          RecvOp op, Value buffer) {
  ChannelMemory layout = memory(context.channel, context.teamSize);
  Value row = emitRow(builder, op.getLoc(), layout, buffer,
                      layout.rows == 1 ? Value() : op.getPeer());
  Value offset = emitSlot(builder, op.getLoc(), layout, row, op.getSlot());
  Value count = op.getValid();
  if (!count)
    count = arith::ConstantIndexOp::create(builder, op.getLoc(), layout.units);
  return PoisonFillOp::create(builder, op.getLoc(), context.local, offset,
                              count);
}

static FailureOr<Value> recv(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op) {
  ChannelMemory layout = memory(context.channel, context.teamSize);
  bool sameEachLaunch = isLaunchInvariant(op);
  if (sameEachLaunch)
    // Nobody reads there: it may be moved past other accesses.
    clear(builder, context, op, context.stale)
        ->setAttr("comms.stale", builder.getUnitAttr());
  Value row = emitRow(builder, op.getLoc(), layout, context.buffer,
                      layout.rows == 1 ? Value() : op.getPeer());
  Value offset = emitSlot(builder, op.getLoc(), layout, row, op.getSlot());
  Value tile =
      PoisonLoadOp::create(builder, op.getLoc(), op.getTile().getType(),
                           context.local, offset, op.getValid());
  if (!sameEachLaunch)
    clear(builder, context, op, context.buffer);
  return tile;
}

/// The data tells by itself that it has come.
static LogicalResult barrier(OpBuilder &, const ChannelContext &,
                             ChannelBarrierOp) {
  return success();
}

namespace mlir::comms {
const Protocol &getLamportProtocol() {
  static const Protocol protocol = {"lamport",
                                    "empty memory holds poison; receivers poll "
                                    "their own memory until none is left",
                                    supports,
                                    overhead,
                                    memory,
                                    begin,
                                    send,
                                    recv,
                                    barrier};
  return protocol;
}
} // namespace mlir::comms
