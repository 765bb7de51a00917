//===- Size.cpp - Numbers of bytes, as people write them ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Size.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <iterator>

using namespace llvm;

std::string commsir::renderSize(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  unsigned unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  bool whole = value == std::floor(value);
  return llvm::formatv(whole ? "{0:f0} {1}" : "{0:f1} {1}", value, units[unit])
      .str();
}

bool commsir::parseSize(StringRef text, uint64_t &bytes) {
  unsigned shift = 0;
  text = text.trim();
  if (!text.empty()) {
    size_t unit = StringRef("KMGT").find(toUpper(text.back()));
    if (unit != StringRef::npos) {
      shift = 10 * (unit + 1);
      text = text.drop_back();
    }
  }
  uint64_t number;
  if (text.getAsInteger(10, number) || number > (UINT64_MAX >> shift))
    return false;
  bytes = number << shift;
  return true;
}
