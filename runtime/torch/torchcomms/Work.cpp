//===- Work.cpp - torchcomms' view of a call ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/torchcomms/Work.h"

#include "runtime/torch/c10d/Capture.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <comms/torchcomms/TorchCommTypes.hpp>

#include <new>
#include <pthread.h>
#include <system_error>

using namespace commsir::torchcomms;
using std::chrono::milliseconds;

/// How often calls are polled.
static constexpr milliseconds kLook{1};
/// CPU time of a thread: many times what torchcomms takes to register a hook.
static constexpr std::chrono::microseconds kFrame{100};
/// A thread that runs as little as that in all this time waits somewhere else.
static constexpr milliseconds kAway{200};

//===----------------------------------------------------------------------===//
// Returned
//===----------------------------------------------------------------------===//

/// Returns the CPU time of a thread; negative if it has ended.
static std::chrono::nanoseconds cpuTimeOf(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0)
    return std::chrono::nanoseconds(-1);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

void CallReturn::note() {
  since = std::chrono::steady_clock::now();
  ran = pthread_getcpuclockid(pthread_self(), &clock) == 0
            ? cpuTimeOf(clock)
            : std::chrono::nanoseconds(-1);
}

bool CallReturn::isPast() const {
  if (std::chrono::steady_clock::now() - since >= kAway)
    return true;
  std::chrono::nanoseconds now = ran.count() < 0 ? ran : cpuTimeOf(clock);
  // Of a thread that has ended, which it does behind that frame.
  return now.count() < 0 || now - ran >= kFrame;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

Work::Work(c10::intrusive_ptr<c10d::Work> inner, c10::Device device,
           bool pointToPoint, milliseconds limit, milliseconds usual)
    : inner(std::move(inner)), device(device), pointToPoint(pointToPoint),
      limit(limit), usual(usual) {
  setStatus(Status::INPROGRESS);
  if (this->inner)
    returned.note();
}

/// Reports errors of a program's hooks and callbacks, which no caller could
/// catch.
static void tell(const std::function<void()> &what) {
  try {
    what();
  } catch (const std::exception &error) {
    TORCH_WARN("commsir: a hook at the end of a call of torchcomms failed: ",
               error.what());
  } catch (...) {
    TORCH_WARN("commsir: a hook at the end of a call of torchcomms failed");
  }
}

void Work::resolve(std::exception_ptr error) {
  decltype(atEnd) futures;
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    futures.swap(atEnd);
  }
  for (auto &complete : futures)
    tell([&] { complete(error); });
}

void Work::conclude(std::exception_ptr error) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (isOver)
    return;
  isOver = true;
  failure = error;
  // Who has waited as long as it was given has been told so.
  bool late = std::chrono::steady_clock::now() - begun >= getTimeout();
  tell([&] {
    setStatus(!error ? Status::COMPLETED
              : late ? Status::TIMEDOUT
                     : Status::ERROR);
  });
  resolve(error);
}

void Work::waitFor(milliseconds time) {
  if (!inner)
    return;
  try {
    {
      std::lock_guard<std::recursive_mutex> lock(mutex);
      if (failure)
        std::rethrow_exception(failure);
    }
    inner->wait(time);
  } catch (...) {
    conclude(std::current_exception());
    throw;
  }
}

milliseconds Work::waits() const {
  return pointToPoint && !onGpu() && hasLimit() ? limit : ::kNoTimeout;
}

void Work::wait() {
  runWaitPreHooks();
  waitFor(waits());
  if (onGpu()) {
    // In the current stream it is over.
    resolve(nullptr);
    std::lock_guard<std::recursive_mutex> lock(mutex);
    returned.note();
  } else
    conclude(nullptr);
  runWaitPostHooks();
}

void Work::finish() {
  waitFor(waits());
  conclude(nullptr);
}

void Work::hostSynchronize() {
  if (!onGpu())
    return;
  if (inner)
    waitFor(getTimeout());
  else
    torch_c10d::currentOn(device).synchronize();
  conclude(nullptr);
}

void Work::waitBlocking() {
  wait();
  hostSynchronize();
}

void Work::requireSuccess() {
  if (!onGpu()) {
    inner->wait(::kNoTimeout);
    return;
  }
  // A wait for some time asks what kernels have reported. The stream that it
  // is ordered in is nobody's.
  c10::impl::VirtualGuardImpl guard(device.type());
  c10::StreamGuard stream(guard.getStreamFromGlobalPool(device));
  inner->wait(kLook);
}

bool Work::look() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (isOver)
    return true;
  if (!returned.isPast())
    return false;
  try {
    if (inner->isCompleted()) {
      requireSuccess();
      conclude(nullptr);
    } else {
      // A collective knows its own time. On a GPU none is over so early.
      bool late = pointToPoint && !onGpu() &&
                  std::chrono::steady_clock::now() - begun >= getTimeout();
      TORCH_CHECK(!late, "commsir: Timed out waiting ", getTimeout().count(),
                  "ms for a send or a receive: no other rank has made the "
                  "matching call");
      return false;
    }
  } catch (...) {
    conclude(std::current_exception());
  }
  return true;
}

void Work::markCompleted(c10::intrusive_ptr<c10::ivalue::Future> future,
                         std::vector<at::Tensor> outputs) {
  auto complete = [=](std::exception_ptr error) {
    if (error)
      future->setError(error);
    else
      future->markCompleted(c10::IValue(outputs));
  };
  // It is ordered in the current stream, which the future then is.
  if (!inner)
    return complete(nullptr);
  if (!pointToPoint) {
    inner->getFuture()->addCallback([=](c10::ivalue::Future &done) {
      complete(done.hasError() ? done.exception_ptr() : nullptr);
    });
    return;
  }
  // Of those there is no future: to be ordered after them is to wait for them.
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (isOver)
    complete(failure);
  else
    atEnd.push_back(complete);
}

//===----------------------------------------------------------------------===//
// Watch
//===----------------------------------------------------------------------===//

/// Never destroyed: its thread may be running when the process ends.
StatusWatcher &StatusWatcher::get() {
  static std::atomic<StatusWatcher *> current{nullptr};
  StatusWatcher *watch = current;
  while (!watch || watch->process != getpid()) {
    auto *made = new StatusWatcher;
    if (current.compare_exchange_strong(watch, made))
      return *made;
    delete made;
  }
  return *watch;
}

void StatusWatcher::add(c10::intrusive_ptr<Work> work) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (hasEnded)
      return;
    try {
      if (!thread.joinable())
        thread = std::thread([this] { run(); });
    } catch (const std::system_error &) {
      // Without a thread, waits set the status of calls.
      return;
    }
    added.push_back(std::move(work));
  }
  changed.notify_one();
}

void StatusWatcher::run() {
  std::vector<c10::intrusive_ptr<Work>> works;
  std::unique_lock<std::mutex> lock(mutex);
  while (!hasEnded) {
    if (works.empty())
      changed.wait(lock, [&] { return hasEnded || !added.empty(); });
    try {
      works.insert(works.end(), added.begin(), added.end());
      added.clear();
    } catch (const std::bad_alloc &) {
      // The next look may have the memory.
    }
    changed.wait_for(lock, kLook, [&] { return hasEnded; });
    lock.unlock();
    {
      torch_c10d::RelaxedCaptureScope scope;
      std::erase_if(works, [](auto &work) { return work->look(); });
    }
    lock.lock();
  }
}

void StatusWatcher::end() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    hasEnded = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}
