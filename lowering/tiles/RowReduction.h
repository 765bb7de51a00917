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

/// Most lanes of the tree: a longer row is folded into this many first.
inline constexpr int64_t kMaxTreeLanes = 16384;

/// One row that is being combined. Before the loop over the row: begin; in it:
/// add for each vector; after it: finish.
class RowReduction {
public:
  /// `op` combines a tile of more than one element.
  RowReduction(RowReduceOp op, TileMemory &memory);

  void begin(OpBuilder &builder);
  /// Elements [index, index + lanes of vector) of the row. `mask` (null: all)
  /// tells which lanes are elements of the row.
  void add(OpBuilder &builder, Value vector, Value index, Value mask);
  /// The row's combination, a scalar.
  Value finish(OpBuilder &builder);

private:
  Value combine(OpBuilder &builder, Value a, Value b) const;
  Value getIdentity(OpBuilder &builder, int64_t lanes) const;
  /// lane l = lane l (op) lane l + distance, for l < count.
  void emitLevel(OpBuilder &builder, Value count, Value distance) const;
  Value finishVector(OpBuilder &builder, Value vector, int64_t lanes) const;

  Location loc;
  ReductionKind kind;
  Type elementType;
  /// Elements of the row, lanes of the tree.
  int64_t length, width;
  TileMemory &memory;
  Value lanesBuffer;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_ROWREDUCTION_H
