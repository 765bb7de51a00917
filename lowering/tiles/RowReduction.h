//===- RowReduction.h - The tree that combines a row ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/Spec.md, chapter "Bits", defines the tree. It depends on the length of
// the row alone: lanes, blocks and targets do not change a bit. Its code is
// loops, of the same size for every row.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_ROWREDUCTION_H
#define COMMSIR_LOWERING_TILES_ROWREDUCTION_H

#include "lowering/tiles/TileMemory.h"

namespace mlir::comms::tiles {

/// Elements that one tree of pairs combines, at most: a longer row is cut into
/// chunks of this many, whose results are combined from left to right.
inline constexpr int64_t kMaxChunk = 16384;

/// How the elements of one row combine.
class RowCombiner {
public:
  /// `op` combines a tile of more than one element.
  explicit RowCombiner(RowReduceOp op);

  Value combine(OpBuilder &builder, Value a, Value b) const;
  /// A vector of what changes nothing.
  Value getIdentity(OpBuilder &builder, int64_t lanes) const;
  /// Combines the lanes of two vectors, or of one (`b` null), with their
  /// neighbors.
  Value combineNeighbors(OpBuilder &builder, Value a, Value b) const;
  /// Combines all lanes (a power of two) of a vector; a vector of 1.
  Value combineLanes(OpBuilder &builder, Value vector) const;
  /// What the reduction gives for the combination of all elements.
  Value finishRow(OpBuilder &builder, Value combined) const;

protected:
  Location loc;
  ReductionKind kind;
  Type elementType;
  /// Elements of the row, of a chunk.
  int64_t length, width;
};

/// One row that is being combined by one thread. Before the loop over the row:
/// begin; in it: add for each vector; after it: finish.
class RowReduction : RowCombiner {
public:
  RowReduction(RowReduceOp op, TileMemory &memory)
      : RowCombiner(op), memory(memory) {}

  void begin(OpBuilder &builder);
  /// Elements [index, index + lanes of vector) of the row. `mask` (null: all)
  /// tells which lanes are elements of the row.
  void add(OpBuilder &builder, Value vector, Value index, Value mask);
  /// The row's combination, a scalar.
  Value finish(OpBuilder &builder);

private:
  /// Combines neighbors of what `level` levels have left, in place.
  void emitLevel(OpBuilder &builder, Value level) const;
  /// The chunks' results from left to right.
  Value emitChunks(OpBuilder &builder, int64_t chunks) const;

  TileMemory &memory;
  /// The row, later the results of each level, followed by identities.
  Value buffer;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_ROWREDUCTION_H
