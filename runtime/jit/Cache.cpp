//===- Cache.cpp - Machine code that is kept ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Cache.h"

#include "runtime/jit/CacheFolder.h"
#include "runtime/jit/EntryFile.h"
#include "runtime/jit/EntryLock.h"
#include "runtime/support/StandardError.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/TimeProfiler.h"

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;

Cache::Cache(CacheSettings settings) : settings(std::move(settings)) {}

Cache &Cache::shared() {
  // Never destroyed: threads may still compile while the process ends.
  static Cache *cache = new Cache(CacheSettings::fromEnvironment());
  return *cache;
}

bool Cache::usesDisk() const {
  return !settings.folder.empty() && settings.diskLimit != 0;
}

static std::string nameOf(const CacheKey &key, const char *extension) {
  return toHex(key) + extension;
}

/// Returns none if there is no folder, or it cannot be trusted.
OwnFolder Cache::openFolder(bool make) {
  if (!usesDisk())
    return OwnFolder();
  std::string why;
  OwnFolder folder = OwnFolder::open(settings.folder, make, why);
  if (!why.empty())
    warnOfFolder("cannot use the folder '" + settings.folder + "': " + why);
  return folder;
}

void Cache::warn(const Twine &message) {
  if (settings.warn)
    settings.warn(message.str());
  else
    printWarning(message);
}

void Cache::warnOfFolder(const Twine &message) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (std::exchange(warnedOfFolder, true))
      return;
  }
  if (isReportingRank())
    warn(message + "; compiled kernels are not kept (COMMSIR_CACHE_DIR chooses "
                   "another folder, COMMSIR_CACHE_SIZE=0 needs none)");
}

CacheCounts Cache::counts() const {
  std::lock_guard<std::mutex> guard(mutex);
  return counted;
}

void Cache::forget() {
  std::lock_guard<std::mutex> guard(mutex);
  memory.clear();
  uses.clear();
  memoryBytes = 0;
}

/// `mutex` is held.
Cache::Entry Cache::findInMemory(const CacheKey &key) {
  auto found = memory.find(key);
  if (found == memory.end())
    return nullptr;
  uses.splice(uses.begin(), uses, found->second.use);
  ++counted.fromMemory;
  return found->second.entry;
}

Cache::Entry Cache::remember(const CacheKey &key, Entry entry) {
  std::lock_guard<std::mutex> guard(mutex);
  auto drop = [&](std::map<CacheKey, CachedEntry>::iterator at) {
    memoryBytes -= at->second.entry->size();
    uses.erase(at->second.use);
    memory.erase(at);
  };
  if (auto before = memory.find(key); before != memory.end())
    drop(before);
  if (entry->size() > settings.memoryLimit)
    return entry;
  while (memoryBytes + entry->size() > settings.memoryLimit)
    drop(memory.find(uses.back()));
  uses.push_front(key);
  memory[key] = {entry, uses.begin()};
  memoryBytes += entry->size();
  return entry;
}

Cache::Entry Cache::findOnDisk(const CacheKey &key,
                               function_ref<bool(StringRef)> accept,
                               bool quiet) {
  TimeTraceScope scope("commsir: disk, reading");
  OwnFolder folder = openFolder(/*make=*/false);
  if (!folder)
    return nullptr;
  std::string name = nameOf(key, kEntryExtension);
  auto refuse = [&](const Twine &why) -> Entry {
    if (!quiet) {
      warn("the cached kernel '" + settings.folder + "/" + name +
           "' is not used: " + why +
           (settings.build ? "; it is built again" : ""));
      std::lock_guard<std::mutex> guard(mutex);
      ++counted.rejected;
    }
    return nullptr;
  };
  std::string why;
  std::optional<std::string> payload = readEntry(folder, name, key, why);
  if (!payload)
    return why.empty() ? nullptr : refuse(why);
  if (!accept(*payload))
    return refuse("its contents are invalid");
  std::lock_guard<std::mutex> guard(mutex);
  ++counted.fromDisk;
  return std::make_shared<const std::string>(std::move(*payload));
}

Cache::Entry Cache::find(const CacheKey &key,
                         function_ref<bool(StringRef)> accept) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (Entry entry = findInMemory(key))
      return entry;
  }
  Entry entry = findOnDisk(key, accept, /*quiet=*/false);
  return entry ? remember(key, std::move(entry)) : nullptr;
}

Cache::Entry Cache::put(const CacheKey &key, std::string payload) {
  write(key, payload);
  return remember(key, std::make_shared<const std::string>(std::move(payload)));
}

Expected<Cache::Entry> Cache::get(const CacheKey &key, StringRef what,
                                  function_ref<bool(StringRef)> accept,
                                  function_ref<Expected<std::string>()> build) {
  {
    std::unique_lock<std::mutex> guard(mutex);
    while (true) {
      if (Entry entry = findInMemory(key))
        return entry;
      if (building.insert(key).second)
        break;
      finished.wait(guard);
    }
  }
  llvm::scope_exit done([&] {
    std::lock_guard<std::mutex> guard(mutex);
    building.erase(key);
    finished.notify_all();
  });
  if (Entry entry = findOnDisk(key, accept, /*quiet=*/false))
    return remember(key, std::move(entry));
  if (!settings.build)
    return createStringError(
        what + " is not in the cache" +
        (usesDisk() ? " '" + Twine(settings.folder) + "'" : Twine()) +
        " and COMMSIR_COMPILER=off forbids compiling it; run it once with "
        "the compiler on, on this version of CommsIR");
  OwnFolder folder = openFolder(/*make=*/true);
  std::optional<EntryLock> lock;
  if (folder) {
    lock.emplace(folder, nameOf(key, kLockExtension), settings.patience);
    if (lock->timedOut())
      warn("another process has been compiling " + what + " for " +
           Twine(int64_t(settings.patience)) +
           " s; this one no longer waits for it and compiles too");
    if (Entry entry = findOnDisk(key, accept, /*quiet=*/true))
      return remember(key, std::move(entry));
  }
  Expected<std::string> payload = build();
  if (!payload)
    return payload.takeError();
  {
    std::lock_guard<std::mutex> guard(mutex);
    ++counted.built;
  }
  return put(key, std::move(*payload));
}

void Cache::write(const CacheKey &key, StringRef payload) {
  TimeTraceScope scope("commsir: disk, writing");
  if (!usesDisk() || payload.size() + kEntryHeader > settings.diskLimit ||
      payload.size() + kEntryHeader > kLargestEntry)
    return;
  OwnFolder folder = openFolder(/*make=*/true);
  if (!folder)
    return;
  std::string why =
      writeEntry(folder, nameOf(key, kEntryExtension), key, payload);
  if (!why.empty())
    return warnOfFolder("the folder '" + settings.folder + "': " + why);
  uint64_t removed = pruneFolder(folder, settings.diskLimit);
  std::lock_guard<std::mutex> guard(mutex);
  counted.evicted += removed;
}
