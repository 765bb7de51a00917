//===- comms-opt.cpp - Runs passes over CommsIR -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/support/Nesting.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

/// Errors name their place and end there, unless it is asked for that MLIR
/// prints the whole operation after each.
static llvm::SmallVector<char *> addDefaults(llvm::ArrayRef<char *> given) {
  static char quiet[] = "--mlir-print-op-on-diagnostic=false";
  llvm::SmallVector<char *> arguments(given);
  if (llvm::none_of(given, [](llvm::StringRef argument) {
        return argument.contains("-mlir-print-op-on-diagnostic");
      }))
    arguments.insert(arguments.begin() + 1, quiet);
  return arguments;
}

int main(int argc, char **argv) {
  if (llvm::Error error =
          commsir::driver::refuseDeepFiles({argv, size_t(argc)})) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  llvm::SmallVector<char *> arguments = addDefaults({argv, argv + argc});
  mlir::comms::hideLLVMOptions();
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  mlir::comms::registerPasses();
  // Upstream passes that are of use between ours.
  mlir::registerTransformsPasses();
  mlir::arith::registerArithIntRangeOptsPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(int(arguments.size()), arguments.data(),
                        "CommsIR optimizer driver\n", registry));
}
