//===- OptionTable.h - Every option of comms-run ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_OPTIONTABLE_H
#define COMMSIR_RUNTIME_DRIVER_OPTIONTABLE_H

#include "runtime/driver/Options.h"

namespace commsir::driver {

struct Option {
  llvm::StringLiteral name;
  /// Placeholder of the value in --help; empty: a flag.
  llvm::StringLiteral value;
  llvm::StringLiteral help;
  llvm::Error (*read)(Options &, llvm::StringRef option, llvm::StringRef text);
};

/// Options under one heading of --help.
struct OptionGroup {
  llvm::StringLiteral title;
  llvm::ArrayRef<Option> options;
};

/// In the order of --help.
llvm::ArrayRef<OptionGroup> getOptionGroups();

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_OPTIONTABLE_H
