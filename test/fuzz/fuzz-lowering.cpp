//===- fuzz-lowering.cpp - The pipeline refuses or lowers, never crashes --===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lowered module must call only functions of the runtime, and define kernels.
//
//===----------------------------------------------------------------------===//

#include "lowering/Pipelines.h"
#include "test/fuzz/Text.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdlib>

static void checkFunctions(mlir::ModuleOp module) {
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    bool isRuntime = function.getSymName().starts_with("commsir_cpu_");
    if (function.isExternal() == isRuntime)
      continue;
    llvm::errs() << "fuzz-lowering: @" << function.getSymName()
                 << " is neither a kernel nor a function of the runtime\n";
    std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::unique_ptr<commsir::fuzz::QuietContext> context;
  static unsigned uses = 0;
  if (uses++ % 200 == 0)
    context = std::make_unique<commsir::fuzz::QuietContext>();

  auto module = commsir::fuzz::parse(std::string(data, data + size), *context);
  if (!module)
    return 0;
  mlir::comms::CommsToCPUOptions options;
  options.ranks = 2;
  options.blocks = 2;
  options.checkEvents = 20000;
  mlir::PassManager passes(*context);
  mlir::comms::buildCommsToCPU(passes, options);
  if (mlir::succeeded(passes.run(*module)))
    checkFunctions(*module);
  return 0;
}
