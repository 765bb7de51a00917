//===- ElementTest.cpp - Conversions between element types ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Element.h"

#include "llvm/ADT/APFloat.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace commsir::driver;

namespace {

const llvm::fltSemantics &semanticsOf(Element element) {
  switch (element) {
  case Element::F16:
    return llvm::APFloat::IEEEhalf();
  case Element::BF16:
    return llvm::APFloat::BFloat();
  case Element::F8E5M2:
    return llvm::APFloat::Float8E5M2();
  default:
    return llvm::APFloat::Float8E4M3FN();
  }
}

} // namespace

class Narrow : public testing::TestWithParam<Element> {};

/// Every pattern decodes as LLVM's own floats do, and encodes back to itself.
TEST_P(Narrow, AllPatternsAgreeWithAPFloat) {
  Element element = GetParam();
  unsigned bits = 8 * elementBytes(element);
  for (uint32_t pattern = 0; pattern < (1u << bits); ++pattern) {
    llvm::APFloat reference(semanticsOf(element), llvm::APInt(bits, pattern));
    double value;
    decode(element, reinterpret_cast<const char *>(&pattern), value);
    if (reference.isNaN()) {
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    bool lossy;
    reference.convert(llvm::APFloat::IEEEdouble(),
                      llvm::APFloat::rmNearestTiesToEven, &lossy);
    ASSERT_EQ(value, reference.convertToDouble()) << pattern;
    uint32_t back = 0;
    encode(element, value, reinterpret_cast<char *>(&back));
    ASSERT_EQ(back, pattern);
  }
}

/// Values between two neighbors round as LLVM's own floats do.
TEST_P(Narrow, RoundsToNearestEven) {
  Element element = GetParam();
  unsigned bits = 8 * elementBytes(element);
  for (uint32_t pattern = 0; pattern + 1 < (1u << (bits - 1)); ++pattern) {
    double low, high;
    uint32_t next = pattern + 1;
    decode(element, reinterpret_cast<const char *>(&pattern), low);
    decode(element, reinterpret_cast<const char *>(&next), high);
    if (!std::isfinite(low) || !std::isfinite(high))
      break;
    for (double part : {0.25, 0.5, 0.75}) {
      double value = low + part * (high - low);
      llvm::APFloat reference(value);
      bool lossy;
      reference.convert(semanticsOf(element),
                        llvm::APFloat::rmNearestTiesToEven, &lossy);
      uint32_t got = 0;
      encode(element, value, reinterpret_cast<char *>(&got));
      ASSERT_EQ(got, reference.bitcastToAPInt().getZExtValue()) << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Narrow,
                         testing::Values(Element::F16, Element::BF16,
                                         Element::F8E4M3FN, Element::F8E5M2));

TEST(Element, SaturatesFp8) {
  unsigned char bits = 0;
  encode(Element::F8E4M3FN, 1e9, reinterpret_cast<char *>(&bits));
  EXPECT_EQ(bits, 0x7e); // 448
  encode(Element::F8E4M3FN, -std::numeric_limits<double>::infinity(),
         reinterpret_cast<char *>(&bits));
  EXPECT_EQ(bits, 0xfe);
  encode(Element::F8E4M3FN, std::nan(""), reinterpret_cast<char *>(&bits));
  EXPECT_EQ(bits, 0x7f);
}

TEST(Element, ClampsIntegers) {
  signed char small = 0;
  encode(Element::I8, 1000, reinterpret_cast<char *>(&small));
  EXPECT_EQ(small, 127);
  encode(Element::I8, -1000, reinterpret_cast<char *>(&small));
  EXPECT_EQ(small, -128);
  int64_t wide = 0;
  encode(Element::I64, 1e30, reinterpret_cast<char *>(&wide));
  EXPECT_EQ(wide, std::numeric_limits<int64_t>::max());
  int64_t out;
  decodeInts(Element::I64, reinterpret_cast<const char *>(&wide), out);
  EXPECT_EQ(out, wide);
}

TEST(Element, IsRenderedWithAllItsDigits) {
  auto render = [](Element element, auto value) {
    return renderElement(element, reinterpret_cast<const char *>(&value));
  };
  EXPECT_EQ(render(Element::I32, int32_t(1234567891)), "1234567891");
  EXPECT_EQ(render(Element::I8, int8_t(-1)), "-1");
  EXPECT_EQ(render(Element::I64, (int64_t(1) << 53) + 1), "9007199254740993");
  EXPECT_EQ(render(Element::U64, ~uint64_t(0)), "18446744073709551615");
  EXPECT_EQ(render(Element::F32, 1.5f), "1.5");
  EXPECT_NE(render(Element::F32, 1.0f), render(Element::F32, 1.0000001f));
  EXPECT_EQ(render(Element::F64, 0.1), "0.1");
  EXPECT_NE(render(Element::F64, 1.0), render(Element::F64, 1 + 0x1p-52));
}
