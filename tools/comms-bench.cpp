//===- comms-bench.cpp - Measures collectives, with baselines -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Bench.h"
#include "runtime/support/ExitCode.h"
#include "runtime/support/FatalErrors.h"

int main(int argc, char **argv) {
  commsir::exitOnFatalErrors("comms-bench", commsir::driver::ExitUsage);
  return commsir::tune::benchMain(argc, argv);
}
