//===- Doctor.cpp - C API: what this machine has --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks, and leaves all as it is: opens no GPU and makes no communicator. What
// is missing has a "problem", which says what to do.
//
//===----------------------------------------------------------------------===//

#include "dialect/Collectives.h"
#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "runtime/capi/Error.h"
#include "runtime/driver/Target.h"
#include "runtime/jit/Cache.h"
#include "runtime/support/HostMemory.h"
#include "runtime/support/Version.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <thread>

using namespace commsir;
using namespace commsir::capi;
using llvm::json::Object;

static Object lookAtCache() {
  jit::CacheSettings settings = jit::CacheSettings::fromEnvironment();
  Object report{{"folder", jsonText(settings.folder)},
                {"limit_bytes", int64_t(settings.diskLimit)},
                {"compiler", settings.build}};
  if (settings.folder.empty() || !settings.diskLimit) {
    report["problem"] = "kernels for GPUs are not kept on disk; set "
                        "COMMSIR_CACHE_DIR to a folder";
    return report;
  }
  // The cache makes the folder when it needs it: what has to be there and
  // writable is the nearest folder above.
  llvm::StringRef nearest = settings.folder;
  while (!nearest.empty() && !llvm::sys::fs::exists(nearest))
    nearest = llvm::sys::path::parent_path(nearest);
  if (!nearest.empty() &&
      llvm::sys::fs::access(nearest, llvm::sys::fs::AccessMode::Write))
    report["problem"] =
        jsonText(nearest.str() + " cannot be written; set COMMSIR_CACHE_DIR to "
                                 "another folder");
  return report;
}

/// Names of what is registered, as users write them.
template <typename T>
static llvm::json::Array listNames(llvm::ArrayRef<const T *> registered) {
  llvm::json::Array names;
  for (const T *one : registered)
    names.push_back(one->name);
  return names;
}

char *commsir_doctor(void) {
  char *text = nullptr;
  guard([&] {
    Object report{{"version", getVersion()},
                  {"processors", int64_t(std::thread::hardware_concurrency())},
                  {"memory_bytes", int64_t(driver::memoryLimit())},
                  {"cache", lookAtCache()},
                  {"algorithms", listNames(mlir::comms::getAlgorithms())},
                  {"protocols", listNames(mlir::comms::getProtocols())}};
    for (const driver::TargetKind *kind : driver::getTargetKinds())
      if (kind->examine)
        kind->examine(report);
    if (!driver::findTargetKind("cuda"))
      report["cuda"] = Object{
          {"problem", "this build of CommsIR has no GPU target: build it where "
                      "the headers of CUDA and NCCL are"}};
    text = copyText(render(std::move(report)));
    return COMMSIR_OK;
  });
  return text;
}

char *commsir_collectives(void) {
  char *text = nullptr;
  guard([&] {
    llvm::json::Array rows;
    for (const mlir::comms::CollectiveKind &kind :
         mlir::comms::getCollectiveKinds())
      rows.push_back(
          Object{{"name", kind.name},
                 {"movement", mlir::comms::stringifyMovement(kind.movement)},
                 {"direction", mlir::comms::stringifyDirection(kind.direction)},
                 {"reduces", kind.reduces},
                 {"rows_vary", kind.rowsVary}});
    text = copyText(render(std::move(rows)));
    return COMMSIR_OK;
  });
  return text;
}
