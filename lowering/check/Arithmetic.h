//===- Arithmetic.h - Integers of a given width -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_ARITHMETIC_H
#define COMMSIR_LOWERING_CHECK_ARITHMETIC_H

#include "lowering/check/Program.h"

#include <optional>

namespace mlir::comms::check {

/// Truncates `value` to `width` bits and sign-extends it; for one bit the
/// result is 0 or 1.
int64_t normalize(int64_t value, unsigned width);

/// The lowest `width` bits of `value`.
uint64_t unsignedOf(int64_t value, unsigned width);

/// a op b on integers of `width` bits, or none if that is undefined or `code`
/// is not binary. The caller must normalize the result.
std::optional<int64_t> compute(Code code, int64_t a, int64_t b, unsigned width);

/// Range of a op b, for integers of `width` bits that are not both known.
Interval span(Code code, Interval a, Interval b, unsigned width);

/// Range of `value`, of `from` bits, after its conversion to `to` bits.
Interval castSpan(Interval value, bool isSigned, unsigned from, unsigned to);

bool compare(arith::CmpIPredicate predicate, int64_t a, int64_t b,
             unsigned width);

/// The comparison's result if the intervals determine it, else none.
std::optional<bool> compareSpans(arith::CmpIPredicate predicate, Interval a,
                                 Interval b);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_ARITHMETIC_H
