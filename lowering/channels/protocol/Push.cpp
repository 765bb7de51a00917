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

#include "lowering/channels/Protocol.h"

using namespace mlir;
using namespace mlir::comms;

static bool supports(Type, bool, std::string &) { return true; }

static double overhead(Type) { return 1.0; }

static ChannelMemory memory(ChannelOp channel, int64_t teamSize) {
  ChannelType type = channel.getChannel().getType();
  return layOutSlots(channel, teamSize, /*buffers=*/2, type.getTileSize(),
                     type.getElementType());
}

/// Stores, a fence, a signal.
static constexpr ProtocolCost kCost = {
    .hop = 2.3, .moreHop = 1.2, .meets = true};

namespace mlir::comms {
const Protocol &getPushProtocol() {
  static const Protocol protocol = {"push",
                                    "tiles go to the receiver's memory; a "
                                    "barrier publishes them",
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
