//===- OwnCommand.h - Restarts this program ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tool restarts itself to run a rank's process or a measurement. The tool may
// be a program, or a function of the library inside an interpreter that runs a
// script (comms-run of the Python package). In the second case the executable
// is the interpreter, and the script must be passed along.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_OWNCOMMAND_H
#define COMMSIR_RUNTIME_SUPPORT_OWNCOMMAND_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace commsir {

/// The words that come before `arguments` in `line`, words that end in NUL, as
/// /proc/self/cmdline has them; fails where it does not end in them.
llvm::Expected<std::vector<std::string>>
splitOwnCommand(llvm::StringRef line, llvm::ArrayRef<const char *> arguments);

/// The words that start /proc/self/exe as this tool, without the tool's
/// arguments. `arguments` are the present ones.
llvm::Expected<std::vector<std::string>>
getOwnCommand(llvm::ArrayRef<const char *> arguments);

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_OWNCOMMAND_H
