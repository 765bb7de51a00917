//===- BarrierOps.td - Barriers ----------------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_BARRIEROPS_TD
#define COMMSIR_DIALECT_BARRIEROPS_TD

include "CommsOpBase.td"

def Comms_BarrierOp : Comms_SyncOp<"barrier"> {
  let summary = "Waits for the block of the same number, or for all blocks, on every rank of a team.";
  let description = [{
    No participant continues before all have arrived. With order `acq_rel`
    (default), everything a participant does before the barrier, puts included,
    happens before everything any participant does after it. `release` gives only
    the sender's half of this order, `acquire` only the receiver's, and `relaxed`
    orders no memory.
  }];
  let arguments = (ins Comms_Team:$team, Comms_BarrierExtentAttr:$extent,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::AcqRel">:$order);
  let assemblyFormat = "$team `` $extent (`order` `` $order^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_BarrierArriveOp : Comms_SyncOp<"barrier_arrive"> {
  let summary = "The first half of a barrier: signals that this block has arrived.";
  let description = [{
    Does not wait. With order `release` (default), everything before this op
    happens before everything after any participant's wait. The block's accesses
    between the two halves are not ordered with other participants.
  }];
  let arguments = (ins Comms_Team:$team, Comms_BarrierExtentAttr:$extent,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Release">:$order);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$team `` $extent (`order` `` $order^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_BarrierWaitOp : Comms_SyncOp<"barrier_wait"> {
  let summary = "The second half of a barrier: waits for all participants.";
  let description = [{
    Ends once every participant has arrived at the barrier that `arrived` names.
    With order `acquire` (default), everything before their arrivals (with order
    `release`) happens before everything after this op.
  }];
  let arguments = (ins Comms_Token:$arrived,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Acquire">:$order);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$arrived (`order` `` $order^)? attr-dict";
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_BARRIEROPS_TD
