//===- OptMain.h - The program comms-opt ------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_OPTMAIN_H
#define COMMSIR_RUNTIME_DRIVER_OPTMAIN_H

namespace commsir::driver {

/// Runs comms-opt with a program's arguments; returns its exit status.
int optMain(int argc, char **argv);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_OPTMAIN_H
