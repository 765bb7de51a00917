//===- Element.h - Element types of arrays in files and memory --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_ELEMENT_H
#define COMMSIR_RUNTIME_SUPPORT_ELEMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace commsir::driver {

/// Element types shared by files and memory. Integers are signless in the IR;
/// they are read as signed here unless the file says otherwise.
enum class Element {
  I1,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F8E4M3FN,
  F8E5M2,
  F16,
  BF16,
  F32,
  F64
};

/// Parses an element type as MLIR prints it ("bf16", "f8E4M3FN", "i64"; "index"
/// is I64). Returns none for other texts.
std::optional<Element> parseElement(llvm::StringRef name);

/// "bf16", "i32", "u8".
llvm::StringRef elementName(Element element);

unsigned elementBytes(Element element);
bool isFloat(Element element);
bool isUnsigned(Element element);

/// Default relative tolerance: a few units in the last place; 0 for integers.
double defaultTolerance(Element element);

/// Reads `out.size()` elements from little-endian `bytes` as double. 64-bit
/// integers lose their low bits; see decodeInts.
void decode(Element element, const char *bytes,
            llvm::MutableArrayRef<double> out);

/// Reads integers exactly (U64 wraps).
void decodeInts(Element element, const char *bytes,
                llvm::MutableArrayRef<int64_t> out);

/// Prints the element at `bytes` with enough digits to identify it.
std::string renderElement(Element element, const char *bytes);

/// Writes `value` at `bytes`, rounded to nearest, ties to even, and saturated.
void encode(Element element, double value, char *bytes);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_ELEMENT_H
