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
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fcntl.h>
#include <sys/file.h>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace fs = llvm::sys::fs;

/// A process that still writes a temporary file is younger than that.
static constexpr auto kStaleAge = std::chrono::minutes(10);

namespace {
struct Listed {
  std::string path;
  uint64_t bytes;
  sys::TimePoint<> used;
};
} // namespace

/// Whether the file is one that this cache makes: a key and more.
static bool isOurs(StringRef name) {
  return name.size() > 64 && name[64] == '.' &&
         all_of(name.take_front(64), isHexDigit);
}

/// Removes a lock or a temporary file that a dead process left long ago.
static void removeStale(const std::string &path,
                        const fs::basic_file_status &status,
                        sys::TimePoint<> now) {
  if (now - status.getLastModificationTime() < kStaleAge)
    return;
  if (!StringRef(path).ends_with(kLockExtension)) {
    ::unlink(path.c_str());
    return;
  }
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
}

/// The entries in the folder; removes what dead processes left.
static std::vector<Listed> listEntries(StringRef folder) {
  std::vector<Listed> entries;
  sys::TimePoint<> now = std::chrono::system_clock::now();
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error)) {
    StringRef name = sys::path::filename(at->path());
    ErrorOr<fs::basic_file_status> status = at->status();
    if (!isOurs(name) || !status || !fs::is_regular_file(*status))
      continue;
    if (name.ends_with(kEntryExtension))
      entries.push_back(
          {at->path(), status->getSize(), status->getLastModificationTime()});
    else if (name.ends_with(kLockExtension) ||
             name.ends_with(kTemporaryExtension))
      removeStale(at->path(), *status, now);
  }
  return entries;
}

uint64_t commsir::jit::pruneFolder(StringRef folder, uint64_t limit) {
  std::vector<Listed> entries = listEntries(folder);
  uint64_t total = 0;
  for (const Listed &entry : entries)
    total += entry.bytes;
  if (total <= limit)
    return 0;
  llvm::sort(entries, [](const Listed &a, const Listed &b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  uint64_t removed = 0;
  for (const Listed &entry : entries) {
    if (total <= limit)
      break;
    // Another process may have removed it; then its bytes are gone too.
    ::unlink(entry.path.c_str());
    total -= entry.bytes;
    ++removed;
  }
  return removed;
}
