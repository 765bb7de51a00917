//===- CacheSettings.h - Where and how much a cache keeps -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CACHESETTINGS_H
#define COMMSIR_RUNTIME_JIT_CACHESETTINGS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <cstdint>
#include <functional>
#include <string>

namespace commsir::jit {

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
  /// COMMSIR_COMPILER=off. A value that cannot be read is warned of, by one
  /// process of a job, and left out.
  static CacheSettings fromEnvironment();
};

/// A line on stderr.
void printWarning(const llvm::Twine &message);

/// What all processes of a job would say, because it is of what they share, is
/// said by its rank 0 alone, and not by those that another process has started
/// as its ranks.
bool isReportingRank();
/// From now on this process is such a rank.
void leaveReportingToParent();

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CACHESETTINGS_H
