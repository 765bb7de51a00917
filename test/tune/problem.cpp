//===- problem.cpp - Inputs, references and checks ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchCase.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace commsir;
using namespace commsir::tune;
using driver::Element;

template <typename T>
static llvm::ArrayRef<T> as(llvm::ArrayRef<char> bytes) {
  return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
static std::vector<char> toBytes(const std::vector<T> &values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// The sums of an all-reduce in rank order.
static std::vector<float> sumsOf(const Reference &reference, int64_t ranks) {
  std::vector<float> sums = as<float>(reference.input(0)).vec();
  for (int64_t rank = 1; rank < ranks; ++rank)
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += as<float>(reference.input(rank))[i];
  return sums;
}

TEST(Reference, InputsAreReproducibleAndDiffer) {
  BenchCase problem{Operation::AllReduce, Element::F32, 3, 4096};
  Reference one(problem, 5), same(problem, 5), other(problem, 6);
  EXPECT_EQ(one.input(1), same.input(1));
  EXPECT_NE(one.input(1), other.input(1));
  EXPECT_NE(one.input(1), one.input(2));
  for (float value : as<float>(one.input(0)))
    EXPECT_TRUE(value >= -1 && value < 1);
}

TEST(Reference, SumsInRankOrderAreExact) {
  BenchCase problem{Operation::AllReduce, Element::F32, 3, 4096};
  Reference reference(problem);
  std::vector<float> sums = sumsOf(reference, 3);
  CheckResult result = reference.check(2, toBytes(sums));
  EXPECT_TRUE(result.right);
  EXPECT_TRUE(result.exact);
}

TEST(Reference, AnotherOrderIsRightButNotExact) {
  BenchCase problem{Operation::AllReduce, Element::F32, 3, 4096};
  Reference reference(problem);
  std::vector<float> sums = as<float>(reference.input(2)).vec();
  for (int64_t rank : {1, 0})
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += as<float>(reference.input(rank))[i];
  CheckResult result = reference.check(0, toBytes(sums));
  EXPECT_TRUE(result.right) << result.message;
  EXPECT_FALSE(result.exact);
}

TEST(Reference, OneWrongElementIsFound) {
  BenchCase problem{Operation::AllReduce, Element::F32, 3, 4096};
  Reference reference(problem);
  std::vector<float> sums = sumsOf(reference, 3);
  sums[1000] += 1e-4f;
  CheckResult result = reference.check(2, toBytes(sums));
  EXPECT_FALSE(result.right);
  EXPECT_EQ(result.message.find("rank 2, element 1000: got "), 0u);
}

/// The sum of what the ranks of `order` have, rounded after each addition.
static std::vector<char> addUp(const Reference &reference, Element element,
                               llvm::ArrayRef<int64_t> order) {
  std::vector<char> sum = reference.input(order.front()).vec();
  for (int64_t rank : order.drop_front())
    for (size_t i = 0; i < sum.size(); ++i) {
      double a, b;
      driver::decode(element, &sum[i], a);
      driver::decode(element, &reference.input(rank)[i], b);
      bool wraps = element == Element::I8;
      driver::encode(element, wraps ? double(int8_t(int(a + b))) : a + b,
                     &sum[i]);
    }
  return sum;
}

TEST(Reference, SumsOfEightBitsAreExactInEveryOrderAndWholeWhenRight) {
  for (Element element : {Element::F8E4M3FN, Element::F8E5M2, Element::I8}) {
    BenchCase problem{Operation::AllReduce, element, 11, 4096};
    Reference reference(problem);
    std::vector<int64_t> order = {7, 2, 9, 10, 0, 5, 1, 8, 4, 3, 6};
    CheckResult result = reference.check(3, addUp(reference, element, order));
    EXPECT_TRUE(result.right && result.exact) << result.message;
    order.pop_back();
    EXPECT_FALSE(reference.check(3, addUp(reference, element, order)).right);
  }
}

TEST(Reference, PoisonIsWrongInEveryType) {
  for (Element element :
       {Element::BF16, Element::F16, Element::F32, Element::I32,
        Element::F8E4M3FN, Element::F8E5M2, Element::I8})
    for (Operation operation : allOperations()) {
      BenchCase problem{operation, element, 2, 4096};
      Reference reference(problem);
      std::vector<char> output(problem.outputBytes(), char(kOutputPoison));
      CheckResult result = reference.check(1, output);
      EXPECT_FALSE(result.right) << problem.describe();
      EXPECT_FALSE(result.message.empty());
    }
}

TEST(Reference, ReduceScatterChecksEachRanksPart) {
  BenchCase problem{Operation::ReduceScatter, Element::F32, 4, 4096};
  Reference reference(problem);
  std::vector<float> sums = sumsOf(reference, 4);
  std::vector<float> part(sums.begin() + 512, sums.begin() + 768);
  EXPECT_TRUE(reference.check(2, toBytes(part)).exact);
  EXPECT_FALSE(reference.check(1, toBytes(part)).right);
}

TEST(Reference, AllGatherBroadcastAndAllToAllAreCopies) {
  BenchCase gather{Operation::AllGather, Element::BF16, 3, 600};
  Reference gathered(gather);
  std::vector<char> output;
  for (int64_t rank = 0; rank < 3; ++rank)
    llvm::append_range(output, gathered.input(rank));
  EXPECT_TRUE(gathered.check(1, output).right);
  std::swap(output[0], output[599]);
  EXPECT_EQ(gathered.check(1, output).message.find("rank 1, element 0:"), 0u);

  BenchCase broadcast{Operation::Broadcast, Element::I32, 3, 600};
  Reference sent(broadcast);
  EXPECT_TRUE(sent.check(2, sent.input(0)).right);
  EXPECT_FALSE(sent.check(2, sent.input(1)).right);

  BenchCase exchange{Operation::AllToAll, Element::F32, 3, 1200};
  Reference exchanged(exchange);
  output.clear();
  for (int64_t rank = 0; rank < 3; ++rank)
    llvm::append_range(output, exchanged.input(rank).slice(800, 400));
  EXPECT_TRUE(exchanged.check(2, output).exact);
  EXPECT_FALSE(exchanged.check(1, output).right);
}

TEST(Reference, AnOutputOfTheWrongSizeIsWrong) {
  BenchCase problem{Operation::AllReduce, Element::F32, 2, 64};
  EXPECT_FALSE(Reference(problem).check(0, {}).right);
}

static std::string errorOf(const BenchCase &problem) {
  return llvm::toString(problem.check());
}

TEST(BenchCase, SizesThatCannotBeAreRefused) {
  EXPECT_EQ(errorOf({Operation::AllReduce, Element::F32, 3, 4}), "");
  EXPECT_NE(errorOf({Operation::AllReduce, Element::F32, 3, 5})
                .find("whole number of elements"),
            std::string::npos);
  EXPECT_NE(errorOf({Operation::AllReduce, Element::F32, 3, 0}), "");
  EXPECT_NE(
      errorOf({Operation::AllToAll, Element::F32, 3, 16}).find("3 equal parts"),
      std::string::npos);
  EXPECT_NE(
      errorOf({Operation::AllGather, Element::F32, 1 << 20, int64_t(1) << 40})
          .find("too large"),
      std::string::npos);
}

TEST(BenchCase, OperationsHaveNames) {
  for (Operation operation : allOperations()) {
    auto parsed = parseOperation(operationName(operation));
    ASSERT_TRUE(bool(parsed));
    EXPECT_EQ(*parsed, operation);
  }
  auto unknown = parseOperation("all_reduced");
  ASSERT_FALSE(bool(unknown));
  EXPECT_NE(llvm::toString(unknown.takeError()).find("reduce_scatter"),
            std::string::npos);
}
