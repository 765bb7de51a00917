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

/// As llvm::json::parse, which recurses, and so needs what is nested deeper
/// than any file of ours refused before.
llvm::Expected<llvm::json::Value> readJson(llvm::StringRef text);

/// Commas outside of strings: about as many as `text` has values.
size_t countJsonCommas(llvm::StringRef text);

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_JSON_H
