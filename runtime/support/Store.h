//===- Store.h - Where ranks meet -------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_STORE_H
#define COMMSIR_RUNTIME_SUPPORT_STORE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace commsir::group {

/// Where ranks meet before they share memory: torch's store, a folder of files,
/// a map in tests. Keys are ASCII; values are bytes. Usable from any thread.
class Store {
public:
  virtual ~Store() = default;
  virtual llvm::Error set(llvm::StringRef key, llvm::StringRef value) = 0;
  /// Waits until the key is there; fails after `timeout` seconds.
  virtual llvm::Expected<std::string> get(llvm::StringRef key,
                                          double timeout) = 0;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_SUPPORT_STORE_H
