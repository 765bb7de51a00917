//===- Sum.h - Sums of values with constant factors -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_BOUNDS_SUM_H
#define COMMSIR_LOWERING_CHECK_BOUNDS_SUM_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

#include <limits>

namespace mlir::comms::bounds {

/// How deep expressions are followed: ends every search, also in cyclic IR.
constexpr int kMaxDepth = 16;

/// A sum of values with factors, and a constant. `valid` is false once a number
/// has left 64 bits: then nothing is known.
struct Sum {
  int64_t constant = 0;
  llvm::SmallMapVector<Value, int64_t, 4> terms;
  bool valid = true;

  static Sum of(int64_t constant);

  /// Adds `factor * other`.
  void add(const Sum &other, int64_t factor);

  bool isConstant() const { return valid && terms.empty(); }
};

/// Smallest and largest value.
struct Interval {
  int64_t smallest = std::numeric_limits<int64_t>::min();
  int64_t largest = std::numeric_limits<int64_t>::max();

  void narrow(int64_t low, int64_t high) {
    smallest = std::max(smallest, low);
    largest = std::min(largest, high);
  }
};

/// A number that divides `value` as long as nothing in its expression leaves 64
/// bits; 0 only where the value is 0.
int64_t getDivisor(Value value, int depth = 0);

} // namespace mlir::comms::bounds

#endif // COMMSIR_LOWERING_CHECK_BOUNDS_SUM_H
