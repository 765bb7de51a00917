//===- PacketOps.td - Packets and poison -------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_PACKETOPS_TD
#define COMMSIR_DIALECT_PACKETOPS_TD

include "CommsOpBase.td"

def Comms_PacketStoreOp : Comms_SyncOp<"packet_store", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Writes a tile as packets, each with a flag in the same store.";
  let description = [{
    Packet `offset + j` becomes `(flag << 32) | word j` for each word of the first
    `valid` elements (without `valid`: of all elements). Each packet is one store,
    so a reader that sees the flag also sees the word. Packets become visible in
    any order, and the op orders nothing else. With `assumes store128_whole`
    packets are lines. The op writes every line that holds one of these elements,
    with zeros for its elements that are not valid. It writes the rest of the
    line, too, in a second store.
  }];
  let arguments = (ins Comms_Tile:$tile, AnyMemRef:$memref, Index:$offset, I32:$flag,
                       Optional<Index>:$valid,
                       DefaultValuedAttr<Comms_AssumptionAttr, "::mlir::comms::Assumption::Store8Whole">:$assumes);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` `flag` $flag (`valid` $valid^)? (`assumes` `` $assumes^)? attr-dict
    `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_PacketLoadOp : Comms_SyncOp<"packet_load", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Waits until every packet of a tile has the flag, and reads the tile.";
  let description = [{
    Polls the packets of the first `valid` elements, from `offset` on, until each
    has the flag `flag`, and returns their words. Each poll of a packet is one
    load. The elements from `valid` on are zero, and their packets are not read.
    With `assumes store128_whole` packets are lines, and the op polls the rest of
    each line, too.
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$offset, I32:$flag, Optional<Index>:$valid,
                       DefaultValuedAttr<Comms_AssumptionAttr, "::mlir::comms::Assumption::Store8Whole">:$assumes);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    $memref `[` $offset `]` `flag` $flag (`valid` $valid^)? (`assumes` `` $assumes^)? attr-dict
    `:` type($memref) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_PoisonStoreOp : Comms_SyncOp<"poison_store", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Writes a tile with canonical NaNs, so that no element reads as poison.";
  let description = [{
    Writes the first `valid` elements to `memref[offset …]`, each NaN as the
    canonical NaN of its type (f32 0x7FC00000, f16 0x7E00, bf16 0x7FC0). No reader
    sees part of an element. The op orders nothing else.
  }];
  let arguments = (ins Comms_Tile:$tile, AnyMemRef:$memref, Index:$offset, Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_PoisonLoadOp : Comms_SyncOp<"poison_load", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Waits until no element of a tile is poison, and reads the tile.";
  let description = [{
    Polls the first `valid` elements from `memref[offset]` on until none is
    poison, and returns them. The elements from `valid` on are zero, and their
    memory is not read. The memory does not change.
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$offset, Optional<Index>:$valid);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($memref) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_PoisonFillOp : Comms_SyncOp<"poison_fill"> {
  let summary = "Fills elements with poison, which empties the slot.";
  let description = [{
    Writes poison to `memref[offset, offset + count)`. It must happen after every
    load of the old data and before every store of the new data. A barrier, or the
    protocol's design, must ensure both.
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$offset, Index:$count);
  let assemblyFormat = "$memref `[` $offset `]` `count` $count attr-dict `:` type($memref)";
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_PACKETOPS_TD
