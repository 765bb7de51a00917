//===- Interrupt.cpp - Ctrl-C during a call -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Interrupt.h"

#include <thread>

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

void commsir::torch_c10d::waitInterruptibly(
    const c10::intrusive_ptr<c10d::Work> &work,
    std::chrono::milliseconds timeout, const std::function<void()> &stop) {
  const Interrupts &python = Interrupts::get();
  if (!python.isMain || !python.isMain()) {
    work->wait(timeout);
    return;
  }
  // The work's own wait may last: another thread is in it.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
  };
  auto state = std::make_shared<State>();
  std::thread([state, work, timeout] {
    std::exception_ptr error;
    try {
      work->wait(timeout);
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard<std::mutex> lock(state->mutex);
    state->done = true;
    state->error = error;
    state->changed.notify_all();
  }).detach();
  Interruptible scope;
  std::unique_lock<std::mutex> lock(state->mutex);
  auto forever = std::chrono::steady_clock::time_point::max();
  if (!waitAsking(state->changed, lock, forever, [&] { return state->done; })) {
    lock.unlock();
    stop();
    throwInterrupt();
  }
  if (state->error)
    std::rethrow_exception(state->error);
}
