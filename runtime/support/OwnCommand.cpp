//===- OwnCommand.cpp - Restarts this program -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/OwnCommand.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace commsir;

llvm::Expected<std::vector<std::string>>
commsir::splitOwnCommand(llvm::StringRef line,
                         llvm::ArrayRef<const char *> arguments) {
  std::vector<std::string> words;
  while (!line.empty()) {
    auto [word, rest] = line.split('\0');
    words.push_back(word.str());
    line = rest;
  }
  if (words.size() <= arguments.size() ||
      !std::equal(arguments.begin(), arguments.end(),
                  words.end() - arguments.size()))
    return llvm::createStringError(
        "this program cannot start itself again: it was started with other "
        "arguments than it works with; start it by its name, with these "
        "arguments");
  words.resize(words.size() - arguments.size());
  return words;
}

llvm::Expected<std::vector<std::string>>
commsir::getOwnCommand(llvm::ArrayRef<const char *> arguments) {
  auto line = llvm::MemoryBuffer::getFileAsStream("/proc/self/cmdline");
  if (!line)
    return llvm::createStringError(
        "this program cannot start itself again: reading /proc/self/cmdline: " +
        line.getError().message());
  return splitOwnCommand((*line)->getBuffer(), arguments);
}
