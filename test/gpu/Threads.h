//===- Threads.h - Ranks that are threads of a test -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over the driver of FakeCuda.cpp and the NCCL of FakeNccl.cpp. Environment
// variables select their missing features, and a process loads NCCL once, so
// each test is a separate process.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_THREADS_H
#define COMMSIR_TEST_GPU_THREADS_H

#include "runtime/group/Group.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "test/gpu/Child.h"

#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstdlib>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace commsir::test {

/// Where ranks wait for each other, so that the environment changes while
/// nobody reads it.
class Together {
public:
  explicit Together(int ranks) : barrier(ranks) {}
  void wait() { barrier.arrive_and_wait(); }
  /// `change` is made by rank 0, while all wait.
  void once(int rank, const std::function<void()> &change) {
    wait();
    if (rank == 0)
      change();
    wait();
  }
  void leave() { barrier.arrive_and_drop(); }

private:
  std::barrier<> barrier;
};

/// What `work` says, in a process with the NCCL of `folder` that lacks `lacks`.
inline std::string inProcess(const std::function<std::string()> &work,
                             const char *lacks = "",
                             const char *folder = "fake-nccl") {
  Ended ended = Child::start([&](int) {
                  std::string path = std::string(COMMSIR_LIBRARIES) + "/" +
                                     folder + "/libnccl.so.2";
                  setenv("COMMSIR_NCCL_LIBRARY", path.c_str(), 1);
                  setenv("COMMSIR_FAKE_NCCL", lacks, 1);
                  return work();
                }).wait();
  EXPECT_EQ(ended.status, 0);
  return ended.said;
}

/// Runs `work` as every rank of a group, each a thread; what each rank says, or
/// the error that making the group ends in.
inline std::vector<std::string> asThreads(
    int ranks, const char *windows,
    const std::function<std::string(group::Group &, int, Together &)> &work) {
  llvm::SmallString<128> folder;
  if (llvm::sys::fs::createUniqueDirectory("commsir-threads", folder))
    return {"no folder"};
  std::vector<std::string> said(ranks);
  std::vector<std::thread> threads;
  Together together(ranks);
  // Who frees its part while a peer is gone leaves it; so rank 0 goes first.
  // Over NCCL it then waits for the others.
  std::promise<void> going, gone;
  std::shared_future<void> isGoing = going.get_future(),
                           isGone = gone.get_future();
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto store = llvm::cantFail(group::createFileStore(folder));
      group::GroupOptions options;
      options.rank = rank;
      options.ranks = ranks;
      options.device = rank;
      options.timeout = 20;
      options.windows = windows;
      auto group = group::createCudaGroup(options, *store);
      said[rank] = group ? work(**group, rank, together)
                         : llvm::toString(group.takeError());
      together.leave();
      if (rank != 0) {
        isGoing.wait();
        (void)isGone.wait_for(std::chrono::seconds(1));
        return;
      }
      going.set_value();
      if (group)
        group->reset();
      gone.set_value();
    });
  for (std::thread &thread : threads)
    thread.join();
  llvm::sys::fs::remove_directories(folder);
  return said;
}

} // namespace commsir::test

#endif // COMMSIR_TEST_GPU_THREADS_H
