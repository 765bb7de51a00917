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

/// Refuses attributes with unknown names, except those with a dialect's prefix.
def Comms_KnownAttributes : NativeOpTrait<"KnownAttributes"> {
  let cppNamespace = "::mlir::comms";
}

class Comms_Op<string mnemonic, list<Trait> traits = []>
    : Op<Comms_Dialect, mnemonic, !listconcat(traits, [Comms_KnownAttributes])>;

/// Orders memory: no read or write may move across the op.
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
    runtime binds every argument by its name, the argument's string attribute
    `comms.name`. In text, the name after `%` gives the attribute, which is
    printed only if it differs. A window argument stands for N parts, one per
    rank. A memref argument is an array of this rank, which peers cannot access.
    Signals and counters are cells. A scalar has the same value on every rank
    unless the caller passes one value per rank. The launches of two ranks may
    begin and end in any order: only synchronization in the body orders them. If
    `ranks` or `blocks` is absent, the launch sets it.
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
    /// Turns the parser's names of block arguments into attributes, so that a
    /// runtime can bind by name after any pass.
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
  }];
}

def Comms_ReturnOp : Comms_Op<"return", [Pure, Terminator]> {
  let summary = "Ends a kernel.";
  let description = [{
    Ends the block. The host sees the block's writes to windows and memrefs once
    the launch has ended on that rank.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Comms_YieldOp : Comms_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Ends a region of a collective, of `comms.for_peers` or of `comms.role`.";
  let description = [{
    In a region of a collective, the operands are the tiles to send (`produce`) or
    to store (`consume`). In `comms.for_peers` and `comms.role` the op has no
    operands and is omitted in text.
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
    Blocks `first`, …, `last - 1` run the region; the others skip it. There is no
    barrier at the end, so roles of different blocks run concurrently.
    `comms.block_id` and `comms.num_blocks` have the same values inside and
    outside. Reports show the name.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$first, I64Attr:$last);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name `blocks` $first `to` $last $body attr-dict";
  let hasVerifier = 1;
}

def Comms_ForPeersOp : Comms_Op<"for_peers", [SingleBlockImplicitTerminator<"YieldOp">,
    AutomaticAllocationScope, RecursiveMemoryEffects]> {
  let summary = "Runs its region once for each other rank of a team.";
  let description = [{
    Rank r of a team of z ranks runs the region z - 1 times in sequence. The
    argument is the peer r+1, r+2, …, r-1 (mod z); with `reversed`, it is r-1,
    r-2, …, r+1. So in each step all ranks address different peers. In a team of
    one rank the region does not run.
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

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Comms_TileLoadOp : Comms_Op<"tile_load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Reads a tile from memory.";
  let description = [{
    For i < `valid`, element i of the tile is element `offset + i` of the array.
    The other elements are zero, and their memory is not read. Without `valid`,
    all elements are read. The loads are weak: they may happen in any order, but
    after the op that produced `after`. `valid` is from 0 to the length of the
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
    For i < `valid`, element i of the tile is written to element `offset + i` of
    the array; the op writes nothing else. Without `valid`, all elements are
    written. The stores are weak: other blocks may see them in any order, unless
    the memory model orders them. NaNs are stored in their canonical form (Bits).
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
    Combines all elements by `kind`, in the element type and in the tree order of
    the chapter *Bits*: the result depends only on the tile's length and elements.
    `avg` is the sum divided by the length; for integers the quotient is
    truncated. `min` and `max` of floats return NaN if an element is NaN; on
    integers they are signed.
  }];
  let arguments = (ins Comms_ReductionKindAttr:$kind, Comms_Tile:$tile);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "`` $kind $tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_MathOp : Comms_Op<"math", !listconcat([Pure, SameOperandsAndResultType], ElementwiseMappable.traits)> {
  let summary = "A function of the `math` dialect that optimizers do not fold.";
  let description = [{
    Applies the function to each element, with the bits that the chapter *Bits*
    defines for the `math` op of the same name. Optimizers fold a `math` op on
    constants with the host's libm, which may return other bits. So
    `comms-strip-fast-math` replaces such `math` ops by this op, and
    `comms-legalize-numerics` expands it. Kernels may use the `math` ops.
  }];
  let arguments = (ins Comms_MathFunctionAttr:$function, Variadic<FloatLike>:$values);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "`` $function `(` $values `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Comms_SplatOp : Comms_Op<"splat", [Pure]> {
  let summary = "A tile whose elements all equal a scalar.";
  let description = [{
    Every element is `value`. With a constant operand, the op folds to a constant
    tile.
  }];
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger]>:$value);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Comms_BroadcastRowOp : Comms_Op<"broadcast_row", [Pure]> {
  let summary = "A one-element tile, repeated along a row.";
  let description = [{
    Every element equals the operand's only element.
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
    Element i is i, modulo 2^w for integers of w bits, and rounded to nearest even
    for floats.
  }];
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Comms_ContractOp : Comms_Op<"contract", [AttrSizedOperandSegments]> {
  let summary = "A matrix product of parts of memory, summed in f32: c = a b, c = c + a b, or c = a b + d + ….";
  let description = [{
    Multiplies a part of `lhs` by a part of `rhs` and writes the product, of at
    most `tile` rows and columns, to a part of `acc`. The loop over `depth` terms
    is inside the op, so that a target can keep the sum in registers and copy
    operands while it multiplies.

    Memory of three or more dimensions counts as a matrix: all dimensions but the
    last are flattened into its rows. The two subscripts are a row and a column.
    `rows` and `columns` are the number of the tile's rows and columns that exist;
    without them, all exist. With `accumulate` the op adds the product to `acc`.
    With `transpose_lhs` the part of `lhs` is stored transposed, as `depth` rows
    of `tile[0]` columns; with `transpose_rhs` the part of `rhs` is stored as
    `tile[1]` rows of `depth` columns.

    `plus` lists addends: parts of memory with the product's rows and columns. The
    op adds them to the product in f32, in the listed order, and then rounds to
    the element type of `acc`. So a product, a bias matrix, a residual and parts
    from other ranks form one result that is rounded once.

    `scaled by` names the scales of fp8 operands, in f32 memory: each term is the
    product of two elements and their scales. The scales of an operand lie as its
    memory does, with fewer rows and columns. Across the terms there is one scale
    for each row of the left operand (column of the right one), one for every 128
    of them, or one for all. Along the terms there is one for every 128 of them,
    counted from the first of the memory, or one for all. The last block may be
    smaller. Scales of 128 terms multiply the sum of these terms in f32; scales of
    all terms multiply the whole sum, before anything is added to it.

    All threads of the block take part.
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

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Packets and poison
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Multimem, bulk and copy-engine copies
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Checks and records
//===----------------------------------------------------------------------===//

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

#endif // COMMSIR_DIALECT_COMMSOPS_TD
