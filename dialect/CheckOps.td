//===- CheckOps.td - Checks and records --------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_CHECKOPS_TD
#define COMMSIR_DIALECT_CHECKOPS_TD

include "CommsOpBase.td"

def Comms_CheckBoundsOp : Comms_SyncOp<"check_bounds"> {
  let summary = "Ends the run with an error if `[offset, offset + count)` is not within `[0, limit)`.";
  let description = [{
    The run ends if `offset < 0`, `count < 0` or `offset + count > limit`,
    computed without overflow. The error gives `what`, the source location and the
    three numbers, and no later op runs. The canonicalizer erases a check if
    constants prove it, or if the same check closely precedes it in the same
    block.
  }];
  let arguments = (ins Index:$offset, Index:$count, Index:$limit, StrAttr:$what);
  let assemblyFormat = "$what $offset `,` $count `in` $limit attr-dict";
  let hasCanonicalizeMethod = 1;
}

def Comms_RecordAccessOp : Comms_SyncOp<"record_access"> {
  let summary = "Reports a memory access to the race detector.";
  let description = [{
    States that this block reads or writes `memref[offset, offset + count)` here.
    Without a detector the op does nothing.
  }];
  let arguments = (ins Comms_AccessKindAttr:$kind, AnyMemRef:$memref, Index:$offset, Index:$count);
  let assemblyFormat = "`` $kind $memref `[` $offset `]` `count` $count attr-dict `:` type($memref)";
}

def Comms_RecordSyncOp : Comms_SyncOp<"record_sync"> {
  let summary = "Reports the synchronization of the next op to the race detector.";
  let description = [{
    `what` is the kind of synchronization, and the operands identify it. Without a
    detector the op does nothing.
  }];
  let arguments = (ins StrAttr:$what, Variadic<Index>:$operands);
  let assemblyFormat = "$what (`(` $operands^ `)`)? attr-dict";
}

#endif // COMMSIR_DIALECT_CHECKOPS_TD
