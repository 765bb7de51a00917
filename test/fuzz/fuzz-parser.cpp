//===- fuzz-parser.cpp - Parser, verifiers and printer never crash --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever parses and verifies must print as text that parses and prints the
// same, and so must its bytecode. (Functions that read kernels from others
// refuse all other bytecode, because MLIR's reader trusts its input.)
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Text.h"

#include "mlir/Bytecode/BytecodeWriter.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdlib>

static std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

static std::string writeBytecode(mlir::ModuleOp module) {
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  (void)mlir::writeBytecodeToFile(module, os);
  return bytes;
}

/// Ends the process unless `text` parses to a module that prints as `expected`.
static void checkAgain(const std::string &text, const std::string &expected,
                       llvm::StringRef what, mlir::MLIRContext *context) {
  auto again = mlir::parseSourceString<mlir::ModuleOp>(text, context);
  if (again && print(*again) == expected)
    return;
  llvm::errs() << "the " << what << " does not parse to itself:\n" << expected;
  std::abort();
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
  checkAgain(first, first, "print", *context);
  checkAgain(writeBytecode(*module), first, "bytecode", *context);
  return 0;
}
