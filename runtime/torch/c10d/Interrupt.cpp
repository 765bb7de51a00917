//===- Interrupt.cpp - Ctrl-C during a call -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Interrupt.h"

#include "runtime/torch/c10d/Queue.h"

#include <memory>
#include <system_error>
#include <thread>
#include <utility>

using namespace commsir::torch_c10d;

static thread_local int depth = 0;
static thread_local bool pending = false;

Interrupts &Interrupts::get() {
  static Interrupts interrupts;
  return interrupts;
}

Interruptible::Interruptible() { ++depth; }

Interruptible::~Interruptible() { --depth; }

bool commsir::torch_c10d::isInterrupted() {
  const Interrupts &python = Interrupts::get();
  if (!pending && depth && python.isMain && python.isMain())
    pending = python.heard();
  return pending;
}

int commsir::torch_c10d::askInterrupted() { return isInterrupted() ? 1 : 0; }

void commsir::torch_c10d::throwInterrupt() {
  if (!pending)
    return;
  pending = false;
  Interrupts::get().raise();
}

namespace {
/// A thread that waits in place of the main one, for one work after the other.
class Waiter : public std::enable_shared_from_this<Waiter> {
public:
  void start() {
    std::thread([self = shared_from_this()] { self->run(); }).detach();
  }

  /// False: interrupted; the thread is left to itself.
  bool wait(const c10::intrusive_ptr<c10d::Work> &work,
            std::chrono::milliseconds limit) {
    std::unique_lock<std::mutex> lock(mutex);
    given = work;
    timeout = limit;
    tell(lock);
    auto forever = std::chrono::steady_clock::time_point::max();
    if (!waitAsking(changed, lock, forever, [&] { return !given; })) {
      left = true;
      return false;
    }
    if (error)
      std::rethrow_exception(std::exchange(error, nullptr));
    return true;
  }

private:
  /// Unlocks before notifying, so that the woken thread finds the lock free.
  void tell(std::unique_lock<std::mutex> &lock) {
    lock.unlock();
    changed.notify_all();
    lock.lock();
  }

  /// Nobody waits any more. To drop the work could be to drop a tensor of
  /// Python's, here, where the interpreter may be gone by then: it stays.
  void leave(c10::intrusive_ptr<c10d::Work> work) {
    (void)work.release();
    (void)given.release();
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return given; });
      auto work = given;
      auto limit = timeout;
      lock.unlock();
      std::exception_ptr raised;
      try {
        work->wait(limit);
      } catch (...) {
        raised = std::current_exception();
      }
      lock.lock();
      if (left)
        return leave(std::move(work));
      work.reset();
      error = raised;
      given.reset();
      tell(lock);
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  c10::intrusive_ptr<c10d::Work> given;
  std::chrono::milliseconds timeout{0};
  std::exception_ptr error;
  bool left = false;
};
} // namespace

void commsir::torch_c10d::waitInterruptibly(
    const c10::intrusive_ptr<c10d::Work> &work,
    std::chrono::milliseconds timeout, const std::function<void()> &stop) {
  const Interrupts &python = Interrupts::get();
  if (!python.isMain || !python.isMain() ||
      dynamic_cast<const InterruptibleWork *>(work.get())) {
    work->wait(timeout);
    return;
  }
  // Of the main thread alone; a child of fork() has no such thread.
  static std::shared_ptr<Waiter> waiter;
  static uint64_t forks = 0;
  if (!waiter || forks != forksSoFar()) {
    auto made = std::make_shared<Waiter>();
    try {
      made->start();
    } catch (const std::system_error &) {
      // The system starts no thread: Ctrl-C is heard when the wait ends.
      work->wait(timeout);
      return;
    }
    waiter = std::move(made);
    forks = forksSoFar();
  }
  Interruptible scope;
  if (waiter->wait(work, timeout))
    return;
  waiter = nullptr;
  stop();
  throwInterrupt();
}
