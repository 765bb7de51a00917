//===- Queue.h - Calls of one group run in issue order ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs one job at a time, first in, first out, on a thread of its own. A caller
// that waits anyway runs its job itself if the queue is empty, which saves two
// thread switches. A job that another job requests, in the callback of a
// future, runs at once: ahead of jobs that were pushed in the meantime, whose
// order may differ between ranks, and never behind the job that waits for it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_QUEUE_H
#define COMMSIR_RUNTIME_TORCH_C10D_QUEUE_H

#include <c10/util/FunctionRef.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace commsir::torch_c10d {

/// Number of forks of this process: 0 in the process that was started, plus one
/// per generation of children.
uint64_t forksSoFar();

class Queue {
public:
  using Job = std::function<void()>;
  ~Queue();
  void push(Job job);
  /// Whether this thread runs a job.
  bool isHere() const { return runner.load() == std::this_thread::get_id(); }
  /// Runs `job` if the queue is empty. Returns false if it is not; `job` was
  /// then not run.
  bool runHere(c10::function_ref<void()> job);
  /// Waits until all jobs are done and destroyed.
  void drain();
  /// Same, until `deadline`. Returns false if jobs remain.
  bool drainBy(std::chrono::steady_clock::time_point deadline);
  /// Waits until all jobs are done and ends the thread. Does nothing in a
  /// forked child, which has no such thread.
  void stop();

private:
  /// While it lives, this thread runs a job of the queue.
  struct Running {
    explicit Running(Queue &queue);
    ~Running();
    Queue &queue;
  };
  /// Runs jobs until there are none and `turn` is over.
  void work(uint64_t turn);
  void runFrom(Job job);

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  std::thread thread;
  uint64_t forks = forksSoFar();
  bool busy = false;
  /// Number of calls of `stop`: a thread ends once it has changed.
  uint64_t stops = 0;
  /// The thread that runs a job.
  std::atomic<std::thread::id> runner = std::thread::id();
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_QUEUE_H
