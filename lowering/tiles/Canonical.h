//===- Canonical.h - NaN that leave a kernel --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which NaN arithmetic makes is the processor's choice. A NaN that arithmetic
// made is replaced by the one of its type when it is stored; data that is only
// moved keeps its bits, also where loops and branches carry it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_CANONICAL_H
#define COMMSIR_LOWERING_TILES_CANONICAL_H

#include "mlir/IR/Builders.h"

namespace mlir::comms::tiles {

/// Whether `value`, a float, may be a NaN of the processor's choice: it came
/// from arithmetic, or through control flow that is not known to move it only.
bool isComputedFloat(Value value);

/// The same, where `scf.for` and `scf.if` are as they will be: what they carry
/// is looked through.
bool isComputedAnywhere(Value value);

/// select(x unordered with x, …, x): made by emitCanonicalNaN.
bool isCanonicalized(Value value);

/// Makes a NaN that was computed canonical where it is handed to what `scf.for`
/// and `scf.if` carry and what may hold moved data, too. So the bits of a store
/// do not depend on whether a loop is still one.
void canonicalizeCarriedNaNs(Operation *kernel);

/// Marks what writes tiles that `scf.for` and `scf.if` carry from where they
/// were loaded. Distribution takes loops apart: later nobody could tell.
void markMovedTiles(Operation *kernel);

/// `vector` (or scalar) with canonical NaN if `origin`, the value as it was
/// before distribution, is computed; else, and where `writer`, which writes it,
/// is marked, `vector` itself.
Value canonicalizeNaN(OpBuilder &builder, Location loc, Value vector,
                      Value origin, Operation *writer = nullptr);

/// `value` with canonical NaN, wherever it comes from.
Value emitCanonicalNaN(OpBuilder &builder, Location loc, Value value);

/// The operand of `op`, if any, of which the bits of a NaN show in the result:
/// of a bitcast to integers, and the sign of copysign.
OpOperand *getSeenOperand(Operation *op);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_CANONICAL_H
