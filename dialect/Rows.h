//===- Rows.h - Arrays of a collective as rows ------------------*- C++ -*-===//
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

/// An array as a collective sees it. An output or arg has the row length of its
/// tile in `consume`: eight elements are eight rows if that tile has one
/// element.
struct ArrayRows {
  /// Number of rows, or ShapedType::kDynamic.
  int64_t rows = 1;
  /// Elements of a row, or ShapedType::kDynamic.
  int64_t length = 1;
  /// A single row that is used with every row of the result. Only args can be
  /// shared.
  bool shared = false;
  Type elementType;

  bool isStatic() const {
    return !ShapedType::isDynamic(rows) && !ShapedType::isDynamic(length);
  }
  /// Number of elements, if it is known and fits.
  std::optional<int64_t> getNumElements() const;
};

/// The rows of a window or memref. None for unranked memory, for rank 0, and if
/// the number of rows does not fit 63 bits.
std::optional<ArrayRows> getArrayRows(Type type);

/// How `op` maps rows of inputs to rows of outputs.
Movement getRowFlow(CollectiveOpInterface op);

/// A collective's arrays and tiles.
struct CollectiveRows {
  Movement flow = Movement::Same;
  /// Ranks of the team, if known.
  std::optional<int64_t> ranks;
  /// Rows of the result on one rank. None if unknown, or if an array of rank 1
  /// is cut into parts that are not whole rows.
  std::optional<int64_t> resultRows;
  SmallVector<ArrayRows> inputs, outputs, args;
  /// Tiles that are sent: the results of `produce`, else a row of each input.
  SmallVector<RankedTensorType> wires;
  /// First block arguments of `consume`; accumulators if the collective
  /// reduces.
  SmallVector<RankedTensorType> arrived;
};

/// Analyzes a collective whose operands and blocks have been verified.
CollectiveRows getCollectiveRows(CollectiveOpInterface op);

/// Accumulator type of a reduction: f32 for narrower floats, i32 for i8, else
/// the element type.
Type getReductionType(Type elementType);

/// Whether each element of a region's results depends only on elements at the
/// same position, so that the region can be applied to tiles of any length.
/// True for an empty region.
bool isElementwise(Region &region);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_ROWS_H
