//===- LL128.cpp - A flag for each line of 128 bytes ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Like LL, with packets of 128 bytes: a sender writes lines of the tile to the
// receiver's memory, each with a flag, the launch's number, in place of its
// last 8 bytes, which travel beside it with a flag of their own. A receiver
// polls its own memory until every line carries the flag. No barrier; an eighth
// more bytes. It rests on `store128_whole`: that a line which eight threads
// store at once is seen whole.
//
// Memory: [2 buffers][rows][slots][lines of 16] of i64, one row for each source
// (single: one row), and behind all of them the rests of the lines, 2 i64 each.
//
// Reuse: as in LL.cpp, line by line. Lines that hold nothing valid are neither
// sent nor looked at; what lies there carries the flag of an earlier launch.
//
//===----------------------------------------------------------------------===//

#include "lowering/Protocol.h"

#include "dialect/Packets.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::comms;

static constexpr Assumption assumption = Assumption::Store128Whole;

static bool supports(Type elementType, bool, std::string &why) {
  unsigned width =
      elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (width == 8 || width == 16 || width == 32 || width == 64)
    return true;
  why = "lines carry elements of 8, 16, 32 or 64 bits";
  return false;
}

static double overhead(Type) {
  return double(kLineUnits + kRestUnits) / double(kLineUnits);
}

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  int64_t lines = countLinesOf(type.getTileSize(),
                               type.getElementType().getIntOrFloatBitWidth());
  ChannelMemory memory;
  memory.buffers = 2;
  memory.rows = channel.getPattern() == ChannelPattern::Single ? 1 : teamSize;
  memory.slots = channel.getSlots();
  memory.units = kLineUnits * lines;
  memory.rest = kRestUnits * lines;
  memory.elementType = IntegerType::get(channel.getContext(), 64);
  return memory;
}

static LogicalResult begin(OpBuilder &builder, ChannelContext &context) {
  beginPackets(builder, context, memory(context.channel, context.teamSize));
  return success();
}

static LogicalResult send(OpBuilder &builder, const ChannelContext &context,
                          SendOp op) {
  sendPackets(builder, context, memory(context.channel, context.teamSize), op,
              assumption);
  return success();
}

static FailureOr<Value> recv(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op) {
  return recvPackets(builder, context,
                     memory(context.channel, context.teamSize), op, assumption);
}

/// The flags tell by themselves what has come.
static LogicalResult barrier(OpBuilder &, const ChannelContext &,
                             ChannelBarrierOp) {
  return success();
}

namespace mlir::comms {
const Protocol &getLL128Protocol() {
  static const Protocol protocol = {
      "ll128",
      "lines of 128 bytes travel with a flag each; receivers poll their own "
      "memory",
      supports,
      overhead,
      memory,
      begin,
      send,
      recv,
      barrier,
      /*reusable=*/false,
      /*tileBytes=*/kLineBits / 8};
  return protocol;
}
} // namespace mlir::comms
