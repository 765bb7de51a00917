//===- Plain.cpp - Calls with nothing around them -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The short way of calls on GPU tensors as they lie. A synchronous one is a
// launch in the current stream, which is in order by itself: no Work, no
// events, no memory, and locks that nobody holds for long. One that is not has
// its launch in the group's stream, and a Work that knows its end. Backend.cpp
// has the long way, which each kind of call goes once, and always whatever is
// not plain.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"

#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

using namespace commsir::torch_c10d;

/// Profilers are shown what a Work shows them.
bool commsir::torch_c10d::Backend::mayBePlain(const at::Tensor &input) {
  const Side *side = plainSide;
  return side && !coalesced && !at::hasCallbacks() &&
         input.device() == side->of();
}

/// What torch calls the stream, and the driver: finding that takes calls of the
/// CUDA runtime.
void *commsir::torch_c10d::Backend::nativeOf(const c10::Stream &stream) {
  std::lock_guard<std::mutex> lock(plainMutex);
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
    Side &side = *plainSide;
    side.poll();
    ++count;
    if (commsir_status status = side.tryLaunch(call.step, call.timeout, stream))
      side.fail(call.record(), status);
  } catch (...) {
    recorder.mark(ticket, "failed");
    endWith(*plainSide);
    throw;
  }
  recorder.mark(ticket, "done");
}

/// Where calls like this one are counted; null: none has gone the long way yet.
std::atomic<uint64_t> *
commsir::torch_c10d::Backend::countOf(const PlainCall &call) {
  std::lock_guard<std::mutex> lock(plainMutex);
  for (const PlainKind &known : plainKinds)
    if (known.title == call.title && known.type == call.step.type &&
        known.reduction == call.step.reduction)
      return known.count;
  return nullptr;
}

/// Nothing: the call has to go the long way. Else its Work, which a synchronous
/// one has none of.
std::optional<WorkPtr> commsir::torch_c10d::Backend::runPlain(PlainCall &call) {
  const Step &step = call.step;
  std::atomic<uint64_t> *count = countOf(call);
  if (!count || step.inputElements + step.outputElements == 0)
    return std::nullopt;
  checkUsable(call.name());
  if (call.timeout.count() <= 0)
    call.timeout = settings.timeout();
  call.sequence = ++sequence;
  c10::Device device = plainSide.load()->of();
  c10::Stream current =
      c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  if (!call.async) {
    launchPlain(call, *count, nativeOf(current));
    return nullptr;
  }
  c10::Stream own = forkStream(current);
  auto work = newWork(call.type, nullptr, {call.input}, {call.output},
                      call.sequence, call.timeout);
  try {
    launchPlain(call, *count, nativeOf(own));
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
