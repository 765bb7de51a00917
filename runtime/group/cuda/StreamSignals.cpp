//===- StreamSignals.cpp - Signals that streams send and wait for ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/StreamSignals.h"

#include "lowering/nvvm/Abi.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <cstddef>

using namespace commsir::cuda;
using mlir::comms::nvvm::ErrorRecord;

/// A thread for each cell. What the stream has done before has ended when the
/// thread starts; the fence puts it before the addition for other GPUs, too.
/// A thread that takes looks at the record only when it has waited for a
/// millisecond: the record lies in memory of the host, and one thread of a
/// launch writes it. Offsets into it are those of ErrorRecord.
static constexpr char kKernels[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .u64 commsir_numbers[16] =
  {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
.visible .entry commsir_add_signal(.param .align 8 .b8 cells[256],
  .param .u64 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 8;
  mov.b64 %rd2, cells;
  add.s64 %rd2, %rd2, %rd1;
  ld.param.u64 %rd3, [%rd2];
  ld.param.u64 %rd4, [value];
  fence.acq_rel.sys;
  red.release.sys.global.add.u64 [%rd3], %rd4;
  ret;
}
.visible .entry commsir_take_signal(.param .align 8 .b8 cells[512],
  .param .u64 value, .param .u64 limit, .param .u64 record)
{
  .reg .pred %p<3>;
  .reg .b32 %r<7>;
  .reg .b64 %rd<13>;
  .shared .align 4 .u32 written;
  mov.u32 %r5, %tid.x;
  setp.ne.u32 %p1, %r5, 0;
  mov.u32 %r1, 0;
  @%p1 bra begin;
  st.shared.u32 [written], %r1;
begin:
  bar.sync 0;
  mul.wide.u32 %rd10, %r5, 16;
  mov.b64 %rd11, cells;
  add.s64 %rd11, %rd11, %rd10;
  ld.param.u64 %rd1, [%rd11];
  ld.param.u64 %rd2, [value];
  ld.param.u64 %rd3, [limit];
  ld.param.u64 %rd4, [record];
  mov.u64 %rd5, %globaltimer;
look:
  ld.acquire.sys.global.u64 %rd6, [%rd1];
  setp.ge.s64 %p1, %rd6, %rd2;
  @%p1 bra take;
  mov.u64 %rd7, %globaltimer;
  sub.u64 %rd8, %rd7, %rd5;
  setp.lt.u64 %p1, %rd8, 1000000;
  @%p1 bra look;
  ld.volatile.global.u32 %r1, [%rd4];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra end;
  setp.lt.u64 %p2, %rd8, %rd3;
  @%p2 bra look;
  mov.u32 %r4, 1;
  atom.shared.exch.b32 %r6, [written], %r4;
  setp.ne.u32 %p1, %r6, 0;
  @%p1 bra end;
  ld.param.u32 %r2, [%rd11+8];
  ld.param.u32 %r3, [%rd11+12];
  st.global.u32 [%rd4+8], %r2;
  st.global.u32 [%rd4+20], %r3;
  st.global.u64 [%rd4+24], %rd6;
  st.global.u64 [%rd4+32], %rd2;
  st.global.u64 [%rd4+40], %rd7;
  st.release.sys.global.u32 [%rd4], %r4;
end:
  ret;
take:
  neg.s64 %rd9, %rd2;
  red.relaxed.sys.global.add.u64 [%rd1], %rd9;
  ret;
}
)";
static_assert(StreamSignals::kAtOnce * sizeof(CUdeviceptr) == 256 &&
              StreamSignals::kAtOnce * sizeof(StreamSignals::Awaited) == 512 &&
              offsetof(StreamSignals::Awaited, number) == 8 &&
              offsetof(StreamSignals::Awaited, peer) == 12);
static_assert(offsetof(ErrorRecord, valid) == 0 &&
              offsetof(ErrorRecord, site) == 8 &&
              offsetof(ErrorRecord, peer) == 20 &&
              offsetof(ErrorRecord, seen) == 24 &&
              offsetof(ErrorRecord, wanted) == 32 &&
              offsetof(ErrorRecord, clock) == 40);

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
  const char *what = "loading the kernels that add to a signal and take it";
  llvm::Error error = cu.check(
      cu.ModuleLoadDataEx(&module, kKernels, 0, nullptr, nullptr), what);
  if (!error)
    error = cu.check(
        cu.ModuleGetFunction(&taker, module, "commsir_take_signal"), what);
  if (!error)
    error = cu.check(
        cu.ModuleGetGlobal(&numbers, nullptr, module, "commsir_numbers"), what);
  if (!error)
    error = cu.check(cu.ModuleGetFunction(&adder, module, "commsir_add_signal"),
                     what);
  cu.ThreadExchangeStreamCaptureMode(&mode);
  return error;
}

llvm::Error StreamSignals::set(CUdeviceptr cell, int64_t value,
                               CUstream stream) {
  const Driver &cu = device.driver();
  if (value < kCopied) {
    if (auto error = load())
      return error;
    return cu.check(cu.MemcpyAsync(cell, numbers + value * sizeof(value),
                                   sizeof(value), stream),
                    "setting a signal");
  }
  if (auto error = checkSupport())
    return error;
  // The default has a barrier before the write, of the whole system.
  return cu.check(cu.StreamWriteValue64(stream, cell, cuuint64_t(value),
                                        CU_STREAM_WRITE_VALUE_DEFAULT),
                  "setting a signal");
}

llvm::Error StreamSignals::launch(CUfunction function, size_t threads,
                                  void **arguments, CUstream stream,
                                  const char *what) {
  const Driver &cu = device.driver();
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = unsigned(threads);
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  return cu.check(cu.LaunchKernelEx(&config, function, arguments, nullptr),
                  what);
}

/// What kernels get by value.
template <typename T>
struct Parameters {
  std::array<T, StreamSignals::kAtOnce> cells{};

  explicit Parameters(llvm::ArrayRef<T> some) {
    llvm::copy(some, cells.begin());
  }
};

llvm::Error StreamSignals::add(llvm::ArrayRef<CUdeviceptr> cells, int64_t value,
                               CUstream stream) {
  if (auto error = load())
    return error;
  for (; !cells.empty();
       cells = cells.drop_front(std::min(cells.size(), kAtOnce))) {
    auto some = cells.take_front(kAtOnce);
    Parameters<CUdeviceptr> places(some);
    void *arguments[] = {&places, &value};
    if (auto error =
            launch(adder, some.size(), arguments, stream, "adding to a signal"))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error StreamSignals::take(llvm::ArrayRef<Awaited> cells, int64_t value,
                                Limit limit, CUstream stream) {
  if (auto error = load())
    return error;
  for (; !cells.empty();
       cells = cells.drop_front(std::min(cells.size(), kAtOnce))) {
    auto some = cells.take_front(kAtOnce);
    Parameters<Awaited> awaited(some);
    void *arguments[] = {&awaited, &value, &limit.nanoseconds, &limit.record};
    if (auto error =
            launch(taker, some.size(), arguments, stream, "taking a signal"))
      return error;
  }
  return llvm::Error::success();
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
