//===- NarrowFloats.h - bf16 and fp8 by integer arithmetic ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions whose every bit is fixed here, for scalars and vectors: rounding
// to nearest even, canonical NaN, and for f8E4M3FN, which has no infinity,
// saturation to ±448.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_NARROWFLOATS_H
#define COMMSIR_LOWERING_ANALYSIS_NARROWFLOATS_H

#include "mlir/IR/Builders.h"

namespace mlir::comms {

/// f8E4M3FN and f8E5M2.
bool isF8(Type elementType);

/// Floats that may be stored but are computed in f32: bf16, f16, f8E4M3FN,
/// f8E5M2.
bool isNarrowFloat(Type elementType);

/// Floats that kernels may use: the narrow ones, f32, f64.
bool isSupportedFloat(Type elementType);

/// `type`, a scalar or vector, with other elements.
Type withElement(Type type, Type elementType);

/// Has an operation of arith or math on narrow floats computed in f32, and
/// rounded once.
void widenNarrow(Operation *op);

/// Emits f32 `value` as bf16: nearest even; NaN becomes 0x7FC0.
Value emitTruncToBF16(OpBuilder &builder, Location loc, Value value);
/// Emits bf16 `value` as f32: exact.
Value emitExtFromBF16(OpBuilder &builder, Location loc, Value value);
/// Emits f32 `value` as `element`, one of isF8: nearest even, and NaN without
/// its sign. f8E4M3FN: beyond ±448 and infinite values become ±448, NaN 0x7F.
/// f8E5M2: overflow gives infinity, NaN becomes 0x7E.
Value emitTruncToF8(OpBuilder &builder, Location loc, Value value,
                    Type element);
/// Emits `value`, of a type of isF8, as f32: exact; NaN stays one, f8E4M3FN's
/// as 0x7FC00000.
Value emitExtFromF8(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_NARROWFLOATS_H
