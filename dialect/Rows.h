//===- Rows.h - Arrays of a collective as rows ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective sees an array of shape [d0, …, dk-1, C] as d0*…*dk-1 rows of C
// elements; an array of rank 1 is one row. docs/Spec.md, "Rows and tiles".
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_ROWS_H
#define COMMSIR_DIALECT_ROWS_H

#include "dialect/Collectives.h"
#include "dialect/Comms.h"

#include <optional>

namespace mlir::comms {

/// What an array is to a collective. An output or arg is read with the row
/// length of its tile in `consume`: eight elements are eight rows of one, if it
/// says so.
struct ArrayRows {
  /// Number of rows, or ShapedType::kDynamic.
  int64_t rows = 1;
  /// Elements of a row, or ShapedType::kDynamic.
  int64_t length = 1;
  /// One row that goes with every row of the result. Only an arg is ever
  /// shared.
  bool shared = false;
  Type elementType;

  bool isStatic() const {
    return !ShapedType::isDynamic(rows) && !ShapedType::isDynamic(length);
  }
  /// Number of elements, when it is known and fits.
  std::optional<int64_t> getNumElements() const;
};

/// The rows of a window or memref. Nothing for memory of unknown rank or rank
/// 0, and when the number of rows does not fit 63 bits.
std::optional<ArrayRows> getArrayRows(Type type);

/// How rows flow through `op`.
Movement getRowFlow(CollectiveOpInterface op);

/// A collective's arrays and tiles.
struct CollectiveRows {
  Movement flow = Movement::Same;
  /// Ranks of the team, when known.
  std::optional<int64_t> ranks;
  /// Rows of the result on one rank; nothing when that is not known, or when an
  /// array of rank 1 is cut and a part is no whole row.
  std::optional<int64_t> resultRows;
  SmallVector<ArrayRows> inputs, outputs, args;
  /// Tiles that travel: what `produce` yields, else a row of each input.
  SmallVector<RankedTensorType> wires;
  /// Tiles that `consume` gets first: accumulators where the collective
  /// reduces.
  SmallVector<RankedTensorType> arrived;
};

/// Reads a collective whose operands and blocks have been verified.
CollectiveRows getCollectiveRows(CollectiveOpInterface op);

/// The type in which a reduction keeps its sum: f32 for floats narrower than
/// that, i32 for i8, else the element type.
Type getReductionType(Type elementType);

/// Whether each element of a region's results depends on the elements in the
/// same place alone, so that the region may be applied to tiles of any length.
/// True of an empty region.
bool isElementwise(Region &region);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_ROWS_H
