//===- Queue.cpp - Calls of one group run in issue order ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Queue.h"

#include <pthread.h>

#include <atomic>
#include <new>

using namespace commsir::torch_c10d;

static std::atomic<uint64_t> forks{0};

uint64_t commsir::torch_c10d::forksSoFar() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

Queue::~Queue() {
  stop();
  if (thread.joinable())
    // A child of fork(): the thread is not there to be joined or detached.
    new (&thread) std::thread();
}

void Queue::push(Job job) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!thread.joinable()) {
    stopping = false;
    thread = std::thread([this] { work(); });
  }
  jobs.push_back(std::move(job));
  changed.notify_all();
}

bool Queue::runHere(c10::function_ref<void()> job) {
  if (isHere()) {
    job();
    return true;
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (busy || !jobs.empty())
      return false;
    busy = true;
  }
  runner = std::this_thread::get_id();
  job();
  runner = std::thread::id();
  std::lock_guard<std::mutex> lock(mutex);
  busy = false;
  changed.notify_all();
  return true;
}

void Queue::drain() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return !busy && jobs.empty(); });
}

bool Queue::drainBy(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex);
  return changed.wait_until(lock, deadline,
                            [&] { return !busy && jobs.empty(); });
}

void Queue::stop() {
  if (forks != forksSoFar())
    return;
  drain();
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
    changed.notify_all();
  }
  if (thread.joinable())
    thread.join();
}

void Queue::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return !busy && (stopping || !jobs.empty()); });
    if (jobs.empty())
      return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    busy = true;
    lock.unlock();
    runner = std::this_thread::get_id();
    job();
    job = nullptr;
    runner = std::thread::id();
    lock.lock();
    busy = false;
    changed.notify_all();
  }
}
