//===- Libraries.cpp - Finds CUDA's libraries -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/Libraries.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace fs = llvm::sys::fs;

StringRef commsir::jit::getEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value ? StringRef(value) : StringRef();
}

namespace {
/// Search paths of the objects that the process has loaded.
struct LoadedObjects {
  StringRef stem;
  /// The library itself; empty: it is not loaded.
  std::string library;
  /// Folders of torch's own libraries, and of this code.
  SmallVector<std::string> packages;
};
} // namespace

static int visitLoaded(dl_phdr_info *object, size_t, void *data) {
  auto &loaded = *static_cast<LoadedObjects *>(data);
  StringRef path(object->dlpi_name);
  StringRef name = sys::path::filename(path);
  if (name.starts_with(loaded.stem))
    loaded.library = path.str();
  if (name.starts_with("libtorch") || name.starts_with("libc10"))
    loaded.packages.push_back(sys::path::parent_path(path).str());
  return 0;
}

SmallVector<std::string> commsir::jit::listCudaFolders(StringRef below) {
  SmallVector<std::string> folders;
  for (StringRef root :
       {getEnvironment("CUDA_HOME"), getEnvironment("CUDA_PATH"),
        StringRef("/usr/local/cuda")})
    if (!root.empty())
      folders.push_back((root + below).str());
  return folders;
}

/// The folders that may hold a library, likeliest first.
static SmallVector<std::string> listFolders(const LoadedObjects &loaded,
                                            StringRef package) {
  SmallVector<std::string> folders;
  for (const std::string &folder : loaded.packages) {
    // …/site-packages/torch/lib, next to …/site-packages/nvidia.
    folders.push_back(folder + "/../../nvidia/cu13/lib");
    folders.push_back((folder + "/../../nvidia/" + package + "/lib").str());
  }
  SmallVector<StringRef> path;
  getEnvironment("LD_LIBRARY_PATH")
      .split(path, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef folder : path)
    folders.push_back(folder.str());
  folders.append(listCudaFolders("/lib64"));
  return folders;
}

SmallVector<std::string>
commsir::jit::listCudaLibraries(const CudaLibrary &library, bool &chosen) {
  StringRef own = getEnvironment(library.variable);
  chosen = !own.empty();
  if (chosen)
    return {own.str()};
  LoadedObjects loaded;
  loaded.stem = library.stem;
  dl_iterate_phdr(visitLoaded, &loaded);
  if (!loaded.library.empty())
    return {loaded.library};
  Dl_info self;
  if (::dladdr(reinterpret_cast<void *>(&visitLoaded), &self) && self.dli_fname)
    loaded.packages.push_back(sys::path::parent_path(self.dli_fname).str());
  SmallVector<std::string> libraries;
  for (const std::string &folder : listFolders(loaded, library.package))
    for (const char *name : library.names) {
      std::string path = folder + "/" + name;
      if (fs::exists(path))
        libraries.push_back(path);
    }
  for (const char *name : library.names)
    libraries.push_back(name);
  return libraries;
}

std::string commsir::jit::identifyFile(StringRef path) {
  SmallString<128> real;
  if (fs::real_path(path, real))
    real = path;
  fs::file_status status;
  if (fs::status(real, status))
    return real.str().str();
  return (real + ":" + Twine(status.getSize()) + ":" +
          Twine(status.getLastModificationTime().time_since_epoch().count()))
      .str();
}
