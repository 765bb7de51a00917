//===- Backend.cpp - The torch.distributed backend ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How calls run. Their steps are in BackendCollectives.cpp,
// BackendCoalesced.cpp and BackendSendRecv.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Backend.h"

#include "runtime/torch/c10d/Capture.h"
#include "runtime/torch/c10d/Interrupt.h"

#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <iterator>
#include <set>

using namespace commsir::torch_c10d;
using std::chrono::milliseconds;

static constexpr const char *kInterrupted = "it was interrupted in a call";
/// Time that calls in progress have at the end of a program, and after they are
/// aborted.
static constexpr std::chrono::seconds kLastCalls{5}, kLastWaits{2};
/// How often the backend polls a call on a GPU that a hook observes.
static constexpr std::chrono::microseconds kLook{100};

commsir::torch_c10d::Backend::Backend(Settings given)
    : c10d::Backend(given.rank, given.size), settings(std::move(given)),
      messages(Messages::announce(settings)) {
  init();
}

namespace {
/// The groups of this process.
struct LiveGroups {
  std::mutex mutex;
  std::vector<c10::weak_intrusive_ptr<c10d::Backend>> groups;

  static LiveGroups &get() {
    static auto *live = new LiveGroups;
    return *live;
  }
};
} // namespace

c10::intrusive_ptr<commsir::torch_c10d::Backend>
commsir::torch_c10d::Backend::make(Settings settings) {
  auto made = c10::make_intrusive<Backend>(std::move(settings));
  // The destructor of a group runs when its last weak pointer goes, and waits
  // for the group's threads: here, without the lock.
  std::vector<c10::weak_intrusive_ptr<c10d::Backend>> gone;
  LiveGroups &live = LiveGroups::get();
  std::lock_guard<std::mutex> lock(live.mutex);
  auto firstGone = std::partition(live.groups.begin(), live.groups.end(),
                                  [](auto &group) { return !group.expired(); });
  gone.assign(std::make_move_iterator(firstGone),
              std::make_move_iterator(live.groups.end()));
  live.groups.erase(firstGone, live.groups.end());
  live.groups.emplace_back(c10::intrusive_ptr<c10d::Backend>(made));
  return made;
}

commsir::torch_c10d::Backend::~Backend() {
  if (forks == forksSoFar()) {
    queue.stop();
    hasEnded = true;
    return;
  }
  for (auto &[type, side] : sides) {
    side->leak();
    (void)side.release();
  }
  messages->leak();
}

c10::intrusive_ptr<c10d::Backend::Options>
commsir::torch_c10d::Backend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>("commsir", settings.timeout());
  options->group_name = settings.name;
  options->global_ranks_in_group = settings.globalRanks;
  return options;
}

void commsir::torch_c10d::Backend::setTimeout(milliseconds timeout) {
  TORCH_CHECK(timeout.count() > 0, "commsir: process group ", settings.name,
              ": the timeout must be more than 0");
  settings.shared->timeout = timeout.count();
  for (DeviceState *side : madeSides())
    side->setTimeout(timeout);
}

c10d::ErrorType commsir::torch_c10d::Backend::getError() {
  std::lock_guard<std::mutex> lock(mutex);
  return ended.empty() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR;
}

DeviceState &commsir::torch_c10d::Backend::side(const c10::Device &device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto &side = sides[device.type()];
  if (!side)
    side = std::make_unique<DeviceState>(settings, device);
  return *side;
}

std::vector<DeviceState *> commsir::torch_c10d::Backend::madeSides() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<DeviceState *> made;
  for (auto &[type, side] : sides)
    made.push_back(side.get());
  return made;
}

std::map<std::string, std::string> commsir::torch_c10d::Backend::groupCounts() {
  std::map<std::string, std::string> result;
  for (DeviceState *side : madeSides())
    if (std::string counts = side->counts(); !counts.empty())
      result[c10::DeviceTypeName(side->of().type(), /*lower_case=*/true)] =
          counts;
  return result;
}

commsir_group *
commsir::torch_c10d::Backend::groupOn(const c10::Device &device) {
  checkUsable("group");
  c10::Device used = device;
  if (device.is_cuda() && !device.has_index())
    used = c10::impl::VirtualGuardImpl(device.type()).getDevice();
  checkDevice("group", used);
  return side(used).use();
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
  if (!hasEnded)
    return;
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
  call->timeout = timeout.count() > 0 ? timeout : settings.timeout();
  call->async = async;
  // torch leaves a batch open in which a call is refused, and takes all that
  // come later for parts of it: its end says so.
  if (!coalesced)
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

/// A process group has one GPU on each rank, as it is in one group of CommsIR:
/// that of its first call.
void commsir::torch_c10d::Backend::checkDevice(const char *name,
                                               const c10::Device &device) {
  if (device.is_cpu())
    return;
  const c10::Device &own = side(device).of();
  TORCH_CHECK(
      own == device, "commsir: ", name, " got tensors on ", device,
      ", but process group ", settings.name, " works on ", own,
      ", where its first call was; move the tensors there (tensor.to(\"", own,
      "\")), or make another group for ", device,
      ". Call torch.cuda.set_device before the first call to choose "
      "the GPU of what is made without one");
}

WorkPtr commsir::torch_c10d::Backend::submit(CallPtr call) {
  if (!call->inputs.empty())
    call->device = call->inputs.front().device();
  else if (!call->outputs.empty())
    call->device = call->outputs.front().device();
  checkTensors(*call);
  checkDevice(call->name, call->device);
  if (!call->pointToPoint)
    call->sequence = ++sequence;
  else
    call->sequence = ++transfers;
  call->ticket = recorder.add(
      /*begins=*/false, [&](CallRecord &record) { call->write(record); });
  if (coalesced) {
    coalesced->push_back(call);
    return nullptr;
  }
  return enqueue(call, {call});
}

/// The title of a program's own collective. Titles are compared by their
/// addresses, and stay.
static const char *titleOf(const std::string &name) {
  static std::mutex mutex;
  static auto *titles = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  return titles->insert("commsir:" + name).first->c_str();
}

WorkPtr commsir::torch_c10d::Backend::runInTurn(const std::string &name,
                                                std::vector<at::Tensor> inputs,
                                                std::vector<at::Tensor> outputs,
                                                std::function<void()> run,
                                                milliseconds timeout,
                                                bool async) {
  CallPtr call = newCall(c10d::OpType::UNKNOWN, titleOf(name), timeout, async);
  call->inputs = std::move(inputs);
  call->outputs = std::move(outputs);
  call->own = [run = std::move(run)](const Launch &) { run(); };
  return submit(call);
}

/// Like NCCL's backend, waits for the call and returns no Work if the caller
/// asked for none.
static WorkPtr outcome(c10d::Work &work) {
  if (std::exception_ptr error = work.exception())
    std::rethrow_exception(error);
  return nullptr;
}

c10::intrusive_ptr<CallWork> commsir::torch_c10d::Backend::newWork(
    c10d::OpType type, const char *title, std::vector<at::Tensor> inputs,
    std::vector<at::Tensor> outputs, uint64_t number, milliseconds timeout) {
  c10::weak_intrusive_ptr<c10d::Backend> self(
      c10::intrusive_ptr<c10d::Backend>::reclaim_copy(this));
  return c10::make_intrusive<CallWork>(
      rank_, type, title, std::move(inputs), std::move(outputs), number,
      timeout,
      [self](const std::string &reason) {
        if (auto backend = self.lock())
          static_cast<Backend *>(backend.get())->abortBecause(reason);
      },
      [self](const c10::Device &device) {
        if (auto backend = self.lock())
          static_cast<Backend *>(backend.get())->poll(device);
      });
}

void commsir::torch_c10d::Backend::poll(const c10::Device &device) {
  DeviceState &used = side(device);
  try {
    used.poll();
  } catch (...) {
    endWith(used);
    throw;
  }
}

/// Starts `calls`, whose Work is that of `call`.
WorkPtr commsir::torch_c10d::Backend::enqueue(CallPtr call,
                                              std::vector<CallPtr> calls) {
  call->work = newWork(call->type, at::hasCallbacks() ? call->title : nullptr,
                       call->inputs.empty() ? call->outputs : call->inputs,
                       call->outputs, call->sequence, call->timeout);
  Interruptible scope;
  if (!call->device.is_cpu()) {
    runOnGpu(call, calls);
    throwInterrupt();
    if (!call->async && !call->hostWaits)
      return outcome(*call->work);
    return call->work;
  }
  WorkPtr work = call->work;
  auto job = [this, call, calls = std::move(calls)] { runOnCpu(call, calls); };
  // A send or receive that only begins holds nobody up.
  bool here =
      !call->async || queue.isHere() ||
      (call->pointToPoint && (side(call->device).hasDelegate() ||
                              messages->knows(static_cast<int>(call->root))));
  if (!here || !queue.runHere(job))
    queue.push(std::move(job));
  else if (isInterrupted()) {
    abortBecause(kInterrupted);
    throwInterrupt();
  }
  return work;
}

void commsir::torch_c10d::Backend::runOnCpu(const CallPtr &call,
                                            const std::vector<CallPtr> &calls) {
  auto begun = std::chrono::steady_clock::now();
  std::exception_ptr error;
  try {
    runAll(call, calls, nullptr);
  } catch (...) {
    error = std::current_exception();
  }
  // Before anybody hears that it is over, and may end the program.
  for (const CallPtr &part : calls)
    part->drop();
  call->drop();
  call->work->complete(error);
  if (hasHooks())
    tell(call->type, call->sequence, begun);
}

/// The group's own stream. With `plainMutex` held.
const c10::Stream &
commsir::torch_c10d::Backend::ownStreamFor(const c10::Stream &current) {
  if (!ownStream)
    ownStream = c10::impl::VirtualGuardImpl(current.device_type())
                    .getStreamFromGlobalPool(current.device());
  return *ownStream;
}

/// The group's own stream, which goes on from where `current` is.
c10::Stream
commsir::torch_c10d::Backend::forkStream(const c10::Stream &current) {
  {
    std::lock_guard<std::mutex> lock(plainMutex);
    ownStreamFor(current);
  }
  c10::Event ready = Events::get().record(current);
  ready.block(*ownStream);
  Events::get().give(std::move(ready));
  return *ownStream;
}

void commsir::torch_c10d::Backend::runOnGpu(const CallPtr &call,
                                            const std::vector<CallPtr> &calls) {
  c10::impl::VirtualGuardImpl device(call->device.type());
  c10::Stream current = device.getStream(call->device), used = current;
  auto begun = std::chrono::steady_clock::now();
  if (call->async)
    used = forkStream(current);
  try {
    c10::StreamGuard guard(used);
    side(call->device).poll();
    runAll(call, calls, used.native_handle());
    call->work->recordEnd(used, call->hostWaits, /*later=*/!call->async);
    if (hasHooks())
      reportAtEnd(*call, used, begun);
    call->work->complete();
  } catch (...) {
    if (isInterrupted())
      abortBecause(kInterrupted);
    endWith(side(call->device));
    call->work->complete(std::current_exception());
    if (hasHooks())
      tell(call->type, call->sequence, begun);
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
  // A batch of one, too: its peer may have a batch of several.
  bool isBatch = !calls.empty() && calls.front() != call;
  if (isBatch && calls.front()->pointToPoint)
    return runSends(calls, *call->work);
  for (const CallPtr &part : calls)
    run(*part, *call->work, stream);
}

void commsir::torch_c10d::Backend::count(const Call &call,
                                         const std::string &reason) {
  if (!reason.empty()) {
    const char *path = call.device.is_cpu() ? "gloo" : "nccl";
    ++Counters::get().at({settings.name, call.name, path, reason});
    return;
  }
  std::lock_guard<std::mutex> lock(mutex);
  std::atomic<uint64_t> *&own = counted[call.name];
  if (!own)
    own = &Counters::get().at({settings.name, call.name, "commsir", ""});
  ++*own;
  if (call.device.is_cpu() || call.steps.size() != 1 || call.own || size_ == 1)
    return;
  plainSide = sides[call.device.type()].get();
  const Step &step = call.steps.front();
  auto isSame = [&](const PlainKind &kind) {
    return kind.title == call.title && kind.reduction == step.reduction &&
           kind.type == step.type;
  };
  std::lock_guard<std::mutex> kinds(plainMutex);
  if (std::none_of(plainKinds.begin(), plainKinds.end(), isSame))
    plainKinds.push_back({call.title, step.reduction, step.type, own});
}

void commsir::torch_c10d::Backend::run(Call &call, CallWork &work,
                                       void *stream) {
  try {
    std::string reason = call.notOwn;
    if (call.begins)
      reason = messages->unsupportedReason(static_cast<int>(call.root),
                                           call.timeout);
    else if (reason.empty() && size_ > 1 && !(call.own && call.steps.empty()))
      reason = side(call.device).unsupportedReason(call);
    count(call, reason);
    recorder.mark(call.ticket, "begun");
    for (auto &copy : call.before)
      copy();
    if (reason.empty() && call.begins)
      work.begun(call.begins(), std::move(call.after));
    else if (reason.empty())
      runOwn(call, stream);
    else
      runDelegated(call, work, reason);
    if (!call.pointToPoint)
      for (auto &copy : call.after)
        copy();
    recorder.mark(call.ticket, "done");
  } catch (...) {
    recorder.mark(call.ticket, "failed");
    if (side(call.device).hasFailed())
      abortBecause(isInterrupted() ? kInterrupted : "its ranks have not met");
    endWith(side(call.device));
    throw;
  }
}

/// Orders the call after everything queued so far in the streams of the group's
/// GPU: the current one, as NCCL's barrier does, and the group's own.
void commsir::torch_c10d::Backend::beginAfterGpu(Call &call) {
  std::optional<c10::Device> gpu;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = sides.find(c10::DeviceType::CUDA);
    if (found != sides.end())
      gpu = found->second->of();
  }
  if (!gpu)
    return;
  auto ends = std::make_shared<std::vector<c10::Event>>();
  c10::impl::VirtualGuardImpl guard(gpu->type());
  std::vector<c10::Stream> streams = {guard.getStream(*gpu)};
  {
    std::lock_guard<std::mutex> lock(plainMutex);
    if (ownStream)
      streams.push_back(*ownStream);
  }
  for (const c10::Stream &stream : streams) {
    // What is captured has no end.
    c10::StreamGuard current(stream);
    if (!isCapturing(*gpu))
      ends->push_back(Events::get().record(stream));
  }
  call.before.push_back([this, ends, timeout = call.timeout, name = call.name] {
    RelaxedCaptureScope scope;
    auto end = std::chrono::steady_clock::now() + timeout;
    try {
      for (c10::Event &one : *ends) {
        while (!one.query()) {
          if (hasEnded || isInterrupted())
            return;
          TORCH_CHECK_WITH(
              DistBackendError, std::chrono::steady_clock::now() < end,
              "commsir: Timed out waiting ", timeout.count(), "ms for ", name,
              ": its GPU still runs what was queued before it");
          std::this_thread::sleep_for(kLook);
        }
        Events::get().give(std::move(one));
      }
    } catch (const c10::Error &error) {
      // Its peers are in the call: no other may be taken for it.
      abortBecause(error.what_without_backtrace());
      throw;
    }
  });
}

/// A collective of one rank.
static void copyStep(const Step &step, const c10::Device &device,
                     int64_t bytes) {
  if (!step.input || !step.output || step.input == step.output || !bytes)
    return;
  // Torch is told where it is, and asks no driver.
  auto memory = [&](void *data) {
    return at::for_blob(data, {bytes})
        .options(at::TensorOptions().dtype(at::kByte).device(device))
        .target_device(device)
        .make_tensor();
  };
  memory(step.output).copy_(memory(const_cast<void *>(step.input)));
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
    // On the CPU ranks compare calls of no elements, too.
    bool isEmpty = !step.inputElements && !step.outputElements;
    if (isEmpty && !call.device.is_cpu())
      return;
    if (size_ == 1)
      return copyStep(step, call.device, bytesOf(step));
    side(call.device).launch(call, step, stream);
  };
  if (call.own)
    return call.own(launch);
  if (call.compare)
    call.compare(launch);
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
  DeviceState &used = side(call.device);
  bool isOfTwo = call.pointToPoint && !call.device.is_cpu();
  WorkPtr inner = call.delegated(
      isOfTwo ? used.pairWith(static_cast<int>(call.root), call.timeout)
              : used.delegate(call.timeout));
  // In a batch there may be no work of its own, and still copies to make.
  if (call.pointToPoint)
    return work.begun(inner, std::move(call.after));
  if (!inner)
    return;
  if (call.device.is_cpu())
    waitInterruptibly(inner, call.timeout, [&] { abortBecause(kInterrupted); });
  else
    inner->wait(kNoTimeout);
}

/// Sends and receives of one batch begin together: none waits for another. On
/// GPUs pairs do, in an order of pairs that all ranks keep, so that no two wait
/// for each other crosswise.
void commsir::torch_c10d::Backend::runSends(const std::vector<CallPtr> &calls,
                                            CallWork &work) {
  if (calls.front()->device.is_cpu()) {
    for (const CallPtr &part : calls)
      run(*part, work, nullptr);
    return;
  }
  std::map<std::pair<int64_t, int64_t>, std::vector<CallPtr>> byPair;
  for (const CallPtr &part : calls)
    byPair[std::minmax<int64_t>(rank_, part->root)].push_back(part);
  for (const auto &[members, parts] : byPair) {
    const Call &first = *parts.front();
    c10d::Backend &pair =
        side(first.device)
            .pairWith(static_cast<int>(first.root), first.timeout);
    pair.startCoalescing();
    try {
      for (const CallPtr &part : parts)
        run(*part, work, nullptr);
    } catch (...) {
      // What has begun is ended, or no later call of this thread would begin.
      try {
        pair.endCoalescing();
      } catch (const std::exception &) {
      }
      throw;
    }
    work.begun(pair.endCoalescing(), {});
  }
}

//===----------------------------------------------------------------------===//
// Coalescing
//===----------------------------------------------------------------------===//

void commsir::torch_c10d::Backend::startCoalescing() {
  TORCH_CHECK(!coalesced, "commsir: startCoalescing was called twice; call "
                          "endCoalescing first");
  coalesced.emplace();
  refused = nullptr;
}

WorkPtr commsir::torch_c10d::Backend::endCoalescing() {
  TORCH_CHECK(coalesced, "commsir: endCoalescing without startCoalescing");
  std::vector<CallPtr> calls = std::move(*coalesced);
  coalesced.reset();
  if (refused)
    std::rethrow_exception(std::exchange(refused, nullptr));
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
  settings.shared->abort(reason);
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (ended.empty())
      ended = reason;
    hasEnded = true;
  }
  messages->abort(reason);
  for (DeviceState *side : madeSides())
    side->abort(reason);
}

/// Calls that come after one that has ended the group say so at once.
void commsir::torch_c10d::Backend::endWith(DeviceState &side) {
  if (std::string why = side.endReason(); !why.empty())
    abortBecause(why);
}

void commsir::torch_c10d::Backend::abort() { abortBecause("it was aborted"); }

void commsir::torch_c10d::Backend::shutdown() {
  if (forks != forksSoFar())
    return;
  queue.stop();
  endings.drainBy(std::chrono::steady_clock::now() + kLastWaits);
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!ended.empty())
      return;
    ended = "it was destroyed";
    hasEnded = true;
  }
  for (DeviceState *side : madeSides())
    side->drainDelegate();
  endings.stop();
  for (DeviceState *side : madeSides())
    side->endGroup();
  dropGloo(std::chrono::steady_clock::now() + kLastCalls);
}

/// Gloo's threads may be in a wait that nothing ends where the group has been
/// aborted.
void commsir::torch_c10d::Backend::dropGloo(
    std::chrono::steady_clock::time_point deadline) {
  if (!messages->leave(deadline))
    TORCH_WARN("commsir: the store of process group ", settings.name,
               " does not answer at the program's end, and sends or receives "
               "that nobody waited for are still in flight");
  for (DeviceState *side : madeSides())
    side->dropGloo(/*leave=*/settings.shared->aborted);
}

/// False: a call is in a wait that nothing ends.
bool commsir::torch_c10d::Backend::end(
    std::chrono::steady_clock::time_point deadline) {
  using Clock = std::chrono::steady_clock;
  if (forks != forksSoFar())
    return true;
  bool done = false;
  while (!done && !isInterrupted() && Clock::now() < deadline)
    done = queue.drainBy(std::min(deadline, Clock::now() + kAsk));
  if (!done) {
    abortBecause("its program has ended before its calls");
    if (!queue.drainBy(Clock::now() + kLastWaits))
      return false;
  }
  queue.stop();
  if (!endings.drainBy(deadline))
    hasEnded = true;
  endings.stop();
  dropGloo(deadline);
  return true;
}

void commsir::torch_c10d::Backend::endAll() {
  Transfers::endAll();
  std::vector<c10::intrusive_ptr<c10d::Backend>> groups;
  {
    LiveGroups &live = LiveGroups::get();
    std::lock_guard<std::mutex> lock(live.mutex);
    for (auto &group : live.groups)
      if (auto held = group.lock())
        groups.push_back(std::move(held));
  }
  Interruptible scope;
  auto deadline = std::chrono::steady_clock::now() + kLastCalls;
  for (auto &group : groups)
    if (!static_cast<Backend &>(*group).end(deadline))
      // Its thread cannot be joined: both are left to the process's end.
      (void)group.release();
  throwInterrupt();
}

//===----------------------------------------------------------------------===//
// Hooks
//===----------------------------------------------------------------------===//

void commsir::torch_c10d::Backend::registerOnCompletionHook(
    std::function<void(std::shared_ptr<c10d::WorkInfo>)> &&hook) {
  checkUsable("_register_on_completion_hook");
  TORCH_CHECK(!onCompletionHook_, "commsir: process group ", settings.name,
              " has a hook; register one");
  queue.drain();
  onCompletionHook_ = std::move(hook);
}

/// Tells the hook of a call that has ended.
void commsir::torch_c10d::Backend::tell(
    c10d::OpType type, uint64_t number,
    std::chrono::steady_clock::time_point begun) {
  auto end = std::chrono::steady_clock::now();
  try {
    onCompletionHook_(std::make_shared<c10d::WorkInfo>(type, number, begun, end,
                                                       end - begun));
  } catch (const std::exception &error) {
    // Nobody could catch it: the call has ended, on a thread of the group.
    TORCH_WARN("commsir: process group ", settings.name,
               ": its hook on completion has raised an exception for ",
               c10d::opTypeToString(type), " number ", number,
               ", which has ended; catch it in the hook: ", error.what());
  }
}

/// The same when `used` has come to where it is now and, for sends and
/// receives, those have ended. Of a call that a graph records nothing is told,
/// and of one whose end nobody waits for any more.
void commsir::torch_c10d::Backend::reportAtEnd(
    const Call &call, const c10::Stream &used,
    std::chrono::steady_clock::time_point begun) {
  if (isCapturing(used.device()))
    return;
  auto end = std::make_shared<c10::Event>(Events::get().record(used));
  auto work = call.pointToPoint ? call.work : nullptr;
  endings.push(
      [this, end, work, type = call.type, number = call.sequence, begun] {
        try {
          RelaxedCaptureScope scope;
          while (!end->query() || (work && !work->isCompleted())) {
            if (hasEnded)
              return;
            std::this_thread::sleep_for(kLook);
          }
          Events::get().give(std::move(*end));
        } catch (const c10::Error &) {
          // The GPU has failed, which whoever waits for the call is told.
        }
        tell(type, number, begun);
      });
}

void commsir::torch_c10d::Backend::waitForPendingWorks() {
  queue.drain();
  endings.drain();
}

std::shared_ptr<c10::Allocator>
commsir::torch_c10d::Backend::getMemAllocator() {
  TORCH_CHECK(false, "commsir: a process group has no allocator of its own: "
                     "make symmetric tensors by commsir.torch.window or "
                     "torch.distributed._symmetric_memory.empty");
}

at::Tensor commsir::torch_c10d::Backend::allocateTensor(long,
                                                        at::TensorOptions) {
  TORCH_CHECK(false, "commsir: a process group allocates no tensors: make "
                     "symmetric ones by commsir.torch.window");
}

//===----------------------------------------------------------------------===//
// Groups made from this one
//===----------------------------------------------------------------------===//

/// A group of some ranks of this one, this rank among them.
BackendPtr commsir::torch_c10d::Backend::makePart(
    const StorePtr &store, const std::vector<int> &ranks,
    const std::string &name, const c10::intrusive_ptr<Options> &opts) {
  auto own = std::find(ranks.begin(), ranks.end(), rank_);
  Settings part = settings.part(store, static_cast<int>(own - ranks.begin()),
                                static_cast<int>(ranks.size()));
  part.name = name;
  if (opts && opts->timeout.count() > 0)
    part.shared->timeout = opts->timeout.count();
  part.globalRanks.clear();
  for (int rank : ranks)
    part.globalRanks.push_back(
        settings.globalRanks.empty() ? rank : settings.globalRanks[rank]);
  return make(std::move(part));
}

BackendPtr
commsir::torch_c10d::Backend::split(const StorePtr &store,
                                    const std::vector<int> &ranks,
                                    const c10::intrusive_ptr<Options> &opts) {
  checkUsable("split");
  if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end())
    return nullptr;
  std::string name = opts && !opts->group_name.empty()
                         ? opts->group_name
                         : c10::str(settings.name, ":", c10::Join("_", ranks));
  return makePart(
      c10::make_intrusive<c10d::PrefixStore>(c10::str("split/", name), store),
      ranks, name, opts);
}

BackendPtr
commsir::torch_c10d::Backend::merge(const StorePtr &store,
                                    const c10::intrusive_ptr<Options> &opts,
                                    const int &rank, const int &size) {
  TORCH_CHECK(rank >= 0 && rank < size, "commsir: merge: no rank ", rank,
              " in a group of ", size);
  Settings whole = settings.part(store, rank, size);
  whole.globalRanks.clear();
  if (opts) {
    whole.globalRanks = opts->global_ranks_in_group;
    if (!opts->group_name.empty())
      whole.name = opts->group_name;
    if (opts->timeout.count() > 0)
      whole.shared->timeout = opts->timeout.count();
  }
  return make(std::move(whole));
}

/// The ranks that are left, also of a group that has failed. They meet in the
/// store again.
BackendPtr
commsir::torch_c10d::Backend::shrink(const std::vector<int64_t> &ranksToExclude,
                                     int flags,
                                     const c10::intrusive_ptr<Options> &opts) {
  TORCH_CHECK(forks == forksSoFar(), "commsir: shrink: process group ",
              settings.name, " was made before this process was forked");
  std::vector<int> left;
  for (int rank = 0; rank < size_; ++rank)
    if (std::find(ranksToExclude.begin(), ranksToExclude.end(), rank) ==
        ranksToExclude.end())
      left.push_back(rank);
  TORCH_CHECK(std::find(left.begin(), left.end(), rank_) != left.end(),
              "commsir: shrink: rank ", rank_,
              " is left out; ranks that are left call this");
  if (flags != 0)
    abortBecause(c10::str("it shrinks to ", left.size(), " ranks"));
  queue.drain();
  std::string name = c10::str(settings.name, ":", c10::Join("_", left));
  return makePart(
      c10::make_intrusive<c10d::PrefixStore>(
          c10::str("commsir/shrunk/", c10::Join("_", left)), settings.store),
      left, name, opts);
}
