//===- Linear.h - Sums of unknown integers ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A place that a kernel computes by adding up lengths is a sum of unknown
// integers with factors. Whether one such sum is at least another follows from
// the ranges of these integers, and from conditions under which a region runs.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_LINEAR_H
#define COMMSIR_LOWERING_CHECK_LINEAR_H

#include "lowering/check/Terms.h"

#include "llvm/ADT/ArrayRef.h"

#include <map>

namespace mlir::comms::check {

/// A sum of terms with factors, and a constant.
struct LinearSum {
  std::map<int32_t, int64_t> factors;
  int64_t constant = 0;

  static LinearSum of(int64_t constant) { return {{}, constant}; }
  /// Adds `other`, `times` times. False: a number leaves 63 bits.
  bool add(const LinearSum &other, int64_t times);
};

/// The sum that `value` is. An integer of which nothing is known is a sum of
/// itself; none: it has no name.
std::optional<LinearSum> findSum(const Terms &terms, Interval value);

/// The numbers between which a sum is.
Interval findRange(const Terms &terms, const LinearSum &sum);

/// The sum that is at least 0 if a comparison holds; none: it says nothing.
std::optional<LinearSum> findBound(const Terms &terms, int32_t condition);

/// Whether `sum` is at least 0 for all data for which `conditions`, terms of
/// comparisons, hold.
bool isNeverNegative(const Terms &terms, const LinearSum &sum,
                     llvm::ArrayRef<int32_t> conditions);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_LINEAR_H
