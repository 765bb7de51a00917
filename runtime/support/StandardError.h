//===- StandardError.h - Lines on standard error ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_STANDARDERROR_H
#define COMMSIR_RUNTIME_SUPPORT_STANDARDERROR_H

#include "llvm/ADT/Twine.h"

namespace commsir {

/// Prints `line` and a line feed to standard error with one write, so that it
/// stays whole among lines of other threads and processes, and with "?" for
/// control characters, which a terminal would obey. Any thread may call it.
void printErrorLine(const llvm::Twine &line);

/// The same for "commsir: warning: `message`".
void printWarning(const llvm::Twine &message);

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_STANDARDERROR_H
