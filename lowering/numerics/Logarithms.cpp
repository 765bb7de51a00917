//===- Logarithms.cpp - log x, and what is made of it ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/Functions.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::numerics;

static constexpr unsigned significandBits = 23;
static constexpr double leastNormal = 0x1p-126, ln2 = 0x1.62e43p-1;

/// The exponent of x over 2/3, of a normal number x: x is in
/// [2/3, 4/3) * 2^exponent.
static Int getExponent(Float x) {
  constexpr int64_t bitsOfTwoThirds = 0x3F2AAAAB;
  return shiftRightSigned(toBits(x) - bitsOfTwoThirds, significandBits);
}

Parts numerics::split(Float x) {
  constexpr double up = 0x1p23;
  Bool isSubnormal = x < leastNormal;
  Float normal = select(isSubnormal, x * up, x);
  Int exponent = getExponent(normal);
  Float significand =
      fromBits(toBits(normal) - shiftLeft(exponent, significandBits));
  Float added = select(isSubnormal, x.like(significandBits), 0);
  return {significand - 1, added - toF32(exponent)};
}

/// log(1 + x) / x - 1, of x in [-1/3, 1/3].
static Float emitTail(Float x) {
  static constexpr double coefficients[] = {
      -0x1p-1,        0x1.555506p-2,  -0x1.fffefap-3,
      0x1.99d05cp-3,  -0x1.559c2cp-3, 0x1.1ed452p-3,
      -0x1.f33cccp-4, 0x1.1e72ap-3,   -0x1.07a942p-3};
  return polynomial(x, coefficients);
}

/// log(1 + x), of x in [-1/3, 1/3].
static Float emitSmallLog1p(Float x) { return fma(x * x, emitTail(x), x); }

/// What a logarithm of x is, if it is `number` where x is above 0 and finite.
static Float selectLog(Float x, Float number) {
  Float other = select(x == 0, x.like(-infinity), notANumber);
  return select(x > 0, select(x == infinity, x, number), other);
}

Float numerics::emitLog(Float x) {
  auto [fraction, minusExponent] = split(x);
  return selectLog(x, fma(minusExponent, -ln2, emitSmallLog1p(fraction)));
}

/// Powers of two have whole logarithms.
Float numerics::emitLog2(Float x) {
  constexpr double log2OfE = 0x1.715476p0, withoutOne = 0x1.c551dap-2;
  auto [fraction, minusExponent] = split(x);
  Float tail = fraction * emitTail(fraction);
  Float log = fma(fraction, fma(tail, log2OfE, withoutOne), fraction);
  return selectLog(x, log - minusExponent);
}

//===----------------------------------------------------------------------===//
// log(1 + x)
//===----------------------------------------------------------------------===//

/// log(1 + x) + added * ln 2, of x above -1 and below 2^126. Near 0 the
/// fraction of 1 + x is x, to the bit, though 1 + x is not.
static Float emitLog1pOf(Float x, Float added) {
  constexpr int64_t bitsOfOne = 0x3F800000;
  Int exponent = getExponent(x + 1);
  Float scale = fromBits(bitsOfOne - shiftLeft(exponent, significandBits));
  Float fraction = fma(scale, x, scale - 1);
  Float minusExponent = toF32(0 - exponent) - added;
  return fma(minusExponent, -ln2, emitSmallLog1p(fraction));
}

/// log(1 + small), and where x is large log(x) + added * ln 2.
static Float emitLog1pOrLog(Float x, Float small, double added) {
  constexpr double down = 32;
  Bool isLarge = x > 0x1p60;
  return emitLog1pOf(select(isLarge, x * 0x1p-32, small),
                     select(isLarge, x.like(added + down), 0));
}

Float numerics::emitLog1p(Float x) {
  Float log = emitLog1pOrLog(x, x, 0);
  Float other = select(x == -1, x.like(-infinity), notANumber);
  return copySign(select(x > -1, select(x == infinity, x, log), other), x);
}

Float numerics::emitAsinh(Float x) {
  Float size = abs(x), square = size * size;
  Float small = size + square / (sqrt(square + 1) + 1);
  Float result = emitLog1pOrLog(size, small, 1);
  return copySign(select(size == infinity, size, result), x);
}

Float numerics::emitAcosh(Float x) {
  Float above = x - 1;
  Float small = above + sqrt(fma(above, above, above + above));
  Float result = select(x == infinity, x, emitLog1pOrLog(x, small, 1));
  return select(x < 1, notANumber, result);
}

Float numerics::emitAtanh(Float x) {
  Float size = abs(x);
  Float result = emitLog1pOf((size + size) / (1 - size), x.like(0)) * 0.5;
  Float other = select(size == 1, size.like(infinity), notANumber);
  return copySign(select(size < 1, result, other), x);
}
