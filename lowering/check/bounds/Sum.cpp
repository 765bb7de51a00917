//===- Sum.cpp - Sums of values with constant factors ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/bounds/Sum.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;
using namespace mlir::comms;
using bounds::Sum;

/// into += value * factor, or false when that overflows.
static bool accumulate(int64_t &into, int64_t value, int64_t factor) {
  int64_t product;
  return !__builtin_mul_overflow(value, factor, &product) &&
         !__builtin_add_overflow(into, product, &into);
}

Sum Sum::of(int64_t constant) {
  Sum sum;
  sum.constant = constant;
  return sum;
}

void Sum::add(const Sum &other, int64_t factor) {
  valid &= other.valid && accumulate(constant, other.constant, factor);
  for (auto [value, coefficient] : other.terms) {
    int64_t &mine = terms[value];
    valid &= accumulate(mine, coefficient, factor);
  }
  terms.remove_if([](const auto &term) { return term.second == 0; });
}

int64_t bounds::getDivisor(Value value, int depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(value)) {
    // 0 is a multiple of everything; the smallest number has no absolute value.
    bool usable = *constant != std::numeric_limits<int64_t>::min();
    return usable ? std::abs(*constant) : 1;
  }
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth ||
      !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return 1;
  int64_t left = getDivisor(op->getOperand(0), depth + 1);
  int64_t right = getDivisor(op->getOperand(1), depth + 1);
  if (!isa<arith::MulIOp>(op))
    return std::gcd(left, right);
  int64_t product;
  return __builtin_mul_overflow(left, right, &product)
             ? std::max<int64_t>(left, 1)
             : product;
}
