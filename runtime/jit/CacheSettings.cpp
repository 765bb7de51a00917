//===- CacheSettings.cpp - The folder and the limit of a cache ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/CacheSettings.h"

#include "runtime/support/JobVariables.h"
#include "runtime/support/Size.h"
#include "runtime/support/StandardError.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <atomic>
#include <cstdlib>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace fs = llvm::sys::fs;

static std::atomic<bool> parentSpeaks{false};

void commsir::jit::leaveReportingToParent() { parentSpeaks = true; }

bool commsir::jit::isReportingRank() {
  if (parentSpeaks)
    return false;
  for (const char *name : kRankVariables)
    if (const char *rank = std::getenv(name))
      return StringRef(rank) == "0";
  return true;
}

static void warnOnce(const Twine &message) {
  if (isReportingRank())
    printWarning(message);
}

static std::string chooseFolder() {
  SmallString<128> folder;
  if (const char *chosen = std::getenv("COMMSIR_CACHE_DIR");
      chosen && *chosen) {
    folder = chosen;
    // The process may change its folder later.
    fs::make_absolute(folder);
    return folder.str().str();
  }
  // A relative folder would be another one wherever the process is started.
  if (const char *caches = std::getenv("XDG_CACHE_HOME");
      caches && sys::path::is_absolute(caches))
    folder = caches;
  else if (sys::path::home_directory(folder) && sys::path::is_absolute(folder))
    sys::path::append(folder, ".cache");
  else
    return {};
  sys::path::append(folder, "commsir");
  return folder.str().str();
}

CacheSettings CacheSettings::fromEnvironment() {
  CacheSettings settings;
  settings.folder = chooseFolder();
  if (settings.folder.empty())
    warnOnce("there is no home folder: compiled kernels are not kept; "
             "set COMMSIR_CACHE_DIR to a folder for them");
  if (const char *size = std::getenv("COMMSIR_CACHE_SIZE"); size && *size)
    if (!parseSize(size, settings.diskLimit))
      warnOnce("COMMSIR_CACHE_SIZE='" + Twine(size) +
               "' is not a size (like 512M or 2G); the limit is 1G");
  if (const char *compiler = std::getenv("COMMSIR_COMPILER");
      compiler && *compiler) {
    StringRef text(compiler);
    settings.build = !text.equals_insensitive("off");
    if (settings.build && !text.equals_insensitive("on"))
      warnOnce("COMMSIR_COMPILER='" + text +
               "' is neither on nor off; it stays on");
  }
  return settings;
}
