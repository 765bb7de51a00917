//===- StreamSignals.cpp - Signals that streams send and wait for ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/StreamSignals.h"

using namespace commsir::cuda;

/// What the stream has done before has ended when the thread starts; the fence
/// puts it before the addition for other GPUs, too.
static constexpr char kAdder[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry commsir_add_signal(.param .u64 cell, .param .u64 value)
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [cell];
  ld.param.u64 %rd2, [value];
  fence.acq_rel.sys;
  red.release.sys.global.add.u64 [%rd1], %rd2;
  ret;
}
)";

StreamSignals::~StreamSignals() {
  if (!module)
    return;
  ContextGuard guard(device.driver(), device.context());
  device.driver().ModuleUnload(module);
}

llvm::Error StreamSignals::checkSupport() {
  const Driver &cu = device.driver();
  std::lock_guard lock(mutex);
  if (support == 0) {
    int has = 0;
    if (auto error = cu.check(
            cu.DeviceGetAttribute(
                &has, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
                device.handle()),
            "asking for operations of streams on memory"))
      return error;
    support = has ? 1 : -1;
  }
  if (support > 0)
    return llvm::Error::success();
  return llvm::createStringError(
      "GPU %d or its driver has no 64-bit operations of streams on memory "
      "(cuStreamWriteValue64), which signals from the host need",
      device.getOrdinal());
}

llvm::Error StreamSignals::load() {
  const Driver &cu = device.driver();
  std::lock_guard lock(mutex);
  if (adder)
    return llvm::Error::success();
  // Loading is no part of what a stream captures.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cu.ThreadExchangeStreamCaptureMode(&mode);
  const char *what = "loading the kernel that adds to a signal";
  llvm::Error error =
      cu.check(cu.ModuleLoadDataEx(&module, kAdder, 0, nullptr, nullptr), what);
  if (!error)
    error = cu.check(cu.ModuleGetFunction(&adder, module, "commsir_add_signal"),
                     what);
  cu.ThreadExchangeStreamCaptureMode(&mode);
  return error;
}

llvm::Error StreamSignals::set(CUdeviceptr cell, int64_t value,
                               CUstream stream) {
  if (auto error = checkSupport())
    return error;
  // The default has a barrier before the write, of the whole system.
  const Driver &cu = device.driver();
  return cu.check(cu.StreamWriteValue64(stream, cell, cuuint64_t(value),
                                        CU_STREAM_WRITE_VALUE_DEFAULT),
                  "setting a signal");
}

llvm::Error StreamSignals::add(CUdeviceptr cell, int64_t value,
                               CUstream stream) {
  if (auto error = load())
    return error;
  const Driver &cu = device.driver();
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  void *arguments[] = {&cell, &value};
  return cu.check(cu.LaunchKernelEx(&config, adder, arguments, nullptr),
                  "adding to a signal");
}

llvm::Error StreamSignals::wait(CUdeviceptr cell, int64_t value, bool exactly,
                                CUstream stream) {
  if (auto error = checkSupport())
    return error;
  const Driver &cu = device.driver();
  return cu.check(cu.StreamWaitValue64(stream, cell, cuuint64_t(value),
                                       exactly ? CU_STREAM_WAIT_VALUE_EQ
                                               : CU_STREAM_WAIT_VALUE_GEQ),
                  "waiting for a signal");
}
