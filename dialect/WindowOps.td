//===- WindowOps.td - Windows ------------------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_WINDOWOPS_TD
#define COMMSIR_DIALECT_WINDOWOPS_TD

include "CommsOpBase.td"

def Comms_LocalOp : Comms_Op<"local", [Pure]> {
  let summary = "This rank's own part of a window.";
  let description = [{
    The result is the part in this rank's memory, for loads and stores.
  }];
  let arguments = (ins Comms_Window:$window);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_PeerOp : Comms_Op<"peer", [Pure]> {
  let summary = "A peer's part of a window, for loads and stores.";
  let description = [{
    The result is the part of rank `peer` of the team, which may be this rank. If
    loads and stores cannot reach the peer, the behavior is undefined. The memory
    model says which reads and writes are ordered.
  }];
  let arguments = (ins Comms_Window:$window, Index:$peer, Comms_Team:$team);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window `at` $peer `of` $team attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_MultimemOp : Comms_Op<"multimem", [Pure]> {
  let summary = "One address for all parts of a window.";
  let description = [{
    The result is the view through NVLink multicast: a store writes the parts of
    all ranks of the team, and a load combines them. Only
    `comms.multimem_load_reduce`, `comms.multimem_store` and
    `comms.multimem_reduce` may access it. It uses a different memory *proxy* than
    the parts themselves: see `comms.fence`.
  }];
  let arguments = (ins Comms_Window:$window, Comms_Team:$team);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window `of` $team attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_ScratchOp : Comms_Op<"scratch", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Memory of this block only, for the duration of the kernel.";
  let description = [{
    An array that no other block can reach. On a GPU it is memory of one CTA: if a
    block is a cluster of several CTAs, `comms-distribute-tiles` reports an error.
    Its contents are undefined at first. At the start of each launch, a simulation
    fills it with NaNs (odd numbers when read as integers) from its seed. In a
    loop the op returns the same array in each iteration, and the array keeps its
    contents.
  }];
  let results = (outs Res<AnyMemRef, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_WINDOWOPS_TD
