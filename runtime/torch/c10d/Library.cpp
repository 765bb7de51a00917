//===- Library.cpp - CommsIR's C API, opened at run time ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Library.h"

#include "runtime/torch/c10d/Interrupt.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

using namespace commsir::torch_c10d;

static bool bind(void *handle, Library &library, std::string &why) {
#define COMMSIR_C10D_BIND(NAME)                                                \
  library.NAME =                                                               \
      reinterpret_cast<decltype(library.NAME)>(dlsym(handle, #NAME));          \
  if (!library.NAME) {                                                         \
    why = "libcommsir.so has no " #NAME ": it is of another version";          \
    return false;                                                              \
  }
  COMMSIR_C10D_FUNCTIONS(COMMSIR_C10D_BIND)
#undef COMMSIR_C10D_BIND
  if (int32_t abi = library.commsir_abi_version(); abi != COMMSIR_ABI_VERSION) {
    why = "libcommsir.so has ABI version " + std::to_string(abi) +
          ", and commsir's torch backend was built for " +
          std::to_string(COMMSIR_ABI_VERSION) + "; install one build of both";
    return false;
  }
  return true;
}

const Library *Library::open(const std::string &path, std::string &why) {
  static std::mutex mutex;
  static auto *opened = new std::map<std::string, std::unique_ptr<Library>>;
  std::lock_guard<std::mutex> lock(mutex);
  if (auto known = opened->find(path); known != opened->end())
    return known->second.get();
  if (path.empty()) {
    why = "libcommsir.so was not found";
    return nullptr;
  }
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    why = std::string("libcommsir.so cannot be opened: ") + dlerror();
    return nullptr;
  }
  auto library = std::make_unique<Library>();
  if (!bind(handle, *library, why))
    return nullptr;
  library->commsir_set_interrupt(askInterrupted);
  return ((*opened)[path] = std::move(library)).get();
}

std::string Library::lastError() const {
  const char *message = commsir_error_message();
  return message && *message ? message : "no message";
}
