//===- EntryFile.h - A cache entry as a file --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An entry is the file <64 hex digits of the key>.kernel:
//
//   offset  bytes
//        0      8  "CommsIRK"
//        8      4  version of this format, little-endian
//       12      4  zero
//       16      8  bytes of the payload, little-endian
//       24     32  the key
//       56     32  BLAKE3 of bytes 0 … 55 and of the payload
//       88      …  the payload
//
// Its modification time is the time of its last use. While a process builds the
// entry, it holds flock() on <key>.lock, so that a dead process blocks nobody.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_ENTRYFILE_H
#define COMMSIR_RUNTIME_JIT_ENTRYFILE_H

#include "runtime/jit/CacheKey.h"
#include "runtime/support/OwnFolder.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace commsir::jit {

constexpr uint32_t kEntryFormat = 1;
/// Size of a file without its payload.
constexpr size_t kEntryHeader = 88;
/// No kernel is larger; a longer length is treated as damage.
constexpr uint64_t kLargestEntry = uint64_t(1) << 30;
constexpr char kEntryExtension[] = ".kernel";
constexpr char kLockExtension[] = ".lock";
constexpr char kTemporaryExtension[] = ".tmp";

/// Reads the payload of entry `key` from a file of the folder. None on failure:
/// `why` holds the reason, and is empty if there is no file.
std::optional<std::string> readEntry(const OwnFolder &folder,
                                     const std::string &name,
                                     const CacheKey &key, std::string &why);

/// Writes an entry, replacing a file of the folder. Returns "" or the reason of
/// the failure.
std::string writeEntry(const OwnFolder &folder, const std::string &name,
                       const CacheKey &key, llvm::StringRef payload);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_ENTRYFILE_H
