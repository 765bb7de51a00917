//===- ContractOp.td - The product of two matrices ---------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_CONTRACTOP_TD
#define COMMSIR_DIALECT_CONTRACTOP_TD

include "CommsOpBase.td"

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

#endif // COMMSIR_DIALECT_CONTRACTOP_TD
