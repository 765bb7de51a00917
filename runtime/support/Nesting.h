//===- Nesting.h - Text that is nested too deeply ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_NESTING_H
#define COMMSIR_RUNTIME_SUPPORT_NESTING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace commsir::driver {

/// How deep MLIR text may be nested. Kernels need ten; parser, verifiers and
/// printers recurse, and would overflow the stack from some thousands on.
inline constexpr unsigned maxNesting = 256;

/// What is nested too deep.
enum class Nesting {
  Brackets,  ///< ( [ { < within each other.
  Operators, ///< + - * mod floordiv ceildiv of one expression: each is an
             ///< operand of the next.
  Aliases,   ///< !a = … and #a = … that name each other: too deep, or more
             ///< than 65,536 words when they are written out.
  Digits     ///< A number of more than 1,024 characters: the time to read it
             ///< grows with the square of its length, and a fraction of
             ///< 500,000 digits overflows the stack.
};

/// What an error says of it.
llvm::StringRef describe(Nesting nesting);

/// A place in a text, as an offset, and what is nested too deep there.
struct DeepNesting {
  size_t at;
  Nesting what;
};

/// Where `text` is nested too deep; nothing when it is not. Strings and
/// comments do not count.
std::optional<DeepNesting> findDeepNesting(llvm::StringRef text);

/// Whether a source is MLIR's bytecode. The bytecode of others is refused:
/// MLIR's reader believes what damaged bytecode says.
bool isBytecode(llvm::StringRef source);

/// An error when `text`, the source of a kernel that the user knows as `name`,
/// is nested too deep, holds a zero byte, or is bytecode.
llvm::Error refuseSource(llvm::StringRef text, llvm::StringRef name);

/// An error that begins with "NAME:LINE:COLUMN: error: " when `text`, which the
/// user knows as `name`, is nested too deep. Bytecode is no text.
llvm::Error refuseDeepText(llvm::StringRef text, llvm::StringRef name);

/// The same for a program that opens its files itself: an error when one of
/// the files in `arguments` (those of main), or standard input, is MLIR text
/// nested too deep. A pipe can be read once only: its text is copied to memory,
/// and the program then reads it from standard input; `arguments` that name
/// the pipe become "-".
llvm::Error refuseDeepFiles(llvm::MutableArrayRef<char *> arguments);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_NESTING_H
