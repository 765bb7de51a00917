//===- Text.h - Fuzzed text to MLIR -----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_FUZZ_TEXT_H
#define COMMSIR_TEST_FUZZ_TEXT_H

#include "lowering/Register.h"
#include "runtime/support/Nesting.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <memory>
#include <string>

namespace commsir::fuzz {

/// A context with all dialects and one thread, that says nothing.
class QuietContext {
public:
  QuietContext()
      : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler(
        [](mlir::Diagnostic &) { return mlir::success(); });
  }
  mlir::MLIRContext *operator->() { return &context; }
  operator mlir::MLIRContext *() { return &context; }

private:
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    return registry;
  }
  mlir::MLIRContext context;
};

/// The module that `text` spells, or null. What programs refuse before they
/// parse it is not parsed.
inline mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text,
                                               mlir::MLIRContext *context) {
  if (llvm::Error error = driver::refuseSource(text, "fuzzed")) {
    llvm::consumeError(std::move(error));
    return {};
  }
  return mlir::parseSourceString<mlir::ModuleOp>(text, context);
}

} // namespace commsir::fuzz

#endif // COMMSIR_TEST_FUZZ_TEXT_H
