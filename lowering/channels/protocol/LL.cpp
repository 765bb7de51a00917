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
// Reuse: launch k + 2 writes the buffer of launch k. A sender may do so once it
// has received, in launch k + 1, from the receiver's same block: that block has
// then finished its reads of launch k. For a sender that receives nothing, the
// algorithm puts a barrier at the end of the launch. Nothing has to be cleared,
// because old packets carry the flag of launch k. Flags have 32 bits; only a
// slot that stays untouched for 2^32 launches could be mistaken for full.
//
//===----------------------------------------------------------------------===//

#include "lowering/channels/Protocol.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;

/// Bits of a packet that carry the tile.
static constexpr int64_t payloadBits = 32;

static double overhead(Type) { return 2.0; }

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  int64_t units =
      bits >= payloadBits
          ? type.getTileSize() * (bits / payloadBits)
          : int64_t(llvm::divideCeil(type.getTileSize(), payloadBits / bits));
  ChannelMemory memory =
      layOutSlots(channel, teamSize, /*buffers=*/2, units,
                  IntegerType::get(channel.getContext(), 64));
  memory.kind = SlotKind::Packets;
  return memory;
}

/// A store and a poll. Data and flag travel in one store of 8 bytes, of which a
/// link takes 150 GB/s.
static constexpr ProtocolCost kCost = {
    .hop = 1.9, .moreHop = -0.04, .cpuHop = 1.0, .weight = 2.27};

namespace mlir::comms {
const Protocol &getLLProtocol() {
  static const Protocol protocol = {"ll",
                                    "each 32 bits travel with a flag in one "
                                    "store; receivers poll their own memory",
                                    canBePackets,
                                    overhead,
                                    memory,
                                    beginPackets,
                                    sendPackets,
                                    recvPackets,
                                    needNoBarrier,
                                    /*reusable=*/false,
                                    /*tileBytes=*/1,
                                    kCost};
  return protocol;
}
} // namespace mlir::comms
