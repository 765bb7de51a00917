//===- Vectors.h - Tiles as vectors and words -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a target tiles are vectors of one dimension. In packets they are 32-bit
// words, low elements in low bits.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_VECTORS_H
#define COMMSIR_LOWERING_TARGET_VECTORS_H

#include "dialect/Comms.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::comms::target {

/// The type of `tile`, an operand or result of `op`; an error where it is no
/// vector, or one of more than `mostLanes` (0: any number).
FailureOr<VectorType> getTileType(Operation *op, Value tile,
                                  int64_t mostLanes = 0);

/// Vectors of the same bits.
VectorType asIntegers(VectorType type);
Value bitcast(Value vector, VectorType type, ImplicitLocOpBuilder &b);
Value toIntegers(Value vector, ImplicitLocOpBuilder &b);

/// A vector of the i32 that hold the tile, the last padded with zeros; and the
/// tile of such words.
Value packWords(Value tile, ImplicitLocOpBuilder &b);
Value unpackWords(Value words, VectorType tile, ImplicitLocOpBuilder &b);
/// Words that hold `valid` elements, as an index; null when all are valid.
Value countWords(VectorType tile, Value valid, ImplicitLocOpBuilder &b);

/// An access through multicast memory: one of the first three, and its
/// operands; `tile` is the result of a load.
struct MultimemAccess {
  MultimemLoadReduceOp load;
  MultimemStoreOp store;
  MultimemReduceOp reduce;
  Value memref, offset, valid, tile;
};
MultimemAccess getMultimemAccess(Operation *op);

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_TARGET_VECTORS_H
