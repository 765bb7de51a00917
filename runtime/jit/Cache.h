//===- Cache.h - Cached machine code ----------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stores bytes by key, in the memory of the process and in a folder that
// processes share. Only callers interpret the bytes. If the folder fails
// (corruption, no space, no permission, processes that die), only the benefit
// of caching is lost.
//
// EntryFile.h defines the format of an entry on disk.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CACHE_H
#define COMMSIR_RUNTIME_JIT_CACHE_H

#include "runtime/jit/CacheKey.h"
#include "runtime/jit/CacheSettings.h"
#include "runtime/support/OwnFolder.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace commsir::jit {

/// Statistics of a cache.
struct CacheCounts {
  uint64_t fromMemory = 0, fromDisk = 0, built = 0, rejected = 0, evicted = 0;
};

/// A cache. Thread-safe.
class Cache {
public:
  /// An immutable entry, which stays valid after its eviction.
  using Entry = std::shared_ptr<const std::string>;

  explicit Cache(CacheSettings settings);
  Cache(const Cache &) = delete;
  Cache &operator=(const Cache &) = delete;

  /// The process-wide cache, with settings from the environment.
  static Cache &shared();

  /// Returns the entry of `key`, or null if there is none. An entry that
  /// `accept` refuses is ignored with a warning.
  Entry find(const CacheKey &key,
             llvm::function_ref<bool(llvm::StringRef)> accept);

  /// Returns the entry of `key`; if there is none, stores the result of
  /// `build`. Among all processes that share the folder, one thread builds and
  /// the others wait for its result. `what` is for messages: "kernel
  /// @all_reduce". Fails if `build` does, and if building is disabled.
  llvm::Expected<Entry>
  get(const CacheKey &key, llvm::StringRef what,
      llvm::function_ref<bool(llvm::StringRef)> accept,
      llvm::function_ref<llvm::Expected<std::string>()> build);

  /// Stores `payload`, replacing an existing entry.
  Entry put(const CacheKey &key, std::string payload);

  /// Clears the memory; the disk is unchanged.
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
  void warn(const llvm::Twine &message);
  void warnOfFolder(const llvm::Twine &message);
  OwnFolder openFolder(bool make);
  bool usesDisk() const;

  struct CachedEntry {
    Entry entry;
    std::list<CacheKey>::iterator use;
  };

  const CacheSettings settings;
  mutable std::mutex mutex;
  std::condition_variable finished;
  std::set<CacheKey> building;
  std::map<CacheKey, CachedEntry> memory;
  /// Most recently used first.
  std::list<CacheKey> uses;
  uint64_t memoryBytes = 0;
  bool warnedOfFolder = false;
  CacheCounts counted;
};

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CACHE_H
