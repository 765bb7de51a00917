//===- Spelling.h - Suggests the intended spelling --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What errors about unknown words have in common: of ops, enums, attributes,
// options and names.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_SPELLING_H
#define COMMSIR_DIALECT_SPELLING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace commsir {

/// Returns the candidate closest to `name` if it may be a typing error, else
/// "". Case does not count.
llvm::StringRef closest(llvm::StringRef name,
                        llvm::ArrayRef<llvm::StringRef> candidates);

/// Returns "; did you mean 'X'?" for the closest candidate X, or `otherwise` if
/// none is close.
std::string didYouMean(llvm::StringRef name,
                       llvm::ArrayRef<llvm::StringRef> candidates,
                       llvm::StringRef otherwise = "");

/// Returns "'NAME': known are A, B, C; did you mean 'B'?", the end of an error
/// that begins with what NAME should be.
std::string describeUnknown(llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringRef> known);

} // namespace commsir

#endif // COMMSIR_DIALECT_SPELLING_H
