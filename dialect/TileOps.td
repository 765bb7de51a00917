//===- TileOps.td - Tiles ----------------------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_TILEOPS_TD
#define COMMSIR_DIALECT_TILEOPS_TD

include "CommsOpBase.td"

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

#endif // COMMSIR_DIALECT_TILEOPS_TD
