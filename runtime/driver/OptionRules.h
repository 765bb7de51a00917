//===- OptionRules.h - Options that make no sense together ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_OPTIONRULES_H
#define COMMSIR_RUNTIME_DRIVER_OPTIONRULES_H

#include "runtime/driver/Options.h"

namespace commsir::driver {

/// Why the options, each of which is right by itself, cannot be carried out.
/// `given` has the names of those on the command line.
llvm::Error validateOptions(const Options &options,
                            llvm::ArrayRef<llvm::StringRef> given);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_OPTIONRULES_H
