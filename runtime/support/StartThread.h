//===- StartThread.h - Threads that may fail to start -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_STARTTHREAD_H
#define COMMSIR_RUNTIME_SUPPORT_STARTTHREAD_H

#include "runtime/support/FatalErrors.h"

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace commsir {

/// Starts a thread that runs `work`; returns none if the system cannot start
/// one. What `work` throws ends the process: see catchFailure.
template <typename Work>
std::thread startThread(Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error &) {
    return std::thread();
  } catch (const std::bad_alloc &) {
    return std::thread();
  }
}

/// Starts a thread that runs `work`. Throws std::runtime_error if the system
/// cannot start one.
template <typename Work>
std::thread requireThread(Work work) {
  std::thread thread = startThread(std::move(work));
  if (!thread.joinable())
    throw std::runtime_error(
        "the system cannot start another thread: raise the limit of processes "
        "(ulimit -u) or of memory, or use fewer workers");
  return thread;
}

/// Runs `work(i)` for each `i` below `count`: 0 on this thread, each other on
/// a thread of its own. Once one fails, or cannot be started, calls `stop`,
/// which has the others return. Throws one failure when all have returned.
template <typename Work, typename Stop>
void runInParallel(unsigned count, Work work, Stop stop) {
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  auto runOne = [&](unsigned i) {
    if ((failures[i] = catchFailure([&] { work(i); })))
      stop();
  };
  std::exception_ptr notStarted = catchFailure([&] {
    threads.reserve(count);
    for (unsigned i = 1; i < count; ++i)
      threads.push_back(requireThread([&runOne, i] { runOne(i); }));
  });
  if (notStarted)
    stop();
  else if (count)
    runOne(0);
  for (std::thread &thread : threads)
    thread.join();
  failures.push_back(std::move(notStarted));
  for (const std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
}

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_STARTTHREAD_H
