//===- Expect.cpp - Comparing results with references ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Expect.h"

#include "runtime/driver/Inputs.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace commsir;
using namespace commsir::driver;

/// Elements that are widened at a time: two such arrays stay in the L1 cache.
static constexpr int64_t kChunk = 1024;

double Tolerance::allowed(Element element, double expected) const {
  if (!isFloat(element))
    return atol.value_or(0);
  double relative = 0, absolute = 0;
  if (!rtol && !atol)
    relative = absolute = defaultTolerance(element);
  else
    relative = rtol.value_or(0), absolute = atol.value_or(0);
  return absolute + relative * std::fabs(expected);
}

llvm::SmallVector<int64_t>
commsir::driver::unflatten(int64_t flat, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

std::string commsir::driver::renderIndex(llvm::ArrayRef<int64_t> index) {
  std::string text = "[";
  for (int64_t i : index)
    text += (text.size() > 1 ? ", " : "") + std::to_string(i);
  return text + "]";
}

std::string Comparison::render() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << argument << ", rank " << rank << ", element " << renderIndex(index)
      << ": got " << gotText << ", expected " << expectedText
      << " (allowed difference " << llvm::format("%.3g", allowed) << "); "
      << mismatches << " of " << count
      << (mismatches == 1 ? " element differs" : " elements differ");
  return text;
}

/// Absolute difference; equal infinities and two NaN differ by nothing.
static double difference(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected)))
    return 0;
  double gap = std::fabs(got - expected);
  return std::isnan(gap) ? std::numeric_limits<double>::infinity() : gap;
}

static void record(Comparison &result, const Argument &argument, int64_t flat,
                   double got, double expected, double allowed) {
  if (result.mismatches++)
    return;
  result.flat = flat;
  result.index = unflatten(flat, argument.shape);
  result.got = got;
  result.expected = expected;
  result.allowed = allowed;
}

/// Returns the element type to compare with: signless memory takes the sign of
/// the reference.
static Element viewAs(Element element, Element other) {
  return isUnsigned(other) && elementBytes(other) == elementBytes(element)
             ? other
             : element;
}

/// Integers against integers: exact in 64 bits.
static void compareInts(Comparison &result, const Argument &argument,
                        const char *memory, const Npy &reference,
                        const Tolerance &tolerance) {
  Element element = *argument.element, other = reference.element();
  Element view = viewAs(element, other);
  int64_t got[kChunk], expected[kChunk];
  for (int64_t start = 0; start < result.count; start += kChunk) {
    size_t n = std::min(kChunk, result.count - start);
    decodeInts(view, memory + start * elementBytes(view), {got, n});
    decodeInts(other, reference.data().data() + start * elementBytes(other),
               {expected, n});
    for (size_t i = 0; i < n; ++i) {
      if (got[i] == expected[i])
        continue;
      double error = std::fabs(double(got[i]) - double(expected[i]));
      // Distinct integers may round to the same double.
      error = std::max(error, 1.0);
      result.maxError = std::max(result.maxError, error);
      double allowed = tolerance.allowed(element, double(expected[i]));
      if (error > allowed)
        record(result, argument, start + i, got[i], expected[i], allowed);
    }
  }
}

static void compareNumbers(Comparison &result, const Argument &argument,
                           const char *memory, Element other,
                           const char *reference, const Tolerance &tolerance) {
  Element element = *argument.element;
  double got[kChunk], expected[kChunk];
  for (int64_t start = 0; start < result.count; start += kChunk) {
    size_t n = std::min(kChunk, result.count - start);
    decode(element, memory + start * elementBytes(element), {got, n});
    decode(other, reference + start * elementBytes(other), {expected, n});
    for (size_t i = 0; i < n; ++i) {
      double error = difference(got[i], expected[i]);
      if (error == 0)
        continue;
      result.maxError = std::max(result.maxError, error);
      double allowed = tolerance.allowed(element, expected[i]);
      // Infinite: one side alone is a number, which nothing allows.
      if (error > allowed || std::isinf(error))
        record(result, argument, start + i, got[i], expected[i], allowed);
    }
  }
}

static void compareBits(Comparison &result, const Argument &argument,
                        const char *memory, const char *reference) {
  Element element = *argument.element;
  unsigned width = elementBytes(element);
  for (int64_t i = 0; i < result.count; ++i) {
    const char *left = memory + i * width, *right = reference + i * width;
    if (std::memcmp(left, right, width) == 0)
      continue;
    double got, expected;
    decode(element, left, got);
    decode(element, right, expected);
    result.maxError = std::max(result.maxError, difference(got, expected));
    record(result, argument, i, got, expected, 0);
  }
}

/// Raw bytes are of the argument's type where the width allows it.
static Element elementOf(const Npy &reference, const Argument &argument) {
  Element element = *argument.element, other = reference.element();
  bool same = reference.isRaw() && isFloat(element) &&
              element != Element::F16 &&
              elementBytes(element) == elementBytes(other);
  return same ? element : other;
}

llvm::Error commsir::driver::checkReference(const Argument &argument,
                                            const Npy &reference,
                                            const Tolerance &tolerance) {
  if (llvm::Error error =
          checkFile(argument, reference.path(), reference.shape()))
    return error;
  Element element = *argument.element, other = elementOf(reference, argument);
  bool sameKind = isFloat(element) == isFloat(other) &&
                  elementBytes(element) == elementBytes(other) &&
                  (!isFloat(element) || element == other);
  if (sameKind || !tolerance.bitwise)
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      "'" + reference.path() + "': holds " + elementName(other) +
          ", but argument '" + argument.name + "' is a " + argument.describe() +
          "; --bitwise compares equal types only");
}

llvm::Expected<Comparison>
commsir::driver::compare(const Argument &argument, int64_t rank,
                         llvm::ArrayRef<char> memory, const Npy &reference,
                         const Tolerance &tolerance) {
  if (llvm::Error error = checkReference(argument, reference, tolerance))
    return error;
  Element element = *argument.element, other = elementOf(reference, argument);
  Comparison result;
  result.argument = argument.name;
  result.rank = rank;
  result.count = reference.count();
  if (tolerance.bitwise) {
    compareBits(result, argument, memory.data(), reference.data().data());
  } else if (!isFloat(element) && !isFloat(other)) {
    compareInts(result, argument, memory.data(), reference, tolerance);
  } else {
    compareNumbers(result, argument, memory.data(), other,
                   reference.data().data(), tolerance);
  }
  if (result.mismatches) {
    Element view = isFloat(element) ? element : viewAs(element, other);
    result.gotText =
        renderElement(view, memory.data() + result.flat * elementBytes(view));
    result.expectedText = renderElement(
        other, reference.data().data() + result.flat * elementBytes(other));
  }
  return result;
}
