//===- CopyOps.td - Multimem, bulk and copy-engine copies --*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COPYOPS_TD
#define COMMSIR_DIALECT_COPYOPS_TD

include "CommsOpBase.td"

def Comms_MultimemLoadReduceOp : Comms_Op<"multimem_load_reduce", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Reads a tile from all ranks at once; the NVLink switch combines them.";
  let description = [{
    For the first `valid` elements, element i of the result is the reduction of
    element `offset + i` of all ranks' parts; the other elements are zero. The
    switch chooses the order, and accumulates 16-bit floats in float32 before it
    rounds. So sums of floats may differ in their last bits from other algorithms'
    (Bits). PTX does not define whether `min` and `max` of a NaN and a number
    return the NaN or the number. Accesses go through the `alias` proxy.
  }];
  let arguments = (ins Comms_ReductionKindAttr:$kind, Arg<AnyMemRef, "", [MemRead]>:$memref,
                       Index:$offset, Optional<Index>:$valid);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    `` $kind $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($memref) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_MultimemStoreOp : Comms_Op<"multimem_store", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Writes a tile to all ranks at once.";
  let description = [{
    Writes the first `valid` elements of the tile to `[offset …]` of every rank's
    part. The ranks may see them at different times.
  }];
  let arguments = (ins Comms_Tile:$tile, Arg<AnyMemRef, "", [MemWrite]>:$memref, Index:$offset,
                       Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_MultimemReduceOp : Comms_Op<"multimem_reduce", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Combines a tile into the memory of all ranks at once.";
  let description = [{
    For the first `valid` elements, atomically combines element i of the tile into
    element `offset + i` of every rank's part. The contributions of several ranks
    arrive in any order. `min` and `max` treat NaNs as
    `comms.multimem_load_reduce` does.
  }];
  let arguments = (ins Comms_ReductionKindAttr:$kind, Comms_Tile:$tile,
                       Arg<AnyMemRef, "", [MemRead, MemWrite]>:$memref, Index:$offset,
                       Optional<Index>:$valid);
  let assemblyFormat = [{
    `` $kind $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_BulkCopyOp : Comms_SyncOp<"bulk_copy"> {
  let summary = "Starts an asynchronous copy through shared memory (TMA).";
  let description = [{
    Copies the elements `source[sourceOffset, sourceOffset + count)` to
    `dest[destOffset …]` at some time between this op and the `comms.bulk_wait`
    that takes its token. The program must access neither in between. The copy
    uses the `async` proxy.
  }];
  let arguments = (ins AnyMemRef:$source, Index:$sourceOffset, AnyMemRef:$dest, Index:$destOffset,
                       Index:$count);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = [{
    $source `[` $sourceOffset `]` `to` $dest `[` $destOffset `]` `count` $count attr-dict
    `:` type($source) `,` type($dest)
  }];
  let hasVerifier = 1;
}

def Comms_BulkWaitOp : Comms_SyncOp<"bulk_wait"> {
  let summary = "Waits until the copies are complete.";
  let description = [{
    Afterward, this block may read the destinations of these copies and overwrite
    their sources. To let another block or rank read a destination, release it
    after this op.
  }];
  let arguments = (ins Variadic<Comms_Token>:$copies);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$copies attr-dict";
  let hasVerifier = 1;
}

def Comms_EngineCopyOp : Comms_SyncOp<"engine_copy"> {
  let summary = "A copy by the copy engine, which the host starts between two parts of the kernel.";
  let description = [{
    Splits the kernel into two parts. The first part ends on this rank; then the
    engine copies `source[sourceOffset, sourceOffset + count)` to `[offset …]` of
    the part on `peer`; then the second part begins. The op orders nothing on the
    peer: use a barrier or signal after it.
  }];
  let arguments = (ins AnyMemRef:$source, Index:$sourceOffset,
                       Comms_Window:$window, Index:$offset, Index:$count,
                       Index:$peer, Comms_Team:$team);
  let assemblyFormat = [{
    $source `[` $sourceOffset `]` `to` $window `[` $offset `]` `count` $count
    `at` $peer `of` $team attr-dict `:` type($source) `,` type($window)
  }];
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_COPYOPS_TD
