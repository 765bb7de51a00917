//===- comms-translate.cpp - From CommsIR to other forms --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "lowering/Translations.h"
#include "runtime/support/FatalErrors.h"
#include "runtime/support/Nesting.h"
#include "runtime/support/StandardError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  commsir::exitOnFatalErrors("comms-translate", 1);
  if (llvm::Error error =
          commsir::driver::refuseDeepFiles({argv, size_t(argc)})) {
    commsir::printErrorLine(llvm::toString(std::move(error)));
    return 1;
  }
  auto saysWhat = [](llvm::StringRef argument) {
    argument = argument.ltrim('-');
    return argument.starts_with("comms-to-") || argument.starts_with("help") ||
           argument == "h" || argument == "version";
  };
  if (!llvm::any_of(llvm::ArrayRef(argv, argc).drop_front(), saysWhat)) {
    llvm::errs() << "comms-translate: error: no output format is given: give "
                    "--comms-to-llvmir, --comms-to-nvptx or --comms-to-ptx "
                    "(--help describes them)\n";
    return 1;
  }
  mlir::comms::hideLLVMOptions();
  return mlir::comms::translateMain(argc, argv);
}
