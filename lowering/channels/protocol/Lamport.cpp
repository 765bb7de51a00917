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
//     k + 2. A sender gets there once it has received, in launch k + 1, from
//     this rank's same block, which has then made its clears of launch k, or
//     from a rank that has (a ring): that its store comes behind the clears
//     then rests on the assumption packets_cumulative (M25). For a sender that
//     receives nothing, the algorithm puts a barrier at the end of the launch.
// Where kernels share the memory (see docs/Spec.md, "Shared channel memory"),
// the prologue of the next launch, of whatever kernel, clears the extent that
// this launch leaves behind in the block states; the same argument holds, for
// a launch begins after the whole launch before it.
//
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

#include "lowering/channels/Protocol.h"

#include "dialect/Assumptions.h"

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
  ChannelMemory memory = layOutSlots(channel, teamSize, /*buffers=*/3,
                                     type.getTileSize(), type.getElementType());
  memory.kind = SlotKind::Poison;
  return memory;
}

static LogicalResult begin(OpBuilder &builder, ChannelContext &context) {
  if (failed(beginSlots(builder, context)))
    return failure();
  context.stale = emitBuffer(builder, context.channel.getLoc(), context.memory,
                             /*delay=*/2);
  return success();
}

static LogicalResult send(OpBuilder &builder, const ChannelContext &context,
                          SendOp op) {
  emitForEachTarget(
      builder, context, op, [&](OpBuilder &inner, const Slot &slot) {
        PoisonStoreOp::create(inner, op.getLoc(), op.getTile(), slot.part,
                              slot.offset, op.getValid());
      });
  return success();
}

/// Fills what `op` receives with poison, in the buffer that begins at `buffer`.
static PoisonFillOp clear(OpBuilder &builder, const ChannelContext &context,
                          RecvOp op, Value buffer) {
  Slot slot = emitSource(builder, context, op, buffer);
  Value count = op.getValid();
  if (!count)
    count = arith::ConstantIndexOp::create(builder, op.getLoc(),
                                           context.memory.units);
  return PoisonFillOp::create(builder, op.getLoc(), slot.part, slot.offset,
                              count);
}

static FailureOr<Value> recv(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op) {
  bool sameEachLaunch = isLaunchInvariant(op);
  if (sameEachLaunch && !context.isShared)
    // Nobody reads there: it may be moved past other accesses.
    clear(builder, context, op, context.stale)
        ->setAttr("comms.stale", builder.getUnitAttr());
  Slot slot = emitSource(builder, context, op);
  Value tile =
      PoisonLoadOp::create(builder, op.getLoc(), op.getTile().getType(),
                           slot.part, slot.offset, op.getValid());
  if (!sameEachLaunch && !context.isShared)
    clear(builder, context, op, context.buffer);
  return tile;
}

/// One store of the data alone, one poll. Not chosen but by tables and the cost
/// model: it makes NaN canonical, and asks for memory that is poisoned.
static constexpr ProtocolCost kCost = {.moreHop = -0.04, .clears = true};

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
                                    needNoBarrier,
                                    /*reusable=*/false,
                                    /*tileBytes=*/1,
                                    kCost,
                                    /*assumes=*/kPacketsCumulative};
  return protocol;
}
} // namespace mlir::comms
