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
#include <comms/torchcomms/TorchCommTypes.hpp>

using namespace commsir::torchcomms;
using std::chrono::milliseconds;

/// How often calls are looked for. Long enough that who has made a call has
/// long told torchcomms' hooks of it.
static constexpr milliseconds kLook{1};

Work::Work(c10::intrusive_ptr<c10d::Work> inner, c10::Device device,
           bool pointToPoint, milliseconds limit)
    : inner(std::move(inner)), device(device), pointToPoint(pointToPoint),
      limit(limit) {
  setStatus(Status::INPROGRESS);
}

void Work::conclude(std::exception_ptr error) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (isOver)
    return;
  isOver = true;
  failure = error;
  // Who has waited as long as it was given has been told so.
  bool late = std::chrono::steady_clock::now() - begun >= limit;
  setStatus(!error               ? Status::COMPLETED
            : hasLimit() && late ? Status::TIMEDOUT
                                 : Status::ERROR);
  for (auto &tell : std::exchange(atEnd, {}))
    tell(error);
}

void Work::waitFor(milliseconds time) {
  if (!inner)
    return;
  try {
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
  if (!onGpu())
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
    waitFor(hasLimit() ? limit : torch::comms::kDefaultTimeout);
  else
    torch_c10d::currentOn(device).synchronize();
  conclude(nullptr);
}

void Work::waitBlocking() {
  wait();
  hostSynchronize();
}

bool Work::look() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (isOver)
    return true;
  try {
    if (!inner->isCompleted())
      return false;
    conclude(inner->exception());
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
  // Of those there is no future: to be ordered after them is to wait for them.
  if (pointToPoint) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (isOver)
      complete(failure);
    else
      atEnd.push_back(complete);
    return;
  }
  inner->getFuture()->addCallback([=](c10::ivalue::Future &done) {
    complete(done.hasError() ? done.exception_ptr() : nullptr);
  });
}

//===----------------------------------------------------------------------===//
// Watch
//===----------------------------------------------------------------------===//

/// Never destroyed: its thread may be running when the process ends.
Watch &Watch::get() {
  static auto *watch = new Watch;
  return *watch;
}

void Watch::add(c10::intrusive_ptr<Work> work) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (hasEnded)
      return;
    if (!thread.joinable())
      thread = std::thread([this] { run(); });
    added.push_back(std::move(work));
  }
  changed.notify_one();
}

void Watch::run() {
  torch_c10d::BesideCaptures scope;
  std::vector<c10::intrusive_ptr<Work>> works;
  std::unique_lock<std::mutex> lock(mutex);
  while (!hasEnded) {
    if (works.empty())
      changed.wait(lock, [&] { return hasEnded || !added.empty(); });
    std::move(added.begin(), added.end(), std::back_inserter(works));
    added.clear();
    // Not at once: see kLook.
    changed.wait_for(lock, kLook, [&] { return hasEnded; });
    lock.unlock();
    std::erase_if(works, [](auto &work) { return work->look(); });
    lock.lock();
  }
}

void Watch::end() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    hasEnded = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}
