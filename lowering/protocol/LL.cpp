//===- LL.cpp - Data and flag in one store --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sender writes packets to the receiver's memory: each holds 32 bits of the
// tile and a flag, the launch's number. A receiver polls its own memory until
// every packet carries the flag. No barrier; twice the bytes.
//
// Memory: [2 buffers][rows][slots][packets] of i64, one row for each source
// (single: one row).
//
// Reuse: launch k + 2 writes the buffer of launch k. A sender may do so when it
// has heard, in launch k + 1, from the receiver's same block: that block has
// then made its reads of launch k. Where a sender hears nothing back, whoever
// made the program puts a barrier at the end of the launch. Nothing has to be
// cleared: what lies there carries the flag of launch k. Flags have 32 bits; a
// slot would have to lie untouched for 2^32 launches to be taken for full.
//
//===----------------------------------------------------------------------===//

#include "lowering/Protocol.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;

/// Bits of a packet that carry the tile.
static constexpr int64_t payloadBits = 32;

static bool supports(Type elementType, bool, std::string &why) {
  unsigned width =
      elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (width == 8 || width == 16 || width == 32 || width == 64)
    return true;
  why = "packets carry elements of 8, 16, 32 or 64 bits";
  return false;
}

static double overhead(Type) { return 2.0; }

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  ChannelMemory memory;
  memory.buffers = 2;
  memory.rows = channel.getPattern() == ChannelPattern::Single ? 1 : teamSize;
  memory.slots = channel.getSlots();
  memory.units =
      bits >= payloadBits
          ? type.getTileSize() * (bits / payloadBits)
          : int64_t(llvm::divideCeil(type.getTileSize(), payloadBits / bits));
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
              Assumption::Store8Whole);
  return success();
}

static FailureOr<Value> recv(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op) {
  return recvPackets(builder, context,
                     memory(context.channel, context.teamSize), op,
                     Assumption::Store8Whole);
}

/// The flags tell by themselves what has come.
static LogicalResult barrier(OpBuilder &, const ChannelContext &,
                             ChannelBarrierOp) {
  return success();
}

namespace mlir::comms {
const Protocol &getLLProtocol() {
  static const Protocol protocol = {"ll",
                                    "each 32 bits travel with a flag in one "
                                    "store; receivers poll their own memory",
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
