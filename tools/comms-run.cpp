//===- comms-run.cpp - Runs a collective kernel with N ranks ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Run.h"
#include "runtime/support/ExitCode.h"
#include "runtime/support/FatalErrors.h"

int main(int argc, char **argv) {
  commsir::exitOnFatalErrors("comms-run", commsir::driver::ExitUsage);
  return commsir::driver::runMain(argc, argv);
}
