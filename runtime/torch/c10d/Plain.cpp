//===- Plain.cpp - Calls with nothing around them -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The short way of a synchronous call on GPU tensors as they lie: a launch in
// the current stream, which is in order by itself. No Work, no events, no
// memory and no lock but the recorder's. Backend.cpp has the long way, which
// each kind of call goes once, and always whatever is not plain.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"

#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

using namespace commsir::torch_c10d;

/// Profilers are shown what a Work shows them.
bool commsir::torch_c10d::Backend::mayBePlain(bool async,
                                              const at::Tensor &input) {
  return !async && plainSide && !coalesced && !at::hasCallbacks() &&
         input.device() == plainSide->of();
}

/// What torch calls the stream, and the driver: finding that takes calls of the
/// CUDA runtime.
void *commsir::torch_c10d::Backend::nativeOf(const c10::Stream &stream) {
  if (!lastStream || *lastStream != stream) {
    lastNative = stream.native_handle();
    lastStream = stream;
  }
  return lastNative;
}

/// False: the call has to go the long way.
bool commsir::torch_c10d::Backend::runPlain(PlainCall &call) {
  const Step &step = call.step;
  auto kind = std::find_if(
      plainKinds.begin(), plainKinds.end(), [&](const PlainKind &known) {
        return known.title == call.title && known.type == step.type &&
               known.reduction == step.reduction;
      });
  if (kind == plainKinds.end() || step.inputElements + step.outputElements == 0)
    return false;
  checkUsable(call.name());
  if (call.timeout.count() <= 0)
    call.timeout = settings.timeout();
  call.sequence = ++sequence;
  size_t ticket =
      recorder.add(/*begins=*/true, [&](CallRecord &r) { call.write(r); });
  c10::Stream stream = c10::impl::VirtualGuardImpl(plainSide->of().type())
                           .getStream(plainSide->of());
  try {
    plainSide->poll();
    ++*kind->count;
    if (commsir_status status =
            plainSide->tryLaunch(step, call.timeout, nativeOf(stream)))
      plainSide->fail(call.record(), status);
  } catch (...) {
    recorder.mark(ticket, "failed");
    throw;
  }
  recorder.mark(ticket, "done");
  return true;
}
