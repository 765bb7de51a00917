//===- ExitCode.h - Exit statuses of the tools ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_EXITCODE_H
#define COMMSIR_RUNTIME_SUPPORT_EXITCODE_H

namespace commsir::driver {

/// Exit statuses of comms-run.
enum ExitCode : int {
  ExitOk = 0,
  ExitWrongResult = 1,
  ExitUsage = 2,
  ExitCompile = 3,
  ExitChecker = 4,
  ExitDeadlock = 5,
  ExitLimit = 6,
  ExitBounds = 7
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_EXITCODE_H
