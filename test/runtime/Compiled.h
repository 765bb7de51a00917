//===- Compiled.h - Kernels from text, for tests ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_RUNTIME_COMPILED_H
#define COMMSIR_TEST_RUNTIME_COMPILED_H

#include "lowering/Register.h"
#include "runtime/cpu/World.h"
#include "runtime/jit/Compile.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

namespace commsir::test {

/// A context that knows our dialects and collects diagnostics.
struct Source {
  Source() : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic &diagnostic) {
          diagnostics += diagnostic.str() + "\n";
          return mlir::success();
        });
  }
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    return registry;
  }
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context, "test.mlir");
  }
  /// The kernel, compiled without the checker; null, with a test failure.
  std::unique_ptr<jit::Kernel> compile(llvm::StringRef text,
                                       jit::CompileOptions options = {}) {
    options.check = false;
    auto kernel = jit::compile(parse(text), "", options);
    if (kernel)
      return std::move(*kernel);
    ADD_FAILURE() << toString(kernel.takeError()) << "\n" << diagnostics;
    return nullptr;
  }

  mlir::MLIRContext context;
  std::string diagnostics;
};

/// A world, or null with a test failure.
inline std::unique_ptr<cpu::World> makeWorld(const jit::Kernel &kernel,
                                             const cpu::RunOptions &options) {
  auto world = cpu::World::create(kernel, options);
  if (world)
    return std::move(*world);
  ADD_FAILURE() << toString(world.takeError());
  return nullptr;
}

/// Elements of one rank's part of an argument.
template <typename T>
llvm::MutableArrayRef<T> part(cpu::World &world, const jit::Kernel &kernel,
                              llvm::StringRef name, int64_t rank) {
  int arg = kernel.findArg(name);
  EXPECT_GE(arg, 0) << name.str();
  auto bytes = world.memory(arg, rank);
  return {reinterpret_cast<T *>(bytes.data()), bytes.size() / sizeof(T)};
}

/// "" when the run ended well, else the report.
inline std::string runReport(cpu::World &world) {
  auto result = world.run();
  auto *error = std::get_if<cpu::RunError>(&result);
  return error ? error->render() : "";
}

} // namespace commsir::test

#endif // COMMSIR_TEST_RUNTIME_COMPILED_H
