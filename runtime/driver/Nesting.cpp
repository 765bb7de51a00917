//===- Nesting.cpp - Text that is nested too deeply -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Nesting.h"

using namespace commsir::driver;

/// The place after the string or comment that starts at `at`.
static size_t skip(llvm::StringRef text, size_t at) {
  if (text[at] == '/')
    return std::min(text.find('\n', at), text.size());
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\')
      ++at;
  return at + 1;
}

std::optional<size_t> commsir::driver::findDeepNesting(llvm::StringRef text) {
  unsigned depth = 0;
  for (size_t at = 0; at < text.size();) {
    llvm::StringRef rest = text.substr(at);
    if (rest.front() == '"' || rest.starts_with("//")) {
      at = skip(text, at);
      continue;
    }
    if (rest.starts_with("->") || rest.starts_with(">=") ||
        rest.starts_with("<=")) {
      at += 2;
      continue;
    }
    if (llvm::StringRef("([{<").contains(rest.front()) && ++depth > maxNesting)
      return at;
    if (llvm::StringRef(")]}>").contains(rest.front()) && depth)
      --depth;
    ++at;
  }
  return std::nullopt;
}
