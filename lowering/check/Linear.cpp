//===- Linear.cpp - Sums of unknown integers ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Linear.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Numbers beyond are taken for unbounded, so that no sum of them overflows.
static constexpr int64_t most = int64_t(1) << 40;
/// Terms within terms that are looked at.
static constexpr unsigned deepest = 64;

bool LinearSum::add(const LinearSum &other, int64_t times) {
  auto addTo = [&](int64_t &into, int64_t amount) {
    int64_t product = 0;
    return !__builtin_mul_overflow(amount, times, &product) &&
           !__builtin_add_overflow(into, product, &into) && into >= -most &&
           into <= most;
  };
  bool fits = addTo(constant, other.constant);
  for (auto [term, factor] : other.factors) {
    int64_t &into = factors[term];
    fits &= addTo(into, factor);
    if (into == 0)
      factors.erase(term);
  }
  return fits;
}

namespace {
/// Numbers between which an integer is; INT64_MIN, INT64_MAX: not bounded.
struct Bounds {
  int64_t low = INT64_MIN, high = INT64_MAX;
  bool isBounded() const { return low >= -most && high <= most; }
};
} // namespace

static LinearSum sumOf(const Terms &terms, int32_t term, unsigned depth);

/// Of a term that is no sum.
static Bounds rangeOf(const Terms &terms, int32_t term, unsigned depth);

/// `end` and `factor` times `by`; `none` where one of them is not bounded.
static int64_t extend(int64_t end, int64_t by, int64_t factor, int64_t none) {
  auto isLarge = [](int64_t value) { return value < -most || value > most; };
  int64_t product = 0, sum = 0;
  bool isBounded = !isLarge(end) && !isLarge(by) &&
                   !__builtin_mul_overflow(by, factor, &product) &&
                   !__builtin_add_overflow(end, product, &sum);
  return isBounded ? sum : none;
}

static Bounds rangeOf(const Terms &terms, const LinearSum &sum,
                      unsigned depth) {
  Bounds all = {sum.constant, sum.constant};
  for (auto [term, factor] : sum.factors) {
    Bounds one = rangeOf(terms, term, depth);
    if (factor < 0)
      std::swap(one.low, one.high);
    all.low = extend(all.low, one.low, factor, INT64_MIN);
    all.high = extend(all.high, one.high, factor, INT64_MAX);
  }
  return all;
}

static Bounds rangeOf(const Terms &terms, int32_t term, unsigned depth) {
  Terms::Definition made = terms.describe(term);
  if (made.isConstant)
    return {made.constant, made.constant};
  if (depth == 0)
    return {};
  bool isMost = made.code == Code::MinS;
  if (made.operands[0] != 0 && (isMost || made.code == Code::MaxS)) {
    Bounds a =
        rangeOf(terms, sumOf(terms, made.operands[0], depth - 1), depth - 1);
    Bounds b =
        rangeOf(terms, sumOf(terms, made.operands[1], depth - 1), depth - 1);
    return isMost ? Bounds{std::min(a.low, b.low), std::min(a.high, b.high)}
                  : Bounds{std::max(a.low, b.low), std::max(a.high, b.high)};
  }
  if (made.operands[0] == 0) {
    Interval known = terms.rangeOf(term);
    return {known.low, known.high};
  }
  return {};
}

/// Whether all numbers of a range have `width` bits.
static bool fits(Bounds range, unsigned width) {
  return range.isBounded() && width > 1 &&
         (width >= 64 ||
          (llvm::isIntN(width, range.low) && llvm::isIntN(width, range.high)));
}

static LinearSum sumOf(const Terms &terms, int32_t term, unsigned depth) {
  const LinearSum itself = {{{term, 1}}, 0};
  Terms::Definition made = terms.describe(term);
  if (made.isConstant)
    return made.constant >= -most && made.constant <= most
               ? LinearSum::of(made.constant)
               : itself;
  if (depth == 0 || made.operands[0] == 0)
    return itself;
  LinearSum sum = sumOf(terms, made.operands[0], depth - 1);
  auto checked = [&](bool isSmall) {
    return isSmall && fits(rangeOf(terms, sum, depth - 1), made.width) ? sum
                                                                       : itself;
  };
  switch (made.code) {
  case Code::Add:
  case Code::Sub:
    return checked(sum.add(sumOf(terms, made.operands[1], depth - 1),
                           made.code == Code::Add ? 1 : -1));
  case Code::Mul: {
    LinearSum other = sumOf(terms, made.operands[1], depth - 1);
    if (!other.factors.empty())
      std::swap(sum, other);
    if (!other.factors.empty())
      return itself;
    LinearSum product;
    bool isSmall = product.add(sum, other.constant);
    sum = std::move(product);
    return checked(isSmall);
  }
  case Code::SignCast:
    return checked(made.extra > 1);
  case Code::ZeroCast:
    return checked(made.extra > 1 && rangeOf(terms, sum, depth - 1).low >= 0);
  default:
    return itself;
  }
}

std::optional<LinearSum> mlir::comms::check::findSum(const Terms &terms,
                                                     Interval value) {
  if (value.isKnown())
    return value.low >= -most && value.low <= most
               ? std::optional(LinearSum::of(value.low))
               : std::nullopt;
  if (value.term == 0)
    return std::nullopt;
  return sumOf(terms, value.term, deepest);
}

Interval mlir::comms::check::findRange(const Terms &terms,
                                       const LinearSum &sum) {
  Bounds found = rangeOf(terms, sum, deepest);
  return {found.low, found.high};
}

std::optional<LinearSum> mlir::comms::check::findBound(const Terms &terms,
                                                       int32_t condition) {
  using Predicate = arith::CmpIPredicate;
  Terms::Definition made = terms.describe(condition);
  if (made.code != Code::Compare || made.operands[0] == 0)
    return std::nullopt;
  auto predicate = static_cast<Predicate>(made.extra);
  bool isLess = predicate == Predicate::slt || predicate == Predicate::sle;
  bool isMore = predicate == Predicate::sgt || predicate == Predicate::sge;
  if (!isLess && !isMore)
    return std::nullopt;
  LinearSum bound = sumOf(terms, made.operands[isLess ? 1 : 0], deepest);
  bool isStrict = predicate == Predicate::slt || predicate == Predicate::sgt;
  if (!bound.add(sumOf(terms, made.operands[isLess ? 0 : 1], deepest), -1) ||
      !bound.add(LinearSum::of(1), isStrict ? -1 : 0))
    return std::nullopt;
  return bound;
}

bool mlir::comms::check::isNeverNegative(const Terms &terms,
                                         const LinearSum &sum,
                                         llvm::ArrayRef<int32_t> conditions) {
  if (rangeOf(terms, sum, deepest).low >= 0)
    return true;
  if (conditions.empty())
    return false;
  if (isNeverNegative(terms, sum, conditions.drop_front()))
    return true;
  std::optional<LinearSum> bound = findBound(terms, conditions.front());
  if (!bound)
    return false;
  // As often as one of its terms goes into the sum.
  for (auto [term, factor] : bound->factors) {
    auto it = sum.factors.find(term);
    if (it == sum.factors.end() || it->second % factor != 0 ||
        it->second / factor <= 0)
      continue;
    LinearSum rest = sum;
    if (rest.add(*bound, -(it->second / factor)) &&
        isNeverNegative(terms, rest, conditions.drop_front()))
      return true;
  }
  return false;
}
