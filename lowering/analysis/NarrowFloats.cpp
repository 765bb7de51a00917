//===- NarrowFloats.cpp - bf16 and fp8 by integer arithmetic --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/NarrowFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace mlir::comms;

bool comms::isF8(Type elementType) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(elementType);
}

bool comms::isNarrowFloat(Type elementType) {
  return elementType.isBF16() || elementType.isF16() || isF8(elementType);
}

bool comms::isSupportedFloat(Type elementType) {
  return isNarrowFloat(elementType) || elementType.isF32() ||
         elementType.isF64();
}

Type comms::withElement(Type type, Type elementType) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(elementType);
  return elementType;
}

void comms::widenNarrow(Operation *op) {
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp,
          arith::ConstantOp>(op))
    return;
  auto isNarrow = [](Value value) {
    return isNarrowFloat(getElementTypeOrSelf(value.getType()));
  };
  OpBuilder builder(op);
  Type f32 = builder.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    if (isNarrow(operand.get()))
      operand.set(arith::ExtFOp::create(
          builder, op->getLoc(), withElement(operand.get().getType(), f32),
          operand.get()));
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (!isNarrow(result))
      continue;
    Type type = result.getType();
    result.setType(withElement(type, f32));
    auto narrow = arith::TruncFOp::create(builder, op->getLoc(), type, result);
    result.replaceAllUsesExcept(narrow, narrow);
  }
}

namespace {
/// Emits arithmetic on numbers of one shape.
struct Bits {
  OpBuilder &builder;
  Location loc;
  /// Any type of the shape.
  Type shape;

  Type of(Type element) const { return withElement(shape, element); }
  Type i8() const { return of(builder.getI8Type()); }
  Type i16() const { return of(builder.getI16Type()); }
  Type i32() const { return of(builder.getI32Type()); }
  Type f32() const { return of(builder.getF32Type()); }

  Value constant(TypedAttr value) const {
    if (auto shaped = dyn_cast<ShapedType>(of(value.getType())))
      value = DenseElementsAttr::get(shaped, Attribute(value));
    return arith::ConstantOp::create(builder, loc, value);
  }
  Value integer(uint32_t value, unsigned width = 32) const {
    return constant(builder.getIntegerAttr(builder.getIntegerType(width),
                                           APInt(width, value)));
  }
  Value real(float value) const {
    return constant(builder.getF32FloatAttr(value));
  }
  Value cast(Value value, Type type) const {
    return arith::BitcastOp::create(builder, loc, type, value);
  }
  Value add(Value a, Value b) const {
    return arith::AddIOp::create(builder, loc, a, b);
  }
  Value land(Value a, Value b) const {
    return arith::AndIOp::create(builder, loc, a, b);
  }
  Value lor(Value a, Value b) const {
    return arith::OrIOp::create(builder, loc, a, b);
  }
  Value shiftRight(Value a, uint32_t count) const {
    return arith::ShRUIOp::create(builder, loc, a, integer(count));
  }
  Value shiftLeft(Value a, uint32_t count) const {
    return arith::ShLIOp::create(builder, loc, a, integer(count));
  }
  Value less(Value a, Value b) const {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b);
  }
  Value select(Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }
  /// Rounds away the low `count` bits, to nearest, ties to even.
  Value roundBits(Value bits, uint32_t count) const {
    Value odd = land(shiftRight(bits, count), integer(1));
    return shiftRight(add(add(bits, integer((1u << (count - 1)) - 1)), odd),
                      count);
  }
};
} // namespace

// The NaN is chosen in f32: a choice between bf16 would be made lane by lane on
// processors that have no bf16.
Value comms::emitTruncToBF16(OpBuilder &builder, Location loc, Value value) {
  Bits b{builder, loc, value.getType()};
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO,
                                      value, value);
  Value bits = b.select(isNaN, b.integer(0x7FC00000), b.cast(value, b.i32()));
  Value high =
      arith::TruncIOp::create(builder, loc, b.i16(), b.roundBits(bits, 16));
  return b.cast(high, b.of(builder.getBF16Type()));
}

Value comms::emitExtFromBF16(OpBuilder &builder, Location loc, Value value) {
  Bits b{builder, loc, value.getType()};
  Value wide =
      arith::ExtUIOp::create(builder, loc, b.i32(), b.cast(value, b.i16()));
  return b.cast(b.shiftLeft(wide, 16), b.f32());
}

namespace {
/// A float of 8 bits as integers see it. Sizes are numbers without their sign.
struct F8Format {
  /// Bits of the fraction.
  uint32_t fraction;
  /// How far the exponent's bias lies below f32's.
  uint32_t bias;
  /// The f32 bits of the least size that rounds beyond all finite numbers.
  uint32_t overflow;
  /// What such sizes become, and NaN.
  uint32_t most, nan;

  static F8Format of(Type element) {
    if (isa<Float8E4M3FNType>(element))
      return {3, 120, 0x43E00000, 0x7E, 0x7F};
    return {2, 112, 0x47700000, 0x7C, 0x7E};
  }

  /// Bits of f32's fraction that are rounded away.
  uint32_t dropped() const { return 23 - fraction; }
  /// The f32 bits of the least normal number.
  uint32_t leastNormal() const { return (bias + 1) << 23; }
  /// The exponent of subnormal numbers' last place.
  int lastPlace() const { return int(bias) - 126 - int(fraction); }
};
} // namespace

Value comms::emitTruncToF8(OpBuilder &builder, Location loc, Value value,
                           Type element) {
  F8Format format = F8Format::of(element);
  Bits b{builder, loc, value.getType()};
  Value bits = b.cast(value, b.i32());
  Value sign = b.land(b.shiftRight(bits, 24), b.integer(0x80));
  Value size = b.land(bits, b.integer(0x7FFFFFFF));

  Value normal = b.add(b.roundBits(size, format.dropped()),
                       b.integer(-(format.bias << format.fraction)));
  // A number of f32 whose last place is that of the subnormals.
  float coarse = std::ldexp(1.0f, format.lastPlace() + 23);
  Value shifted = arith::AddFOp::create(builder, loc, b.cast(size, b.f32()),
                                        b.real(coarse));
  Value subnormal = b.add(b.cast(shifted, b.i32()),
                          b.integer(-llvm::bit_cast<uint32_t>(coarse)));

  Value code = b.select(b.less(size, b.integer(format.leastNormal())),
                        subnormal, normal);
  Value bounded = b.select(b.less(size, b.integer(format.overflow)), code,
                           b.integer(format.most));
  Value isNumber = b.less(size, b.integer(0x7F800001));
  Value result =
      b.select(isNumber, b.lor(bounded, sign), b.integer(format.nan));
  Value byte = arith::TruncIOp::create(builder, loc, b.i8(), result);
  return b.cast(byte, b.of(element));
}

/// The upper half of an f16 is the f8E5M2 of the same fields.
static Value extendE5M2(const Bits &b, Value value) {
  Value half =
      arith::ExtUIOp::create(b.builder, b.loc, b.i16(), b.cast(value, b.i8()));
  half = arith::ShLIOp::create(b.builder, b.loc, half, b.integer(8, 16));
  return arith::ExtFOp::create(b.builder, b.loc, b.f32(),
                               b.cast(half, b.of(b.builder.getF16Type())));
}

Value comms::emitExtFromF8(OpBuilder &builder, Location loc, Value value) {
  Bits b{builder, loc, value.getType()};
  Type element = getElementTypeOrSelf(value.getType());
  if (isa<Float8E5M2Type>(element))
    return extendE5M2(b, value);
  F8Format format = F8Format::of(element);
  Value code =
      arith::ExtUIOp::create(builder, loc, b.i32(), b.cast(value, b.i8()));
  Value size = b.land(code, b.integer(0x7F));
  Value sign = b.shiftLeft(b.land(code, b.integer(0x80)), 24);

  Value normal =
      b.add(b.shiftLeft(size, format.dropped()), b.integer(format.bias << 23));
  Value small = arith::SIToFPOp::create(builder, loc, b.f32(), size);
  float least = std::ldexp(1.0f, format.lastPlace());
  Value subnormal = b.cast(
      arith::MulFOp::create(builder, loc, small, b.real(least)), b.i32());

  Value isSmall = b.less(size, b.integer(1u << format.fraction));
  Value bits = b.lor(b.select(isSmall, subnormal, normal), sign);
  Value isNumber = b.less(size, b.integer(format.nan));
  return b.cast(b.select(isNumber, bits, b.integer(0x7FC00000)), b.f32());
}
