//===- Json.h - JSON from outside -------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_JSON_H
#define COMMSIR_RUNTIME_SUPPORT_JSON_H

#include "llvm/Support/JSON.h"

namespace commsir {

/// Parses JSON like llvm::json::parse. Because that recurses, text nested
/// deeper than any of CommsIR's files is refused first.
llvm::Expected<llvm::json::Value> readJson(llvm::StringRef text);

/// Number of commas outside of strings: an estimate of the number of values in
/// `text`.
size_t countJsonCommas(llvm::StringRef text);

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_JSON_H
