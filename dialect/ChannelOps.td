//===- ChannelOps.td - Channels ----------------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_CHANNELOPS_TD
#define COMMSIR_DIALECT_CHANNELOPS_TD

include "CommsOpBase.td"

def Comms_ChannelOp : Comms_Op<"channel", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A channel over a team, with `slots` slots of one tile for each pair of ranks that it connects.";
  let description = [{
    With `multicast`, a send goes to every rank of the team, including the sender,
    and a receive names the source. With `pairwise`, each pair of source and
    destination has its own slots. With `single`, each rank sends to one rank and
    receives from one rank within a launch. In a launch, a slot carries at most
    one tile from a source to a destination. Slots are empty when a launch begins;
    the protocol decides when they may be filled again (Memory model).

    A `reused` channel carries at most one tile per slot in each *round*. A round
    is a block's sends between two of its `comms.channel_barrier`s. The receiver
    takes a tile after the barrier that ends the tile's round, and before the next
    barrier. A later round of the launch may use a slot again once its tile has
    been received and the sender knows that, for example through a barrier over
    the team. So a long message fits in bounded memory. Protocols that identify a
    tile by its launch (`ll`, `lamport`) do not support `reused` channels.
  }];
  let arguments = (ins Comms_Team:$team, Comms_ChannelPatternAttr:$pattern, I64Attr:$slots, I64Attr:$id,
                       UnitAttr:$reused);
  let results = (outs Res<Comms_Channel, "", [MemAlloc]>:$channel);
  let assemblyFormat = "$id `` $pattern `over` $team `slots` $slots (`reused` $reused^)? attr-dict `:` type($channel)";
  let hasVerifier = 1;
}

def Comms_SendOp : Comms_SyncOp<"send", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Sends a tile through a slot of a channel: to one peer, or (multicast) to all.";
  let description = [{
    Sends the first `valid` elements of the tile (without `valid`: all) to slot
    `slot` at the destination. The op does not wait for the receiver.
  }];
  let arguments = (ins Comms_Tile:$tile, Comms_Channel:$channel, Index:$slot,
                       Optional<Index>:$peer, Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `on` $channel `[` $slot `]` (`to` $peer^)? (`valid` $valid^)? attr-dict
    `:` type($tile) `,` type($channel)
  }];
  let hasVerifier = 1;
}

def Comms_RecvOp : Comms_SyncOp<"recv", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Waits for the tile that a peer sent through a slot, and reads it.";
  let description = [{
    Waits for the tile that the block of the same number on `peer` sent to this
    rank through `slot` in this launch. `valid` must equal the sender's; the
    elements beyond it are zero. The op acquires only the tile. It does not order
    other memory of the sender.
  }];
  let arguments = (ins Comms_Channel:$channel, Index:$slot, Index:$peer, Optional<Index>:$valid);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    $channel `[` $slot `]` `from` $peer (`valid` $valid^)? attr-dict `:` type($channel) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_ChannelBarrierOp : Comms_SyncOp<"channel_barrier"> {
  let summary = "Ends a round of sends; the round's receives follow it.";
  let description = [{
    Every block of every rank of the team runs this op between its sends and its
    receives of a round. A protocol whose receivers poll the data (`ll`,
    `lamport`) removes the op; other protocols lower it to a barrier. So a program
    must not rely on it to wait.
  }];
  let arguments = (ins Comms_Channel:$channel);
  let assemblyFormat = "$channel attr-dict `:` type($channel)";
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_CHANNELOPS_TD
