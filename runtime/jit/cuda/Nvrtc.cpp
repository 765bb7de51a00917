//===- Nvrtc.cpp - CUDA C++ in, PTX out -----------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/Nvrtc.h"

#include "runtime/jit/cuda/Libraries.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>
#include <map>
#include <mutex>
#include <vector>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;

static const CudaLibrary kNvrtc = {"libnvrtc.so",
                                   {"libnvrtc.so.13", "libnvrtc.so.12"},
                                   "cuda_nvrtc",
                                   "COMMSIR_NVRTC_LIBRARY"};

namespace {
/// The functions of NVRTC that we call. 0 is success.
struct Nvrtc {
  using Program = void *;
  int (*version)(int *, int *) = nullptr;
  int (*create)(Program *, const char *source, const char *name, int count,
                const char *const *texts, const char *const *names) = nullptr;
  int (*destroy)(Program *) = nullptr;
  int (*compile)(Program, int count, const char *const *options) = nullptr;
  int (*logSize)(Program, size_t *) = nullptr;
  int (*log)(Program, char *) = nullptr;
  int (*ptxSize)(Program, size_t *) = nullptr;
  int (*ptx)(Program, char *) = nullptr;
  const char *(*errorText)(int) = nullptr;
  std::string path;

  bool load(const std::string &library, std::string &why);
  std::string describe() const;
  std::string readLog(Program program) const;
};
} // namespace

/// NVRTC opens its builtins by name when it compiles, and does not look next to
/// itself: what has been opened by then is found.
static void openBuiltins(StringRef library) {
  std::error_code error;
  for (sys::fs::directory_iterator it(sys::path::parent_path(library), error),
       end;
       !error && it != end; it.increment(error))
    if (sys::path::filename(it->path()).starts_with("libnvrtc-builtins.so"))
      ::dlopen(it->path().c_str(), RTLD_NOW | RTLD_LOCAL);
}

bool Nvrtc::load(const std::string &library, std::string &why) {
  openBuiltins(library);
  void *opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char *error = ::dlerror();
    why = error ? error : "it cannot be opened";
    return false;
  }
  why.clear();
  auto find = [&](const char *name, auto &function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        ::dlsym(opened, name));
    if (!function && why.empty())
      why = library + " has no " + name;
  };
  find("nvrtcVersion", version);
  find("nvrtcCreateProgram", create);
  find("nvrtcDestroyProgram", destroy);
  find("nvrtcCompileProgram", compile);
  find("nvrtcGetProgramLogSize", logSize);
  find("nvrtcGetProgramLog", log);
  find("nvrtcGetPTXSize", ptxSize);
  find("nvrtcGetPTX", ptx);
  find("nvrtcGetErrorString", errorText);
  if (!why.empty())
    return false;
  Dl_info info;
  path = ::dladdr(reinterpret_cast<void *>(create), &info) && info.dli_fname
             ? info.dli_fname
             : library;
  return true;
}

std::string Nvrtc::describe() const {
  int major = 0, minor = 0;
  version(&major, &minor);
  return formatv("NVRTC {0}.{1} ({2})", major, minor, path);
}

std::string Nvrtc::readLog(Program program) const {
  size_t size = 0;
  if (logSize(program, &size) != 0 || size == 0)
    return {};
  std::string text(size, '\0');
  if (log(program, text.data()) != 0)
    return {};
  return StringRef(text.c_str()).rtrim().str();
}

/// The library, loaded once a process for each value of the environment.
static Expected<const Nvrtc *> getNvrtc() {
  static std::mutex mutex;
  static auto *loaded = new std::map<std::string, Nvrtc>();
  std::lock_guard<std::mutex> guard(mutex);
  bool chosen = false;
  std::string tried;
  for (const std::string &library : listCudaLibraries(kNvrtc, chosen)) {
    if (auto found = loaded->find(library); found != loaded->end())
      return &found->second;
    Nvrtc functions;
    std::string why;
    if (functions.load(library, why))
      return &(*loaded)[library].operator=(std::move(functions));
    tried += "\n  " + library + ": " + why;
  }
  return createStringError(
      "NVRTC could not be loaded:%s\nInstall it (pip install "
      "nvidia-cuda-nvrtc), or name its file in COMMSIR_NVRTC_LIBRARY",
      tried.c_str());
}

Expected<std::string> commsir::jit::describeNvrtc() {
  Expected<const Nvrtc *> nvrtc = getNvrtc();
  if (!nvrtc)
    return nvrtc.takeError();
  return (*nvrtc)->describe();
}

Expected<std::string>
commsir::jit::compileByNvrtc(StringRef source, StringRef name,
                             ArrayRef<NvrtcHeader> headers,
                             ArrayRef<std::string> options) {
  Expected<const Nvrtc *> found = getNvrtc();
  if (!found)
    return found.takeError();
  const Nvrtc &nvrtc = **found;
  std::vector<const char *> names, texts, flags;
  for (const NvrtcHeader &header : headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  for (const std::string &option : options)
    flags.push_back(option.c_str());
  Nvrtc::Program program = nullptr;
  auto fail = [&](int status, StringRef what) {
    std::string log = program ? nvrtc.readLog(program) : std::string();
    return createStringError(formatv("{0}: {1}: {2}{3}{4}", nvrtc.describe(),
                                     what, nvrtc.errorText(status),
                                     log.empty() ? "" : "\n", log)
                                 .str());
  };
  std::string text = source.str(), called = name.str();
  if (int status =
          nvrtc.create(&program, text.c_str(), called.c_str(),
                       int(headers.size()), texts.data(), names.data()))
    return fail(status, "taking " + called);
  scope_exit destroy([&] { nvrtc.destroy(&program); });
  if (int status = nvrtc.compile(program, int(flags.size()), flags.data()))
    return fail(status, "compiling " + called);
  size_t size = 0;
  if (int status = nvrtc.ptxSize(program, &size))
    return fail(status, "reading the PTX of " + called);
  std::string ptx(size, '\0');
  if (int status = nvrtc.ptx(program, ptx.data()))
    return fail(status, "reading the PTX of " + called);
  ptx.resize(StringRef(ptx.c_str()).size());
  return ptx;
}
