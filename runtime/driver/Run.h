//===- Run.h - The program comms-run ----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_RUN_H
#define COMMSIR_RUNTIME_DRIVER_RUN_H

namespace commsir::driver {

/// Main function of comms-run: reads the command line, compiles the kernel,
/// runs it, compares and reports. Returns the exit status (see ExitCode).
int runMain(int argc, char **argv);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_RUN_H
