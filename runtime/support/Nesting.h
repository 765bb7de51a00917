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

/// Maximum nesting depth of MLIR text. Kernels need about ten levels; parser,
/// verifiers and printers recurse and overflow the stack at some thousands.
inline constexpr unsigned maxNesting = 256;

/// The construct that is nested too deep.
enum class Nesting {
  Brackets,  ///< ( [ { < within each other.
  Operators, ///< + - * mod floordiv ceildiv of one expression: each is an
             ///< operand of the next.
  Aliases,   ///< !a = … and #a = … that name each other: too deep, or more
             ///< than 65,536 words when they are written out.
  Controls,  ///< A control character, or its escape in a string: errors show
             ///< texts, and a terminal would obey it.
  Digits     ///< A number of more than 1,024 characters: the time to read it
             ///< grows with the square of its length, and a fraction of
             ///< 500,000 digits overflows the stack.
};

/// Its name in errors.
llvm::StringRef describe(Nesting nesting);

/// An offset in a text, and the construct that is nested too deep there.
struct DeepNesting {
  size_t at;
  Nesting what;
};

/// Finds where `text` is nested too deep, ignoring strings and comments, or has
/// a control character, in strings and comments too.
/// Returns none if it is not.
std::optional<DeepNesting> findDeepNesting(llvm::StringRef text);

/// Whether a source is MLIR bytecode. Bytecode from users is refused, because
/// MLIR's reader does not validate it.
bool isBytecode(llvm::StringRef source);

/// Returns an error if `text`, the source of a kernel named `name`, is nested
/// too deep, contains a zero byte or another control character, or is bytecode,
/// or if `name` contains a control character.
llvm::Error refuseSource(llvm::StringRef text, llvm::StringRef name);

/// Returns an error that begins with "NAME:LINE:COLUMN: error: " if `text`,
/// named `name`, is nested too deep. Bytecode is not checked.
llvm::Error refuseDeepText(llvm::StringRef text, llvm::StringRef name);

/// Same, for a program that opens its files itself: returns an error if a file
/// in `arguments` (those of main), or standard input, is MLIR text nested too
/// deep. Because a pipe can be read only once, its text is copied to memory,
/// from which the program reads it as standard input; `arguments` that name the
/// pipe become "-".
llvm::Error refuseDeepFiles(llvm::MutableArrayRef<char *> arguments);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_NESTING_H
