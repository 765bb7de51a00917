//===- CacheSettings.h - The folder and the limit of a cache ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_CACHESETTINGS_H
#define COMMSIR_RUNTIME_JIT_CACHESETTINGS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <functional>
#include <string>

namespace commsir::jit {

struct CacheSettings {
  /// Empty: nothing is stored on disk.
  std::string folder;
  /// Limit on the size of all entries on disk in bytes; 0: nothing is stored on
  /// disk.
  uint64_t diskLimit = uint64_t(1) << 30;
  /// Limit on the size of all entries in memory in bytes.
  uint64_t memoryLimit = uint64_t(256) << 20;
  /// False: a cache miss is an error.
  bool build = true;
  /// Seconds to wait for another process that builds the same entry.
  double patience = 120;
  /// Receives warnings; empty: printed to stderr.
  std::function<void(const std::string &)> warn;

  /// Reads COMMSIR_CACHE_DIR, else $XDG_CACHE_HOME/commsir, else
  /// ~/.cache/commsir; COMMSIR_CACHE_SIZE (bytes, or with suffix K, M, G or T;
  /// 0: no disk); COMMSIR_COMPILER=off. An invalid value is ignored; one
  /// process of a job warns of it.
  static CacheSettings fromEnvironment();
};

/// Whether this process prints messages that concern what all processes of a
/// job share. Rank 0 does, unless another process started it as a rank.
bool isReportingRank();
/// Declares that another process started this one as a rank.
void leaveReportingToParent();

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_CACHESETTINGS_H
