//===- Spelling.h - Suggests the intended spelling --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_SPELLING_H
#define COMMSIR_RUNTIME_SUPPORT_SPELLING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace commsir {

/// Returns the candidate closest to `name` if it may be a typing error, else
/// "". For "did you mean".
llvm::StringRef closest(llvm::StringRef name,
                        llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_SPELLING_H
