//===- ExpectTest.cpp - Comparing results with references -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Expect.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace commsir::driver;

namespace {

Argument argument(Element element, llvm::SmallVector<int64_t> shape) {
  Argument made;
  made.name = "y";
  made.element = element;
  made.elementType = elementName(element).str();
  made.shape = shape;
  return made;
}

template <typename T>
std::string bytesOf(llvm::ArrayRef<T> values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}

Npy reference(Element element, llvm::ArrayRef<int64_t> shape,
              const std::string &data) {
  return llvm::cantFail(Npy::parse(
      llvm::MemoryBuffer::getMemBufferCopy(npyHeader(element, shape) + data),
      "y.npy"));
}

Comparison check(const Argument &argument, const std::string &memory,
                 const Npy &npy, Tolerance tolerance = {}) {
  return llvm::cantFail(compare(argument, 0, memory, npy, tolerance));
}

} // namespace

TEST(Expect, FindsTheFirstDifference) {
  float got[] = {1, 2, 3, 4, 5, 7};
  double expected[] = {1, 2, 3, 4, 5.5, 6};
  Comparison result =
      check(argument(Element::F32, {2, 3}), bytesOf<float>(got),
            reference(Element::F64, {2, 3}, bytesOf<double>(expected)));
  EXPECT_EQ(result.mismatches, 2);
  EXPECT_EQ(result.maxError, 1);
  EXPECT_EQ(renderIndex(result.index), "[1, 1]");
}

TEST(Expect, DistinguishesLongIntegers) {
  int32_t got[] = {1, 1234567891};
  int64_t expected[] = {1, 1234567892};
  Comparison result =
      check(argument(Element::I32, {2}), bytesOf<int32_t>(got),
            reference(Element::I64, {2}, bytesOf<int64_t>(expected)));
  EXPECT_TRUE(llvm::StringRef(result.render())
                  .contains("element [1]: got 1234567891, expected 1234567892"))
      << result.render();
  // Signless memory is told as the reference's sign says.
  uint32_t large[] = {1, ~uint32_t(0)};
  result = check(argument(Element::I32, {2}), bytesOf<int32_t>(got),
                 reference(Element::U32, {2}, bytesOf<uint32_t>(large)));
  EXPECT_TRUE(llvm::StringRef(result.render()).contains("expected 4294967295"))
      << result.render();
}

TEST(Expect, NotANumberEqualsItselfOnly) {
  float nan = NAN, inf = INFINITY;
  float got[] = {nan, nan, inf, inf};
  float expected[] = {nan, 1, inf, -inf};
  Comparison result =
      check(argument(Element::F32, {4}), bytesOf<float>(got),
            reference(Element::F32, {4}, bytesOf<float>(expected)));
  EXPECT_EQ(result.mismatches, 2);
  EXPECT_TRUE(std::isinf(result.maxError));
}

TEST(Expect, IntegersAreExactBeyondDouble) {
  int64_t got[] = {(int64_t(1) << 60) + 1};
  int64_t expected[] = {int64_t(1) << 60};
  Npy npy = reference(Element::I64, {1}, bytesOf<int64_t>(expected));
  EXPECT_EQ(
      check(argument(Element::I64, {1}), bytesOf<int64_t>(got), npy).mismatches,
      1);
  Tolerance one;
  one.atol = 1;
  EXPECT_EQ(check(argument(Element::I64, {1}), bytesOf<int64_t>(got), npy, one)
                .mismatches,
            0);
}

TEST(Expect, BitwiseDistinguishesZeros) {
  float got[] = {0.0f}, expected[] = {-0.0f};
  Npy npy = reference(Element::F32, {1}, bytesOf<float>(expected));
  Argument y = argument(Element::F32, {1});
  EXPECT_EQ(check(y, bytesOf<float>(got), npy).mismatches, 0);
  Tolerance bits;
  bits.bitwise = true;
  EXPECT_EQ(check(y, bytesOf<float>(got), npy, bits).mismatches, 1);
}

TEST(Expect, RefusesOtherShapesAndTypes) {
  float got[] = {0, 0};
  Argument y = argument(Element::F32, {2});
  auto wrongShape =
      compare(y, 0, bytesOf<float>(got),
              reference(Element::F32, {2, 1}, bytesOf<float>(got)), {});
  ASSERT_FALSE(bool(wrongShape));
  EXPECT_NE(llvm::toString(wrongShape.takeError()).find("has shape 2x1"),
            std::string::npos);
  Tolerance bits;
  bits.bitwise = true;
  double wide[] = {0, 0};
  auto wrongType =
      compare(y, 0, bytesOf<float>(got),
              reference(Element::F64, {2}, bytesOf<double>(wide)), bits);
  ASSERT_FALSE(bool(wrongType));
  llvm::consumeError(wrongType.takeError());
}
