//===- Queue.cpp - Calls of one group run in issue order ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Queue.h"

#include <c10/util/Exception.h>

#include <pthread.h>

#include <atomic>
#include <new>
#include <system_error>

using namespace commsir::torch_c10d;

static std::atomic<uint64_t> forks{0};

uint64_t commsir::torch_c10d::forksSoFar() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

Queue::~Queue() {
  if (forks == forksSoFar()) {
    stop();
    return;
  }
  // A child of fork() has no such thread, which their destructors would wait
  // for.
  new (&thread) std::thread();
  new (&changed) std::condition_variable();
}

void Queue::push(Job job) {
  std::lock_guard<std::mutex> lock(mutex);
  jobs.push_back(std::move(job));
  if (!thread.joinable()) {
    try {
      thread = std::thread([this, turn = stops] { work(turn); });
    } catch (const std::system_error &error) {
      jobs.pop_back();
      TORCH_CHECK(false,
                  "commsir: the system cannot start the thread that "
                  "runs a group's calls (",
                  error.what(), "): raise the limit of processes (ulimit -u)");
    }
  }
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
  Running scope(*this);
  job();
  return true;
}

Queue::Running::Running(Queue &queue) : queue(queue) {
  queue.runner = std::this_thread::get_id();
}

Queue::Running::~Running() {
  queue.runner = std::thread::id();
  std::lock_guard<std::mutex> lock(queue.mutex);
  queue.busy = false;
  queue.changed.notify_all();
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
  std::thread ended;
  {
    // A job that is pushed from now on gets another thread.
    std::lock_guard<std::mutex> lock(mutex);
    ended = std::move(thread);
    ++stops;
    changed.notify_all();
  }
  if (ended.joinable())
    ended.join();
}

/// Runs a job on the queue's thread, which nobody catches exceptions of.
void Queue::runFrom(Job job) {
  Running scope(*this);
  try {
    job();
  } catch (const std::exception &error) {
    TORCH_WARN("commsir: a callback at the end of a call failed: ",
               error.what());
  } catch (...) {
    TORCH_WARN("commsir: a callback at the end of a call failed");
  }
  job = nullptr;
}

void Queue::work(uint64_t turn) {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock,
                 [&] { return !busy && (turn != stops || !jobs.empty()); });
    if (jobs.empty())
      return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    busy = true;
    lock.unlock();
    runFrom(std::move(job));
    lock.lock();
  }
}
