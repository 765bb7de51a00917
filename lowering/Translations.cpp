//===- Translations.cpp - Targets of comms-translate ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Translations.h"

#include "dialect/Comms.h"
#include "lowering/Pipelines.h"
#include "lowering/Register.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Tools/mlir-translate/Translation.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::comms;

void mlir::comms::registerLLVMIRTranslationInterfaces(
    DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

std::unique_ptr<llvm::Module>
mlir::comms::translateToLLVMIR(ModuleOp module, llvm::LLVMContext &context) {
  return translateModuleToLLVMIR(module, context, "comms");
}

/// Lowers what is not of the LLVM dialect yet.
static LogicalResult lower(ModuleOp module, const CommsToCPUOptions &options) {
  if (module.getOps<KernelOp>().empty())
    return success();
  PassManager manager(module.getContext());
  buildCommsToCPU(manager, options);
  return manager.run(module);
}

void mlir::comms::registerTranslations() {
  // Local to the call: a library has no options until a tool asks for them.
  static llvm::cl::opt<int64_t> ranks(
      "ranks", llvm::cl::init(0),
      llvm::cl::desc("Number of ranks to lower for; 0: the kernel's own"));
  static TranslateFromMLIRRegistration toLLVMIR(
      "comms-to-llvmir", "Kernels, by the pipeline comms-to-cpu, as LLVM IR",
      [](Operation *op, raw_ostream &output) -> LogicalResult {
        auto module = dyn_cast<ModuleOp>(op);
        if (!module)
          return op->emitError("--comms-to-llvmir takes a module");
        CommsToCPUOptions options;
        options.ranks = ranks;
        if (failed(lower(module, options)))
          return failure();
        llvm::LLVMContext context;
        std::unique_ptr<llvm::Module> llvmModule =
            translateToLLVMIR(module, context);
        if (!llvmModule)
          return module.emitError(
              "the LLVM dialect could not be translated to LLVM IR");
        llvmModule->print(output, nullptr);
        return success();
      },
      [](DialectRegistry &registry) {
        registerAllDialects(registry);
        registerLLVMIRTranslationInterfaces(registry);
      });
}
