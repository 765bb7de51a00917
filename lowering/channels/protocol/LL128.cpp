//===- LL128.cpp - A flag for each line of 128 bytes ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Like LL, with packets of 128 bytes: a sender writes lines of the tile to the
// receiver's memory, each with a flag, the launch's number, in place of its
// last 8 bytes, which travel with it with a flag of their own. A receiver
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

#include "lowering/channels/Protocol.h"

#include "dialect/Packets.h"

using namespace mlir;
using namespace mlir::comms;

static double overhead(Type) {
  return double(kLineUnits + kRestUnits) / double(kLineUnits);
}

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  int64_t lines = countLinesOf(type.getTileSize(),
                               type.getElementType().getIntOrFloatBitWidth());
  ChannelMemory memory =
      layOutSlots(channel, teamSize, /*buffers=*/2, kLineUnits * lines,
                  IntegerType::get(channel.getContext(), 64));
  memory.rest = kRestUnits * lines;
  memory.packets = Assumption::Store128Whole;
  memory.kind = SlotKind::Lines;
  return memory;
}

static constexpr ProtocolCost kCost = {.moreHop = 0, .needsWholeLines = true};

namespace mlir::comms {
const Protocol &getLL128Protocol() {
  static const Protocol protocol = {
      "ll128",
      "lines of 128 bytes travel with a flag each; receivers poll their own "
      "memory",
      canBePackets,
      overhead,
      memory,
      beginPackets,
      sendPackets,
      recvPackets,
      needNoBarrier,
      /*reusable=*/false,
      /*tileBytes=*/kLineBits / 8,
      kCost};
  return protocol;
}
} // namespace mlir::comms
