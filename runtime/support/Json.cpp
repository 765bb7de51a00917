//===- Json.cpp - JSON from outside ---------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Json.h"

using namespace commsir;

static constexpr int kDeepest = 256;

/// Calls `look` with each character outside of strings until it returns true.
/// Returns whether it did.
static bool findOutsideStrings(llvm::StringRef text,
                               llvm::function_ref<bool(char)> look) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && look(c))
      return true;
  }
  return false;
}

/// Whether brackets outside of strings are open at more than kDeepest levels.
static bool isDeep(llvm::StringRef text) {
  int depth = 0;
  return findOutsideStrings(text, [&](char c) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    return depth > kDeepest;
  });
}

size_t commsir::countJsonCommas(llvm::StringRef text) {
  size_t count = 0;
  findOutsideStrings(text, [&](char c) {
    count += c == ',';
    return false;
  });
  return count;
}

llvm::Expected<llvm::json::Value> commsir::readJson(llvm::StringRef text) {
  if (isDeep(text))
    return llvm::createStringError("its brackets are nested more than " +
                                   llvm::Twine(kDeepest) + " deep");
  return llvm::json::parse(text);
}
