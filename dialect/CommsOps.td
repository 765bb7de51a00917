//===- CommsOps.td - Operations of comms -------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Semantics and numbered constraints are in docs/Spec.md; descriptions here say
// what an op is for.
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
  let summary = "An SPMD program that every block of every rank runs.";
  let description = [{
    Arguments are windows, memrefs, signals, counters and scalars; the runtime
    binds each by its name. `ranks` fixes the number of ranks, `lsa_size` how
    many neighbours share load/store reach, `blocks` the blocks of each rank.
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
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Comms_YieldOp : Comms_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Ends a region of a collective, of `for_peers` or of `role`.";
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{}]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Comms_RoleOp : Comms_Op<"role", [SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments,
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>]> {
  let summary = "Runs its region on the blocks [first, last) of every rank.";
  let arguments = (ins StrAttr:$name, I64Attr:$first, I64Attr:$last);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name `blocks` $first `to` $last $body attr-dict";
  let hasVerifier = 1;
}

def Comms_ForPeersOp : Comms_Op<"for_peers", [SingleBlockImplicitTerminator<"YieldOp">,
    AutomaticAllocationScope, RecursiveMemoryEffects]> {
  let summary = "Visits every other rank of a team, starting after its own.";
  let description = [{
    Rank r visits r+1, r+2, …, r-1 (mod size): at step k all ranks address
    different peers. `reversed` visits r-1 first. The region's argument is the
    peer's rank in the team.
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
  let summary = "A team that always exists: world, lsa (load/store reach) or rail.";
  let arguments = (ins Comms_TeamKindAttr:$kind);
  let results = (outs Comms_Team:$result);
  let assemblyFormat = "`` $kind attr-dict";
}

def Comms_TeamSplitOp : Comms_Op<"team_split", [Pure]> {
  let summary = "The part of a team that this rank belongs to.";
  let description = [{
    `inner n`: n neighbouring ranks; `outer n`: every n-th rank, so that
    size(inner n) = n and size(outer n) = size / n.
  }];
  let arguments = (ins Comms_Team:$team, Comms_SplitKindAttr:$kind, I64Attr:$factor);
  let results = (outs Comms_Team:$result);
  let assemblyFormat = "$team `` $kind $factor attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Comms_RankOp : Comms_IndexOp<"rank"> {
  let summary = "This rank's number in a team.";
  let arguments = (ins Comms_Team:$team);
  let assemblyFormat = "$team attr-dict";
  let hasFolder = 1;
}

def Comms_SizeOp : Comms_IndexOp<"size"> {
  let summary = "Number of ranks of a team.";
  let arguments = (ins Comms_Team:$team);
  let assemblyFormat = "$team attr-dict";
  let hasFolder = 1;
}

def Comms_TranslateRankOp : Comms_IndexOp<"translate_rank"> {
  let summary = "A rank of one team as a rank of another.";
  let arguments = (ins Index:$rank, Comms_Team:$from, Comms_Team:$to);
  let assemblyFormat = "$rank `from` $from `to` $to attr-dict";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Comms_BlockIdOp : Comms_IndexOp<"block_id"> {
  let summary = "This block's number on its rank.";
  let assemblyFormat = "attr-dict";
}

def Comms_NumBlocksOp : Comms_IndexOp<"num_blocks"> {
  let summary = "Number of blocks of each rank.";
  let assemblyFormat = "attr-dict";
}

def Comms_EpochOp : Comms_IndexOp<"epoch"> {
  let summary = "Number of this launch of the kernel: 1 at the first.";
  let assemblyFormat = "attr-dict";
}

def Comms_ExtentOp : Comms_IndexOp<"extent"> {
  let summary = "Number of elements that this launch works on, at most `most`.";
  let description = [{
    The caller gives it with each launch, the same on all ranks; a launch that
    is given none works on `most` elements. The pass `comms-expand-collectives`
    makes it for kernels whose sizes are known at launch only
    (`comms.run_time_extent`).
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
  let arguments = (ins Comms_Window:$window);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_PeerOp : Comms_Op<"peer", [Pure]> {
  let summary = "A peer's part of a window, by load and store.";
  let arguments = (ins Comms_Window:$window, Index:$peer, Comms_Team:$team);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window `at` $peer `of` $team attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_MultimemOp : Comms_Op<"multimem", [Pure]> {
  let summary = "One address for all parts of a window: NVLink multicast.";
  let arguments = (ins Comms_Window:$window, Comms_Team:$team);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$window `of` $team attr-dict `:` type($window) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_ScratchOp : Comms_Op<"scratch", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Memory of this block alone, for the duration of the kernel.";
  let results = (outs Res<AnyMemRef, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Comms_TileLoadOp : Comms_Op<"tile_load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Reads a tile from memory, at an offset in elements.";
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
  let summary = "Writes a tile to memory, at an offset in elements.";
  let arguments = (ins Comms_Tile:$tile, Arg<AnyMemRef, "", [MemWrite]>:$memref, Index:$offset,
                       Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict
    `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_RowReduceOp : Comms_Op<"row_reduce", [Pure]> {
  let summary = "Combines the elements of a tile into a tile of one, by a tree that depends on the length alone.";
  let arguments = (ins Comms_ReductionKindAttr:$kind, Comms_Tile:$tile);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "`` $kind $tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Comms_MathOp : Comms_Op<"math", !listconcat([Pure, SameOperandsAndResultType], ElementwiseMappable.traits)> {
  let summary = "A function of `math` that no optimiser computes.";
  let arguments = (ins Comms_MathFunctionAttr:$function, Variadic<FloatLike>:$values);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "`` $function `(` $values `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Comms_SplatOp : Comms_Op<"splat", [Pure]> {
  let summary = "A tile whose elements all equal a scalar.";
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger]>:$value);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Comms_BroadcastRowOp : Comms_Op<"broadcast_row", [Pure]> {
  let summary = "A tile of one, repeated along a row.";
  let arguments = (ins Comms_Tile:$tile);
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Comms_IotaOp : Comms_Op<"iota", [Pure]> {
  let summary = "The tile 0, 1, 2, …";
  let results = (outs Comms_Tile:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Comms_ContractOp : Comms_Op<"contract", [AttrSizedOperandSegments]> {
  let summary = "A matrix product of parts of memory: c = a b, or c = c + a b, summed in f32.";
  let description = [{
    Multiplies a part of `lhs` by a part of `rhs` and writes the product, of
    `tile` rows and columns at most, to a part of `acc`. The sum over `depth`
    terms is the op's own, so that a target can keep it in registers and copy
    operands while it multiplies:

    ```mlir
    comms.contract %a[%i, %zero], %b[%zero, %j] to %c[%i, %j] tile [128, 256] depth %k
      : memref<4096x8192xbf16>, memref<8192x4096xbf16>, memref<4096x4096xbf16>
    ```

    Memory of three dimensions or more counts as a matrix whose rows are those of
    all but the last dimension, one after the other. Subscripts name a row and a
    column of memory. `rows` and `columns` say how much of the tile exists: all
    of it where they are absent. With `accumulate` the product is added to what
    `acc` holds. With `transpose_lhs` (`transpose_rhs`) the operand's part lies
    transposed in memory, as `depth` rows of `tile[0]` columns (`tile[1]` rows of
    `depth` columns).

    All blocks' threads take part. Scales of fp8 operands are multiplications of
    the result: store the product in scratch memory of f32, and multiply its rows.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$lhs, Index:$lhsRow, Index:$lhsColumn,
                       Arg<AnyMemRef, "", [MemRead]>:$rhs, Index:$rhsRow, Index:$rhsColumn,
                       Arg<AnyMemRef, "", [MemRead, MemWrite]>:$acc, Index:$accRow, Index:$accColumn,
                       Index:$depth, Optional<Index>:$rows, Optional<Index>:$columns,
                       DenseI64ArrayAttr:$tile, UnitAttr:$accumulate,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let assemblyFormat = [{
    $lhs `[` $lhsRow `,` $lhsColumn `]` `,` $rhs `[` $rhsRow `,` $rhsColumn `]`
    `to` $acc `[` $accRow `,` $accColumn `]` `tile` $tile `depth` $depth
    (`rows` $rows^)? (`columns` $columns^)? attr-dict
    `:` type($lhs) `,` type($rhs) `,` type($acc)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows and columns of the product, at most.
    int64_t getTileRows() { return getTile()[0]; }
    int64_t getTileColumns() { return getTile()[1]; }
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
  let summary = "Writes elements of local memory to a peer's part of a window.";
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
  let summary = "Reads elements of a peer's part of a window into local memory.";
  let arguments = (ins Arg<Comms_Window, "", [MemRead]>:$window, Index:$offset,
                       Arg<AnyMemRef, "", [MemWrite]>:$dest, Index:$destOffset, Index:$count,
                       Index:$peer, Comms_Team:$team, OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = [{
    $window `[` $offset `]` `to` $dest `[` $destOffset `]` `count` $count
    `at` $peer `of` $team (`gin` $gin^)? attr-dict `:` type($window) `,` type($dest)
  }];
}

def Comms_PutSignalOp : Comms_SyncOp<"put_signal"> {
  let summary = "A put, then a signal to the same peer that it cannot overtake.";
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
  let summary = "Waits on a cell that one named peer signals: the checker holds the peer to it.";
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
  let summary = "The present value of a cell of this rank.";
  let arguments = (ins Comms_Signal:$signal, Index:$index,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Acquire">:$order);
  let results = (outs I64:$result);
  let assemblyFormat = "$signal `[` $index `]` (`order` `` $order^)? attr-dict `:` type($signal)";
  let hasVerifier = 1;
}

def Comms_ResetSignalOp : Comms_SyncOp<"reset_signal"> {
  let summary = "Sets a cell of this rank back to zero.";
  let arguments = (ins Comms_Signal:$signal, Index:$index);
  let assemblyFormat = "$signal `[` $index `]` attr-dict `:` type($signal)";
  let hasVerifier = 1;
}

def Comms_WaitCounterOp : Comms_SyncOp<"wait_counter"> {
  let summary = "Waits until a number of this rank's own counted puts have left their source.";
  let arguments = (ins Comms_Counter:$counter, Index:$index, I64:$value);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$counter `[` $index `]` `ge` $value attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Comms_ReadCounterOp : Comms_SyncOp<"read_counter"> {
  let summary = "The present value of a counter.";
  let arguments = (ins Comms_Counter:$counter, Index:$index);
  let results = (outs I64:$result);
  let assemblyFormat = "$counter `[` $index `]` attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Comms_ResetCounterOp : Comms_SyncOp<"reset_counter"> {
  let summary = "Sets a counter back to zero.";
  let arguments = (ins Comms_Counter:$counter, Index:$index);
  let assemblyFormat = "$counter `[` $index `]` attr-dict `:` type($counter)";
  let hasVerifier = 1;
}

def Comms_FlushOp : Comms_SyncOp<"flush"> {
  let summary = "Ends when every earlier put of this block has left its source.";
  let arguments = (ins Comms_Team:$team, OptionalAttr<Comms_GinAttr>:$gin);
  let assemblyFormat = "$team (`gin` $gin^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_FenceOp : Comms_SyncOp<"fence"> {
  let summary = "Orders this block's earlier accesses before its later ones.";
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
  let arguments = (ins Comms_Team:$team, Comms_BarrierExtentAttr:$extent,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::AcqRel">:$order);
  let assemblyFormat = "$team `` $extent (`order` `` $order^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_BarrierArriveOp : Comms_SyncOp<"barrier_arrive"> {
  let summary = "The first half of a barrier: says that this block has come.";
  let arguments = (ins Comms_Team:$team, Comms_BarrierExtentAttr:$extent,
                       DefaultValuedAttr<Comms_MemoryOrderAttr, "::mlir::comms::MemoryOrder::Release">:$order);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$team `` $extent (`order` `` $order^)? attr-dict";
  let hasVerifier = 1;
}

def Comms_BarrierWaitOp : Comms_SyncOp<"barrier_wait"> {
  let summary = "The second half of a barrier: waits for all that had to come.";
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
    Packet memory is `memref<?xi64>`: word i of the tile goes to packet
    `offset + i` as (flag << 32 | word). Elements narrower than 32 bits are
    packed, low element first; a tile's last word is padded with zeros.

    With `assumes store128_whole` a packet is a line of 16 i64: bytes 8i to
    8i + 7 of the tile go to i64 `offset + i`, but the last i64 of each line is
    its flag, and what would lie there goes to the line's rest, an i64 of data
    and one of flag behind all lines of the memory.
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
  let arguments = (ins Comms_Tile:$tile, AnyMemRef:$memref, Index:$offset, Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_PoisonLoadOp : Comms_SyncOp<"poison_load", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Waits until no element of a tile is poison, and reads the tile.";
  let arguments = (ins AnyMemRef:$memref, Index:$offset, Optional<Index>:$valid);
  let results = (outs Comms_Tile:$tile);
  let assemblyFormat = [{
    $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($memref) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Comms_PoisonFillOp : Comms_SyncOp<"poison_fill"> {
  let summary = "Fills elements with poison: the slot is empty again.";
  let arguments = (ins AnyMemRef:$memref, Index:$offset, Index:$count);
  let assemblyFormat = "$memref `[` $offset `]` `count` $count attr-dict `:` type($memref)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Multimem, bulk and copy-engine copies
//===----------------------------------------------------------------------===//

def Comms_MultimemLoadReduceOp : Comms_Op<"multimem_load_reduce", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Reads a tile from every rank at once, combined by the switch.";
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
  let arguments = (ins Comms_Tile:$tile, Arg<AnyMemRef, "", [MemWrite]>:$memref, Index:$offset,
                       Optional<Index>:$valid);
  let assemblyFormat = [{
    $tile `,` $memref `[` $offset `]` (`valid` $valid^)? attr-dict `:` type($tile) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Comms_MultimemReduceOp : Comms_Op<"multimem_reduce", [DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Combines a tile into every rank's memory at once.";
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
  let arguments = (ins Variadic<Comms_Token>:$copies);
  let results = (outs Comms_Token:$token);
  let assemblyFormat = "$copies attr-dict";
  let hasVerifier = 1;
}

def Comms_EngineCopyOp : Comms_SyncOp<"engine_copy"> {
  let summary = "A copy by the copy engine, as a step of the host beside the kernel.";
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
  let summary = "A channel over a team: `slots` tiles between each pair that it connects.";
  let description = [{
    `multicast`: a sent tile goes to every rank of the team, the sender
    included, and a receiver names the source. `pairwise`: each (source,
    destination) has its own slots. `single`: every rank sends to one rank and
    receives from one. Within a launch a slot carries at most one tile; of a
    `reused` channel, at most one a round.
  }];
  let arguments = (ins Comms_Team:$team, Comms_ChannelPatternAttr:$pattern, I64Attr:$slots, I64Attr:$id,
                       UnitAttr:$reused);
  let results = (outs Res<Comms_Channel, "", [MemAlloc]>:$channel);
  let assemblyFormat = "$id `` $pattern `over` $team `slots` $slots (`reused` $reused^)? attr-dict `:` type($channel)";
  let hasVerifier = 1;
}

def Comms_SendOp : Comms_SyncOp<"send", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<TileOpInterface, ["getTileValue"]>]> {
  let summary = "Sends a tile through a slot of a channel: to one peer, or (multicast) to all.";
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
    Every block calls it between the sends of a round and the receives of that
    round. A protocol whose data tells by itself that it has come (LL, Lamport)
    lowers it to nothing; one that does not (pull) lowers it to a barrier.
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
}

def Comms_ReduceScatterOp : Comms_ReducingCollective<"reduce_scatter"> {
  let summary = "Rank r gets the r-th part of the reduction over all ranks.";
}

def Comms_AllGatherOp : Comms_Collective<"all_gather", (ins), [DeclareOpInterfaceMethods<CollectiveOpInterface>]> {
  let summary = "Every rank gets the parts of all ranks, in rank order.";
}

def Comms_AllToAllOp : Comms_Collective<"all_to_all", (ins), [DeclareOpInterfaceMethods<CollectiveOpInterface>]> {
  let summary = "Rank r gets the r-th part of every rank, in rank order.";
}

def Comms_AllToAllVOp : Comms_Op<"all_to_all_v", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "All-to-all with a number of rows for each pair of ranks, known at run time.";
  let description = [{
    `send_rows[p]` rows of this rank's input go to rank p, taken one after the
    other; `recv_rows[p]` rows come from rank p and are stored one after the
    other. Both are arrays of i32 with one element a rank.
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
}

def Comms_ReduceOp : Comms_Collective<"reduce", (ins Comms_ReductionKindAttr:$kind, I64Attr:$root),
    [DeclareOpInterfaceMethods<CollectiveOpInterface, ["getReduction", "getRootRank"]>]> {
  let summary = "The root gets the reduction over all ranks; other outputs are left alone.";
  let assemblyFormat = "`` $kind `root` $root " # tail;
}

def Comms_GatherOp : Comms_RootedCollective<"gather"> {
  let summary = "The root gets the parts of all ranks, in rank order; other outputs are left alone.";
}

def Comms_ScatterOp : Comms_RootedCollective<"scatter"> {
  let summary = "Rank r gets the r-th part of the root's array.";
}

def Comms_SendRecvOp : Comms_Op<"send_recv", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Rank `source` sends an array that rank `dest` receives; others do nothing.";
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
  let summary = "Ends the run with an error when [offset, offset + count) leaves [0, limit).";
  let arguments = (ins Index:$offset, Index:$count, Index:$limit, StrAttr:$what);
  let assemblyFormat = "$what $offset `,` $count `in` $limit attr-dict";
  let hasCanonicalizeMethod = 1;
}

def Comms_RecordAccessOp : Comms_SyncOp<"record_access"> {
  let summary = "Tells the race detector of an access to memory.";
  let arguments = (ins Comms_AccessKindAttr:$kind, AnyMemRef:$memref, Index:$offset, Index:$count);
  let assemblyFormat = "`` $kind $memref `[` $offset `]` `count` $count attr-dict `:` type($memref)";
}

def Comms_RecordSyncOp : Comms_SyncOp<"record_sync"> {
  let summary = "Tells the race detector of a synchronisation that the next op makes.";
  let arguments = (ins StrAttr:$what, Variadic<Index>:$operands);
  let assemblyFormat = "$what (`(` $operands^ `)`)? attr-dict";
}

#endif // COMMSIR_DIALECT_COMMSOPS_TD
