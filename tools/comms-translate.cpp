//===- comms-translate.cpp - From CommsIR to other forms --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Translations.h"
#include "runtime/driver/Nesting.h"

#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  if (llvm::Error error =
          commsir::driver::refuseDeepFiles({argv, argv + argc})) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  mlir::comms::registerTranslations();
  return mlir::failed(
      mlir::mlirTranslateMain(argc, argv, "CommsIR translation driver"));
}
