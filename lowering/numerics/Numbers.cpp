//===- Numbers.cpp - Arithmetic that reads as arithmetic ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/Numbers.h"

#include "lowering/analysis/NarrowFloats.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::numerics;

Type Number::getTypeWith(Type element) const {
  return withElement(value.getType(), element);
}

/// A constant of the type of `like`.
template <typename T>
static T emitConstant(T like, TypedAttr element) {
  TypedAttr attribute = element;
  if (auto shaped = dyn_cast<ShapedType>(like.getValue().getType()))
    attribute = DenseElementsAttr::get(shaped, Attribute(element));
  ImplicitLocOpBuilder &builder = like.getBuilder();
  return {builder, arith::ConstantOp::create(builder, attribute)};
}

Int Int::like(int64_t number) const {
  auto type = cast<IntegerType>(getElementTypeOrSelf(getValue().getType()));
  APInt value(type.getWidth(), number, /*isSigned=*/true,
              /*implicitTrunc=*/true);
  return emitConstant(*this, IntegerAttr::get(type, value));
}

Float Float::like(double number) const {
  auto type = cast<FloatType>(getElementTypeOrSelf(getValue().getType()));
  APFloat value(number);
  bool lost = false;
  value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  assert((!lost || value.isNaN()) && "a constant that the type cannot hold");
  return emitConstant(*this, FloatAttr::get(type, value));
}

/// One operation, with a result of the type of its operands.
template <typename OpT, typename T, typename... Ts>
static T emit(T first, Ts... others) {
  ImplicitLocOpBuilder &builder = first.getBuilder();
  return {builder,
          OpT::create(builder, first.getValue(), others.getValue()...)};
}

/// One conversion.
template <typename OpT, typename To, typename From>
static To emitCast(From x, Type element) {
  ImplicitLocOpBuilder &builder = x.getBuilder();
  return {builder, OpT::create(builder, x.getTypeWith(element), x.getValue())};
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Float numerics::operator-(Float x) { return emit<arith::NegFOp>(x); }
Float numerics::operator+(Float x, Float y) {
  return emit<arith::AddFOp>(x, y);
}
Float numerics::operator-(Float x, Float y) {
  return emit<arith::SubFOp>(x, y);
}
Float numerics::operator*(Float x, Float y) {
  return emit<arith::MulFOp>(x, y);
}
Float numerics::operator/(Float x, Float y) {
  return emit<arith::DivFOp>(x, y);
}

Float numerics::fma(Float x, Float y, Float z) {
  return emit<math::FmaOp>(x, y, z);
}

Float numerics::polynomial(Float x, ArrayRef<double> coefficients) {
  Float result = x.like(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    result = fma(result, x, coefficient);
  return result;
}

Float numerics::abs(Float x) { return emit<math::AbsFOp>(x); }
Float numerics::sqrt(Float x) { return emit<math::SqrtOp>(x); }
Float numerics::trunc(Float x) { return emit<math::TruncOp>(x); }
Float numerics::floor(Float x) { return emit<math::FloorOp>(x); }
Float numerics::copySign(Float size, Float sign) {
  return emit<math::CopySignOp>(size, sign);
}

static Bool compare(arith::CmpFPredicate predicate, Float x, Float y) {
  ImplicitLocOpBuilder &builder = x.getBuilder();
  return {builder, arith::CmpFOp::create(builder, predicate, x.getValue(),
                                         y.getValue())};
}

Bool numerics::operator<(Float x, Float y) {
  return compare(arith::CmpFPredicate::OLT, x, y);
}
Bool numerics::operator>(Float x, Float y) {
  return compare(arith::CmpFPredicate::OGT, x, y);
}
Bool numerics::operator>=(Float x, Float y) {
  return compare(arith::CmpFPredicate::OGE, x, y);
}
Bool numerics::operator==(Float x, Float y) {
  return compare(arith::CmpFPredicate::OEQ, x, y);
}
Bool numerics::operator!=(Float x, Float y) {
  return compare(arith::CmpFPredicate::UNE, x, y);
}
Bool numerics::isNaN(Float x) {
  return compare(arith::CmpFPredicate::UNO, x, x);
}

Float numerics::select(Bool condition, Float yes, Float no) {
  ImplicitLocOpBuilder &builder = condition.getBuilder();
  return {builder, arith::SelectOp::create(builder, condition.getValue(),
                                           yes.getValue(), no.getValue())};
}

//===----------------------------------------------------------------------===//
// Truth
//===----------------------------------------------------------------------===//

Bool numerics::operator&&(Bool x, Bool y) { return emit<arith::AndIOp>(x, y); }
Bool numerics::operator||(Bool x, Bool y) { return emit<arith::OrIOp>(x, y); }

Value numerics::any(Bool x) {
  auto vector = dyn_cast<VectorType>(x.getValue().getType());
  if (!vector)
    return x.getValue();
  ImplicitLocOpBuilder &builder = x.getBuilder();
  Value flat = x.getValue();
  if (vector.getRank() != 1)
    flat = vector::ShapeCastOp::create(
        builder,
        VectorType::get({vector.getNumElements()}, builder.getI1Type()), flat);
  return vector::ReductionOp::create(builder, vector::CombiningKind::OR, flat);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Int numerics::operator+(Int x, Int y) { return emit<arith::AddIOp>(x, y); }
Int numerics::operator-(Int x, Int y) { return emit<arith::SubIOp>(x, y); }
Int numerics::operator*(Int x, Int y) { return emit<arith::MulIOp>(x, y); }
Int numerics::operator&(Int x, Int y) { return emit<arith::AndIOp>(x, y); }
Int numerics::operator|(Int x, Int y) { return emit<arith::OrIOp>(x, y); }
Int numerics::operator^(Int x, Int y) { return emit<arith::XOrIOp>(x, y); }
Int numerics::shiftLeft(Int x, Int count) {
  return emit<arith::ShLIOp>(x, count);
}
Int numerics::shiftRight(Int x, Int count) {
  return emit<arith::ShRUIOp>(x, count);
}
Int numerics::shiftRightSigned(Int x, Int count) {
  return emit<arith::ShRSIOp>(x, count);
}

static Bool compare(arith::CmpIPredicate predicate, Int x, int64_t y) {
  ImplicitLocOpBuilder &builder = x.getBuilder();
  return {builder, arith::CmpIOp::create(builder, predicate, x.getValue(),
                                         x.like(y).getValue())};
}
Bool numerics::isNegative(Int x) {
  return compare(arith::CmpIPredicate::slt, x, 0);
}
Bool numerics::isNonZero(Int x) {
  return compare(arith::CmpIPredicate::ne, x, 0);
}

Int numerics::select(Bool condition, Int yes, Int no) {
  ImplicitLocOpBuilder &builder = condition.getBuilder();
  return {builder, arith::SelectOp::create(builder, condition.getValue(),
                                           yes.getValue(), no.getValue())};
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Int numerics::toBits(Float x) {
  return emitCast<arith::BitcastOp, Int>(x, x.getBuilder().getI32Type());
}
Float numerics::fromBits(Int x) {
  return emitCast<arith::BitcastOp, Float>(x, x.getBuilder().getF32Type());
}
Bool numerics::hasSign(Float x) { return isNegative(toBits(x)); }
Float numerics::toF32(Int x) {
  return emitCast<arith::SIToFPOp, Float>(x, x.getBuilder().getF32Type());
}
Float numerics::toF64(Int x) {
  return emitCast<arith::SIToFPOp, Float>(x, x.getBuilder().getF64Type());
}
Float numerics::toF32(Float x) {
  return emitCast<arith::TruncFOp, Float>(x, x.getBuilder().getF32Type());
}
Float numerics::toF64(Float x) {
  return emitCast<arith::ExtFOp, Float>(x, x.getBuilder().getF64Type());
}
Int numerics::toI64(Int x) {
  return emitCast<arith::ExtUIOp, Int>(x, x.getBuilder().getI64Type());
}
Int numerics::toI32(Int x) {
  return emitCast<arith::TruncIOp, Int>(x, x.getBuilder().getI32Type());
}
