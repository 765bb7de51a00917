//===- Capture.cpp - Streams that a graph is captured from ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Capture.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <dlfcn.h>

#include <atomic>

using namespace commsir::torch_c10d;

c10::Stream commsir::torch_c10d::currentOn(const c10::Device &device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

namespace {
/// A function of CUDA's driver, once that is loaded.
template <typename Function>
class DriverFunction {
public:
  explicit DriverFunction(const char *name) : name(name) {}
  /// Null: it is not.
  Function *get() {
    if (Function *known = found)
      return known;
    if (void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD))
      found = reinterpret_cast<Function *>(dlsym(driver, name));
    return found;
  }

private:
  const char *name;
  std::atomic<Function *> found{nullptr};
};
} // namespace

static void exchangeCaptureMode(int &mode) {
  static DriverFunction<int(int *)> exchange(
      "cuThreadExchangeStreamCaptureMode");
  if (auto *function = exchange.get())
    function(&mode);
}

RelaxedCaptureScope::RelaxedCaptureScope() { exchangeCaptureMode(mode); }

RelaxedCaptureScope::~RelaxedCaptureScope() { exchangeCaptureMode(mode); }

/// torch before 2.12 says it of CUDA in libraries that this module is not
/// linked to.
bool commsir::torch_c10d::isCapturing(const c10::Device &device) {
  static DriverFunction<int(void *, int *)> ask("cuStreamIsCapturing");
  int status = 0;
  auto *function = ask.get();
  return function &&
         function(currentOn(device).native_handle(), &status) == 0 && status;
}
