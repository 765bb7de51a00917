//===- RankTaskTest.cpp - Messages between comms-run and ranks ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifdef COMMSIR_CUDA

#include "runtime/driver/cuda/SharedRun.h"

#include "gtest/gtest.h"

#include <unistd.h>

using namespace commsir;
using namespace commsir::driver;

namespace {

RankTask makeTask() {
  RankTask task;
  task.group.name = "job";
  task.group.ranks = 3;
  task.group.timeout = 0.1;
  task.group.windows = "plain";
  task.request.source = std::string("a\0b", 3);
  task.request.name = "sum";
  task.request.blocks = 2;
  task.request.check = false;
  task.request.firstLaunch = ~uint64_t(0);
  task.launches = int64_t(1) << 40;
  task.graph = true;
  task.timeLimit = 1e-9;
  task.rendezvous = "folder";
  return task;
}

RankOutcome makeFailure(size_t waiting, size_t letters) {
  RankOutcome outcome;
  outcome.windows = "memory";
  outcome.error.emplace().kind = cpu::RunError::Deadlock;
  outcome.error->message = std::string(letters, 'm');
  for (size_t i = 0; i < waiting; ++i)
    outcome.error->waiting.push_back(
        {int64_t(i), 1, "comms.barrier", "k.mlir:1:2", "rank 1"});
  return outcome;
}

} // namespace

TEST(RankTask, IsTheSameInTheOtherProcess) {
  RankTask task = makeTask();
  std::optional<RankTask> read = RankTask::unpack(task.pack());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->group.name, "job");
  EXPECT_EQ(read->group.ranks, 3);
  EXPECT_EQ(read->group.timeout, 0.1);
  EXPECT_EQ(read->group.windows, "plain");
  EXPECT_EQ(read->request.source, task.request.source);
  EXPECT_EQ(read->request.name, "sum");
  EXPECT_EQ(read->request.blocks, 2);
  EXPECT_FALSE(read->request.check);
  EXPECT_EQ(read->request.firstLaunch, ~uint64_t(0));
  EXPECT_EQ(read->launches, int64_t(1) << 40);
  EXPECT_TRUE(read->graph);
  EXPECT_EQ(read->timeLimit, 1e-9);
  EXPECT_EQ(read->rendezvous, "folder");
  EXPECT_EQ(read->pack(), task.pack());
}

TEST(RankTask, PartsAndMoreAreNone) {
  std::string bytes = makeTask().pack();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(RankTask::unpack(llvm::StringRef(bytes).take_front(size)));
  EXPECT_FALSE(RankTask::unpack(bytes + "x"));
}

TEST(RankTask, LaunchesHaveALimit) {
  RankTask task;
  task.group.timeout = 2;
  task.launches = 1000;
  EXPECT_EQ(task.seconds(), 3 * 2 + 20 + 1);
  task.timeLimit = 0.5;
  EXPECT_EQ(task.seconds(), 0.5);
}

TEST(RankOutcome, LongOutcomesAreCut) {
  for (auto [waiting, letters] :
       {std::pair<size_t, size_t>(1, 10), {1000, 10}, {0, 100000}}) {
    RankOutcome outcome = makeFailure(waiting, letters);
    std::string bytes = outcome.pack(4096);
    EXPECT_LE(bytes.size(), 4096u);
    std::optional<RankOutcome> read = RankOutcome::unpack(bytes);
    ASSERT_TRUE(read);
    ASSERT_TRUE(read->error);
    EXPECT_EQ(read->error->kind, cpu::RunError::Deadlock);
    EXPECT_TRUE(llvm::StringRef(outcome.error->message)
                    .starts_with(read->error->message));
    EXPECT_FALSE(read->error->message.empty());
    EXPECT_EQ(read->error->waiting.empty(), waiting == 0);
    EXPECT_EQ(read->windows, "memory");
  }
  RankOutcome well;
  well.microseconds = 1.5;
  auto read = RankOutcome::unpack(well.pack(4096));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->microseconds, 1.5);
  EXPECT_FALSE(read->error);
}

TEST(SharedRun, IsVisibleThroughItsFile) {
  RankArrays arrays;
  arrays.add(100);
  arrays.add(8);
  SharedRun own, other;
  ASSERT_FALSE(bool(own.create(makeTask(), arrays)));
  ASSERT_TRUE(other.open(dup(own.getFile())));
  RankArrays read;
  auto task = other.readTask(read);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->rendezvous, "folder");
  EXPECT_EQ(read.sizes, arrays.sizes);
  own.arraysOf(2)[arrays.offsets[1]] = 'x';
  EXPECT_EQ(other.arraysOf(2)[read.offsets[1]], 'x');
  EXPECT_FALSE(own.readOutcome(2));
  other.writeOutcome(2, makeFailure(1, 3));
  ASSERT_TRUE(own.readOutcome(2));
  EXPECT_EQ(own.readOutcome(2)->error->message, "mmm");
}

TEST(SharedRun, OtherFilesAreNone) {
  SharedRun none;
  EXPECT_FALSE(none.open(-1));
}

#endif // COMMSIR_CUDA
