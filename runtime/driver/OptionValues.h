//===- OptionValues.h - Parses option values --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsers of option values. Each error names the option, its value, and the
// accepted values.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_OPTIONVALUES_H
#define COMMSIR_RUNTIME_DRIVER_OPTIONVALUES_H

#include "runtime/driver/Options.h"

namespace commsir::driver {

llvm::Error usageError(const llvm::Twine &text);

/// Checks that a value is one of `words`.
llvm::Error checkWord(llvm::StringRef option, llvm::StringRef text,
                      llvm::ArrayRef<llvm::StringRef> words);

/// An integer in [low, high].
llvm::Error readInt(llvm::StringRef option, llvm::StringRef text, int64_t low,
                    int64_t high, int64_t &out);

/// A power of two in [low, high].
llvm::Error readPower(llvm::StringRef option, llvm::StringRef text, int64_t low,
                      int64_t high, int64_t &out);

/// A number that is at least 0.
llvm::Error readDouble(llvm::StringRef option, llvm::StringRef text,
                       double &out);

/// A time greater than 0.
llvm::Error readSeconds(llvm::StringRef option, llvm::StringRef text,
                        double &out);

/// A size: bytes, or with suffix K, M, G or T (powers of 1024).
llvm::Error readBytes(llvm::StringRef option, llvm::StringRef text,
                      uint64_t &out);

/// NAME=VALUE, where NAME is not in `out` yet.
llvm::Error readBinding(llvm::StringRef option, llvm::StringRef text,
                        std::vector<Binding> &out);

/// Adds the assumption of that name to `out`, bits of cpu::Broken.
llvm::Error readBroken(llvm::StringRef option, llvm::StringRef text,
                       unsigned &out);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_OPTIONVALUES_H
