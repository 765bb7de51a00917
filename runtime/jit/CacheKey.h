//===- CacheKey.h - The key of a cache entry --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CACHEKEY_H
#define COMMSIR_RUNTIME_JIT_CACHEKEY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/BLAKE3.h"

#include <array>
#include <cstdint>
#include <string>

namespace commsir::jit {

/// Key of an entry: a BLAKE3 hash of everything that the entry depends on.
using CacheKey = std::array<uint8_t, 32>;

/// Identifies this build of CommsIR among all others, also of the same version:
/// the linker's build id.
const std::string &getBuildName();

/// Builds a key. Every part has a label and its length is hashed, so that
/// different lists of parts cannot collide.
class CacheKeyBuilder {
public:
  /// Starts with the version of CommsIR and LLVM, and this build's name.
  CacheKeyBuilder();
  /// Starts with another version.
  explicit CacheKeyBuilder(llvm::StringRef version);
  CacheKeyBuilder &add(llvm::StringRef label, llvm::StringRef value);
  CacheKeyBuilder &add(llvm::StringRef label, int64_t value);
  CacheKey finish();

private:
  llvm::BLAKE3 hash;
};

/// The key in 64 hexadecimal digits.
std::string toHex(const CacheKey &key);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CACHEKEY_H
