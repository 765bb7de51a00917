//===- StandardOutput.h - Standard output at its end ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_STANDARDOUTPUT_H
#define COMMSIR_RUNTIME_SUPPORT_STANDARDOUTPUT_H

#include "llvm/ADT/StringRef.h"

namespace commsir::driver {

/// Flushes standard output and returns `code`. A write error (full disk, closed
/// descriptor) is reported on standard error in the name of `tool` and turns
/// success into ExitUsage. Without this, LLVM would abort.
int flushOutput(llvm::StringRef tool, int code);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_STANDARDOUTPUT_H
