//===- NarrowFloats.cpp - bf16 and f8E4M3FN by integer arithmetic ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/NarrowFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::comms;

bool comms::isNarrowFloat(Type elementType) {
  return elementType.isBF16() || elementType.isF16() ||
         isa<Float8E4M3FNType>(elementType);
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

Value comms::emitTruncToF8(OpBuilder &builder, Location loc, Value value) {
  Bits b{builder, loc, value.getType()};
  Value bits = b.cast(value, b.i32());
  Value sign = b.land(b.shiftRight(bits, 24), b.integer(0x80));
  Value size = b.land(bits, b.integer(0x7FFFFFFF));

  // 2^-6 and above: 20 bits of fraction go; the exponent's bias falls from 127
  // to 7.
  Value normal = b.add(b.roundBits(size, 20), b.integer(-(120u << 3)));
  // Below: 2^14 has its last place at 2^-9, that of the subnormals.
  Value shifted = arith::AddFOp::create(builder, loc, b.cast(size, b.f32()),
                                        b.real(16384.0f));
  Value subnormal = b.add(b.cast(shifted, b.i32()), b.integer(-0x46800000u));

  Value code = b.select(b.less(size, b.integer(0x3C800000)), subnormal, normal);
  Value saturated =
      b.select(b.less(size, b.integer(0x43E00000)), code, b.integer(0x7E));
  Value isNumber = b.less(size, b.integer(0x7F800001));
  Value result = b.select(isNumber, b.lor(saturated, sign), b.integer(0x7F));
  Value byte = arith::TruncIOp::create(builder, loc, b.i8(), result);
  return b.cast(byte, b.of(Float8E4M3FNType::get(builder.getContext())));
}

Value comms::emitExtFromF8(OpBuilder &builder, Location loc, Value value) {
  Bits b{builder, loc, value.getType()};
  Value code =
      arith::ExtUIOp::create(builder, loc, b.i32(), b.cast(value, b.i8()));
  Value size = b.land(code, b.integer(0x7F));
  Value sign = b.shiftLeft(b.land(code, b.integer(0x80)), 24);

  Value normal = b.add(b.shiftLeft(size, 20), b.integer(120u << 23));
  Value small = arith::SIToFPOp::create(builder, loc, b.f32(), size);
  Value subnormal = b.cast(
      arith::MulFOp::create(builder, loc, small, b.real(0x1p-9f)), b.i32());

  Value bits =
      b.lor(b.select(b.less(size, b.integer(8)), subnormal, normal), sign);
  Value isNumber = b.less(size, b.integer(0x7F));
  return b.cast(b.select(isNumber, bits, b.integer(0x7FC00000)), b.f32());
}
