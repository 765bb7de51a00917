//===- OptionValues.h - How texts become values -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each error names the option, what it was given, and what it takes.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_OPTIONVALUES_H
#define COMMSIR_RUNTIME_DRIVER_OPTIONVALUES_H

#include "runtime/driver/Options.h"

namespace commsir::driver {

llvm::Error usageError(const llvm::Twine &text);

/// A whole number in [low, high].
llvm::Error readInt(llvm::StringRef option, llvm::StringRef text, int64_t low,
                    int64_t high, int64_t &out);

/// A power of two in [low, high].
llvm::Error readPower(llvm::StringRef option, llvm::StringRef text, int64_t low,
                      int64_t high, int64_t &out);

/// A number of 0 or more.
llvm::Error readDouble(llvm::StringRef option, llvm::StringRef text,
                       double &out);

/// A time that is more than none.
llvm::Error readSeconds(llvm::StringRef option, llvm::StringRef text,
                        double &out);

/// A size: bytes, or with a suffix K, M, G, T (powers of 1024).
llvm::Error readBytes(llvm::StringRef option, llvm::StringRef text,
                      uint64_t &out);

/// NAME=VALUE, whose name none of `out` has.
llvm::Error readBinding(llvm::StringRef option, llvm::StringRef text,
                        std::vector<Binding> &out);

/// Adds the assumption of that name to `out`, bits of cpu::Broken.
llvm::Error readBroken(llvm::StringRef option, llvm::StringRef text,
                       unsigned &out);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_OPTIONVALUES_H
