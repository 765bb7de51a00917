//===- Backend.cpp - The torch.distributed backend ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How calls are run; Ops.cpp has what they are made of.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

using namespace commsir::torch_c10d;
using std::chrono::milliseconds;

commsir::torch_c10d::Backend::Backend(Settings given)
    : c10d::Backend(given.rank, given.size), settings(std::move(given)) {
  init();
}

commsir::torch_c10d::Backend::~Backend() {
  if (forks == forksSoFar()) {
    queue.stop();
    return;
  }
  for (auto &[type, side] : sides) {
    side->leak();
    (void)side.release();
  }
}

c10::intrusive_ptr<c10d::Backend::Options>
commsir::torch_c10d::Backend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>("commsir", settings.timeout);
  options->group_name = settings.name;
  options->global_ranks_in_group = settings.globalRanks;
  return options;
}

void commsir::torch_c10d::Backend::setTimeout(milliseconds timeout) {
  settings.timeout = timeout;
  for (auto &[type, side] : sides)
    side->setTimeout(timeout);
}

c10d::ErrorType commsir::torch_c10d::Backend::getError() {
  std::lock_guard<std::mutex> lock(mutex);
  return ended.empty() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR;
}

Side &commsir::torch_c10d::Backend::side(const c10::Device &device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto &side = sides[device.type()];
  if (!side)
    side = std::make_unique<Side>(settings, device);
  return *side;
}

std::map<std::string, std::string> commsir::torch_c10d::Backend::groupCounts() {
  std::lock_guard<std::mutex> lock(mutex);
  std::map<std::string, std::string> result;
  for (auto &[type, side] : sides)
    if (std::string counts = side->counts(); !counts.empty())
      result[c10::DeviceTypeName(type, /*lower_case=*/true)] = counts;
  return result;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void commsir::torch_c10d::Backend::checkUsable(const char *name) const {
  TORCH_CHECK(forks == forksSoFar(), "commsir: ", name, ": process group ",
              settings.name,
              " was made before this process was forked; start "
              "workers with the spawn method, or call init_process_group in "
              "the child");
  std::lock_guard<std::mutex> lock(mutex);
  TORCH_CHECK(ended.empty(), "commsir: ", name, ": process group ",
              settings.name, " can no longer be used: ", ended,
              ". Call destroy_process_group and init_process_group again");
}

commsir::torch_c10d::Backend::CallPtr
commsir::torch_c10d::Backend::newCall(c10d::OpType type, const char *title,
                                      milliseconds timeout, bool async) {
  auto call = std::make_shared<Call>();
  call->type = type;
  call->title = title;
  call->name = title + sizeof("commsir:") - 1;
  call->timeout = timeout.count() > 0 ? timeout : settings.timeout;
  call->async = async;
  checkUsable(call->name);
  return call;
}

void commsir::torch_c10d::Backend::checkTensors(const Call &call) const {
  for (const auto *list : {&call.inputs, &call.outputs})
    for (const at::Tensor &tensor : *list) {
      TORCH_CHECK(tensor.is_cpu() || tensor.is_cuda(), "commsir: ", call.name,
                  " got a tensor on ", tensor.device(),
                  "; move it to the CPU or a CUDA device");
      TORCH_CHECK(tensor.device() == call.device, "commsir: ", call.name,
                  " got tensors on ", call.device, " and ", tensor.device(),
                  "; move them to one device");
    }
}

WorkPtr commsir::torch_c10d::Backend::submit(CallPtr call) {
  if (!call->inputs.empty())
    call->device = call->inputs.front().device();
  else if (!call->outputs.empty())
    call->device = call->outputs.front().device();
  checkTensors(*call);
  if (!call->pointToPoint)
    call->sequence = ++sequence;
  if (coalesced) {
    coalesced->push_back(call);
    return nullptr;
  }
  return enqueue(call, {call});
}

/// Starts `calls`, whose Work is that of `call`.
WorkPtr commsir::torch_c10d::Backend::enqueue(CallPtr call,
                                              std::vector<CallPtr> calls) {
  call->work = c10::make_intrusive<CallWork>(
      rank_, call->type, call->title,
      call->inputs.empty() ? call->outputs : call->inputs, call->outputs,
      call->sequence, call->timeout,
      [self = c10::weak_intrusive_ptr<c10d::Backend>(
           c10::intrusive_ptr<c10d::Backend>::reclaim_copy(this))](
          const std::string &reason) {
        if (auto backend = self.lock())
          static_cast<Backend *>(backend.get())->abortBecause(reason);
      });
  if (!call->device.is_cpu()) {
    runOnGpu(call, calls);
    return call->work;
  }
  WorkPtr work = call->work;
  auto job = [this, call, calls = std::move(calls)] { runOnCpu(call, calls); };
  if (call->async || !queue.runHere(job))
    queue.push(std::move(job));
  return work;
}

void commsir::torch_c10d::Backend::runOnCpu(const CallPtr &call,
                                            const std::vector<CallPtr> &calls) {
  try {
    runAll(call, calls, nullptr);
    call->work->complete();
  } catch (...) {
    call->work->complete(std::current_exception());
  }
}

void commsir::torch_c10d::Backend::runOnGpu(const CallPtr &call,
                                            const std::vector<CallPtr> &calls) {
  c10::impl::VirtualGuardImpl device(call->device.type());
  c10::Stream current = device.getStream(call->device), used = current;
  if (call->async) {
    if (!ownStream)
      ownStream = device.getStreamFromGlobalPool(call->device);
    used = *ownStream;
    c10::Event ready(call->device.type());
    ready.record(current);
    ready.block(used);
  }
  try {
    c10::StreamGuard guard(used);
    side(call->device).poll();
    runAll(call, calls, used.native_handle());
    call->work->recordEnd(used, call->hostWaits);
    call->work->complete();
  } catch (...) {
    call->work->complete(std::current_exception());
  }
  if (!call->async)
    return;
  for (const CallPtr &part : calls)
    for (const auto *list : {&part->inputs, &part->outputs, &part->kept})
      for (const at::Tensor &tensor : *list)
        tensor.record_stream(used);
}

void commsir::torch_c10d::Backend::runAll(const CallPtr &call,
                                          const std::vector<CallPtr> &calls,
                                          void *stream) {
  // What is written to the program's tensors is no step of its gradients.
  at::AutoDispatchBelowADInplaceOrView guard;
  if (calls.size() > 1 && calls.front()->pointToPoint)
    return runSends(calls, *call->work);
  for (const CallPtr &part : calls)
    run(*part, *call->work, stream);
}

void commsir::torch_c10d::Backend::run(Call &call, CallWork &work,
                                       void *stream) {
  size_t ticket = recorder.begin(call.sequence, call.describe());
  try {
    std::string reason = call.notOwn;
    if (reason.empty() && size_ > 1)
      reason = side(call.device).whyNot(call);
    Counters::get().add({settings.name, call.name,
                         reason.empty()         ? "commsir"
                         : call.device.is_cpu() ? "gloo"
                                                : "nccl",
                         reason});
    recorder.mark(ticket, "begun");
    for (auto &copy : call.before)
      copy();
    if (reason.empty())
      runOwn(call, stream);
    else
      runDelegated(call, work, reason);
    if (!call.pointToPoint)
      for (auto &copy : call.after)
        copy();
    recorder.mark(ticket, "done");
  } catch (...) {
    recorder.mark(ticket, "failed");
    throw;
  }
}

/// A collective of one rank.
static void copyStep(const Step &step, const c10::Device &device,
                     int64_t bytes) {
  if (!step.input || !step.output || step.input == step.output || !bytes)
    return;
  auto options = at::TensorOptions().dtype(at::kByte).device(device);
  at::from_blob(step.output, {bytes}, options)
      .copy_(at::from_blob(const_cast<void *>(step.input), {bytes}, options));
}

static int64_t bytesOf(const Step &step) {
  std::string_view type = step.type;
  int64_t width = type == "i8" || type.substr(0, 2) == "f8"          ? 1
                  : type == "i16" || type == "f16" || type == "bf16" ? 2
                  : type == "i32" || type == "f32"                   ? 4
                                                                     : 8;
  return step.outputElements * width;
}

void commsir::torch_c10d::Backend::runOwn(Call &call, void *stream) {
  Launch launch = [&](const Step &step) {
    if (!step.inputElements && !step.outputElements)
      return;
    if (size_ == 1)
      return copyStep(step, call.device, bytesOf(step));
    side(call.device).launch(call, step, stream);
  };
  if (call.own)
    return call.own(launch);
  for (auto &copy : call.pack)
    copy();
  for (const Step &step : call.steps)
    launch(step);
  for (auto &copy : call.unpack)
    copy();
}

void commsir::torch_c10d::Backend::runDelegated(Call &call, CallWork &work,
                                                const std::string &reason) {
  TORCH_CHECK(call.delegated, "commsir: ", call.name, " is not CommsIR's (",
              reason, "), and no other backend has it");
  WorkPtr inner = call.delegated(side(call.device).delegate());
  if (!inner)
    return;
  if (call.pointToPoint)
    return work.begun(inner, std::move(call.after));
  inner->wait(call.device.is_cpu() ? call.timeout : kNoTimeout);
}

/// Sends and receives of one batch begin together: none waits for another.
void commsir::torch_c10d::Backend::runSends(const std::vector<CallPtr> &calls,
                                            CallWork &work) {
  bool gpu = !calls.front()->device.is_cpu();
  c10d::Backend *other =
      gpu ? &side(calls.front()->device).delegate() : nullptr;
  if (other)
    other->startCoalescing();
  for (const CallPtr &part : calls)
    run(*part, work, nullptr);
  if (!other)
    return;
  if (WorkPtr inner = other->endCoalescing())
    work.begun(inner, {});
}

//===----------------------------------------------------------------------===//
// Coalescing
//===----------------------------------------------------------------------===//

void commsir::torch_c10d::Backend::startCoalescing() {
  checkUsable("startCoalescing");
  TORCH_CHECK(!coalesced, "commsir: startCoalescing was called twice; call "
                          "endCoalescing first");
  coalesced.emplace();
}

WorkPtr commsir::torch_c10d::Backend::endCoalescing() {
  TORCH_CHECK(coalesced, "commsir: endCoalescing without startCoalescing");
  std::vector<CallPtr> calls = std::move(*coalesced);
  coalesced.reset();
  CallPtr all = newCall(c10d::OpType::COALESCED, "commsir:coalesced",
                        c10d::kUnsetTimeout, /*async=*/true);
  if (calls.empty())
    return enqueue(all, {});
  all->device = calls.front()->device;
  all->sequence = calls.back()->sequence;
  for (const CallPtr &part : calls) {
    TORCH_CHECK(part->device == all->device, "commsir: coalesced calls on ",
                all->device, " and ", part->device,
                "; coalesce the calls of one device");
    all->outputs.insert(all->outputs.end(), part->outputs.begin(),
                        part->outputs.end());
  }
  return enqueue(all, std::move(calls));
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

void commsir::torch_c10d::Backend::abortBecause(const std::string &reason) {
  std::lock_guard<std::mutex> lock(mutex);
  if (ended.empty())
    ended = reason;
  for (auto &[type, side] : sides)
    side->abort(reason);
}

void commsir::torch_c10d::Backend::abort() { abortBecause("it was aborted"); }

void commsir::torch_c10d::Backend::shutdown() {
  if (forks != forksSoFar())
    return;
  queue.stop();
  std::lock_guard<std::mutex> lock(mutex);
  if (!ended.empty())
    return;
  ended = "it was destroyed";
  for (auto &[type, side] : sides)
    side->drainDelegate();
}

BackendPtr
commsir::torch_c10d::Backend::split(const StorePtr &store,
                                    const std::vector<int> &ranks,
                                    const c10::intrusive_ptr<Options> &opts) {
  checkUsable("split");
  auto own = std::find(ranks.begin(), ranks.end(), rank_);
  if (own == ranks.end())
    return nullptr;
  Settings part = settings;
  part.rank = static_cast<int>(own - ranks.begin());
  part.size = static_cast<int>(ranks.size());
  part.name = opts && !opts->group_name.empty()
                  ? opts->group_name
                  : c10::str(settings.name, ":", c10::Join("_", ranks));
  part.store = c10::make_intrusive<c10d::PrefixStore>(
      c10::str("split/", part.name), store);
  if (opts)
    part.timeout = opts->timeout;
  part.globalRanks.clear();
  for (int rank : ranks)
    part.globalRanks.push_back(
        settings.globalRanks.empty() ? rank : settings.globalRanks[rank]);
  return c10::make_intrusive<Backend>(std::move(part));
}
