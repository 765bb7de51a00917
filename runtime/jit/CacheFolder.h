//===- CacheFolder.h - A folder of entries within its limit -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CACHEFOLDER_H
#define COMMSIR_RUNTIME_JIT_CACHEFOLDER_H

#include "runtime/support/OwnFolder.h"

#include <cstdint>

namespace commsir::jit {

/// Removes files of dead processes, then the least recently used entries until
/// the rest take at most `limit` bytes. Returns the number of removed entries.
uint64_t pruneFolder(const OwnFolder &folder, uint64_t limit);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CACHEFOLDER_H
