//===- CommsOps.td - Operations of comms -------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Summaries and descriptions are the source of docs/Ops.md and of the paragraphs
// "Semantics" in docs/Spec.md, which `make docs` writes. Numbered constraints are
// in docs/Spec.md.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMSOPS_TD
#define COMMSIR_DIALECT_COMMSOPS_TD

include "CommsTypes.td"
include "CommsInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Comms_Op<string mnemonic, list<Trait> traits = []> : Op<Comms_Dialect, mnemonic, traits>;

/// Orders memory: nothing that reads or writes may move across it.
class Comms_SyncOp<string mnemonic, list<Trait> traits = []>
    : Comms_Op<mnemonic, !listconcat(traits, [MemoryEffects<[MemRead, MemWrite]>])>;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Comms_KernelOp : Comms_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove, OpAsmOpInterface, AutomaticAllocationScope]> {
  let summary = "A program that every block of every rank runs.";
  let description = [{
    A launch runs the body once on each block of each rank, concurrently. The
    runtime binds every argument by its name, the string attribute `comms.name`
    of the argument; in text it is the name after `%`, and the attribute is
    printed only where it differs. A window argument stands for N parts, one per
    rank; a memref for an array of this rank that no peer can reach; signals and
    counters for cells. Scalars are the same on every rank unless the caller
    says otherwise. A launch of rank r may begin and end before or after that of
    another rank: only synchronization in the body orders them. Where `ranks` or
    `blocks` is absent, the launch says it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<I64Attr>:$ranks,
                       OptionalAttr<I64Attr>:$lsa_size,
                       OptionalAttr<I64Attr>:$blocks);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// Name of argument `index` as the user wrote it (attribute `comms.name`), or "argN".
    std::string getArgumentName(unsigned index);
    static ::llvm::StringRef getArgumentNameAttrName() { return "comms.name"; }
    /// Names that the parser gave block arguments become attributes, so that a
    /// runtime can bind by name after any pass.
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
  }];
}

def Comms_ReturnOp : Comms_Op<"return", [Pure, Terminator]> {
  let summary = "Ends a kernel.";
  let description = [{
    The block ends. The host sees what it wrote to windows and memrefs when the
    launch has ended on that rank.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Comms_YieldOp : Comms_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Ends a region of a collective, of `comms.for_peers` or of `comms.role`.";
  let description = [{
    In a region of a collective, the operands are the tiles that travel
    (`produce`) or that are stored (`consume`). In `comms.for_peers` and
    `comms.role` it yields nothing and is omitted in text.
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{}]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Comms_RoleOp : Comms_Op<"role", [SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments,
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>]> {
  let summary = "Runs its region on some of the blocks of every rank.";
  let description = [{
    Blocks `first`, …, `last - 1` run the region; the others continue after it
    at once. Nothing waits at the end: roles of different blocks run
    concurrently. `comms.block_id` and `comms.num_blocks` mean the same inside
    as outside. The name is for reports.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$first, I64Attr:$last);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name `blocks` $first `to` $last $body attr-dict";
  let hasVerifier = 1;
}

def Comms_ForPeersOp : Comms_Op<"for_peers", [SingleBlockImplicitTerminator<"YieldOp">,
    AutomaticAllocationScope, RecursiveMemoryEffects]> {
  let summary = "Visits every other rank of a team, starting after its own.";
  let description = [{
    Rank r of a team of z runs the region z - 1 times, one after the other, with
    the peer r+1, r+2, …, r-1 (mod z) as argument; with `reversed`, r-1, r-2, …,
    r+1. So at any step all ranks address different peers. A team of one rank
    never runs it.
  }];
  let arguments = (ins Comms_Team:$team, UnitAttr:$reversed);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$team (`reversed` $reversed^)? custom<PeerRegion>($body) attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Teams and identity
//===----------------------------------------------------------------------===//

class Comms_IndexOp<string mnemonic, list<Trait> traits = []>
    : Comms_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>])> {
  let results = (outs Index:$result);
}

def Comms_TeamOp : Comms_Op<"team", [Pure]> {
  let summary = "A predefined team.";
  let description = [{
    `world` is all ranks, `lsa` the neighbors that this rank reaches by load and
    store, `rail` the ranks that have this rank's number in their `lsa` team.
    This rank is the only member that `lsa` and `rail` share.
  }];
  let arguments = (ins Comms_TeamKindAttr:$kind);
  let results = (outs Comms_Team:$result);
  let assemblyFormat = "`` $kind attr-dict";
}

def Comms_TeamSplitOp : Comms_Op<"team_split", [Pure]> {
  let summary = "The part of a team that this rank belongs to.";
  let description = [{
    `inner n` cuts the team into runs of n neighbors, `outer n` into n teams of
    every n-th rank; the result is the one that contains this rank. `inner` of
    the whole size and `outer 1` are the team itself.
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
    (world rank - first) / stride. It is at least 0 and less than the size.
  }];
  let arguments = (ins Comms_Team:$team);
  let assemblyFormat = "$team attr-dict";
  let hasFolder = 1;
}

def Comms_SizeOp : Comms_IndexOp<"size"> {
  let summary = "Number of ranks of a team.";
  let description = [{
    At least 1. Folds to a constant where known.
  }];
  let arguments = (ins Comms_Team:$team);
  let assemblyFormat = "$team attr-dict";
  let hasFolder = 1;
}

def Comms_TranslateRankOp : Comms_IndexOp<"translate_rank"> {
  let summary = "A rank of one team as a rank of another.";
  let description = [{
    The world rank w = first + rank * stride of `from`, as a number (w - first)
    / stride of `to`. Any number when `rank` is no rank of `from`, or w no member
    of `to`: an access by it is checked as by any other number.
  }];
  let arguments = (ins Index:$rank, Comms_Team:$from, Comms_Team:$to);
  let assemblyFormat = "$rank `from` $from `to` $to attr-dict";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Comms_BlockIdOp : Comms_IndexOp<"block_id"> {
  let summary = "This block's number on its rank.";
  let description = [{
    At least 0 and less than `comms.num_blocks`. Blocks of equal number on
    different ranks are partners in a `block` barrier.
  }];
  let assemblyFormat = "attr-dict";
}

def Comms_NumBlocksOp : Comms_IndexOp<"num_blocks"> {
  let summary = "Number of blocks of each rank.";
  let description = [{
    The same on every rank: the kernel's `blocks` if present, else what the
    launch says.
  }];
  let assemblyFormat = "attr-dict";
}

def Comms_EpochOp : Comms_IndexOp<"epoch"> {
  let summary = "Number of this launch of the kernel.";
  let description = [{
    1 at the first launch, one more at each following one. It is the same on all
    ranks in the same launch, so it can number what is exchanged. It has 64 bits
    on every target and does not wrap. A value cut from it does: a flag of 32
    bits (`index_cast` to i32) repeats after 2^32 launches, and is once 0, which
    is also the value of memory never written.
  }];
  let assemblyFormat = "attr-dict";
}

def Comms_ExtentOp : Comms_IndexOp<"extent"> {
  let summary = "Number of elements that this launch works on.";
  let description = [{
    The caller gives the number with each launch, the same on all ranks, from 0
    to `most`. A launch that is given none works on `most` elements. Programs
    that run a kernel by itself (`comms-run`) give none.
  }];
  let arguments = (ins I64Attr:$most);
  let assemblyFormat = "`most` $most attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

def Comms_LocalOp : Comms_Op<"local", [Pure]> {
  let summary = "This rank's own part of a window.";
  let description = [{
    The part in this rank's memory, by load and store.
  }];
  let arguments = (ins Comms_Window:$window);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_PeerOp : Comms_Op<"peer", [Pure]> {
  let summary = "A peer's part of a window, by load and store.";
  let description = [{
    The part of rank `peer` of the team; this rank's own part if that is this
    rank. The peer has to be within load and store reach; otherwise the behavior
    is undefined. The memory model says what may be read and written when.
  }];
  let arguments = (ins Comms_Window:$window, Index:$peer, Comms_Team:$team);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window `at` $peer `of` $team attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_MultimemOp : Comms_Op<"multimem", [Pure]> {
  let summary = "One address for all parts of a window.";
  let description = [{
    The view that NVLink multicast gives: a store through it writes the parts of
    all ranks of the team, a load combines them. Only
    `comms.multimem_load_reduce`, `comms.multimem_store` and
    `comms.multimem_reduce` may access it. It is another *proxy* than the parts
    themselves: see `comms.fence`.
  }];
  let arguments = (ins Comms_Window:$window, Comms_Team:$team);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window `of` $team attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_ScratchOp : Comms_Op<"scratch", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Memory of this block only, for the duration of the kernel.";
  let description = [{
    An array that no other block can reach. On a GPU it is memory of one CTA: a
    block that is a cluster of several has none, and `comms-distribute-tiles`
    refuses it. Its contents are undefined at first; simulations fill it, at the
    start of each launch, with NaNs (odd numbers when read as integers) drawn
    from their seed. An operation in a loop gives the same array in each
    iteration, with the contents it had.
  }];
  let results = (outs Res<AnyMemRef, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Comms_TileLoadOp : Comms_Op<"tile_load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Reads a tile from memory.";
  let description = [{
    Element i of the tile is element `offset + i` of the array, for i less than
    `valid` (all, when absent); the others are zero and their memory is not
    read. The loads are weak: they may happen in any order, but after the op
    that produced `after`. `valid` is at least 0 and at most the length of the
    tile.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref, Index:$offset,
                       Optional<Index>:$valid, Optional<Comms_Token>:$after);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    $memref `[` $offset `]` (`valid` $valid^)? (`after` $after^)? attr-dict
    `:` type($memref) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_TileStoreOp : Comms_Op<"tile_store", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Writes a tile to memory.";
  let description = [{
    Element i of the tile becomes element `offset + i` of the array, for i less
    than `valid` (all, when absent); nothing else is written. The stores are
    weak: others see them, in any order, when the memory model says so. NaN are
    stored in one form (Bits).
  }];
  let arguments = (ins Comms_Tile:$tile, Arg<AnyMemRef, "", [MemWrite]>:$memref, Index:$offset,
                       Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict
    `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_RowReduceOp : Comms_Op<"row_reduce", [Pure]> {
  let summary = "Combines the elements of a tile into one.";
  let description = [{
    All elements are combined by `kind` in the element type, by the tree of the
    chapter *Bits*: the result depends only on the length of the tile and its
    elements. `avg` is the sum divided by the length; for integers the quotient
    is truncated. `min` and `max` of floats give NaN when an element is NaN;
    those of integers are signed.
  }];
  let arguments = (ins Comms_ReductionKindAttr:$kind, Comms_Tile:$tile);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "`` $kind $tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_MathOp : Comms_Op<"math", !listconcat([Pure, SameOperandsAndResultType], ElementwiseMappable.traits)> {
  let summary = "A function of `math` that no optimizer computes.";
  let description = [{
    The function of each element, with the bits that the chapter *Bits* gives to
    the operation of `math` of the same name. Optimizers compute functions of
    constants by the libm of the host, which has other bits:
    `comms-strip-fast-math` replaces those functions by this op, and
    `comms-legalize-numerics` expands it. Kernels may use `math`.
  }];
  let arguments = (ins Comms_MathFunctionAttr:$function, Variadic<FloatLike>:$values);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "`` $function `(` $values `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Comms_SplatOp : Comms_Op<"splat", [Pure]> {
  let summary = "A tile whose elements all equal a scalar.";
  let description = [{
    Every element is `value`. A constant operand folds to a constant tile.
  }];
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger]>:$value);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Comms_BroadcastRowOp : Comms_Op<"broadcast_row", [Pure]> {
  let summary = "A tile of one, repeated along a row.";
  let description = [{
    Every element is the one element of the operand.
  }];
  let arguments = (ins Comms_Tile:$tile);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Comms_IotaOp : Comms_Op<"iota", [Pure]> {
  let summary = "The tile 0, 1, 2, …";
  let description = [{
    Element i is i: for integers of w bits modulo 2^w, for floats rounded to
    nearest even.
  }];
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Comms_ContractOp : Comms_Op<"contract", [AttrSizedOperandSegments]> {
  let summary = "A matrix product of parts of memory, summed in f32: c = a b, c = c + a b, or c = a b + d + ….";
  let description = [{
    Multiplies a part of `lhs` by a part of `rhs` and writes the product, of
    `tile` rows and columns at most, to a part of `acc`. The sum over `depth`
    terms is the op's own, so that a target can keep it in registers and copy
    operands while it multiplies.

    Memory of three dimensions or more counts as a matrix whose rows are those of
    all but the last dimension, one after the other. Subscripts name a row and a
    column of memory. `rows` and `columns` say how much of the tile exists: all
    of it where they are absent. With `accumulate` the product is added to what
    `acc` holds. With `transpose_lhs` (`transpose_rhs`) the operand's part lies
    transposed in memory, as `depth` rows of `tile[0]` columns (`tile[1]` rows of
    `depth` columns).

    `plus` lists addends: the parts of memory, of the product's rows and columns,
    that are added to it in f32, in their order, before it is rounded to the
    elements of `acc`. So a product, a bias matrix, a residual, and what other
    ranks have sent make one result that is rounded once.

    `scaled by` names the scales of fp8 operands, in f32 memory: each term is the
    product of two elements and their scales. The scales of an operand lie as its
    memory does, with fewer rows and columns. Across the terms there is one scale
    for each row of the left operand (column of the right one), one for every 128
    of them, or one for all. Along the terms there is one for every 128 of them,
    counted from the first of the memory, or one for all. The last block may be
    smaller. Scales of 128 terms multiply the sum of these terms in f32; scales of
    all terms multiply the whole sum, before anything is added to it.

    All blocks' threads take part.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$lhs, Index:$lhsRow, Index:$lhsColumn,
                       Arg<AnyMemRef, "", [MemRead]>:$rhs, Index:$rhsRow, Index:$rhsColumn,
                       Arg<AnyMemRef, "", [MemRead, MemWrite]>:$acc, Index:$accRow, Index:$accColumn,
                       Index:$depth, Optional<Index>:$rows, Optional<Index>:$columns,
                       Arg<Optional<AnyMemRef>, "", [MemRead]>:$lhsScales,
                       Arg<Optional<AnyMemRef>, "", [MemRead]>:$rhsScales,
                       Arg<Variadic<AnyMemRef>, "", [MemRead]>:$addends,
                       Variadic<Index>:$addendRows, Variadic<Index>:$addendColumns,
                       DenseI64ArrayAttr:$tile, UnitAttr:$accumulate,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let assemblyFormat = [{
    $lhs `[` $lhsRow `,` $lhsColumn `]` `,` $rhs `[` $rhsRow `,` $rhsColumn `]`
    `to` $acc `[` $accRow `,` $accColumn `]` `tile` $tile `depth` $depth
    (`rows` $rows^)? (`columns` $columns^)?
    (`scaled` `by` $lhsScales^ `,` $rhsScales)?
    custom<Addends>($addends, $addendRows, $addendColumns) attr-dict
    `:` type($lhs) `,` type($rhs) `,` type($acc)
    (`scaled` `by` type($lhsScales)^ `,` type($rhsScales))?
    (`plus` type($addends)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows and columns of the product, at most.
    int64_t getTileRows() { return getTile()[0]; }
    int64_t getTileColumns() { return getTile()[1]; }
    /// The scales of an operand, of an op that is valid.
    OperandScales getScales(bool isLhs);
    /// Whether scales are of blocks of terms, rather than of the whole sum.
    bool hasBlockScales();
  }];
}

//===----------------------------------------------------------------------===//
// One-sided operations
//===----------------------------------------------------------------------===//

/// Moves `count` elements between this rank's memory and a peer's window part.
class Comms_TransferOp<string mnemonic, list<Trait> traits = []> : Comms_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Comms_PutOp : Comms_TransferOp<"put", [AttrSizedOperandSegments]> {
  let summary = "Writes elements of this rank's memory to a peer's part of a window.";
  let description = [{
    Reads `source[sourceOffset, sourceOffset + count)` and writes the same
    values, unconverted, to `[offset, offset + count)` of the window's part on
    `peer`. The op may end before either has happened: the source may be
    overwritten only after `comms.flush`, `comms.wait_counter` or a barrier with
    release order, and the peer may read only after it has acquired from
    something this block released later (Memory model). Elements arrive in any
    order. With `counted`, the counter's cell grows by one when the source has
    been read.
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
    Reads `[offset, offset + count)` of the window's part on `peer` and writes
    the values to `dest[destOffset, destOffset + count)`. By load and store, the
    values are there when the op ends; over GIN, after the next `comms.flush`.
    What the peer wrote is seen only if this block acquired it before the op.
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
  let summary = "A put, then a signal to the same peer that the put's data cannot be overtaken by.";
  let description = [{
    As `comms.put` followed by `comms.signal` with order `release` and scope
    `sys` on cell `index` of the same peer: a rank that acquires the new value
    of the cell is guaranteed to see the data of this put, and of all earlier
    puts of this block to that peer. Over GIN the adapter keeps this order; no
    fence is issued.
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
    `value`, `inc` adds 1, `add` adds `value`. Cells hold numbers from 0 to 2^63
    - 1; a sum beyond that is an error of the program. With order `release`
    (default) everything this block wrote before, at any rank, happens before
    the new value; with `relaxed` nothing does. All blocks of a kernel share a
    cell; a program that wants one per block gives each its own index.
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
    `value` (`ge`). The cell is unchanged. With order `acquire` (default), all
    that happened before the signals whose sum was read happens before what
    follows. Scope `gpu` synchronizes only with signals of blocks of this rank.
    A wait with `eq` may miss a value that passes by; the checker reports it
    where the cell can pass it.
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
  let summary = "Waits on a cell that one named peer signals.";
  let description = [{
    As `comms.wait_signal`, and says that the signals this wait needs come from
    `peer`. At run time it is the same wait; the checker refuses a program in
    which the value is reached through another rank's signals, and a deadlock
    report names the peer that did not send.
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
    One atomic load of cell `index`. With order `acquire` (default), all that
    happened before the signals whose sum was read happens before what follows.
    It does not wait: two reads may differ.
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
    One atomic, relaxed store of 0. A signal that another rank makes at the same
    time may happen before or after it. Reset only a cell that no rank can be
    signaling, for instance between two barriers.
  }];
  let arguments = (ins Comms_Signal:$signal, Index:$index);
  let assemblyFormat = "$signal `[` $index `]` attr-dict `:` type($signal)";
  let hasVerifier = 1;
}

def Comms_WaitCounterOp : Comms_SyncOp<"wait_counter"> {
  let summary = "Waits until a number of this rank's own counted puts have left their source.";
  let description = [{
    Ends once cell `index` is at least `value`. Then the sources of that many
    counted puts may be overwritten. It says nothing of their arrival.
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
    One atomic, relaxed store of 0, when no counted put of the cell is under
    way.
  }];
  let arguments = (ins Comms_Counter:$counter, Index:$index);
  let assemblyFormat = "$counter `[` $index `]` attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Comms_FlushOp : Comms_SyncOp<"flush"> {
  let summary = "Ends when every earlier put of this block to the team has left its source.";
  let description = [{
    After it, the sources of this block's puts, and over GIN the destinations of
    its gets, may be reused. It does not say that a put has arrived; a signal
    does.
  }];
  let arguments = (ins Comms_Team:$team, OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = "$team (`gin` $gin^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_FenceOp : Comms_SyncOp<"fence"> {
  let summary = "Orders this block's earlier accesses before its later ones.";
  let description = [{
    A PTX fence of that order and scope, for all threads of the block. With a
    `proxy` other than `generic`, also a proxy fence: accesses through the
    generic proxy and through the named one, before and after, are ordered
    (Memory model).
  }];
  let arguments = (ins Comms_MemoryOrderAttr:$order, Comms_MemoryScopeAttr:$scope,
                       DefaultValuedAttr<Comms_ProxyAttr, "::mlir::comms::Proxy::Generic">:$proxy);
  let assemblyFormat = "`` $order `` $scope (`proxy` `` $proxy^)? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

def Comms_BarrierOp : Comms_SyncOp<"barrier"> {
  let summary = "Waits for the same block, or all blocks, of every rank of a team.";
  let description = [{
    No participant passes before all have arrived. With order `acq_rel`
    (default), everything that a participant did before it, puts included,
    happens before everything that a participant does after it. `release` gives
    only the sender's half of that, `acquire` only the receiver's, and `relaxed`
    orders no memory at all.
  }];
  let arguments = (ins Comms_Team:$team, Comms_BarrierExtentAttr:$extent,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::AcqRel">:$order);
  let assemblyFormat = "$team `` $extent (`order` `` $order^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_BarrierArriveOp : Comms_SyncOp<"barrier_arrive"> {
  let summary = "The first half of a barrier: announces this block.";
  let description = [{
    Does not wait. With order `release` (default), everything before it happens
    before what follows the wait of any participant. What the block does between
    the halves is ordered with neither side.
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
    With order `acquire` (default), what happened before their arrivals (of
    order `release`) happens before what follows.
  }];
  let arguments = (ins Comms_Token:$arrived,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Acquire">:$order);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$arrived (`order` `` $order^)? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Packets and poison
//===----------------------------------------------------------------------===//

def Comms_PacketStoreOp : Comms_SyncOp<"packet_store", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Writes a tile in packets, each together with a flag in one store.";
  let description = [{
    Packet `offset + j` becomes `(flag << 32) | word j` for every word of the
    first `valid` elements (without `valid`: of all). Each packet is one store,
    so a reader that sees its flag sees its word. Packets become visible in any
    order. Nothing else is ordered. With `assumes store128_whole` packets are
    lines: every line that holds one of these elements is written, with zeros
    for those of its elements that are not valid, and its rest; each of the two
    is one store.
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
  let summary = "Waits until every packet of a tile carries the flag, and reads the tile.";
  let description = [{
    Polls packets `offset …` of the first `valid` elements until each of them
    carries `flag`, each by one load, and returns the words. Elements from
    `valid` on are zero and their packets are not read. With `assumes
    store128_whole` packets are lines, and their rests are polled too.
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
  let summary = "Writes a tile whose NaN have been made canonical, so that none reads as poison.";
  let description = [{
    Writes the first `valid` elements to `memref[offset …]`; a NaN is written as
    the canonical NaN of its type (f32 0x7FC00000, f16 0x7E00, bf16 0x7FC0).
    Each element becomes visible whole; nothing else is ordered.
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
    Polls the first `valid` elements from `memref[offset]` until none is poison,
    and returns them. Elements from `valid` on are zero and their memory is not
    read. The memory is unchanged.
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$offset, Optional<Index>:$valid);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($memref) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_PoisonFillOp : Comms_SyncOp<"poison_fill"> {
  let summary = "Fills elements with poison: the slot is empty again.";
  let description = [{
    Writes poison to `memref[offset, offset + count)`. It must happen after
    every load of the old data and before every store of the new; a barrier
    between them, or the protocol's argument, has to ensure both.
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$offset, Index:$count);
  let assemblyFormat = "$memref `[` $offset `]` `count` $count attr-dict `:` type($memref)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Multimem, bulk and copy-engine copies
//===----------------------------------------------------------------------===//

def Comms_MultimemLoadReduceOp : Comms_Op<"multimem_load_reduce", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Reads a tile from every rank at once, combined by the switch.";
  let description = [{
    Element i of the result is the reduction of element `offset + i` of every
    rank's part, for the first `valid` elements; the rest is zero. The switch
    chooses the order of combination and accumulates 16-bit floats in float32
    before rounding, so sums of floats may differ in their last bits from those
    of other algorithms (Bits). PTX does not say whether `min` and `max` of
    floats give a NaN or a number where there are both. Accesses go through the
    `alias` proxy.
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
  let summary = "Writes a tile to every rank at once.";
  let description = [{
    The first `valid` elements of the tile are written to `[offset …]` of every
    rank's part. The ranks may see them at different times.
  }];
  let arguments = (ins Comms_Tile:$tile, Arg<AnyMemRef, "", [MemWrite]>:$memref, Index:$offset,
                       Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_MultimemReduceOp : Comms_Op<"multimem_reduce", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Combines a tile into every rank's memory at once.";
  let description = [{
    For the first `valid` elements: each rank's element `offset + i` is
    atomically replaced by its combination with element i of the tile.
    Combinations of several ranks happen in any order. NaN in `min` and `max` of
    floats are as in `comms.multimem_load_reduce`.
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
    At some time between this op and the `comms.bulk_wait` that takes its token,
    the elements `source[sourceOffset, sourceOffset + count)` are read and
    written to `dest[destOffset …]`. The program must not access either in
    between. The copy goes through the `async` proxy.
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
  let summary = "Ends when the copies have been made.";
  let description = [{
    After it, the destinations of the named copies can be read by this block and
    their sources overwritten. To let another block or rank read a destination,
    release it afterwards.
  }];
  let arguments = (ins Variadic<Comms_Token>:$copies);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$copies attr-dict";
  let hasVerifier = 1;
}

def Comms_EngineCopyOp : Comms_SyncOp<"engine_copy"> {
  let summary = "A copy by the copy engine, as a step of the host beside the kernel.";
  let description = [{
    Splits the kernel: what precedes it has ended on this rank when the copy of
    `source[sourceOffset, sourceOffset + count)` to `[offset …]` of the part on
    `peer` begins, and the copy has ended when what follows it begins. It orders
    nothing at the peer; a barrier or signal after it does.
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

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

def Comms_ChannelOp : Comms_Op<"channel", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A channel over a team: `slots` tiles between each pair of ranks that it connects.";
  let description = [{
    `multicast`: a sent tile goes to every rank of the team, the sender
    included, and a receiver names the source. `pairwise`: each (source,
    destination) has slots of its own. `single`: within a launch every rank
    sends to one rank and receives from one. In a launch, a slot carries at most
    one tile from a source to a destination. Slots are empty when a launch
    begins; the protocol decides when they may be filled again (Memory model).

    A channel that is `reused` carries at most one tile per slot in each
    *round*: what a block sends between two of its `comms.channel_barrier`s. A
    tile is received in the round in which it was sent, after the barrier that
    ends it and before the next. A slot takes a tile of a later round of the
    launch once its tile has been received and the sender knows it, by a barrier
    over the team or otherwise. So a message can go through bounded memory.
    Protocols whose receivers recognize a tile by its launch (`ll`, `lamport`)
    refuse such a channel.
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
    `slot` at the destination. It does not wait for the receiver.
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
    Ends once the tile that block b of `peer` sent through `slot` to this rank,
    in this launch, has arrived. Its `valid` must equal the sender's; the
    elements beyond are zero. It acquires only the tile: it does not order other
    memory of the sender.
  }];
  let arguments = (ins Comms_Channel:$channel, Index:$slot, Index:$peer, Optional<Index>:$valid);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    $channel `[` $slot `]` `from` $peer (`valid` $valid^)? attr-dict `:` type($channel) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_ChannelBarrierOp : Comms_SyncOp<"channel_barrier"> {
  let summary = "Ends a round of sends: receives of the round may only follow it.";
  let description = [{
    Every block of every rank of the team calls it between its sends of a round
    and its receives of that round. A protocol whose data announces itself
    (`ll`, `lamport`) lowers it to nothing, any other to a barrier. So a program
    must not rely on it to wait.
  }];
  let arguments = (ins Comms_Channel:$channel);
  let assemblyFormat = "$channel attr-dict `:` type($channel)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// A collective in destination-passing style.
///
/// `ins` are exchanged, `outs` are written, `args` are arrays of this rank that
/// `consume` reads. `produce` maps one row of every input to the tiles that
/// travel; `consume` maps what arrived (reduced, where the collective reduces)
/// and the matching rows of `args` to one row of every output.
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
    Row i of the result, on every rank, is the reduction of the wire tiles that
    the ranks produced for row i; `consume` makes the rows of the outputs from
    it.
  }];
}

def Comms_ReduceScatterOp : Comms_ReducingCollective<"reduce_scatter"> {
  let summary = "Rank r gets the r-th part of the reduction over all ranks.";
  let description = [{
    As `comms.all_reduce`, but rank r gets only the rows of the r-th part.
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
  let summary = "All-to-all with a number of rows for each pair of ranks, known at run time.";
  let description = [{
    `send_rows[p]` rows of this rank's input go to rank p; they lie one after
    the other, those for rank 0 first. `recv_rows[p]` rows come from rank p and
    are stored one after the other, those of rank 0 first; the rest of the
    output is unchanged. `recv_rows[p]` on rank r has to equal `send_rows[r]` on
    rank p, no number may be negative or more than `max_rows`, and their sums
    must not exceed the rows of input and output; otherwise the behavior is
    undefined.
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
    The wire tiles that the root produced for row i arrive on every rank, the
    root included. The inputs of the other ranks are not read.
  }];
}

def Comms_ReduceOp : Comms_Collective<"reduce", (ins Comms_ReductionKindAttr:$kind, I64Attr:$root),
    [DeclareOpInterfaceMethods<CollectiveOpInterface, ["getReduction", "getRootRank"]>]> {
  let summary = "The root gets the reduction over all ranks.";
  let description = [{
    As `comms.all_reduce` on the root. The outputs of other ranks are unchanged.
  }];
  let assemblyFormat = "`` $kind `root` $root " # tail;
}

def Comms_GatherOp : Comms_RootedCollective<"gather"> {
  let summary = "The root gets the parts of all ranks, in rank order.";
  let description = [{
    As `comms.all_gather` on the root. The outputs of other ranks are unchanged.
  }];
}

def Comms_ScatterOp : Comms_RootedCollective<"scatter"> {
  let summary = "Rank r gets the r-th part of the root's array.";
  let description = [{
    The wire tiles that the root produced for row i of the r-th part arrive on
    rank r as row i of the result. The inputs of the other ranks are not read.
  }];
}

def Comms_SendRecvOp : Comms_Op<"send_recv", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "One rank sends an array that another receives.";
  let description = [{
    Rank `source` sends its input, rank `dest` gets it in its output, unchanged.
    The ranks may be the same: then it is a copy. Other ranks move nothing, but
    have to run the op too.
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

//===----------------------------------------------------------------------===//
// Checks and records
//===----------------------------------------------------------------------===//

def Comms_CheckBoundsOp : Comms_SyncOp<"check_bounds"> {
  let summary = "Ends the run with an error when `[offset, offset + count)` leaves `[0, limit)`.";
  let description = [{
    The run ends when `offset < 0`, `count < 0` or `offset + count > limit`,
    computed without overflow; the error names `what`, the place in the source
    and the three numbers. Nothing after it is executed in that case. The
    canonicalizer erases a check that constants prove, and one that an equal
    check closely precedes in the same block.
  }];
  let arguments = (ins Index:$offset, Index:$count, Index:$limit, StrAttr:$what);
  let assemblyFormat = "$what $offset `,` $count `in` $limit attr-dict";
  let hasCanonicalizeMethod = 1;
}

def Comms_RecordAccessOp : Comms_SyncOp<"record_access"> {
  let summary = "Tells the race detector of an access to memory.";
  let description = [{
    This block reads or writes `memref[offset, offset + count)` at this point of
    its program. Without a detector it does nothing.
  }];
  let arguments = (ins Comms_AccessKindAttr:$kind, AnyMemRef:$memref, Index:$offset, Index:$count);
  let assemblyFormat = "`` $kind $memref `[` $offset `]` `count` $count attr-dict `:` type($memref)";
}

def Comms_RecordSyncOp : Comms_SyncOp<"record_sync"> {
  let summary = "Tells the race detector of a synchronization that the next op makes.";
  let description = [{
    `what` names the kind of synchronization and the operands what identifies
    it. Without a detector it does nothing.
  }];
  let arguments = (ins StrAttr:$what, Variadic<Index>:$operands);
  let assemblyFormat = "$what (`(` $operands^ `)`)? attr-dict";
}

#endif // COMMSIR_DIALECT_COMMSOPS_TD
