//===- Nccl.cpp - NCCL, loaded when it is needed --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Nccl.h"

#include "runtime/support/GroupError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

using namespace commsir::cuda;
using llvm::createStringError;

namespace {

/// The first release with windows and the device API.
constexpr int kOldestNccl = 22800;

/// Handle of the library to use, or null; `tried` collects what was not found.
void *openLibrary(std::string &tried) {
  auto attempt = [&](const char *name, int flags) -> void * {
    if (void *handle = dlopen(name, flags))
      return handle;
    tried += llvm::formatv("\n  {0}: {1}", name, dlerror()).str();
    return nullptr;
  };
  if (auto named = llvm::sys::Process::GetEnv("COMMSIR_NCCL_LIBRARY"))
    return attempt(named->c_str(), RTLD_NOW | RTLD_GLOBAL);
  // A second NCCL next to one that is loaded would not share its communicators.
  if (void *handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD))
    return handle;
  return attempt("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
}

llvm::Error load(Nccl &nccl) {
  // NCCL would set up NVLink multicast for its own kernels; it stays off unless
  // the user asks for it.
  setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  std::string tried;
  void *handle = openLibrary(tried);
  if (!handle)
    return createStringError(
        "NCCL could not be loaded:%s\nInstall NCCL 2.28 or newer (pip install "
        "nvidia-nccl-cu13), or name its file in COMMSIR_NCCL_LIBRARY",
        tried.c_str());
  nccl.GetVersion = reinterpret_cast<decltype(nccl.GetVersion)>(
      dlsym(handle, "ncclGetVersion"));
  Dl_info where;
  if (nccl.GetVersion &&
      dladdr(reinterpret_cast<void *>(nccl.GetVersion), &where) &&
      where.dli_fname)
    nccl.path = where.dli_fname;
  if (!nccl.GetVersion || nccl.GetVersion(&nccl.version) != ncclSuccess ||
      nccl.version < kOldestNccl)
    return createStringError("%s is NCCL %d.%d.%d; 2.28 or newer is needed, "
                             "for symmetric windows. Name "
                             "another file in COMMSIR_NCCL_LIBRARY",
                             nccl.path.c_str(), nccl.version / 10000,
                             nccl.version / 100 % 100, nccl.version % 100);
#define COMMSIR_NCCL_FUNCTION(name)                                            \
  nccl.name =                                                                  \
      reinterpret_cast<decltype(nccl.name)>(dlsym(handle, "nccl" #name));      \
  if (!nccl.name)                                                              \
    return createStringError("%s has no nccl" #name                            \
                             ": it was built without it",                      \
                             nccl.path.c_str());
#include "runtime/cuda/NcclFunctions.inc"
#undef COMMSIR_NCCL_FUNCTION
  nccl.teamLsa =
      reinterpret_cast<decltype(nccl.teamLsa)>(dlsym(handle, "ncclTeamLsa"));
  if (!nccl.teamLsa)
    return createStringError("%s has no ncclTeamLsa: it was built without the "
                             "device API",
                             nccl.path.c_str());
  nccl.devCommCreate = reinterpret_cast<decltype(nccl.devCommCreate)>(
      dlsym(handle, "ncclDevCommCreate"));
  nccl.devCommDestroy = reinterpret_cast<decltype(nccl.devCommDestroy)>(
      dlsym(handle, "ncclDevCommDestroy"));
  return llvm::Error::success();
}

} // namespace

llvm::Expected<const Nccl *> Nccl::get() {
  static Nccl nccl;
  static std::string failure;
  static std::once_flag once;
  std::call_once(once, [] {
    if (auto error = load(nccl))
      failure = llvm::toString(std::move(error));
  });
  if (!failure.empty())
    return createStringError(failure);
  return &nccl;
}

llvm::Error Nccl::check(ncclResult_t result, const llvm::Twine &what,
                        ncclComm_t comm) const {
  if (result == ncclSuccess || result == ncclInProgress)
    return llvm::Error::success();
  const char *text = GetLastError(comm);
  std::string detail = text ? text : "";
  std::string said =
      llvm::formatv("{0}: {1}{2}", what.str(), GetErrorString(result),
                    detail.empty() ? "" : " (" + detail + ")");
  // As of the driver, whose words these are.
  if (result == ncclUnhandledCudaError &&
      llvm::StringRef(detail).contains("out of memory"))
    return group::makeError(group::GroupError::Kind::Limit, said);
  return createStringError(said);
}
