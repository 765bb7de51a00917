//===- Capture.cpp - Streams that a graph is captured from ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Capture.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <dlfcn.h>

using namespace commsir::torch_c10d;

c10::Stream commsir::torch_c10d::currentOn(const c10::Device &device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// A function of CUDA's driver where that is loaded.
static void *ofDriver(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver ? dlsym(driver, name) : nullptr;
}

static void exchangeCaptureMode(int &mode) {
  static const auto exchange = reinterpret_cast<int (*)(int *mode)>(
      ofDriver("cuThreadExchangeStreamCaptureMode"));
  if (exchange)
    exchange(&mode);
}

BesideCaptures::BesideCaptures() { exchangeCaptureMode(mode); }

BesideCaptures::~BesideCaptures() { exchangeCaptureMode(mode); }

/// torch before 2.12 says it of CUDA in libraries that this module is not
/// linked to.
bool commsir::torch_c10d::isCapturing(const c10::Device &device) {
  using Ask = int (*)(void *stream, int *status);
  static const auto ask =
      reinterpret_cast<Ask>(ofDriver("cuStreamIsCapturing"));
  int status = 0;
  return ask && ask(currentOn(device).native_handle(), &status) == 0 && status;
}
