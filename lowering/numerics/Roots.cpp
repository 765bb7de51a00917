//===- Roots.cpp - Roots, and rounding to whole numbers -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/Functions.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::numerics;

/// One over the cube root of x, of a normal number x, to 2^-15 of it: a guess
/// from the exponent, which is a third of x's, and a step of fourth order,
/// which divides nothing.
static Float emitInverseCubeRoot(Float x) {
  static constexpr double coefficients[] = {float(1. / 3), float(2. / 9),
                                            float(14. / 81)};
  constexpr int64_t guess = 0x54A2FA8C; // Of all, within 3.5 %.
  // A third: 2731 / 2^13, of the bits that matter.
  Int third = shiftRight(shiftRight(toBits(x), 12) * 2731, 1);
  Float root = fromBits(guess - third);
  Float rest = fma(-(x * root), root * root, 1);
  return fma(root * rest, polynomial(rest, coefficients), root);
}

Float numerics::emitCbrt(Float x) {
  Float size = abs(x);
  Bool isSubnormal = size < 0x1p-126;
  Float normal = select(isSubnormal, size * 0x1p24, size);
  Float inverse = emitInverseCubeRoot(normal);
  Float square = inverse * inverse, root = normal * square;
  // One step more, with what is left of x in more bits than f32 has.
  Float rootSquared = root * root, lost = fma(root, root, -rootSquared);
  Float rest = fma(-rootSquared, root, normal);
  rest = fma(-lost, root, rest);
  root = fma(rest * float(1. / 3), square, root);
  root = select(isSubnormal, root * 0x1p-8, root);
  Bool isOwnRoot = x == 0 || size == infinity;
  return select(isOwnRoot, x, copySign(root, x));
}

Float numerics::emitRsqrt(Float x) { return 1 / sqrt(x); }

Float numerics::emitRound(Float x) {
  Float whole = trunc(x), rest = abs(x - whole);
  Float added = select(rest >= 0.5, x.like(1), 0);
  return whole + copySign(added, x);
}
