//===- StandardError.cpp - Lines on standard error ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/StandardError.h"

#include "runtime/support/ForeignText.h"

#include <cstdio>
#include <string>

void commsir::printErrorLine(const llvm::Twine &line) {
  std::string text = showWhole((line + "\n").str());
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void commsir::printWarning(const llvm::Twine &message) {
  printErrorLine("commsir: warning: " + message);
}
