//===- comms-opt.cpp - Runs passes over CommsIR -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/driver/Nesting.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  if (llvm::Error error =
          commsir::driver::refuseDeepFiles({argv, argv + argc})) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  mlir::comms::registerAllDialects(registry);
  mlir::comms::registerPasses();
  // Upstream passes that are of use between ours.
  mlir::registerTransformsPasses();
  mlir::arith::registerArithIntRangeOptsPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "CommsIR optimizer driver\n", registry));
}
