//===- Arithmetic.cpp - Integers of a given width -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Arithmetic.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

int64_t mlir::comms::check::normalize(int64_t value, unsigned width) {
  if (width >= 64)
    return value;
  if (width == 1)
    return value & 1;
  return llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

uint64_t mlir::comms::check::unsignedOf(int64_t value, unsigned width) {
  return width >= 64
             ? static_cast<uint64_t>(value)
             : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

std::optional<int64_t> mlir::comms::check::compute(Code code, int64_t a,
                                                   int64_t b, unsigned width) {
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  // An i1 is kept as 0 or 1, but its sign bit is its only bit.
  if (width == 1)
    a = -a, b = -b;
  switch (code) {
  case Code::Add:
    return static_cast<int64_t>(ua + ub);
  case Code::Sub:
    return static_cast<int64_t>(ua - ub);
  case Code::Mul:
    return static_cast<int64_t>(ua * ub);
  case Code::And:
    return a & b;
  case Code::Or:
    return a | b;
  case Code::Xor:
    return a ^ b;
  case Code::MinS:
    return std::min(a, b);
  case Code::MaxS:
    return std::max(a, b);
  case Code::MinU:
    return static_cast<int64_t>(std::min(ua, ub));
  case Code::MaxU:
    return static_cast<int64_t>(std::max(ua, ub));
  case Code::Shl:
  case Code::ShrS:
  case Code::ShrU:
    if (ub >= width)
      return std::nullopt;
    if (code == Code::Shl)
      return static_cast<int64_t>(ua << ub);
    return code == Code::ShrS ? a >> ub : static_cast<int64_t>(ua >> ub);
  default:
    break;
  }
  if (b == 0)
    return std::nullopt;
  switch (code) {
  case Code::DivU:
    return static_cast<int64_t>(ua / ub);
  case Code::RemU:
    return static_cast<int64_t>(ua % ub);
  case Code::CeilDivU:
    return static_cast<int64_t>(ua / ub + (ua % ub != 0));
  default:
    break;
  }
  // The quotient of the least number by -1 has no place.
  if (b == -1 && a == llvm::minIntN(width))
    return std::nullopt;
  switch (code) {
  case Code::DivS:
    return a / b;
  case Code::RemS:
    return a % b;
  case Code::CeilDivS:
    return a / b + (a % b != 0 && (a < 0) == (b < 0));
  case Code::FloorDivS:
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  default:
    return std::nullopt;
  }
}

/// What registers of that width hold.
static Interval rangeOf(unsigned width) {
  if (width == 1)
    return {0, 1};
  return width >= 64 ? Interval{}
                     : Interval{llvm::minIntN(width), llvm::maxIntN(width)};
}

static Interval clip(Interval value, unsigned width) {
  Interval range = rangeOf(width);
  return {std::max(value.low, range.low), std::min(value.high, range.high)};
}

/// Nothing is known of what may have wrapped around.
static Interval unlessWrapped(Interval value, unsigned width) {
  Interval range = rangeOf(width);
  return value.low < range.low || value.high > range.high ? Interval{} : value;
}

/// a op b, or nothing where that has more than 64 bits.
static std::optional<int64_t> exactly(Code code, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (code) {
  case Code::Add:
    return llvm::AddOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Code::Sub:
    return llvm::SubOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Code::Mul:
    return llvm::MulOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Code::MinS:
    return std::min(a, b);
  default:
    return std::max(a, b);
  }
}

/// Of an op that for a given operand grows with the other, or falls with it.
static Interval spanOfEnds(Code code, Interval a, Interval b) {
  Interval found = {INT64_MAX, INT64_MIN};
  for (int64_t x : {a.low, a.high})
    for (int64_t y : {b.low, b.high}) {
      std::optional<int64_t> end = exactly(code, x, y);
      if (!end)
        return {};
      found = {std::min(found.low, *end), std::max(found.high, *end)};
    }
  return found;
}

Interval mlir::comms::check::span(Code code, Interval a, Interval b,
                                  unsigned width) {
  if (width == 1)
    return {};
  a = clip(a, width);
  b = clip(b, width);
  switch (code) {
  case Code::Add:
  case Code::Sub:
  case Code::Mul:
  case Code::MinS:
  case Code::MaxS:
    return unlessWrapped(spanOfEnds(code, a, b), width);
  case Code::And:
  case Code::MinU:
    // At most each of them, as numbers without a sign.
    if (a.low < 0 && b.low < 0)
      return {};
    return {0, std::min(a.low < 0 ? INT64_MAX : a.high,
                        b.low < 0 ? INT64_MAX : b.high)};
  case Code::RemU:
    if (b.low <= 0)
      return {};
    return {0, std::min(a.low < 0 ? INT64_MAX : a.high, b.high - 1)};
  case Code::RemS:
    if (b.low <= 0)
      return {};
    return {a.low >= 0 ? 0 : std::max(a.low, 1 - b.high),
            a.high <= 0 ? 0 : std::min(a.high, b.high - 1)};
  case Code::DivS:
  case Code::DivU:
  case Code::FloorDivS:
    if (a.low < 0 || b.low <= 0)
      return {};
    return {a.low / b.high, a.high / b.low};
  default:
    return {};
  }
}

Interval mlir::comms::check::castSpan(Interval value, bool isSigned,
                                      unsigned from, unsigned to) {
  value = clip(value, from);
  if (isSigned && from == 1)
    return {};
  if (!isSigned && value.low < 0)
    value = from >= 64
                ? Interval{}
                : Interval{0, static_cast<int64_t>(llvm::maxUIntN(from))};
  return unlessWrapped(value, to);
}

bool mlir::comms::check::compare(arith::CmpIPredicate predicate, int64_t a,
                                 int64_t b, unsigned width) {
  // An i1 is kept as 0 or 1, but its sign bit is its only bit.
  if (width == 1 && predicate >= arith::CmpIPredicate::slt &&
      predicate <= arith::CmpIPredicate::sge)
    a = -a, b = -b;
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  return false;
}

std::optional<bool>
mlir::comms::check::compareSpans(arith::CmpIPredicate predicate, Interval a,
                                 Interval b) {
  using Predicate = arith::CmpIPredicate;
  // Without signs, numbers that are not negative are ordered the same.
  bool isUnsigned = predicate == Predicate::ult ||
                    predicate == Predicate::ule ||
                    predicate == Predicate::ugt || predicate == Predicate::uge;
  if (isUnsigned && (a.low < 0 || b.low < 0))
    return std::nullopt;
  auto either = [](bool yes, bool no) {
    return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt;
  };
  switch (predicate) {
  case Predicate::eq:
    return either(false, a.high < b.low || b.high < a.low);
  case Predicate::ne:
    return either(a.high < b.low || b.high < a.low, false);
  case Predicate::slt:
  case Predicate::ult:
    return either(a.high < b.low, a.low >= b.high);
  case Predicate::sle:
  case Predicate::ule:
    return either(a.high <= b.low, a.low > b.high);
  case Predicate::sgt:
  case Predicate::ugt:
    return either(a.low > b.high, a.high <= b.low);
  case Predicate::sge:
  case Predicate::uge:
    return either(a.low >= b.high, a.high < b.low);
  }
  return std::nullopt;
}
