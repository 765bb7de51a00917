//===- SquareRoots.cpp - Rounded square roots without branches ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps are those that ptxas has in line for sqrt.rn and rcp.rn of ordinary
// operands on sm_80, sm_90 and sm_100: an approximation of the GPU's and one
// step of Newton's with a remainder that is exact. (P. Markstein, Computation
// of elementary functions on the IBM RISC System/6000 processor, IBM Journal of
// Research and Development 34 (1), 1990, has why such a step rounds rightly.)
// Small operands are brought into the range by a power of four, which leaves
// every bit of the root's significand as it is, and zeros and infinities, which
// a step would make NaN, go around it. test/gpu/run.py compares every
// significand and exponent with the CPU.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/SquareRoots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::comms;

namespace {

/// Arithmetic on one f32.
class Scalars {
public:
  Scalars(Location loc, OpBuilder &builder) : b(loc, builder) {}

  nvvm::Roots emitRoots(Value x);

private:
  Value number(float value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  }
  Value multiply(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  Value negate(Value x) { return arith::NegFOp::create(b, x); }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, float to) {
    return arith::CmpFOp::create(b, predicate, x, number(to));
  }
  /// Approximations of the GPU's.
  Value guessInverseRoot(Value x);
  Value guessInverse(Value x) {
    return NVVM::RcpApproxFtzF32Op::create(b, b.getF32Type(), x);
  }
  /// A root near sqrt(x), of x in [2^-101, 2^128).
  Value emitRoot(Value x);
  /// One over `root`, which is in [2^-51, 2^64).
  Value emitInverse(Value guess, Value root);

  ImplicitLocOpBuilder b;
};

} // namespace

/// Returns the hardware's approximation of 1 / sqrt(x), which the NVVM dialect
/// lacks.
Value Scalars::guessInverseRoot(Value x) {
  return LLVM::CallIntrinsicOp::create(
             b, Type(b.getF32Type()),
             b.getStringAttr("llvm.nvvm.rsqrt.approx.ftz.f"), ValueRange{x})
      .getResult(0);
}

Value Scalars::emitRoot(Value x) {
  Value inverse = guessInverseRoot(x);
  Value root = multiply(x, inverse), half = multiply(inverse, number(0.5F));
  Value remainder = fma(negate(root), root, x);
  return fma(remainder, half, root);
}

Value Scalars::emitInverse(Value guess, Value root) {
  Value remainder = fma(negate(root), guess, number(1));
  return fma(remainder, guess, guess);
}

nvvm::Roots Scalars::emitRoots(Value x) {
  Value isSmall = compare(arith::CmpFPredicate::OLT, x, std::ldexp(1.0F, -101));
  Value scaled =
      multiply(x, select(isSmall, number(std::ldexp(1.0F, 64)), number(1)));
  Value hasNoStep =
      arith::OrIOp::create(b, compare(arith::CmpFPredicate::OEQ, scaled, 0),
                           compare(arith::CmpFPredicate::OEQ, scaled,
                                   std::numeric_limits<float>::infinity()));
  Value root = select(hasNoStep, scaled, emitRoot(scaled));
  Value inverse = guessInverse(root);
  inverse = select(hasNoStep, inverse, emitInverse(inverse, root));
  auto unscale = [&](Value value, int exponent) {
    return multiply(
        value, select(isSmall, number(std::ldexp(1.0F, exponent)), number(1)));
  };
  return {unscale(root, -32), unscale(inverse, 32)};
}

nvvm::Roots nvvm::emitRoots(OpBuilder &builder, Location loc, Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector)
    return Scalars(loc, builder).emitRoots(value);
  auto flat =
      VectorType::get({vector.getNumElements()}, vector.getElementType());
  Value elements = vector::ShapeCastOp::create(builder, loc, flat, value);
  SmallVector<Value> roots, inverses;
  for (int64_t i = 0; i < flat.getNumElements(); ++i) {
    Roots one =
        Scalars(loc, builder)
            .emitRoots(vector::ExtractOp::create(builder, loc, elements, i));
    roots.push_back(one.root);
    inverses.push_back(one.inverse);
  }
  auto join = [&](ArrayRef<Value> all) -> Value {
    return vector::ShapeCastOp::create(
        builder, loc, vector,
        vector::FromElementsOp::create(builder, loc, flat, all));
  };
  return {join(roots), join(inverses)};
}
