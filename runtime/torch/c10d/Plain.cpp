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
  const DeviceState *side = plainSide;
  return side && !coalesced && !hasHooks() && !at::hasCallbacks() &&
         input.device() == side->of();
}

void commsir::torch_c10d::Backend::launchPlain(const PlainCall &call,
                                               const Route &route) {
  size_t ticket = recorder.add(
      /*begins=*/true, [&](CallRecord &record) { call.write(record); });
  try {
    DeviceState &side = *plainSide;
    ++*route.count;
    // Also polls, and sets the timeout.
    auto prepared = side.prepare(call.step, call.timeout);
    commsir_status status =
        prepared ? side.api().commsir_launch(prepared.get(), call.step.input,
                                             call.step.output, route.native)
                 : COMMSIR_USAGE;
    if (status != COMMSIR_OK)
      side.fail(call.record(), status);
  } catch (...) {
    recorder.mark(ticket, "failed");
    endWith(*plainSide);
    throw;
  }
  recorder.mark(ticket, "done");
}

/// Returns the driver's handle of the stream, which takes calls of the CUDA
/// runtime. `plainMutex` is held.
void *commsir::torch_c10d::Backend::nativeOf(const c10::Stream &stream) {
  for (const auto &[known, native] : natives)
    if (known == stream)
      return native;
  if (natives.size() == kNatives)
    natives.clear();
  return natives.emplace_back(stream, stream.native_handle()).second;
}

/// Returns none if no call like this one has taken the full path yet.
std::optional<commsir::torch_c10d::Backend::Route>
commsir::torch_c10d::Backend::routeOf(const PlainCall &call,
                                      const c10::Stream &current) {
  std::lock_guard<std::mutex> lock(plainMutex);
  for (const PlainKind &known : plainKinds)
    if (known.title == call.title && known.type == call.step.type &&
        known.reduction == call.step.reduction) {
      c10::Stream used = call.async ? ownStreamFor(current) : current;
      return Route{known.count, used, nativeOf(used)};
    }
  return std::nullopt;
}

/// Nothing: the call has to go the long way. Else its Work, which a synchronous
/// one has none of.
std::optional<WorkPtr> commsir::torch_c10d::Backend::runPlain(PlainCall &call) {
  const Step &step = call.step;
  if (step.inputElements + step.outputElements == 0)
    return std::nullopt;
  c10::Device device = plainSide.load()->of();
  c10::Stream current =
      c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  std::optional<Route> route = routeOf(call, current);
  if (!route)
    return std::nullopt;
  checkUsable(call.name());
  if (call.timeout.count() <= 0)
    call.timeout = settings.timeout();
  call.sequence = ++sequence;
  if (!call.async) {
    launchPlain(call, *route);
    return nullptr;
  }
  forkStream(current);
  auto work = newWork(call.type, nullptr, {call.input}, {call.output},
                      call.sequence, call.timeout);
  try {
    launchPlain(call, *route);
    work->recordEnd(route->stream, /*hostWaits=*/false, /*later=*/false);
    work->complete();
  } catch (...) {
    work->complete(std::current_exception());
  }
  call.input.record_stream(route->stream);
  if (!call.output.is_same(call.input))
    call.output.record_stream(route->stream);
  return work;
}
