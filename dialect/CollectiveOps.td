//===- CollectiveOps.td - Collectives ----------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COLLECTIVEOPS_TD
#define COMMSIR_DIALECT_COLLECTIVEOPS_TD

include "CommsOpBase.td"

/// A collective in destination-passing style.
///
/// The ranks exchange `ins`, and the op writes `outs`. `args` are arrays of this
/// rank that `consume` reads. `produce` maps one row of every input to the tiles
/// to send (the wire tiles). `consume` maps the received or reduced tiles and the
/// matching rows of `args` to one row of every output.
class Comms_Collective<string mnemonic, dag leading = (ins), list<Trait> traits = []>
    : Comms_Op<mnemonic, !listconcat(traits, [AttrSizedOperandSegments,
        MemoryEffects<[MemRead, MemWrite]>, RecursiveMemoryEffects])> {
  let arguments = !con(leading, (ins Comms_Team:$team, Variadic<Comms_Data>:$inputs,
                       Variadic<Comms_Data>:$outputs, Variadic<Comms_Data>:$args,
                       OptionalAttr<StrAttr>:$algorithm, OptionalAttr<StrAttr>:$protocol));
  let regions = (region AnyRegion:$produce, AnyRegion:$consume);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  string tail = [{
    $team `ins` `(` ($inputs^ `:` type($inputs))? `)` `outs` `(` ($outputs^ `:` type($outputs))? `)`
    (`args` `(` $args^ `:` type($args) `)`)? custom<TileRegions>($produce, $consume) attr-dict
  }];
  let assemblyFormat = tail;
}

class Comms_ReducingCollective<string mnemonic>
    : Comms_Collective<mnemonic, (ins Comms_ReductionKindAttr:$kind),
        [DeclareOpInterfaceMethods<CollectiveOpInterface, ["getReduction"]>]> {
  let assemblyFormat = "`` $kind " # tail;
}

class Comms_RootedCollective<string mnemonic>
    : Comms_Collective<mnemonic, (ins I64Attr:$root),
        [DeclareOpInterfaceMethods<CollectiveOpInterface, ["getRootRank"]>]> {
  let assemblyFormat = "`root` $root " # tail;
}

def Comms_AllReduceOp : Comms_ReducingCollective<"all_reduce"> {
  let summary = "Every rank gets the reduction over all ranks.";
  let description = [{
    On every rank, row i of the result is the reduction of all ranks' wire tiles
    for row i. `consume` computes the rows of the outputs from it.
  }];
}

def Comms_ReduceScatterOp : Comms_ReducingCollective<"reduce_scatter"> {
  let summary = "Rank r gets the r-th part of the reduction over all ranks.";
  let description = [{
    Same as `comms.all_reduce`, except that rank r gets only the rows of the r-th
    part.
  }];
}

def Comms_AllGatherOp : Comms_Collective<"all_gather", (ins), [DeclareOpInterfaceMethods<CollectiveOpInterface>]> {
  let summary = "Every rank gets the parts of all ranks, in rank order.";
  let description = [{
    The wire tiles for row i of rank q arrive on every rank as row q * R + i of
    the result.
  }];
}

def Comms_AllToAllOp : Comms_Collective<"all_to_all", (ins), [DeclareOpInterfaceMethods<CollectiveOpInterface>]> {
  let summary = "Rank r gets the r-th part of every rank, in rank order.";
  let description = [{
    Row i of the r-th part of rank q arrives on rank r as row q * R / N + i of
    the result.
  }];
}

def Comms_AllToAllVOp : Comms_Op<"all_to_all_v", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "All-to-all with a number of rows per pair of ranks, which is known only at run time.";
  let description = [{
    `send_rows[p]` rows of this rank's input go to rank p. The input holds the
    rows for rank 0 first, then those for rank 1, and so on. `recv_rows[p]` rows
    come from rank p, and the output receives the rows of rank 0 first. The rest
    of the output does not change. `recv_rows[p]` on rank r must equal
    `send_rows[r]` on rank p. No number may be negative or larger than `max_rows`,
    and their sums must not exceed the rows of input and output. Otherwise the
    behavior is undefined.
  }];
  let arguments = (ins Comms_Team:$team, Comms_Data:$input, Comms_Data:$output,
                       AnyMemRef:$sendRows, AnyMemRef:$recvRows, I64Attr:$maxRows,
                       OptionalAttr<StrAttr>:$algorithm, OptionalAttr<StrAttr>:$protocol);
  let assemblyFormat = [{
    $team `ins` `(` $input `:` type($input) `)` `outs` `(` $output `:` type($output) `)`
    `send_rows` `(` $sendRows `:` type($sendRows) `)` `recv_rows` `(` $recvRows `:` type($recvRows) `)`
    `max_rows` $maxRows attr-dict
  }];
  let hasVerifier = 1;
}

def Comms_BroadcastOp : Comms_RootedCollective<"broadcast"> {
  let summary = "Every rank gets the root's array.";
  let description = [{
    The root's wire tiles for row i arrive on every rank, including the root. The
    inputs of the other ranks are not read.
  }];
}

def Comms_ReduceOp : Comms_Collective<"reduce", (ins Comms_ReductionKindAttr:$kind, I64Attr:$root),
    [DeclareOpInterfaceMethods<CollectiveOpInterface, ["getReduction", "getRootRank"]>]> {
  let summary = "The root gets the reduction over all ranks.";
  let description = [{
    Same as `comms.all_reduce` on the root. The outputs of other ranks do not
    change.
  }];
  let assemblyFormat = "`` $kind `root` $root " # tail;
}

def Comms_GatherOp : Comms_RootedCollective<"gather"> {
  let summary = "The root gets the parts of all ranks, in rank order.";
  let description = [{
    Same as `comms.all_gather` on the root. The outputs of other ranks do not
    change.
  }];
}

def Comms_ScatterOp : Comms_RootedCollective<"scatter"> {
  let summary = "Rank r gets the r-th part of the root's array.";
  let description = [{
    The root's wire tiles for row i of the r-th part arrive on rank r as row i of
    the result. The inputs of the other ranks are not read.
  }];
}

def Comms_SendRecvOp : Comms_Op<"send_recv", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "One rank sends an array to another.";
  let description = [{
    Rank `source` sends its input, and rank `dest` stores it in its output. If
    both are the same rank, the op is a copy. Other ranks move nothing, but must
    run the op, too.
  }];
  let arguments = (ins Comms_Team:$team, I64Attr:$source, I64Attr:$dest,
                       Comms_Data:$input, Comms_Data:$output,
                       OptionalAttr<StrAttr>:$protocol);
  let assemblyFormat = [{
    $team `from` $source `to` $dest `ins` `(` $input `:` type($input) `)`
    `outs` `(` $output `:` type($output) `)` attr-dict
  }];
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_COLLECTIVEOPS_TD
