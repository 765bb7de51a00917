//===- Element.cpp - Element types of arrays in files and memory ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Element.h"

#include "llvm/ADT/bit.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace commsir::driver;

namespace {

struct ElementRow {
  llvm::StringLiteral name;
  Element element;
  unsigned bytes;
  /// Bits of exponent and mantissa, for floats.
  unsigned exponent = 0, mantissa = 0;
  double tolerance = 0;
};

constexpr ElementRow kElements[] = {
    {"i1", Element::I1, 1},
    {"i8", Element::I8, 1},
    {"i16", Element::I16, 2},
    {"i32", Element::I32, 4},
    {"i64", Element::I64, 8},
    {"u8", Element::U8, 1},
    {"u16", Element::U16, 2},
    {"u32", Element::U32, 4},
    {"u64", Element::U64, 8},
    {"f8E4M3FN", Element::F8E4M3FN, 1, 4, 3, 0.13},
    {"f8E5M2", Element::F8E5M2, 1, 5, 2, 0.26},
    {"f16", Element::F16, 2, 5, 10, 2e-3},
    {"bf16", Element::BF16, 2, 8, 7, 1.6e-2},
    {"f32", Element::F32, 4, 8, 23, 1e-5},
    {"f64", Element::F64, 8, 11, 52, 1e-12},
};

const ElementRow &row(Element element) {
  return kElements[static_cast<unsigned>(element)];
}

} // namespace

std::optional<Element> commsir::driver::parseElement(llvm::StringRef name) {
  if (name == "index")
    return Element::I64;
  for (const ElementRow &candidate : kElements)
    if (candidate.name == name)
      return candidate.element;
  return std::nullopt;
}

llvm::StringRef commsir::driver::elementName(Element element) {
  return row(element).name;
}

unsigned commsir::driver::elementBytes(Element element) {
  return row(element).bytes;
}

bool commsir::driver::isFloat(Element element) { return row(element).mantissa; }

bool commsir::driver::isUnsigned(Element element) {
  return element >= Element::U8 && element <= Element::U64;
}

double commsir::driver::defaultTolerance(Element element) {
  return row(element).tolerance;
}

//===----------------------------------------------------------------------===//
// Narrow floats
//===----------------------------------------------------------------------===//

/// The value of the narrow float whose bits are `bits`.
static double decodeNarrow(Element element, uint32_t bits) {
  const ElementRow &format = row(element);
  unsigned exponentMask = (1u << format.exponent) - 1;
  uint64_t mantissa = bits & ((1u << format.mantissa) - 1);
  uint64_t exponent = (bits >> format.mantissa) & exponentMask;
  uint64_t sign = uint64_t(bits >> (format.exponent + format.mantissa)) << 63;
  unsigned bias = (1u << (format.exponent - 1)) - 1;
  uint64_t special = uint64_t(0x7ff) << 52;
  if (element == Element::F8E4M3FN) {
    // The one format without infinity: only the all-ones pattern is no number.
    if (exponent == exponentMask && mantissa == 7)
      return std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == exponentMask) {
    return llvm::bit_cast<double>(sign | special |
                                  (mantissa << (52 - format.mantissa)));
  }
  if (exponent == 0) {
    double value =
        std::ldexp(double(mantissa), 1 - int(bias) - int(format.mantissa));
    return sign ? -value : value;
  }
  return llvm::bit_cast<double>(sign | ((exponent - bias + 1023) << 52) |
                                (mantissa << (52 - format.mantissa)));
}

/// `value` / 2^`shift`, rounded to the nearest, ties to even.
static uint64_t shiftAndRound(uint64_t value, unsigned shift) {
  if (shift > 63)
    return 0;
  uint64_t quotient = value >> shift;
  uint64_t rest = value & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)));
}

/// The bits of the narrow float nearest to `value`, saturated to the largest
/// finite one.
static uint32_t encodeNarrow(Element element, double value) {
  const ElementRow &format = row(element);
  unsigned width = format.exponent + format.mantissa;
  int bias = (1 << (format.exponent - 1)) - 1;
  uint32_t infinity = ((1u << format.exponent) - 1) << format.mantissa;
  bool hasInfinity = element != Element::F8E4M3FN;
  uint32_t largest = hasInfinity ? infinity - 1 : infinity + 6;
  if (std::isnan(value))
    return hasInfinity ? infinity | (1u << (format.mantissa - 1)) : 0x7f;
  uint64_t bits = llvm::bit_cast<uint64_t>(value);
  uint32_t sign = uint32_t(bits >> 63) << width;
  if (std::isinf(value))
    return sign | (hasInfinity ? infinity : largest);
  int exponent = int((bits >> 52) & 0x7ff) - 1023;
  // Zero, and what is far below the least narrow number.
  if (exponent == -1023)
    return sign;
  uint64_t mantissa = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  // Below the least normal number the unit in the last place stays the same.
  int scale = std::max(exponent, 1 - bias);
  uint64_t units =
      shiftAndRound(mantissa, 52 - format.mantissa + (scale - exponent));
  // A carry out of the mantissa moves the exponent up by itself.
  uint64_t narrow = scale > bias + 1 ? largest
                                     : units + (uint64_t(scale + bias - 1)
                                                << format.mantissa);
  return sign | uint32_t(std::min<uint64_t>(narrow, largest));
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

template <typename T, typename Out>
static void widen(const char *bytes, llvm::MutableArrayRef<Out> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<Out>(value);
  }
}

/// Integers as what holds them.
template <typename Out>
static void widenInts(Element element, const char *bytes,
                      llvm::MutableArrayRef<Out> out) {
  switch (element) {
  case Element::I1:
  case Element::U8:
    return widen<uint8_t>(bytes, out);
  case Element::I8:
    return widen<int8_t>(bytes, out);
  case Element::I16:
    return widen<int16_t>(bytes, out);
  case Element::U16:
    return widen<uint16_t>(bytes, out);
  case Element::I32:
    return widen<int32_t>(bytes, out);
  case Element::U32:
    return widen<uint32_t>(bytes, out);
  case Element::U64:
    return widen<uint64_t>(bytes, out);
  default:
    return widen<int64_t>(bytes, out);
  }
}

void commsir::driver::decode(Element element, const char *bytes,
                             llvm::MutableArrayRef<double> out) {
  switch (element) {
  case Element::F64:
    return widen<double>(bytes, out);
  case Element::F32:
    return widen<float>(bytes, out);
  case Element::BF16:
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, 2);
      out[i] = llvm::bit_cast<float>(uint32_t(bits) << 16);
    }
    return;
  case Element::F16:
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, 2);
      out[i] = decodeNarrow(element, bits);
    }
    return;
  case Element::F8E4M3FN:
  case Element::F8E5M2:
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = decodeNarrow(element, uint8_t(bytes[i]));
    return;
  default:
    return widenInts(element, bytes, out);
  }
}

void commsir::driver::decodeInts(Element element, const char *bytes,
                                 llvm::MutableArrayRef<int64_t> out) {
  widenInts(element, bytes, out);
}

std::string commsir::driver::renderElement(Element element, const char *bytes) {
  if (!isFloat(element)) {
    int64_t value;
    decodeInts(element, bytes, value);
    return element == Element::U64 ? std::to_string(uint64_t(value))
                                   : std::to_string(value);
  }
  double value;
  decode(element, bytes, value);
  char text[40];
  // 9 digits tell any two f32 apart, of f64 it takes as many as there are.
  if (element != Element::F64)
    std::snprintf(text, sizeof(text), "%.9g", value);
  else
    *std::to_chars(text, text + sizeof(text) - 1, value).ptr = '\0';
  return text;
}

/// `value` clamped to the range of a `bits`-wide signed or unsigned integer.
static int64_t clampInt(double value, unsigned bits, bool isUnsigned) {
  if (std::isnan(value))
    return 0;
  double low = isUnsigned ? 0 : -std::ldexp(1.0, bits - 1);
  double high = std::ldexp(1.0, isUnsigned ? bits : bits - 1);
  if (value <= low)
    return static_cast<int64_t>(low);
  if (value >= high)
    return isUnsigned ? int64_t(~uint64_t(0) >> (64 - bits))
                      : int64_t((uint64_t(1) << (bits - 1)) - 1);
  return isUnsigned ? int64_t(uint64_t(std::nearbyint(value)))
                    : int64_t(std::nearbyint(value));
}

void commsir::driver::encode(Element element, double value, char *bytes) {
  switch (element) {
  case Element::F64:
    std::memcpy(bytes, &value, 8);
    return;
  case Element::F32: {
    float narrow = static_cast<float>(value);
    std::memcpy(bytes, &narrow, 4);
    return;
  }
  case Element::F16:
  case Element::BF16:
  case Element::F8E4M3FN:
  case Element::F8E5M2: {
    uint32_t bits = encodeNarrow(element, value);
    std::memcpy(bytes, &bits, elementBytes(element));
    return;
  }
  case Element::I1:
    *bytes = value != 0;
    return;
  default: {
    int64_t bits =
        clampInt(value, 8 * elementBytes(element), isUnsigned(element));
    std::memcpy(bytes, &bits, elementBytes(element));
    return;
  }
  }
}
