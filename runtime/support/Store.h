//===- Store.h - The store of a rendezvous ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_STORE_H
#define COMMSIR_RUNTIME_SUPPORT_STORE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace commsir::group {

/// The most bytes of a value: no rank says that much.
inline constexpr uint64_t kMostStoreBytes = uint64_t(64) << 20;

/// A key-value store through which ranks meet before they share memory: torch's
/// store, a folder, or a map in tests. Keys are ASCII; values are bytes.
/// Thread-safe.
class Store {
public:
  virtual ~Store() = default;
  virtual llvm::Error set(llvm::StringRef key, llvm::StringRef value) = 0;
  /// Waits until the key exists; fails after `timeout` seconds, and if the
  /// value has more than kMostStoreBytes.
  virtual llvm::Expected<std::string> get(llvm::StringRef key,
                                          double timeout) = 0;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_SUPPORT_STORE_H
