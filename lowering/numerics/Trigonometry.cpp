//===- Trigonometry.cpp - Circular functions and their inverses -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/Functions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::numerics;

static constexpr double pi = 0x1.921fb6p1, halfPi = 0x1.921fb6p0;

//===----------------------------------------------------------------------===//
// Reduction by multiples of pi / 2
//===----------------------------------------------------------------------===//

/// x = quadrant * pi / 2 + rest, where `rest` is at most pi / 4 in size, or a
/// tenth more, and of the quadrant the two lowest bits are meant.
struct ReducedAngle {
  Float rest;
  Int quadrant;
};

/// Range reduction for |x| up to `mostBySubtraction`: subtracts pi / 2, in
/// three parts, as often as it fits. The first product and difference are
/// exact. All parts are subtracted, so that -0 stays -0. (W. J. Cody and W.
/// Waite, Software Manual for the Elementary Functions, 1980.)
static constexpr double mostBySubtraction = 0x1p20;
static ReducedAngle reduceBySubtraction(Float x) {
  Float sum = fma(x, 0x1.45f306p-1, wholeF32), number = sum - wholeF32;
  Float rest = fma(number, -0x1.921fb4p0, x);
  rest = fma(number, -0x1.4442dp-24, rest);
  rest = fma(number, -0x1.84698ap-48, rest);
  return {rest, toBits(sum)};
}

/// 96 bits of 2 / pi from bit `first` on, in three words, where the first five
/// bits are zeros before the point. `first` is less than 128.
static SmallVector<Int> emitWindowOfTwoOverPi(Int first) {
  static constexpr int64_t bits[] = {0x0517CC1B, 0x727220A9, 0x4FE13ABE,
                                     0x8FA9A6EE, 0x06DB14AC, 0xC9E21C82,
                                     0x0FF28B1D};
  SmallVector<Int> words;
  for (int64_t word : bits)
    words.push_back(first.like(word));
  // Whole words first: two of them, and one.
  for (int64_t skipped : {2, 1}) {
    Bool skips = isNonZero(first & (skipped * 32));
    SmallVector<Int> rest;
    for (size_t i = 0; i + skipped < words.size(); ++i)
      rest.push_back(select(skips, words[i + skipped], words[i]));
    words = rest;
  }
  Int left = first & 31, right = (first ^ 31) & 31;
  SmallVector<Int> window;
  for (int i = 0; i < 3; ++i)
    window.push_back(shiftLeft(words[i], left) |
                     shiftRight(shiftRight(words[i + 1], 1), right));
  return window;
}

/// Range reduction for any finite x beyond 2^20. Leaves out the bits of 2 / pi
/// that contribute multiples of 4 to the product with x, and takes as many of
/// the others as separate every f32 from a multiple of pi / 2. (M. Payne and R.
/// Hanek, Radian reduction for trigonometric functions, ACM SIGNUM Newsletter
/// 18 (1), 1983.)
static ReducedAngle reduceByProduct(Float x) {
  constexpr int64_t firstExponent = 147; // The window of 2^20 starts at bit 0.
  Int bits = toBits(x);
  Int significand = (bits & 0x7FFFFF) | 0x800000;
  Int first = (shiftRight(bits, 23) & 0xFF) - firstExponent;
  SmallVector<Int> window = emitWindowOfTwoOverPi(first);
  Int wide = toI64(significand);
  // 64 bits, of which two are before the point.
  Int product = shiftLeft(wide * toI64(window[0]), 32) +
                wide * toI64(window[1]) +
                shiftRight(wide * toI64(window[2]), 32);
  Int quadrant = toI32(shiftRight(product, 62) + (shiftRight(product, 61) & 1));
  Float fraction = toF64(shiftLeft(product, 2));
  Float rest = toF32(fraction * 0x1.921fb54442d18p-64);
  Bool isNegative = hasSign(x);
  return {select(isNegative, -rest, rest),
          select(isNegative, 0 - quadrant, quadrant)};
}

/// Numbers that subtraction cannot reduce are rare: where there is none, the
/// others are carried past a branch.
static ReducedAngle reduce(Float x) {
  ReducedAngle small = reduceBySubtraction(x);
  Bool isLarge = abs(x) > mostBySubtraction;
  ImplicitLocOpBuilder &builder = x.getBuilder();
  SmallVector<Value> values{small.rest.getValue(), small.quadrant.getValue()};
  auto branch = scf::IfOp::create(builder, ValueRange(values).getTypes(),
                                  any(isLarge), /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    ReducedAngle large = reduceByProduct(x);
    Float rest = select(isLarge, large.rest, small.rest);
    Int quadrant = select(isLarge, large.quadrant, small.quadrant);
    scf::YieldOp::create(builder,
                         ValueRange{rest.getValue(), quadrant.getValue()});
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, values);
  }
  return {Float(builder, branch.getResult(0)),
          Int(builder, branch.getResult(1))};
}

//===----------------------------------------------------------------------===//
// Circular functions
//===----------------------------------------------------------------------===//

/// sin and cos of |x| up to 0.87.
static Float emitSmallSin(Float x) {
  static constexpr double coefficients[] = {-0x1.555556p-3, 0x1.11115ep-7,
                                            -0x1.a03e1cp-13, 0x1.747b1ep-19};
  Float square = x * x;
  // The sum has another sign than x where both of its parts are zeros.
  return copySign(fma(x * square, polynomial(square, coefficients), x), x);
}
static Float emitSmallCos(Float x) {
  static constexpr double coefficients[] = {1, -0x1p-1, 0x1.55554p-5,
                                            -0x1.6c06a4p-10, 0x1.987944p-16};
  return polynomial(x * x, coefficients);
}

/// sin(rest + quadrant * pi / 2).
static Float emitSinOf(ReducedAngle reduced) {
  auto [rest, quadrant] = reduced;
  Float sine =
      select(isNonZero(quadrant & 1), emitSmallCos(rest), emitSmallSin(rest));
  return fromBits(toBits(sine) ^ shiftLeft(quadrant & 2, 30));
}

static Float selectFinite(Float x, Float result) {
  return select(abs(x) < infinity, result, notANumber);
}

Float numerics::emitSin(Float x) {
  return selectFinite(x, emitSinOf(reduce(x)));
}

Float numerics::emitCos(Float x) {
  ReducedAngle reduced = reduce(x);
  return selectFinite(x, emitSinOf({reduced.rest, reduced.quadrant + 1}));
}

Float numerics::emitTan(Float x) {
  auto [rest, quadrant] = reduce(x);
  Float sine = emitSmallSin(rest), cosine = emitSmallCos(rest);
  Bool isOdd = isNonZero(quadrant & 1);
  return selectFinite(x, select(isOdd, -cosine, sine) /
                             select(isOdd, sine, cosine));
}

//===----------------------------------------------------------------------===//
// Inverses
//===----------------------------------------------------------------------===//

/// asin(argument), or where |x| > 1/2 asin(sqrt((1 - |x|) / 2)), which is half
/// of acos(|x|).
struct HalfAngle {
  Bool isLarge;
  Float angle;
};
static HalfAngle emitHalfAngle(Float x) {
  static constexpr double coefficients[] = {0x1.55554cp-3, 0x1.3338aap-4,
                                            0x1.6ca7f8p-5, 0x1.04cae4p-5,
                                            0x1.d5bfd8p-7, 0x1.34836cp-5};
  Float size = abs(x);
  Bool isLarge = size > 0.5;
  Float square = select(isLarge, fma(size, -0.5, 0.5), size * size);
  Float sine = select(isLarge, sqrt(square), size);
  return {isLarge, fma(sine * square, polynomial(square, coefficients), sine)};
}

Float numerics::emitAsin(Float x) {
  auto [isLarge, angle] = emitHalfAngle(x);
  return copySign(select(isLarge, fma(angle, -2, halfPi), angle), x);
}

Float numerics::emitAcos(Float x) {
  auto [isLarge, angle] = emitHalfAngle(x);
  Float twice = angle + angle;
  return select(isLarge, select(x > 0, twice, pi - twice),
                halfPi - copySign(angle, x));
}

/// atan of x in [0, 1].
static Float emitSmallAtan(Float x) {
  static constexpr double coefficients[] = {
      -0x1.55553ep-2, 0x1.9991e6p-3, -0x1.2420b8p-3,
      0x1.c08f96p-4,  -0x1.58163p-4, 0x1.da6212p-5,
      -0x1.fe02aep-6, 0x1.64c85ap-7, -0x1.d4a24ap-10};
  Float square = x * x;
  return fma(x * square, polynomial(square, coefficients), x);
}

Float numerics::emitAtan(Float x) {
  Float size = abs(x);
  Bool isLarge = size > 1;
  Float angle = emitSmallAtan(select(isLarge, 1 / size, size));
  return copySign(select(isLarge, halfPi - angle, angle), x);
}

Float numerics::emitAtan2(Float y, Float x) {
  Float height = abs(y), width = abs(x);
  Bool isSteep = height > width;
  Float large = select(isSteep, height, width),
        small = select(isSteep, width, height);
  // Infinity over infinity is 1, and 0 over 0 is 0.
  Float ratio = select(small == large, 1, small / large);
  Float angle = emitSmallAtan(select(large == 0, 0, ratio));
  angle = select(isSteep, halfPi - angle, angle);
  angle = select(hasSign(x), pi - angle, angle);
  return select(isNaN(x) || isNaN(y), notANumber, copySign(angle, y));
}
