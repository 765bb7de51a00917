//===- fuzz-parser.cpp - Parser, verifiers and printer never crash --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever parses and verifies must print as text that parses to the same
// print.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Text.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdlib>

static std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A fresh context now and then: uniqued types and attributes are never freed.
  static std::unique_ptr<commsir::fuzz::QuietContext> context;
  static unsigned uses = 0;
  if (uses++ % 1000 == 0)
    context = std::make_unique<commsir::fuzz::QuietContext>();

  auto module = commsir::fuzz::parse(std::string(data, data + size), *context);
  if (!module)
    return 0;
  std::string first = print(*module);
  // Resources get a new name each time that a context reads them.
  if (llvm::StringRef(first).contains("dense_resource"))
    return 0;
  auto again = commsir::fuzz::parse(first, *context);
  if (!again || print(*again) != first) {
    llvm::errs() << "the print does not parse to itself:\n" << first;
    std::abort();
  }
  return 0;
}
