//===- NarrowFloats.h - bf16 and fp8 by integer arithmetic ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions defined to the bit, for scalars and vectors: round to nearest
// even, canonical NaN, and for f8E4M3FN, which has no infinity, saturation to
// ±448.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_NARROWFLOATS_H
#define COMMSIR_LOWERING_ANALYSIS_NARROWFLOATS_H

#include "mlir/IR/Builders.h"

namespace mlir::comms {

/// f8E4M3FN and f8E5M2.
bool isF8(Type elementType);

/// Floats that are stored as such but computed in f32: bf16, f16, f8E4M3FN,
/// f8E5M2.
bool isNarrowFloat(Type elementType);

/// Floats that kernels can use: the narrow ones, f32, f64.
bool isSupportedFloat(Type elementType);

/// `type`, a scalar or vector, with another element type.
Type withElement(Type type, Type elementType);

/// Makes an arith or math operation on narrow floats compute in f32 and round
/// once.
void widenNarrow(Operation *op);

/// Emits the conversion of f32 `value` to bf16: nearest even; NaN becomes
/// 0x7FC0.
Value emitTruncToBF16(OpBuilder &builder, Location loc, Value value);
/// Emits the exact conversion of bf16 `value` to f32.
Value emitExtFromBF16(OpBuilder &builder, Location loc, Value value);
/// Emits the conversion of f32 `value` to `element`, a type of isF8: nearest
/// even, and NaN without its sign. f8E4M3FN: values beyond ±448 and infinities
/// become ±448, NaN 0x7F. f8E5M2: overflow gives infinity, NaN becomes 0x7E.
Value emitTruncToF8(OpBuilder &builder, Location loc, Value value,
                    Type element);
/// Emits the exact conversion of `value`, of a type of isF8, to f32. NaN stays
/// NaN; f8E4M3FN's becomes 0x7FC00000.
Value emitExtFromF8(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_NARROWFLOATS_H
