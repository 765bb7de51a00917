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

#include "lowering/channels/Protocol.h"

using namespace mlir;
using namespace mlir::comms;

static bool supports(Type, bool, std::string &) { return true; }

static double overhead(Type) { return 1.0; }

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  ChannelMemory memory = layOutSlots(channel, teamSize, /*buffers=*/2,
                                     type.getTileSize(), type.getElementType());
  memory.atSender = true;
  if (channel.getPattern() != ChannelPattern::Pairwise)
    memory.rows = 1;
  return memory;
}

/// Loads that cross the link and return, by hand 317 GB/s, and two barriers.
static constexpr ProtocolCost kCost = {
    .hop = 3.5, .moreHop = 1.6, .cpuHop = 3.0, .weight = 1.07, .meets = true};

namespace mlir::comms {
const Protocol &getPullProtocol() {
  static const Protocol protocol = {"pull",
                                    "tiles stay with the sender; a barrier "
                                    "publishes them, receivers read them",
                                    supports,
                                    overhead,
                                    memory,
                                    beginSlots,
                                    sendTiles,
                                    recvTiles,
                                    synchronizeRanks,
                                    /*reusable=*/true,
                                    /*tileBytes=*/1,
                                    kCost};
  return protocol;
}
} // namespace mlir::comms
