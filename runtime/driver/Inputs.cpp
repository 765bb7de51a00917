//===- Inputs.cpp - Filling a world's memory ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Inputs.h"

#include "runtime/driver/Npy.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace commsir;
using namespace commsir::driver;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

llvm::Error commsir::driver::checkFile(const Argument &argument,
                                       llvm::StringRef path,
                                       llvm::ArrayRef<int64_t> shape) {
  if (shape == llvm::ArrayRef<int64_t>(argument.shape))
    return llvm::Error::success();
  return bad("'" + path + "': has shape " + renderShape(shape) +
             ", but argument '" + argument.name + "' is a " +
             argument.describe());
}

/// Whether the bytes of a file of type `file` are what `argument` holds.
static bool sameBits(const Argument &argument, const Npy &npy) {
  Element wanted = *argument.element, given = npy.element();
  if (given == wanted)
    return true;
  if (npy.isRaw()) // Only the width is known.
    return isFloat(wanted) && wanted != Element::F16 &&
           elementBytes(wanted) == elementBytes(given);
  // The IR's integers have no sign of their own.
  return !isFloat(wanted) && !isFloat(given) &&
         elementBytes(wanted) == elementBytes(given) &&
         (wanted != Element::I1) && (given != Element::I1);
}

/// Returns the NumPy code that converts an array to the expected type.
static std::string conversion(Element wanted) {
  switch (wanted) {
  case Element::BF16:
    return "a.astype(ml_dtypes.bfloat16)";
  case Element::F8E4M3FN:
    return "a.astype(ml_dtypes.float8_e4m3fn)";
  case Element::F8E5M2:
    return "a.astype(ml_dtypes.float8_e5m2)";
  case Element::I1:
    return "a.astype(bool)";
  default: {
    llvm::StringRef name = elementName(wanted);
    return ("a.astype(np." + llvm::Twine(isFloat(wanted) ? "float" : "int") +
            name.drop_front() + ")")
        .str();
  }
  }
}

static llvm::Error fillFromFile(const Argument &argument, llvm::StringRef path,
                                llvm::MutableArrayRef<char> memory) {
  llvm::Expected<Npy> npy = Npy::open(path);
  if (!npy)
    return npy.takeError();
  if (!sameBits(argument, *npy))
    return bad("'" + path + "': holds " + elementName(npy->element()) +
               ", but argument '" + argument.name + "' is a " +
               argument.describe() +
               "; convert it: " + conversion(*argument.element));
  if (llvm::Error error = checkFile(argument, path, npy->shape()))
    return error;
  if (npy->data().size() != memory.size())
    return bad("'" + path + "': has " + llvm::Twine(npy->data().size()) +
               " bytes of data, argument '" + argument.name + "' holds " +
               llvm::Twine(memory.size()));
  std::memcpy(memory.data(), npy->data().data(), memory.size());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Generators
//===----------------------------------------------------------------------===//

/// One step of splitmix64: a well-mixed function of its argument.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static uint64_t hashName(llvm::StringRef name) {
  uint64_t hash = 0;
  for (char c : name)
    hash = mix(hash ^ uint8_t(c));
  return hash;
}

static llvm::Error fillRandom(const Argument &argument, llvm::StringRef text,
                              int64_t rank,
                              llvm::MutableArrayRef<char> memory) {
  uint64_t seed = 0;
  if (text.getAsInteger(10, seed))
    return bad("--input " + argument.name + "=random" +
               (text.empty() ? "" : ":" + text) +
               ": a seed of 0 or more is needed; write a whole number, as "
               "random:1");
  Element element = *argument.element;
  unsigned width = elementBytes(element);
  uint64_t state =
      mix(mix(mix(seed) ^ uint64_t(rank)) ^ hashName(argument.name));
  for (size_t i = 0; i < memory.size() / width; ++i) {
    uint64_t bits = mix(state + i);
    double value = isFloat(element) ? std::ldexp(double(bits >> 11), -52) - 1
                   : element == Element::I1 ? double(bits >> 63)
                                            : double(bits % 201) - 100;
    encode(element, value, memory.data() + i * width);
  }
  return llvm::Error::success();
}

template <typename Value>
static void fillBy(Element element, llvm::MutableArrayRef<char> memory,
                   Value value) {
  unsigned width = elementBytes(element);
  for (size_t i = 0; i < memory.size() / width; ++i)
    encode(element, value(i), memory.data() + i * width);
}

/// Whether an integer type holds `value`, with or without a sign.
static bool fitsInteger(Element element, double value) {
  int bits = 8 * elementBytes(element);
  if (element == Element::I1)
    return value == 0 || value == 1;
  return value >= -std::ldexp(1.0, bits - 1) &&
         value < std::ldexp(1.0, bits == 64 ? 63 : bits);
}

/// Whether a float type holds `value` rounded, and not something else.
static bool fitsFloat(Element element, double value) {
  auto rounded = [&](double number) {
    char bytes[sizeof(double)];
    encode(element, number, bytes);
    double result;
    decode(element, bytes, result);
    return result;
  };
  if (std::isinf(value))
    return rounded(value) == value;
  // Narrow types take the largest that they have for what is larger.
  double largest = rounded(std::numeric_limits<double>::max());
  return std::isnan(value) ||
         (std::isfinite(rounded(value)) && std::abs(value) <= largest);
}

static llvm::Error fillNumber(const Argument &argument, llvm::StringRef text,
                              llvm::MutableArrayRef<char> memory) {
  Element element = *argument.element;
  auto wrong = [&](const llvm::Twine &why) {
    return bad("--input " + argument.name + "=" + text + ": " + why);
  };
  auto misfit = [&] {
    return wrong("does not fit the " + argument.describe());
  };
  auto fillInteger = [&](int64_t integer) {
    for (size_t i = 0; i < memory.size(); i += elementBytes(element))
      std::memcpy(memory.data() + i, &integer, elementBytes(element));
    return llvm::Error::success();
  };
  // Through int64, as double has not all of its values.
  int64_t integer;
  if (!isFloat(element) && !text.getAsInteger(10, integer)) {
    if (elementBytes(element) < 8 && !fitsInteger(element, double(integer)))
      return misfit();
    return fillInteger(integer);
  }
  double number = 0;
  if (text.getAsDouble(number))
    return wrong("not a number");
  // What is too large even to be read becomes infinity, unless that is meant.
  if (std::isinf(number) && !text.contains_insensitive("inf"))
    return wrong("too large for any float; write inf if infinity is meant");
  if (isFloat(element) ? !fitsFloat(element, number)
                       : !fitsInteger(element, number))
    return misfit();
  if (!isFloat(element) && number != std::nearbyint(number))
    return wrong("not a whole number, but the argument is a " +
                 argument.describe());
  // 3e9 is 3000000000: of 32 bits, those of a number without a sign.
  if (!isFloat(element))
    return fillInteger(int64_t(number));
  fillBy(element, memory, [&](size_t) { return number; });
  return llvm::Error::success();
}

llvm::Error commsir::driver::fillInput(const Argument &argument,
                                       llvm::StringRef value, int64_t rank,
                                       llvm::MutableArrayRef<char> memory) {
  if (!argument.element)
    return bad("--input " + argument.name + "=" + value +
               ": no file or generator makes elements of type " +
               argument.elementType);
  if (isFileInput(value))
    return fillFromFile(argument, substituteRank(value, rank), memory);
  if (value == "zeros") {
    std::memset(memory.data(), 0, memory.size());
    return llvm::Error::success();
  }
  if (value == "iota") {
    double start =
        double(rank) * double(memory.size() / elementBytes(*argument.element));
    fillBy(*argument.element, memory,
           [&](size_t i) { return start + double(i); });
    return llvm::Error::success();
  }
  if (value.consume_front("random")) {
    value.consume_front(":");
    return fillRandom(argument, value, rank, memory);
  }
  return fillNumber(argument, substituteRank(value, rank), memory);
}
