//===- Plain.cpp - Calls with nothing around them -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The short way of calls on GPU tensors as they lie. A synchronous one is a
// launch in the current stream, which is in order by itself: no Work, no
// events, no memory and no lock but the recorder's. One that is not has its
// launch in the group's stream, and a Work that knows its end. Backend.cpp has
// the long way, which each kind of call goes once, and always whatever is not
// plain.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"

#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

using namespace commsir::torch_c10d;

/// Profilers are shown what a Work shows them.
bool commsir::torch_c10d::Backend::mayBePlain(const at::Tensor &input) {
  return plainSide && !coalesced && !at::hasCallbacks() &&
         input.device() == plainSide->of();
}

/// What torch calls the stream, and the driver: finding that takes calls of the
/// CUDA runtime.
void *commsir::torch_c10d::Backend::nativeOf(const c10::Stream &stream) {
  for (const auto &[known, native] : natives)
    if (known == stream)
      return native;
  if (natives.size() == kNatives)
    natives.clear();
  return natives.emplace_back(stream, stream.native_handle()).second;
}

void commsir::torch_c10d::Backend::launchPlain(const PlainCall &call,
                                               std::atomic<uint64_t> &count,
                                               void *stream) {
  size_t ticket = recorder.add(
      /*begins=*/true, [&](CallRecord &record) { call.write(record); });
  try {
    plainSide->poll();
    ++count;
    if (commsir_status status =
            plainSide->tryLaunch(call.step, call.timeout, stream))
      plainSide->fail(call.record(), status);
  } catch (...) {
    recorder.mark(ticket, "failed");
    throw;
  }
  recorder.mark(ticket, "done");
}

/// Nothing: the call has to go the long way. Else its Work, which a synchronous
/// one has none of.
std::optional<WorkPtr> commsir::torch_c10d::Backend::runPlain(PlainCall &call) {
  const Step &step = call.step;
  auto kind = std::find_if(
      plainKinds.begin(), plainKinds.end(), [&](const PlainKind &known) {
        return known.title == call.title && known.type == step.type &&
               known.reduction == step.reduction;
      });
  if (kind == plainKinds.end() || step.inputElements + step.outputElements == 0)
    return std::nullopt;
  checkUsable(call.name());
  if (call.timeout.count() <= 0)
    call.timeout = settings.timeout();
  call.sequence = ++sequence;
  c10::Device device = plainSide->of();
  c10::Stream current =
      c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  if (!call.async) {
    launchPlain(call, *kind->count, nativeOf(current));
    return nullptr;
  }
  c10::Stream own = forkStream(current);
  auto work = newWork(call.type, nullptr, {call.input}, {call.output},
                      call.sequence, call.timeout);
  try {
    launchPlain(call, *kind->count, nativeOf(own));
    work->recordEnd(own, /*hostWaits=*/false, /*later=*/false);
    work->complete();
  } catch (...) {
    work->complete(std::current_exception());
  }
  call.input.record_stream(own);
  if (!call.output.is_same(call.input))
    call.output.record_stream(own);
  return work;
}
