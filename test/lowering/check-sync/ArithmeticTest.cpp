//===- ArithmeticTest.cpp - Intervals and all values in them --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Arithmetic.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir::comms::check;

namespace {

bool holds(Interval interval, int64_t value) {
  return interval.low <= value && value <= interval.high;
}

/// Intervals of what registers of that width hold, and one of everything.
std::vector<Interval> drawIntervals(unsigned width, unsigned count) {
  std::mt19937_64 random(width);
  int64_t least = width == 1 ? 0 : -(int64_t(1) << (width - 1));
  int64_t values = int64_t(1) << width;
  std::vector<Interval> made = {{}};
  for (unsigned i = 0; i < count; ++i) {
    int64_t a = least + int64_t(random() % values);
    int64_t b = least + int64_t(random() % values);
    made.push_back({std::min(a, b), std::max(a, b)});
  }
  return made;
}

/// All values of `width` bits in it.
std::vector<int64_t> list(Interval interval, unsigned width) {
  std::vector<int64_t> values;
  for (int64_t bits = 0; bits < int64_t(1) << width; ++bits)
    if (int64_t value = normalize(bits, width); holds(interval, value))
      values.push_back(value);
  return values;
}

constexpr Code binaryCodes[] = {
    Code::Add,      Code::Sub,       Code::Mul,  Code::DivS, Code::DivU,
    Code::RemS,     Code::RemU,      Code::And,  Code::Or,   Code::Xor,
    Code::CeilDivS, Code::CeilDivU,  Code::Shl,  Code::ShrS, Code::ShrU,
    Code::MinS,     Code::FloorDivS, Code::MaxS, Code::MinU, Code::MaxU};

TEST(Intervals, HoldAllResults) {
  for (unsigned width : {1, 2, 5})
    for (Code code : binaryCodes)
      for (Interval a : drawIntervals(width, 40))
        for (Interval b : drawIntervals(width, 40)) {
          Interval found = span(code, a, b, width);
          for (int64_t x : list(a, width))
            for (int64_t y : list(b, width))
              if (auto result = compute(code, x, y, width))
                ASSERT_TRUE(holds(found, normalize(*result, width)))
                    << "code " << int(code) << " of " << width << " bits: " << x
                    << ", " << y;
        }
}

TEST(Intervals, HoldAllCasts) {
  for (unsigned from : {1, 3, 6})
    for (unsigned to : {1, 3, 6})
      for (bool isSigned : {false, true})
        for (Interval interval : drawIntervals(from, 60)) {
          Interval found = castSpan(interval, isSigned, from, to);
          for (int64_t value : list(interval, from)) {
            int64_t wide = !isSigned
                               ? static_cast<int64_t>(unsignedOf(value, from))
                           : from == 1 ? -value
                                       : value;
            ASSERT_TRUE(holds(found, normalize(wide, to)))
                << from << " to " << to << " bits: " << value;
          }
        }
}

/// Where nothing wraps around, nothing is given away.
TEST(Intervals, AreNarrow) {
  auto is = [](Interval found, int64_t low, int64_t high) {
    return found.low == low && found.high == high;
  };
  Interval any, some = {2, 5}, three = {3, 3};
  EXPECT_TRUE(is(span(Code::Add, some, three, 64), 5, 8));
  EXPECT_TRUE(is(span(Code::Sub, three, some, 64), -2, 1));
  EXPECT_TRUE(is(span(Code::Mul, {-1, 2}, some, 64), -5, 10));
  EXPECT_TRUE(is(span(Code::MinS, any, three, 64), INT64_MIN, 3));
  EXPECT_TRUE(is(span(Code::MaxS, any, three, 32), 3, INT32_MAX));
  EXPECT_TRUE(is(span(Code::RemU, any, three, 64), 0, 2));
  EXPECT_TRUE(is(span(Code::RemS, any, three, 64), -2, 2));
  EXPECT_TRUE(is(span(Code::And, any, three, 64), 0, 3));
  EXPECT_TRUE(is(span(Code::DivS, {4, 20}, three, 64), 1, 6));
  EXPECT_TRUE(is(castSpan(any, false, 8, 64), 0, 255));
  EXPECT_TRUE(is(castSpan(any, true, 8, 64), -128, 127));
  EXPECT_TRUE(is(castSpan(some, true, 64, 8), 2, 5));
}

/// What may wrap around, or has more than 64 bits, may be anything.
TEST(Intervals, WrapAround) {
  auto isAny = [](Interval found) {
    return found.low == INT64_MIN && found.high == INT64_MAX;
  };
  EXPECT_TRUE(isAny(span(Code::Add, {100, 127}, {1, 2}, 8)));
  EXPECT_TRUE(isAny(span(Code::Add, {0, INT64_MAX}, {0, 1}, 64)));
  EXPECT_TRUE(isAny(span(Code::Mul, {0, int64_t(1) << 40}, {0, 1 << 30}, 64)));
  EXPECT_TRUE(isAny(castSpan({0, 200}, true, 64, 8)));
}

} // namespace
