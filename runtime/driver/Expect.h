//===- Expect.h - Comparing results with references -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_EXPECT_H
#define COMMSIR_RUNTIME_DRIVER_EXPECT_H

#include "runtime/driver/Arguments.h"
#include "runtime/driver/Npy.h"

namespace commsir::driver {

/// Allowed difference of a result from its reference.
struct Tolerance {
  std::optional<double> rtol, atol;
  bool bitwise = false;

  /// Largest allowed difference from `expected` for results of `element`.
  double allowed(Element element, double expected) const;
};

/// Outcome of a comparison for one argument of one rank.
struct Comparison {
  std::string argument;
  int64_t rank = 0;
  int64_t count = 0;
  int64_t mismatches = 0;
  /// Largest absolute difference; infinite if only one side is a number.
  double maxError = 0;
  /// Index of the first element that differs too much.
  int64_t flat = 0;
  llvm::SmallVector<int64_t> index;
  double got = 0, expected = 0, allowed = 0;
  /// The same values with all digits.
  std::string gotText, expectedText;

  /// "y, rank 3, element [0, 17]: got 1.5, expected 1.25 (…)".
  std::string render() const;
};

/// Checks that the reference has the argument's shape and, if bits are
/// compared, its type. The error names the file.
llvm::Error checkReference(const Argument &argument, const Npy &reference,
                           const Tolerance &tolerance);

/// Compares `memory`, the part of `rank` of `argument`, with the reference,
/// which may have any number type unless bits are compared.
llvm::Expected<Comparison> compare(const Argument &argument, int64_t rank,
                                   llvm::ArrayRef<char> memory,
                                   const Npy &reference,
                                   const Tolerance &tolerance);

/// Row-major index, in an array of `shape`, of element number `flat`.
llvm::SmallVector<int64_t> unflatten(int64_t flat,
                                     llvm::ArrayRef<int64_t> shape);

/// "[3, 17]".
std::string renderIndex(llvm::ArrayRef<int64_t> index);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_EXPECT_H
