//===- CacheFolder.cpp - A folder of entries within its limit -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/CacheFolder.h"

#include "runtime/jit/EntryFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <vector>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;

/// A process that still writes a temporary file is younger than so many
/// seconds.
static constexpr time_t kStaleAge = 600;

namespace {
struct CacheFileInfo {
  std::string name;
  uint64_t bytes;
  /// Nanoseconds.
  int64_t used;
};
} // namespace

/// Whether the file is one that this cache makes: a key and more.
static bool isOurs(StringRef name) {
  return name.size() > 64 && name[64] == '.' &&
         all_of(name.take_front(64), isHexDigit);
}

/// Removes a lock or a temporary file that a dead process left long ago.
static void removeStale(const OwnFolder &folder, const std::string &name,
                        time_t age) {
  if (age < kStaleAge)
    return;
  if (!StringRef(name).ends_with(kLockExtension))
    return folder.remove(name);
  std::string why;
  Descriptor file = folder.openFile(name, O_RDWR, why);
  if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
    folder.remove(name);
}

/// The entries in the folder; removes what dead processes left.
static std::vector<CacheFileInfo> listEntries(const OwnFolder &folder) {
  std::vector<CacheFileInfo> entries;
  time_t now = ::time(nullptr);
  // A place of its own to read from.
  int opened = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR *)> list(
      opened < 0 ? nullptr : ::fdopendir(opened), ::closedir);
  if (!list) {
    if (opened >= 0)
      ::close(opened);
    return entries;
  }
  while (const dirent *one = ::readdir(list.get())) {
    std::string name = one->d_name;
    struct stat status = {};
    if (!isOurs(name) ||
        ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(status.st_mode))
      continue;
    StringRef text(name);
    if (text.ends_with(kEntryExtension))
      entries.push_back({name, uint64_t(status.st_size),
                         status.st_mtim.tv_sec * INT64_C(1000000000) +
                             status.st_mtim.tv_nsec});
    else if (text.ends_with(kLockExtension) ||
             text.ends_with(kTemporaryExtension))
      removeStale(folder, name, now - status.st_mtime);
  }
  return entries;
}

uint64_t commsir::jit::pruneFolder(const OwnFolder &folder, uint64_t limit) {
  std::vector<CacheFileInfo> entries = listEntries(folder);
  uint64_t total = 0;
  for (const CacheFileInfo &entry : entries)
    total += entry.bytes;
  if (total <= limit)
    return 0;
  llvm::sort(entries, [](const CacheFileInfo &a, const CacheFileInfo &b) {
    return std::tie(a.used, a.name) < std::tie(b.used, b.name);
  });
  uint64_t removed = 0;
  for (const CacheFileInfo &entry : entries) {
    if (total <= limit)
      break;
    // Another process may have removed it; then its bytes are gone too.
    folder.remove(entry.name);
    total -= entry.bytes;
    ++removed;
  }
  return removed;
}
