//===- RowReduction.h - The tree that combines a row ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/Spec.md, chapter "Bits", defines the tree. It depends only on the length
// of the row, so that lanes, blocks and targets do not change the result. The
// code consists of loops whose size does not depend on the row.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_ROWREDUCTION_H
#define COMMSIR_LOWERING_TILES_ROWREDUCTION_H

#include "lowering/tiles/TileMemory.h"

namespace mlir::comms::tiles {

/// Maximum number of elements combined by one tree of pairs. Longer rows are
/// cut into chunks of this length, whose results are combined from left to
/// right.
inline constexpr int64_t kMaxChunk = 16384;

/// Combination of the elements of one row.
class RowCombiner {
public:
  /// `op` must combine a tile of more than one element.
  explicit RowCombiner(RowReduceOp op);

  Value combine(OpBuilder &builder, Value a, Value b) const;
  /// A vector of identity elements.
  Value getIdentity(OpBuilder &builder, int64_t lanes) const;
  /// Combines neighboring lanes of two vectors, or of one (`b` null).
  Value combineNeighbors(OpBuilder &builder, Value a, Value b) const;
  /// Combines all lanes (a power of two) of a vector; returns a vector of 1.
  Value combineLanes(OpBuilder &builder, Value vector) const;
  /// Result of the reduction, from the combination of all elements.
  Value finishRow(OpBuilder &builder, Value combined) const;

protected:
  Location loc;
  ReductionKind kind;
  Type elementType;
  /// Elements per row, and per chunk.
  int64_t length, width;
};

/// A row combined by one thread. Call begin before the loop over the row, add
/// for each vector in it, and finish after it.
class RowReduction : RowCombiner {
public:
  RowReduction(RowReduceOp op, TileMemory &memory)
      : RowCombiner(op), memory(memory) {}

  void begin(OpBuilder &builder);
  /// Adds elements [index, index + lanes of vector) of the row. `mask` (null:
  /// all) selects lanes within the row.
  void add(OpBuilder &builder, Value vector, Value index, Value mask);
  /// The row's combined value, a scalar.
  Value finish(OpBuilder &builder);

private:
  /// Combines neighbors among the results of `level` levels, in place.
  void emitLevel(OpBuilder &builder, Value level) const;
  /// Combines the chunks' results from left to right.
  Value emitChunks(OpBuilder &builder, int64_t chunks) const;

  TileMemory &memory;
  /// The row, later the results of each level, followed by identities.
  Value buffer;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_ROWREDUCTION_H
