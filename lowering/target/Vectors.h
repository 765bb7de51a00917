//===- Vectors.h - Tiles as vectors and words -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Targets represent tiles as vectors of one dimension. In packets they are
// 32-bit words, low elements in low bits.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_VECTORS_H
#define COMMSIR_LOWERING_TARGET_VECTORS_H

#include "dialect/Comms.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::comms::target {

/// The type of `tile`, an operand or result of `op`. Emits an error if it is
/// not a vector, or has more than `mostLanes` lanes (0: no limit).
FailureOr<VectorType> getTileType(Operation *op, Value tile,
                                  int64_t mostLanes = 0);

/// The integer vector type with the same bits.
VectorType asIntegers(VectorType type);
Value bitcast(Value vector, VectorType type, ImplicitLocOpBuilder &b);
Value toIntegers(Value vector, ImplicitLocOpBuilder &b);

/// Vector of the i32 words of the tile, the last one padded with zeros; and the
/// tile of such words.
Value packWords(Value tile, ImplicitLocOpBuilder &b);
Value unpackWords(Value words, VectorType tile, ImplicitLocOpBuilder &b);
/// Number of words that hold `valid` elements, as an index; null if all are
/// valid.
Value countWords(VectorType tile, Value valid, ImplicitLocOpBuilder &b);

/// A multicast access: one of the first three ops, and its operands. `tile` is
/// the result of a load.
struct MultimemAccess {
  MultimemLoadReduceOp load;
  MultimemStoreOp store;
  MultimemReduceOp reduce;
  Value memref, offset, valid, tile;
};
MultimemAccess getMultimemAccess(Operation *op);

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_TARGET_VECTORS_H
