//===- CallQueueTest.cpp - Threads take turns -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CallQueue.h"

#include "llvm/Support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using commsir::group::CallQueue;

namespace {

/// The error of a call that begins; "": it has its turn.
std::string begin(CallQueue &queue, const char *what) {
  return llvm::toString(queue.begin(what));
}

TEST(CallQueue, CallsWithinACallAreRefused) {
  CallQueue queue;
  EXPECT_EQ(begin(queue, "all_reduce"), "");
  EXPECT_NE(begin(queue, "broadcast").find("in a call of the group already"),
            std::string::npos);
  EXPECT_FALSE(queue.tryBegin("broadcast"));
  queue.end();
  EXPECT_TRUE(queue.tryBegin("broadcast"));
  queue.end();
}

TEST(CallQueue, TurnsComeOneAtATime) {
  constexpr int kThreads = 4, kCalls = 200;
  CallQueue queue;
  int running = 0, calls = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        EXPECT_EQ(begin(queue, "all_reduce"), "");
        most = std::max(most, ++running);
        ++calls;
        --running;
        queue.end();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(calls, kThreads * kCalls);
  EXPECT_EQ(most, 1);
}

/// A queue that another thread waits in while this one forks.
struct Queued {
  Queued() {
    EXPECT_EQ(begin(*queue, "all_reduce"), "");
    waiter = std::thread([this] {
      error = begin(*queue, "broadcast");
      if (error.empty())
        queue->end();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }

  std::unique_ptr<CallQueue> queue = std::make_unique<CallQueue>();
  std::string error;
  std::thread waiter;
};

TEST(CallQueue, CloseEndsWaits) {
  Queued queued;
  queued.queue->close();
  queued.waiter.join();
  EXPECT_NE(queued.error.find("has closed the group"), std::string::npos);
  queued.queue->end();
}

/// A child of fork() has no threads that wait in the queue.
TEST(CallQueue, EndsInAForkedProcess) {
  Queued queued;
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    queued.queue.reset();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  queued.queue->end();
  queued.waiter.join();
  EXPECT_EQ(queued.error, "");
}

} // namespace
