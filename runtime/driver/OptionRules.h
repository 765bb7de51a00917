//===- OptionRules.h - Options that exclude each other ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_OPTIONRULES_H
#define COMMSIR_RUNTIME_DRIVER_OPTIONRULES_H

#include "runtime/driver/Options.h"

namespace commsir::driver {

/// Checks the combination of options, each of which is valid by itself. `given`
/// lists the options on the command line.
llvm::Error validateOptions(const Options &options,
                            llvm::ArrayRef<llvm::StringRef> given);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_OPTIONRULES_H
