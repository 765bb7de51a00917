//===- Canonical.h - NaN that leave a kernel --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bits of a NaN from arithmetic depend on the processor. Such a NaN is
// replaced by the canonical one of its type when it is stored. Data that is
// only moved keeps its bits, also when loops and branches carry it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_CANONICAL_H
#define COMMSIR_LOWERING_TILES_CANONICAL_H

#include "mlir/IR/Builders.h"

namespace mlir::comms::tiles {

/// Whether `value`, a float, may be a processor-dependent NaN: it comes from
/// arithmetic, or from control flow that is not known to only move data.
bool isComputedFloat(Value value);

/// Same, for final `scf.for` and `scf.if`, through which carried values are
/// traced.
bool isComputedAnywhere(Value value);

/// Whether `value` is a select(x unordered with x, …, x) made by
/// emitCanonicalNaN.
bool isCanonicalized(Value value);

/// Makes computed NaNs canonical where they enter values that `scf.for` and
/// `scf.if` carry and that may also hold moved data. The bits of a store then
/// do not depend on whether a loop was unrolled.
void canonicalizeCarriedNaNs(Operation *kernel);

/// Marks ops that write tiles which `scf.for` and `scf.if` carry from loads.
/// Distribution removes loops, after which this is unknown.
void markMovedTiles(Operation *kernel);

/// Returns `vector` (or scalar) with canonical NaN if `origin`, the value
/// before distribution, is computed. Otherwise, and if `writer`, the op that
/// writes it, is marked, returns `vector`.
Value canonicalizeNaN(OpBuilder &builder, Location loc, Value vector,
                      Value origin, Operation *writer = nullptr);

/// `value` with canonical NaN, whatever its origin.
Value emitCanonicalNaN(OpBuilder &builder, Location loc, Value value);

/// The operand of `op`, if any, whose NaN bits are visible in the result: of a
/// bitcast to integers, and the sign of copysign.
OpOperand *getSeenOperand(Operation *op);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_CANONICAL_H
