//===- Handle.cpp - Handles behind the C API's pointers -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/Handle.h"

#include <vector>

using namespace commsir::capi;

/// The innermost call that a thread is in.
static thread_local Handle::Call *innermost = nullptr;

/// Keeps the handle reachable for leak checkers.
static void keep(Handle *handle) {
  static std::mutex mutex;
  static auto *all = new std::vector<Handle *>;
  std::lock_guard<std::mutex> lock(mutex);
  all->push_back(handle);
}

Handle::Handle(Kind kind) : Tagged(kind) { keep(this); }

Handle::Call::Call(Handle &handle, bool evenClosed)
    : handle(handle), entered(handle.enter(evenClosed)), outer(innermost) {
  if (entered)
    innermost = this;
}

Handle::Call::~Call() {
  if (!entered)
    return;
  innermost = outer;
  handle.leave();
}

bool Handle::enter(bool evenClosed) {
  uint64_t seen = state.load(std::memory_order_relaxed);
  do {
    if (seen & (evenClosed ? kFinished : kClosed | kFinished))
      return false;
  } while (!state.compare_exchange_weak(
      seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void Handle::leave() {
  uint64_t before = state.fetch_sub(1, std::memory_order_acq_rel);
  if (!(before & (kClosed | kFinished)))
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    left.notify_all();
  }
  if ((before & kFinished) && (before & kCalls) == 1)
    end(/*isLate=*/true);
}

/// Calls of this thread that this one is within.
uint64_t Handle::countOwn() const {
  uint64_t count = 0;
  for (Call *call = innermost; call; call = call->outer)
    count += &call->handle == this;
  return count;
}

bool Handle::awaitCalls(std::chrono::milliseconds most) {
  uint64_t own = countOwn();
  std::unique_lock<std::mutex> lock(mutex);
  return left.wait_for(lock, most, [&] {
    return (state.load(std::memory_order_acquire) & kCalls) <= own;
  });
}

bool Handle::finish() {
  uint64_t before =
      state.fetch_or(kClosed | kFinished, std::memory_order_acq_rel);
  if (before & kFinished)
    return false;
  if ((before & kCalls) == 0)
    end(/*isLate=*/false);
  return true;
}
