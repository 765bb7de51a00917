//===- comms-opt.cpp - Runs passes over CommsIR -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/OptMain.h"
#include "runtime/support/FatalErrors.h"

int main(int argc, char **argv) {
  commsir::exitOnFatalErrors("comms-opt", 1);
  return commsir::driver::optMain(argc, argv);
}
