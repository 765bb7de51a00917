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

/// The stream of this thread on a device, which need not be the current one.
c10::Stream currentOn(const c10::Device &device);

/// Whether what this thread puts into its stream there is only recorded in a
/// graph: nothing of that runs, and to ask for its end would break the capture.
bool isCapturing(const c10::Device &device);

/// While it lives, this thread may ask whether the GPU has come to an event
/// though another one captures: captures of torch forbid that to all threads,
/// unless they are told otherwise, and who does it breaks them.
class RelaxedCaptureScope {
public:
  RelaxedCaptureScope();
  ~RelaxedCaptureScope();
  RelaxedCaptureScope(const RelaxedCaptureScope &) = delete;
  RelaxedCaptureScope &operator=(const RelaxedCaptureScope &) = delete;

private:
  /// CU_STREAM_CAPTURE_MODE_RELAXED; then what the thread had before.
  int mode = 2;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_CAPTURE_H
