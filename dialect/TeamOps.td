//===- TeamOps.td - Teams and identity ---------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_TEAMOPS_TD
#define COMMSIR_DIALECT_TEAMOPS_TD

include "CommsOpBase.td"

class Comms_IndexOp<string mnemonic, list<Trait> traits = []>
    : Comms_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>])> {
  let results = (outs Index:$result);
}

def Comms_TeamOp : Comms_Op<"team", [Pure]> {
  let summary = "A predefined team.";
  let description = [{
    `world` contains all ranks. `lsa` contains the ranks that this rank reaches by
    load and store. `rail` contains one rank of each `lsa` team: the one with this
    rank's number in it. Only this rank is in both its `lsa` and its `rail` team.
  }];
  let arguments = (ins Comms_TeamKindAttr:$kind);
  let results = (outs Comms_Team:$result);
  let assemblyFormat = "`` $kind attr-dict";
}

def Comms_TeamSplitOp : Comms_Op<"team_split", [Pure]> {
  let summary = "The part of a team that this rank belongs to.";
  let description = [{
    `inner n` splits the team into teams of n consecutive ranks; `outer n` splits
    it into n teams, each of every n-th rank. The result is the team that contains
    this rank. With `inner` of the whole size, or `outer 1`, it is the original
    team.
  }];
  let arguments = (ins Comms_Team:$team, Comms_SplitKindAttr:$kind, I64Attr:$factor);
  let results = (outs Comms_Team:$result);
  let assemblyFormat = "$team `` $kind $factor attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Comms_RankOp : Comms_IndexOp<"rank"> {
  let summary = "This rank's number in a team.";
  let description = [{
    The result is (world rank - first) / stride, from 0 to the team's size - 1.
  }];
  let arguments = (ins Comms_Team:$team);
  let assemblyFormat = "$team attr-dict";
  let hasFolder = 1;
}

def Comms_SizeOp : Comms_IndexOp<"size"> {
  let summary = "Number of ranks of a team.";
  let description = [{
    The result is at least 1. The op folds to a constant if the size is known.
  }];
  let arguments = (ins Comms_Team:$team);
  let assemblyFormat = "$team attr-dict";
  let hasFolder = 1;
}

def Comms_TranslateRankOp : Comms_IndexOp<"translate_rank"> {
  let summary = "A rank of one team as a rank of another.";
  let description = [{
    Computes the world rank w = first + rank * stride of `from`, and returns w's
    rank (w - first) / stride in `to`. If `rank` is not a rank of `from`, or w is
    not a member of `to`, the result may be any number. Accesses that use it are
    checked as with any other number.
  }];
  let arguments = (ins Index:$rank, Comms_Team:$from, Comms_Team:$to);
  let assemblyFormat = "$rank `from` $from `to` $to attr-dict";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Comms_BlockIdOp : Comms_IndexOp<"block_id"> {
  let summary = "This block's number on its rank.";
  let description = [{
    The result is from 0 to `comms.num_blocks` - 1. Blocks with the same number on
    different ranks meet in a `block` barrier.
  }];
  let assemblyFormat = "attr-dict";
}

def Comms_NumBlocksOp : Comms_IndexOp<"num_blocks"> {
  let summary = "Number of blocks of each rank.";
  let description = [{
    The number is the same on every rank: the kernel's `blocks` if present,
    otherwise the launch's number.
  }];
  let assemblyFormat = "attr-dict";
}

def Comms_EpochOp : Comms_IndexOp<"epoch"> {
  let summary = "Number of this launch of the kernel.";
  let description = [{
    The first launch is 1, and each later launch adds 1. All ranks see the same
    number in the same launch, so a kernel can tag messages with it. It has 64
    bits on every target and does not wrap. A truncated copy does wrap: a 32-bit
    flag (`index_cast` to i32) repeats after 2^32 launches, and is 0 once in that
    time, like memory that was never written.
  }];
  let assemblyFormat = "attr-dict";
}

def Comms_ExtentOp : Comms_IndexOp<"extent"> {
  let summary = "Number of elements that this launch works on.";
  let description = [{
    The caller passes the number with each launch: from 0 to `most`, and the same
    on all ranks. If the caller passes none, as `comms-run` does, the launch works
    on `most` elements.
  }];
  let arguments = (ins I64Attr:$most);
  let assemblyFormat = "`most` $most attr-dict";
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_TEAMOPS_TD
