//===- Exponentials.cpp - e^x, and what is made of it ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/Functions.h"

#include <optional>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::numerics;

/// Exponent bias of f32.
static constexpr double bias = 127;
static constexpr unsigned significandBits = 23;

/// A whole number n, and 2^n.
struct Power {
  Float number, power;
};

/// Rounds x * factor + shift to a whole number n in [-126, 127]. The bias is
/// part of what rounds, so that the low bits of the sum are the exponent.
static Power roundToPower(Float x, double factor, double shift = 0) {
  constexpr double round = wholeF32 + bias;
  Float sum = fma(x, factor, round + shift);
  return {sum - (round + shift),
          fromBits(shiftLeft(toBits(sum), significandBits))};
}

//===----------------------------------------------------------------------===//
// e^x
//===----------------------------------------------------------------------===//

/// significand * scale * scale, which may overflow or be subnormal.
struct ScaledExp {
  Float significand, scale;

  Float get() const { return significand * scale * scale; }
  /// Half of it, which is finite where the whole may not be.
  Float getHalf() const { return significand * scale * (scale * 0.5); }
};

/// e^(x - less), of |x| up to 120 and a small `less`. x is cut to
/// [-ln 2, ln 2] by a multiple of 2 ln 2, so that one scale does for both ends
/// of the range.
static ScaledExp emitScaledExp(Float x,
                               std::optional<Float> less = std::nullopt) {
  static constexpr double coefficients[] = {1,
                                            1,
                                            0x1p-1,
                                            0x1.55555cp-3,
                                            0x1.55553p-5,
                                            0x1.110b4ap-7,
                                            0x1.6c2dacp-10,
                                            0x1.a56e94p-13,
                                            0x1.9b591cp-16};
  auto [number, scale] = roundToPower(x, 0x1.715476p-1);
  Float rest = fma(number, -0x1.62e43p0, x);
  rest = fma(number, 0x1.05c61p-28, rest);
  if (less)
    rest = rest - *less;
  return {polynomial(rest, coefficients), scale};
}

Float numerics::emitExp(Float x) {
  return emitScaledExp(clampTo(x, -105, 89)).get();
}

Float numerics::emitExpm1(Float x) {
  static constexpr double coefficients[] = {0x1p-1,         0x1.555554p-3,
                                            0x1.5554f4p-5,  0x1.1112d2p-7,
                                            0x1.6d404ap-10, 0x1.9e864ap-13};
  Float y = clampTo(x, -20, 89);
  // Half of 2^n: 2^n itself may overflow.
  auto [number, half] = roundToPower(y, 0x1.715476p0, -1);
  Float rest = fma(number, -0x1.62e43p-1, y);
  rest = fma(number, 0x1.05c61p-29, rest);
  Float less = fma(rest * rest, polynomial(rest, coefficients), rest);
  Float result = fma(less, half, half - 0.5);
  return copySign(result + result, x);
}

//===----------------------------------------------------------------------===//
// 2^x and x^y
//===----------------------------------------------------------------------===//

/// 2^x, of |x| up to 1/2.
static Float emitSmallExp2(Float x) {
  static constexpr double coefficients[] = {1,
                                            0x1.62e43p-1,
                                            0x1.ebfbep-3,
                                            0x1.c6b06ep-5,
                                            0x1.3b2a5cp-7,
                                            0x1.5da594p-10,
                                            0x1.440e5ap-13,
                                            0x1.e087a4p-17};
  return polynomial(x, coefficients);
}

/// x * 2^n, rounded once, of a whole n of at most 250 in size.
static Float scale(Float x, Float n) {
  Power first = roundToPower(n, 0.5);
  Power second = roundToPower(n - first.number, 1);
  return x * first.power * second.power;
}

Float numerics::emitExp2(Float x) {
  Float y = clampTo(x, -151, 129);
  Float whole = y + wholeF32 - wholeF32;
  return scale(emitSmallExp2(y - whole), whole);
}

/// log2 of the size of x, in f64, to 2^-38 of it.
static Float emitLog2InF64(Float size) {
  static constexpr double coefficients[] = {
      0x1.71547652bc274p+0,  -0x1.71547652ee49bp-1, 0x1.ec709d8d67e25p-2,
      -0x1.715475c3e9dbbp-2, 0x1.2776e33d6b3ecp-2,  -0x1.ec710a2a6c0cdp-3,
      0x1.a60ad5c357dc7p-3,  -0x1.71427059ddb88p-3, 0x1.4986f82e4ca20p-3,
      -0x1.28fd0bc9b73ffp-3, 0x1.f9c3127da7c93p-4,  -0x1.c9a425b093c92p-4,
      0x1.432bf9226a569p-3,  -0x1.345f5ac40269bp-3};
  Parts parts = split(size);
  Float fraction = toF64(parts.fraction);
  Float log = fma(fraction, polynomial(fraction, coefficients),
                  -toF64(parts.minusExponent));
  log = select(size == 0, -infinity, log);
  return select(size == infinity, infinity, log);
}

/// size^y, of a size of at least 0. f64 holds y * log2(size) with the bits that
/// it needs before the point and 2^-30 behind it.
static Float emitPowOfSize(Float size, Float y) {
  constexpr double wholeF64 = 0x1.8p52;
  Float power = clampTo(emitLog2InF64(size) * toF64(y), -200, 200);
  Float whole = power + wholeF64 - wholeF64;
  return scale(emitSmallExp2(toF32(power - whole)), toF32(whole));
}

/// With the rules of C for signs, zeros, infinities and NaN.
Float numerics::emitPow(Float x, Float y) {
  Float size = abs(x), half = y * 0.5;
  Float power = emitPowOfSize(size, y);
  Bool isWhole = floor(y) == y;
  Bool isOdd = isWhole && floor(half) != half;
  power = select(hasSign(x) && isOdd, -power, power);
  Bool hasNone = x < 0 && size < infinity && floor(y) != y;
  power = select(hasNone || isNaN(x) || isNaN(y), notANumber, power);
  Bool isOne = x == 1 || y == 0 || (x == -1 && abs(y) == infinity);
  return select(isOne, 1, power);
}

//===----------------------------------------------------------------------===//
// Hyperbolic functions
//===----------------------------------------------------------------------===//

/// x + x^3 * polynomial(x^2), of x of at least 0.
static Float emitOdd(Float x, ArrayRef<double> coefficients) {
  Float square = x * x;
  return fma(x * square, polynomial(square, coefficients), x);
}

/// e^x / 2, of x of at least 0.
static Float emitHalfExp(Float x) {
  return emitScaledExp(select(x > 91, 91, x)).getHalf();
}

Float numerics::emitCosh(Float x) {
  Float half = emitHalfExp(abs(x));
  return half + 0.25 / half;
}

Float numerics::emitSinh(Float x) {
  static constexpr double coefficients[] = {0x1.555556p-3, 0x1.1110ep-7,
                                            0x1.a022bcp-13, 0x1.756c1ep-19};
  Float size = abs(x), half = emitHalfExp(size);
  Float result =
      select(size < 1, emitOdd(size, coefficients), half - 0.25 / half);
  return copySign(result, x);
}

/// Beyond 0.6, 1 - 2 / (e^2x + 1), to which an error of e^2x matters little.
Float numerics::emitTanh(Float x) {
  static constexpr double odd[] = {-0x1.55553ep-2, 0x1.1109bep-3,
                                   -0x1.b89abap-5, 0x1.54c3c2p-6,
                                   -0x1.828776p-8};
  static constexpr double exp2[] = {1,
                                    0x1.62e43p-1,
                                    0x1.ebfbdcp-3,
                                    0x1.c6af7ap-5,
                                    0x1.3b2dd2p-7,
                                    0x1.5f0948p-10,
                                    0x1.417a7p-13};
  constexpr double twiceLog2OfE = 0x1.715476p1;
  Float size = abs(x), most = select(size > 10, 10, size);
  auto [number, power] = roundToPower(most, twiceLog2OfE);
  Float rest = fma(most, twiceLog2OfE, -number);
  Float large = 1 - 2 / (polynomial(rest, exp2) * power + 1);
  return copySign(select(size < 0.6F, emitOdd(size, odd), large), x);
}

//===----------------------------------------------------------------------===//
// The error function
//===----------------------------------------------------------------------===//

/// erf of x in [0, 1].
static Float emitSmallErf(Float x) {
  static constexpr double coefficients[] = {
      0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2ce6p-4, -0x1.b7f71ap-6,
      0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fep-14};
  return fma(x, polynomial(x * x, coefficients), x);
}

Float numerics::emitErf(Float x) {
  // log2 of erfc in [1, 4].
  static constexpr double coefficients[] = {
      0x1.1c766ep-12, -0x1.a12fe8p+0, -0x1.d3bbe8p-1, -0x1.4056acp-3,
      0x1.29ed9p-5,   -0x1.8d8bbap-8, 0x1.4dd824p-11, -0x1.067f6ep-15};
  Float size = abs(x);
  Float log = polynomial(select(size > 4, 4, size), coefficients);
  auto [number, power] = roundToPower(log, 1);
  Float large = 1 - emitSmallExp2(log - number) * power;
  return copySign(select(size < 1, emitSmallErf(size), large), x);
}

/// Beyond 0.7, e^(-x^2) / x times a polynomial in (x - 1.5) / (x + 1.5).
Float numerics::emitErfc(Float x) {
  static constexpr double coefficients[] = {
      0x1.edf488p-2,  0x1.d3df3ap-3,  -0x1.ba9a1p-3,  0x1.f96848p-5,
      0x1.44d2aap-6,  -0x1.200fecp-7, -0x1.516e9p-8,  0x1.ee6b4cp-12,
      0x1.723208p-10, 0x1.ce5bacp-12, -0x1.c51c5ap-12};
  Float size = abs(x);
  size = select(size > 10.5, 10.5, size);
  Float square = size * size;
  ScaledExp exp = emitScaledExp(-square, fma(size, size, -square));
  Float factor = polynomial((size - 1.5) / (size + 1.5), coefficients) / size;
  exp.significand = factor * exp.significand;
  Bool isNear = size < 0.7F;
  Float near = emitSmallErf(size), far = exp.get();
  return select(x < 0, select(isNear, near + 1, 2 - far),
                select(isNear, 1 - near, far));
}
