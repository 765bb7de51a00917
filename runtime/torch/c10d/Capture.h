//===- Capture.h - Streams that a graph is captured from --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_CAPTURE_H
#define COMMSIR_RUNTIME_TORCH_C10D_CAPTURE_H

#include <c10/core/Stream.h>

namespace commsir::torch_c10d {

/// The thread's stream for a device, which need not be the current device.
c10::Stream currentOn(const c10::Device &device);

/// Whether the thread's stream for that device is being captured. Work is then
/// only recorded, and querying its end would invalidate the capture.
bool isCapturing(const c10::Device &device);

/// In this scope the thread may query events while another thread captures.
/// Torch's captures forbid that to all threads by default, and a query would
/// invalidate them.
class RelaxedCaptureScope {
public:
  RelaxedCaptureScope();
  ~RelaxedCaptureScope();
  RelaxedCaptureScope(const RelaxedCaptureScope &) = delete;
  RelaxedCaptureScope &operator=(const RelaxedCaptureScope &) = delete;

private:
  /// CU_STREAM_CAPTURE_MODE_RELAXED; afterwards the thread's former mode.
  int mode = 2;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_CAPTURE_H
