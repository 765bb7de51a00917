//===- Functions.h - The functions of math, in IEEE operations --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions without an instruction are expanded here into operations that IEEE
// 754 defines to the bit, so that every target computes the same bits. All are
// accurate to 4 units in the last place for every f32, including zeros,
// infinities, NaN and subnormal numbers (docs/Spec.md, "Functions").
//
// The polynomials are near-minimax fits computed by coefficients.py in this
// folder.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NUMERICS_FUNCTIONS_H
#define COMMSIR_LOWERING_NUMERICS_FUNCTIONS_H

#include "dialect/Comms.h"
#include "lowering/numerics/Numbers.h"

#include <limits>

namespace mlir::comms::numerics {

/// Emits `function` of f32 `values`, scalars or vectors of one type; rsqrt and
/// round also accept f64.
Value emitFunction(OpBuilder &builder, Location loc, MathFunction function,
                   ValueRange values);

// Exponentials.cpp
Float emitExp(Float x);
Float emitExp2(Float x);
Float emitExpm1(Float x);
Float emitSinh(Float x);
Float emitCosh(Float x);
Float emitTanh(Float x);
Float emitPow(Float x, Float y);
Float emitErf(Float x);
Float emitErfc(Float x);

// Logarithms.cpp
Float emitLog(Float x);
Float emitLog2(Float x);
Float emitLog1p(Float x);
Float emitAsinh(Float x);
Float emitAcosh(Float x);
Float emitAtanh(Float x);

// Trigonometry.cpp
Float emitSin(Float x);
Float emitCos(Float x);
Float emitTan(Float x);
Float emitAsin(Float x);
Float emitAcos(Float x);
Float emitAtan(Float x);
Float emitAtan2(Float y, Float x);

// Roots.cpp
Float emitCbrt(Float x);
Float emitRsqrt(Float x);
/// Rounds to the nearest integer; ties away from zero.
Float emitRound(Float x);

/// A positive number as (1 + fraction) * 2^-minusExponent, with `fraction` in
/// [-1/3, 1/3). Both are exact.
struct Parts {
  Float fraction, minusExponent;
};
Parts split(Float x);

/// Clamps x to [low, high]; NaN stays NaN.
inline Float clampTo(Float x, double low, double high) {
  x = select(x > high, high, x);
  return select(x < low, low, x);
}

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();
/// Adding this to an f32 below 2^22 in magnitude rounds it to an integer n,
/// whose bits are the low bits of the sum. One operation replaces a rounding
/// and a conversion, and NaN needs no special case.
inline constexpr double wholeF32 = 0x1.8p23;

} // namespace mlir::comms::numerics

#endif // COMMSIR_LOWERING_NUMERICS_FUNCTIONS_H
