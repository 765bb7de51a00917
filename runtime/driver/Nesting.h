//===- Nesting.h - Text that is nested too deeply ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_NESTING_H
#define COMMSIR_RUNTIME_DRIVER_NESTING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace commsir::driver {

/// How deep brackets may be nested in MLIR text. Kernels need ten; parser and
/// verifiers recurse, and would overflow the stack from some thousands on.
inline constexpr unsigned maxNesting = 256;

/// Where in `text` the brackets ( [ { < are nested deeper than `maxNesting`, as
/// an offset; nothing when they are not. Strings and comments do not count.
std::optional<size_t> findDeepNesting(llvm::StringRef text);

/// An error that begins with "NAME:LINE:COLUMN: error: " when `text`, which the
/// user knows as `name`, is nested too deep. Bytecode is no text.
llvm::Error refuseDeepText(llvm::StringRef text, llvm::StringRef name);

/// The same for a program that opens its files itself: an error when one of
/// the files in `arguments` (those of main), or a file that is standard input,
/// is MLIR text nested too deep.
llvm::Error refuseDeepFiles(llvm::ArrayRef<const char *> arguments);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_NESTING_H
