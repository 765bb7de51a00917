//===- TileValues.h - The lowered form of each tile -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of one element is a scalar. A longer tile is a scratch buffer, is
// recomputed at each use (constants, broadcasts, iota), or exists only as the
// vectors of one loop.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_TILEVALUES_H
#define COMMSIR_LOWERING_TILES_TILEVALUES_H

#include "lowering/tiles/Stage.h"
#include "lowering/tiles/TileMemory.h"

namespace mlir::comms::tiles {

/// Maps tiles to scalars and buffers.
class TileValues {
public:
  explicit TileValues(TileMemory &memory) : memory(memory) {}

  /// The scalar for a tile of one element. Values that are not tiles are
  /// returned unchanged.
  Value getScalar(Value value) const;
  void setScalar(Value tile, Value scalar) { scalars[tile] = scalar; }

  /// The buffer of a long tile, or null.
  Value getBuffer(Value tile) const { return buffers.lookup(tile); }
  void setBuffer(Value tile, Value buffer) { buffers[tile] = buffer; }

  /// This thread's vector of a long tile in one trip, if it is in a register;
  /// else null.
  Value getRegister(Value tile, int64_t trip) const {
    return registers.lookup({tile, trip});
  }
  void setRegister(Value tile, int64_t trip, Value vector) {
    registers[{tile, trip}] = vector;
  }

  /// Elements [index, index + count) of a long tile that is recomputed at each
  /// use; null if `tile` is not.
  Value recompute(OpBuilder &builder, Location loc, Value tile, Value index,
                  int64_t count) const;

  /// Vector type of `count` elements of a tile.
  static VectorType getVectorType(Value tile, int64_t count) {
    return VectorType::get({count},
                           cast<ShapedType>(tile.getType()).getElementType());
  }

  TileMemory &getMemory() const { return memory; }

private:
  TileMemory &memory;
  llvm::DenseMap<Value, Value> scalars;
  llvm::DenseMap<Value, Value> buffers;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> registers;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_TILEVALUES_H
