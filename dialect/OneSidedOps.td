//===- OneSidedOps.td - One-sided operations ---------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_ONESIDEDOPS_TD
#define COMMSIR_DIALECT_ONESIDEDOPS_TD

include "CommsOpBase.td"

/// Moves `count` elements between this rank's memory and a peer's window part.
class Comms_TransferOp<string mnemonic, list<Trait> traits = []> : Comms_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Comms_PutOp : Comms_TransferOp<"put", [AttrSizedOperandSegments]> {
  let summary = "Writes elements of this rank's memory to a peer's part of a window.";
  let description = [{
    Reads `source[sourceOffset, sourceOffset + count)` and writes the values,
    without conversion, to `[offset, offset + count)` of the window's part on
    `peer`. The op may end before the read or the write. Overwrite the source only
    after `comms.flush`, `comms.wait_counter` or a barrier with release order. The
    peer may read the data only after an acquire that synchronizes with a later
    release of this block (Memory model). Elements arrive in any order. With
    `counted`, the counter's cell grows by 1 once the source has been read.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$source, Index:$sourceOffset,
                       Arg<Comms_Window, "", [MemWrite]>:$window, Index:$offset, Index:$count,
                       Index:$peer, Comms_Team:$team,
                       Optional<Comms_Counter>:$counter, Optional<Index>:$counterIndex,
                       OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = [{
    $source `[` $sourceOffset `]` `to` $window `[` $offset `]` `count` $count
    `at` $peer `of` $team (`counted` $counter^ `[` $counterIndex `]` `:` type($counter))? (`gin` $gin^)?
    attr-dict `:` type($source) `,` type($window)
  }];
}

def Comms_GetOp : Comms_TransferOp<"get"> {
  let summary = "Reads elements of a peer's part of a window into this rank's memory.";
  let description = [{
    Reads `[offset, offset + count)` of the window's part on `peer` and writes the
    values to `dest[destOffset, destOffset + count)`. With loads and stores, the
    values are in `dest` when the op ends; over GIN, after the next `comms.flush`.
    The op is guaranteed to see a peer's write only if this block acquired it
    before the op.
  }];
  let arguments = (ins Arg<Comms_Window, "", [MemRead]>:$window, Index:$offset,
                       Arg<AnyMemRef, "", [MemWrite]>:$dest, Index:$destOffset, Index:$count,
                       Index:$peer, Comms_Team:$team, OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = [{
    $window `[` $offset `]` `to` $dest `[` $destOffset `]` `count` $count
    `at` $peer `of` $team (`gin` $gin^)? attr-dict `:` type($window) `,` type($dest)
  }];
}

def Comms_PutSignalOp : Comms_SyncOp<"put_signal"> {
  let summary = "A put, then a signal to the same peer, which cannot overtake the data.";
  let description = [{
    Equals `comms.put`, then `comms.signal` with order `release` and scope `sys`
    on cell `index` of the same peer. A rank that acquires the cell's new value is
    guaranteed to see the data of this put, and of all earlier puts of this block
    to that peer. Over GIN the network adapter keeps this order, so the op issues
    no fence.
  }];
  let arguments = (ins AnyMemRef:$source, Index:$sourceOffset,
                       Comms_Window:$window, Index:$offset, Index:$count,
                       Index:$peer, Comms_Team:$team,
                       Comms_Signal:$signal, Index:$index, Comms_SignalKindAttr:$kind,
                       Optional<I64>:$value, OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = [{
    $source `[` $sourceOffset `]` `to` $window `[` $offset `]` `count` $count
    `at` $peer `of` $team `then` `` $kind $signal `[` $index `]` (`value` $value^)? (`gin` $gin^)?
    attr-dict `:` type($source) `,` type($window) `,` type($signal)
  }];
  let hasVerifier = 1;
}

def Comms_SignalOp : Comms_SyncOp<"signal"> {
  let summary = "Sets, increments or adds to a cell of a peer.";
  let description = [{
    One atomic operation on cell `index` of `signal` on `peer`: `set` stores
    `value`, `inc` adds 1, `add` adds `value`. A cell holds a number from 0 to
    2^63 - 1; the program must not add beyond that. With order `release`
    (default), all earlier writes of this block, to any rank, happen before the
    new value; `relaxed` orders nothing. All blocks of a kernel share a cell. For
    one cell per block, give each block its own index.
  }];
  let arguments = (ins Comms_SignalKindAttr:$kind, Comms_Signal:$signal, Index:$index,
                       Optional<I64>:$value, Index:$peer, Comms_Team:$team,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Release">:$order,
                       DefaultValuedAttr<Comms_MemoryScopeAttr, "::mlir::comms::MemoryScope::Sys">:$scope,
                       OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = [{
    `` $kind $signal `[` $index `]` (`value` $value^)? `at` $peer `of` $team
    (`order` `` $order^)? (`scope` `` $scope^)? (`gin` $gin^)? attr-dict `:` type($signal)
  }];
  let hasVerifier = 1;
}

def Comms_WaitSignalOp : Comms_SyncOp<"wait_signal"> {
  let summary = "Waits until a cell of this rank has a value.";
  let description = [{
    Ends once cell `index` of this rank equals `value` (`eq`) or is at least
    `value` (`ge`). The cell does not change. With order `acquire` (default),
    everything that happens before the signals that make up the value also happens
    before the ops after the wait. Scope `gpu` synchronizes only with signals from
    blocks of this rank. A wait with `eq` can miss a value if the cell moves past
    it; the checker reports where that can happen.
  }];
  let arguments = (ins Comms_Signal:$signal, Index:$index, Comms_WaitKindAttr:$kind, I64:$value,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Acquire">:$order,
                       DefaultValuedAttr<Comms_MemoryScopeAttr, "::mlir::comms::MemoryScope::Sys">:$scope);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = [{
    $signal `[` $index `]` `` $kind $value (`order` `` $order^)? (`scope` `` $scope^)? attr-dict `:` type($signal)
  }];
  let hasVerifier = 1;
}

def Comms_WaitSignalFromOp : Comms_SyncOp<"wait_signal_from"> {
  let summary = "Waits for a cell that one given peer signals.";
  let description = [{
    Same as `comms.wait_signal`, and asserts that `peer` sends the signals that
    this wait needs. At run time it is the same wait. The checker reports an error
    if another rank's signals satisfy the wait, and a deadlock report names the
    peer that did not signal.
  }];
  let arguments = (ins Comms_Signal:$signal, Index:$index, Comms_WaitKindAttr:$kind, I64:$value,
                       Index:$peer, Comms_Team:$team,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Acquire">:$order,
                       DefaultValuedAttr<Comms_MemoryScopeAttr, "::mlir::comms::MemoryScope::Sys">:$scope);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = [{
    $signal `[` $index `]` `` $kind $value `from` $peer `of` $team
    (`order` `` $order^)? (`scope` `` $scope^)? attr-dict `:` type($signal)
  }];
  let hasVerifier = 1;
}

def Comms_ReadSignalOp : Comms_SyncOp<"read_signal"> {
  let summary = "The current value of a cell of this rank.";
  let description = [{
    One atomic load of cell `index`. With order `acquire` (default), everything
    that happens before the signals that make up the value also happens before the
    ops after the read. The op does not wait, so two reads may differ.
  }];
  let arguments = (ins Comms_Signal:$signal, Index:$index,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Acquire">:$order);
  let results = (outs I64:$result);
  let assemblyFormat = "$signal `[` $index `]` (`order` `` $order^)? attr-dict `:` type($signal)";
  let hasVerifier = 1;
}

def Comms_ResetSignalOp : Comms_SyncOp<"reset_signal"> {
  let summary = "Sets a cell of this rank back to zero.";
  let description = [{
    One atomic, relaxed store of 0. A concurrent signal of another rank may take
    effect before or after it. Reset a cell only when no rank can signal it, for
    example between two barriers.
  }];
  let arguments = (ins Comms_Signal:$signal, Index:$index);
  let assemblyFormat = "$signal `[` $index `]` attr-dict `:` type($signal)";
  let hasVerifier = 1;
}

def Comms_WaitCounterOp : Comms_SyncOp<"wait_counter"> {
  let summary = "Waits until a number of this rank's counted puts have read their sources.";
  let description = [{
    Ends once cell `index` is at least `value`. The sources of that many counted
    puts may then be overwritten. The puts may not have arrived yet.
  }];
  let arguments = (ins Comms_Counter:$counter, Index:$index, I64:$value);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$counter `[` $index `]` `ge` $value attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Comms_ReadCounterOp : Comms_SyncOp<"read_counter"> {
  let summary = "The current value of a counter.";
  let description = [{
    One atomic load of cell `index`; it does not wait.
  }];
  let arguments = (ins Comms_Counter:$counter, Index:$index);
  let results = (outs I64:$result);
  let assemblyFormat = "$counter `[` $index `]` attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Comms_ResetCounterOp : Comms_SyncOp<"reset_counter"> {
  let summary = "Sets a counter back to zero.";
  let description = [{
    One atomic, relaxed store of 0. No counted put of the cell may be in progress.
  }];
  let arguments = (ins Comms_Counter:$counter, Index:$index);
  let assemblyFormat = "$counter `[` $index `]` attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Comms_FlushOp : Comms_SyncOp<"flush"> {
  let summary = "Waits until every earlier put of this block to the team has read its source.";
  let description = [{
    Afterward, the sources of this block's puts may be overwritten, and over GIN
    the destinations of its gets may be read. A put may not have arrived yet: only
    a signal confirms that.
  }];
  let arguments = (ins Comms_Team:$team, OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = "$team (`gin` $gin^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_FenceOp : Comms_SyncOp<"fence"> {
  let summary = "Orders this block's earlier accesses before its later ones.";
  let description = [{
    A PTX fence of the given order and scope, for all threads of the block. With a
    `proxy` other than `generic` it is also a proxy fence, which orders earlier
    accesses through the generic proxy and the given proxy before later ones
    (Memory model).
  }];
  let arguments = (ins Comms_MemoryOrderAttr:$order, Comms_MemoryScopeAttr:$scope,
                       DefaultValuedAttr<Comms_ProxyAttr, "::mlir::comms::Proxy::Generic">:$proxy);
  let assemblyFormat = "`` $order `` $scope (`proxy` `` $proxy^)? attr-dict";
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_ONESIDEDOPS_TD
