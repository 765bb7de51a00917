//===- Numbers.h - Arithmetic that reads as arithmetic ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values, scalars or vectors, with operators: each operator emits one arith or
// math operation whose result IEEE 754 or two's complement defines to the bit.
// A C++ number combined with a value becomes a constant of the value's type.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NUMERICS_NUMBERS_H
#define COMMSIR_LOWERING_NUMERICS_NUMBERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::comms::numerics {

/// A value, and the builder for operations on it.
class Number {
public:
  Number(ImplicitLocOpBuilder &builder, Value value)
      : builder(&builder), value(value) {}

  ImplicitLocOpBuilder &getBuilder() const { return *builder; }
  Value getValue() const { return value; }
  /// This value's type with another element type.
  Type getTypeWith(Type element) const;

private:
  ImplicitLocOpBuilder *builder;
  Value value;
};

/// An i1.
class Bool : public Number {
public:
  using Number::Number;
};

/// An integer, signless.
class Int : public Number {
public:
  using Number::Number;
  /// A constant of this type.
  Int like(int64_t number) const;
};

/// A float.
class Float : public Number {
public:
  using Number::Number;
  /// A constant of this type that represents `number` exactly.
  Float like(double number) const;
};

Float operator-(Float x);
Float operator+(Float x, Float y);
Float operator-(Float x, Float y);
Float operator*(Float x, Float y);
Float operator/(Float x, Float y);
inline Float operator+(Float x, double y) { return x + x.like(y); }
inline Float operator-(Float x, double y) { return x - x.like(y); }
inline Float operator-(double x, Float y) { return y.like(x) - y; }
inline Float operator*(Float x, double y) { return x * x.like(y); }
inline Float operator/(double x, Float y) { return y.like(x) / y; }

/// x * y + z, rounded once.
Float fma(Float x, Float y, Float z);
inline Float fma(Float x, double y, Float z) { return fma(x, x.like(y), z); }
inline Float fma(Float x, Float y, double z) { return fma(x, y, x.like(z)); }
inline Float fma(Float x, double y, double z) {
  return fma(x, x.like(y), x.like(z));
}
/// coefficients[0] + coefficients[1] * x + …, by Horner's rule.
Float polynomial(Float x, ArrayRef<double> coefficients);

Float abs(Float x);
Float sqrt(Float x);
Float trunc(Float x);
Float floor(Float x);
/// `size` with the sign of `sign`.
Float copySign(Float size, Float sign);

/// Comparisons. If an operand is NaN only `!=` is true.
Bool operator<(Float x, Float y);
Bool operator>(Float x, Float y);
Bool operator>=(Float x, Float y);
Bool operator==(Float x, Float y);
Bool operator!=(Float x, Float y);
inline Bool operator<(Float x, double y) { return x < x.like(y); }
inline Bool operator>(Float x, double y) { return x > x.like(y); }
inline Bool operator>=(Float x, double y) { return x >= x.like(y); }
inline Bool operator==(Float x, double y) { return x == x.like(y); }
Bool isNaN(Float x);

Bool operator&&(Bool x, Bool y);
Bool operator||(Bool x, Bool y);
/// Whether any element of `x` is true, as an i1 scalar.
Value any(Bool x);

Float select(Bool condition, Float yes, Float no);
Int select(Bool condition, Int yes, Int no);
inline Float select(Bool condition, double yes, Float no) {
  return select(condition, no.like(yes), no);
}
inline Float select(Bool condition, Float yes, double no) {
  return select(condition, yes, yes.like(no));
}

Int operator+(Int x, Int y);
Int operator-(Int x, Int y);
Int operator*(Int x, Int y);
Int operator&(Int x, Int y);
Int operator|(Int x, Int y);
Int operator^(Int x, Int y);
Int shiftLeft(Int x, Int count);
/// Logical shift.
Int shiftRight(Int x, Int count);
/// Arithmetic shift.
Int shiftRightSigned(Int x, Int count);
inline Int operator+(Int x, int64_t y) { return x + x.like(y); }
inline Int operator-(Int x, int64_t y) { return x - x.like(y); }
inline Int operator-(int64_t x, Int y) { return y.like(x) - y; }
inline Int operator*(Int x, int64_t y) { return x * x.like(y); }
inline Int operator&(Int x, int64_t y) { return x & x.like(y); }
inline Int operator|(Int x, int64_t y) { return x | x.like(y); }
inline Int operator^(Int x, int64_t y) { return x ^ x.like(y); }
inline Int shiftLeft(Int x, int64_t n) { return shiftLeft(x, x.like(n)); }
inline Int shiftRight(Int x, int64_t n) { return shiftRight(x, x.like(n)); }
inline Int shiftRightSigned(Int x, int64_t n) {
  return shiftRightSigned(x, x.like(n));
}
Bool isNegative(Int x);
Bool isNonZero(Int x);

/// Bitcasts between f32 and i32.
Int toBits(Float x);
Float fromBits(Int x);
/// Whether the sign bit of an f32 is set.
Bool hasSign(Float x);
/// Conversion of an i32 or i64 to float, rounded.
Float toF32(Int x);
Float toF64(Int x);
/// Conversion of f64 to f32, rounded, and of f32 to f64, exact.
Float toF32(Float x);
Float toF64(Float x);
/// Zero extension of an i32; the low half of an i64.
Int toI64(Int x);
Int toI32(Int x);

} // namespace mlir::comms::numerics

#endif // COMMSIR_LOWERING_NUMERICS_NUMBERS_H
