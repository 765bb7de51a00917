//===- OptionValues.cpp - Parses option values ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/OptionValues.h"

#include "runtime/cpu/World.h"

#include "runtime/support/Size.h"

#include "llvm/ADT/APInt.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace commsir;
using namespace commsir::driver;

llvm::Error commsir::driver::usageError(const llvm::Twine &text) {
  return llvm::createStringError(text);
}

llvm::Error commsir::driver::readInt(llvm::StringRef option,
                                     llvm::StringRef text, int64_t low,
                                     int64_t high, int64_t &out) {
  bool fits = !text.getAsInteger(10, out);
  llvm::APInt any;
  if (!fits && text.ltrim('-').getAsInteger(10, any))
    return usageError(option + ": '" + text + "' is not a whole number");
  if (fits && out >= low && out <= high)
    return llvm::Error::success();
  bool isBounded = high != std::numeric_limits<int64_t>::max();
  std::string limits =
      isBounded || !fits
          ? llvm::formatv("lie between {0} and {1}", low, high).str()
          : llvm::formatv("be {0} or more", low).str();
  return usageError(option + ": " + text + " is out of range; it must " +
                    limits);
}

llvm::Error commsir::driver::readDouble(llvm::StringRef option,
                                        llvm::StringRef text, double &out) {
  if (text.getAsDouble(out) || !std::isfinite(out) || out < 0)
    return usageError(option + ": '" + text + "' is not a number of 0 or more");
  return llvm::Error::success();
}

llvm::Error commsir::driver::readSeconds(llvm::StringRef option,
                                         llvm::StringRef text, double &out) {
  if (text.getAsDouble(out) || !std::isfinite(out) || out <= 0)
    return usageError(option + ": '" + text +
                      "' is not a number of seconds above 0");
  return llvm::Error::success();
}

llvm::Error commsir::driver::readBytes(llvm::StringRef option,
                                       llvm::StringRef text, uint64_t &out) {
  if (parseSize(text, out) && out != 0)
    return llvm::Error::success();
  return usageError(option + ": '" + text +
                    "' is not a size; write bytes, or 512M, 8G");
}

llvm::Error commsir::driver::readBinding(llvm::StringRef option,
                                         llvm::StringRef text,
                                         std::vector<Binding> &out) {
  auto [name, value] = text.split('=');
  if (name.empty() || value.empty())
    return usageError(option + ": '" + text +
                      "' is not NAME=VALUE; for example " + option +
                      (option == "--shape" ? " x=8x64" : " x=x-%r.npy"));
  for (const Binding &earlier : out)
    if (earlier.name == name)
      return usageError(option + ": '" + name + "' is given twice, as '" +
                        earlier.value + "' and as '" + value + "'");
  out.push_back({name.str(), value.str()});
  return llvm::Error::success();
}

llvm::Error commsir::driver::readPower(llvm::StringRef option,
                                       llvm::StringRef text, int64_t low,
                                       int64_t high, int64_t &out) {
  if (llvm::Error error = readInt(option, text, low, high, out))
    return error;
  if (!llvm::isPowerOf2_64(out))
    return usageError(option + ": " + text +
                      " is not a power of two; write one from " +
                      llvm::Twine(low) + " to " + llvm::Twine(high));
  return llvm::Error::success();
}

llvm::Error commsir::driver::checkWord(llvm::StringRef option,
                                       llvm::StringRef text,
                                       llvm::ArrayRef<llvm::StringRef> words) {
  if (llvm::is_contained(words, text))
    return llvm::Error::success();
  return usageError(option + ": unknown value " + describeUnknown(text, words));
}

llvm::Error commsir::driver::readBroken(llvm::StringRef option,
                                        llvm::StringRef text, unsigned &out) {
  llvm::SmallVector<llvm::StringRef> known;
  for (const cpu::BreakableAssumption &one : cpu::getBreakableAssumptions()) {
    if (one.name == text) {
      out |= unsigned(one.bit);
      return llvm::Error::success();
    }
    known.push_back(one.name);
  }
  return usageError(option + ": there is no assumption to break " +
                    describeUnknown(text, known));
}
