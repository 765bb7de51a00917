//===- StandardOutput.cpp - Standard output at its end --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/StandardOutput.h"

#include "runtime/support/ExitCode.h"

#include "llvm/Support/raw_ostream.h"

int commsir::driver::flushOutput(llvm::StringRef tool, int code) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return code;
  llvm::errs() << tool << ": error: cannot write standard output: "
               << llvm::outs().error().message() << "\n";
  llvm::outs().clear_error();
  return code ? code : int(ExitUsage);
}
