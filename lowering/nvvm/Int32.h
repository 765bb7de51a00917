//===- Int32.h - Arithmetic on numbers of 32 bits ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm. Operators emit the ops of arith, folded where both
// sides are constants.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_INT32_H
#define COMMSIR_LOWERING_NVVM_INT32_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::comms::nvvm {

/// A constant of i32.
inline Value emitNumber(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(
      b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

/// A value of i32, and the builder that emits what is computed from it.
struct Int {
  Int(ImplicitLocOpBuilder &b, Value value) : b(&b), value(value) {}

  Int constant(int64_t number) const { return {*b, emitNumber(*b, number)}; }
  template <typename Op>
  Int apply(Value other) const {
    return {*b, b->createOrFold<Op>(value, other)};
  }
  Int operator+(const Int &other) const {
    return apply<arith::AddIOp>(other.value);
  }
  Int operator-(const Int &other) const {
    return apply<arith::SubIOp>(other.value);
  }
  Int operator^(const Int &other) const {
    return apply<arith::XOrIOp>(other.value);
  }
  Int operator+(Value other) const { return apply<arith::AddIOp>(other); }
  Int operator+(int64_t other) const { return *this + constant(other); }
  Int operator-(int64_t other) const { return *this - constant(other); }
  Int operator*(int64_t other) const {
    return apply<arith::MulIOp>(constant(other).value);
  }
  Int operator/(int64_t other) const {
    return apply<arith::DivUIOp>(constant(other).value);
  }
  Int operator%(int64_t other) const {
    return apply<arith::RemUIOp>(constant(other).value);
  }
  /// The smaller of `limit` minus this number, and `most`. Not by a minimum: of
  /// a sum whose operand is negated, ptxas 13.0 may lose the sign (VIADDMNMX).
  Int getRest(const Int &limit, int64_t most) const {
    Value whole = arith::CmpIOp::create(*b, arith::CmpIPredicate::sle,
                                        (*this + most).value, limit.value);
    return {*b, arith::SelectOp::create(*b, whole, constant(most).value,
                                        (limit - *this).value)};
  }
  Value isBelow(Value other) const {
    return arith::CmpIOp::create(*b, arith::CmpIPredicate::slt, value, other);
  }
  Value isBelow(const Int &other) const { return isBelow(other.value); }

  ImplicitLocOpBuilder *b;
  Value value;
};

/// Emits `body` for the case that `condition` (i1) holds.
inline void emitWhen(ImplicitLocOpBuilder &b, Value condition,
                     llvm::function_ref<void(ImplicitLocOpBuilder &)> body) {
  auto only = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  ImplicitLocOpBuilder in(b.getLoc(), only.thenYield());
  body(in);
}

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_INT32_H
