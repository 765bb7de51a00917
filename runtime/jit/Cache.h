//===- Cache.h - Machine code that is kept ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes by key, in the memory of the process and in a folder that processes
// share. What the bytes mean is the caller's affair. Nothing that happens to
// the folder (corruption, no space, no permission, processes that die) costs
// more than the caching.
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
// Its modification time is the time of its last use. <key>.lock is there while
// a process builds the entry; flock() on it says who does, so that the lock of
// a dead process holds nobody up.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CACHE_H
#define COMMSIR_RUNTIME_JIT_CACHE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Error.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace commsir::jit {

/// Names an entry: a BLAKE3 of all that the entry depends on.
using CacheKey = std::array<uint8_t, 32>;

/// Tells this build of CommsIR from every other, also of the same version: the
/// linker's build id.
const std::string &getBuildName();

/// Makes a key. Every part has a label, and lengths are hashed too, so that no
/// two lists of parts make the same text.
class CacheKeyBuilder {
public:
  /// Starts with the version of CommsIR, of LLVM, and of this very build.
  CacheKeyBuilder();
  /// The same of another version.
  explicit CacheKeyBuilder(llvm::StringRef version);
  CacheKeyBuilder &add(llvm::StringRef label, llvm::StringRef value);
  CacheKeyBuilder &add(llvm::StringRef label, int64_t value);
  CacheKey finish();

private:
  llvm::BLAKE3 hash;
};

/// Where and how much is kept.
struct CacheSettings {
  /// Empty: nothing is kept on disk.
  std::string folder;
  /// Bytes of all entries on disk; 0: nothing is kept on disk.
  uint64_t diskLimit = uint64_t(1) << 30;
  /// Bytes of all entries in memory.
  uint64_t memoryLimit = uint64_t(256) << 20;
  /// False: what is not in the cache is an error.
  bool build = true;
  /// Seconds to wait for another process that builds the same entry.
  double patience = 120;
  /// Told of what went wrong; empty: a line on stderr.
  std::function<void(const std::string &)> warn;

  /// COMMSIR_CACHE_DIR, else $XDG_CACHE_HOME/commsir, else ~/.cache/commsir;
  /// COMMSIR_CACHE_SIZE (bytes, or with K, M, G or T; 0: no disk);
  /// COMMSIR_COMPILER=off. A value that cannot be read is warned of and left
  /// out.
  static CacheSettings fromEnvironment();
};

/// What a cache did.
struct CacheCounts {
  uint64_t fromMemory = 0, fromDisk = 0, built = 0, rejected = 0, evicted = 0;
};

/// A cache. All functions may be called from several threads.
class Cache {
public:
  /// An entry. It stays as it is, also when the cache lets go of it.
  using Entry = std::shared_ptr<const std::string>;

  explicit Cache(CacheSettings settings);
  Cache(const Cache &) = delete;
  Cache &operator=(const Cache &) = delete;

  /// The one of this process, with the settings of its environment.
  static Cache &shared();

  /// The entry of `key`; null when there is none. An entry that `accept`
  /// refuses is as good as none, with a warning.
  Entry find(const CacheKey &key,
             llvm::function_ref<bool(llvm::StringRef)> accept);

  /// The entry of `key`; where there is none, what `build` returns. One thread
  /// of one process of all that share the folder builds, the others wait and
  /// take its result. `what` is for messages: "kernel @all_reduce". Fails when
  /// `build` does, and when building is switched off.
  llvm::Expected<Entry>
  get(const CacheKey &key, llvm::StringRef what,
      llvm::function_ref<bool(llvm::StringRef)> accept,
      llvm::function_ref<llvm::Expected<std::string>()> build);

  /// Keeps `payload`, in place of what was there.
  Entry put(const CacheKey &key, std::string payload);

  /// Forgets what is in memory; the disk stays.
  void forget();

  CacheCounts counts() const;
  const CacheSettings &getSettings() const { return settings; }

private:
  Entry findInMemory(const CacheKey &key);
  Entry findOnDisk(const CacheKey &key,
                   llvm::function_ref<bool(llvm::StringRef)> accept,
                   bool quiet);
  Entry remember(const CacheKey &key, Entry entry);
  void write(const CacheKey &key, llvm::StringRef payload);
  void prune();
  void warn(const llvm::Twine &message);
  void warnOfFolder(const llvm::Twine &message);
  std::string pathOf(const CacheKey &key, llvm::StringRef extension) const;
  bool usesDisk() const;

  struct Kept {
    Entry entry;
    std::list<CacheKey>::iterator use;
  };

  const CacheSettings settings;
  mutable std::mutex mutex;
  std::condition_variable finished;
  std::set<CacheKey> building;
  std::map<CacheKey, Kept> memory;
  /// Last used first.
  std::list<CacheKey> uses;
  uint64_t memoryBytes = 0;
  bool warnedOfFolder = false;
  CacheCounts counted;
};

/// The key in 64 hexadecimal digits.
std::string toHex(const CacheKey &key);

/// "65536", "64K", "1G" in bytes; false when `text` is none of these.
bool parseSize(llvm::StringRef text, uint64_t &bytes);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CACHE_H
