//===- Nesting.cpp - Text that is nested too deeply -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Nesting.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

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

llvm::Error commsir::driver::refuseDeepText(llvm::StringRef text,
                                            llvm::StringRef name) {
  std::optional<size_t> deep =
      text.starts_with("ML\xefR") ? std::nullopt : findDeepNesting(text);
  if (!deep)
    return llvm::Error::success();
  llvm::StringRef before = text.take_front(*deep);
  size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return llvm::createStringError(
      name + ":" + llvm::Twine(before.count('\n') + 1) + ":" +
      llvm::Twine(column) + ": error: brackets are nested more than " +
      llvm::Twine(maxNesting) + " deep");
}

llvm::Error
commsir::driver::refuseDeepFiles(llvm::ArrayRef<const char *> arguments) {
  namespace fs = llvm::sys::fs;
  bool isNamed = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    // What follows is written.
    i += argument == "-o";
    if (argument.starts_with("-") || !fs::is_regular_file(argument))
      continue;
    isNamed = true;
    if (auto buffer = llvm::MemoryBuffer::getFile(
            argument, /*IsText=*/false, /*RequiresNullTerminator=*/false))
      if (llvm::Error error = refuseDeepText((*buffer)->getBuffer(),
                                             (*buffer)->getBufferIdentifier()))
        return error;
  }
  fs::file_status input;
  if (isNamed || fs::status(0, input) || !fs::is_regular_file(input))
    return llvm::Error::success();
  // Read without moving on: the program reads it once more.
  if (auto buffer = llvm::MemoryBuffer::getOpenFile(
          fs::convertFDToNativeFile(0), "<stdin>", input.getSize(),
          /*RequiresNullTerminator=*/false))
    return refuseDeepText((*buffer)->getBuffer(),
                          (*buffer)->getBufferIdentifier());
  return llvm::Error::success();
}
