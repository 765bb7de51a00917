//===- GroupFailuresTest.cpp - Ranks that are absent, differ or abort -----===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/GroupTest.h"

#include "runtime/support/GroupError.h"

#include <atomic>
#include <csignal>
#include <future>
#include <thread>

using namespace commsir;
using namespace commsir::test;

namespace {

/// Each rank says what it expects of the error; all but `gone` have one.
TEST_F(GroupTest, AnAbsentRankIsNamed) {
  auto ended = run(3, [](Rank &me) -> std::string {
    me.options.timeout = kImpatience;
    me.start();
    if (std::string wrong = me.sum(0); !wrong.empty())
      return wrong;
    std::string said = me.rank == 1 ? "" : me.failure();
    me.done();
    return said;
  });
  EXPECT_EQ(ended[1].said, "");
  for (int rank : {0, 2}) {
    EXPECT_TRUE(has(ended[rank].said, "gave up waiting after 4.00 s"))
        << ended[rank].said;
    EXPECT_TRUE(has(ended[rank].said,
                    "rank 1: it has not begun this launch: it has finished 1 "
                    "of this kernel"))
        << ended[rank].said;
    EXPECT_TRUE(
        has(ended[rank].said, "rank " + std::to_string(2 - rank) + ": it "))
        << ended[rank].said;
  }
}

TEST_F(GroupTest, SurvivorsOfAKilledRankGoOn) {
  std::vector<std::vector<Child>> started;
  for (int victim = 0; victim < 3; ++victim)
    started.push_back(start(3, [victim](Rank &me) -> std::string {
      me.options.name = "victim " + std::to_string(victim);
      me.options.timeout = kImpatience;
      me.start();
      if (std::string wrong = me.sum(0); !wrong.empty())
        return wrong;
      if (me.rank == victim)
        raise(SIGKILL);
      std::string said = me.failure();
      if (!has(said, "rank " + std::to_string(victim) + ": its process (pid"))
        return "the report is: " + said;
      if (!has(said, "has ended"))
        return "the report is: " + said;
      std::vector<int64_t> survivors;
      for (int64_t rank = 0; rank < 3; ++rank)
        if (rank != victim)
          survivors.push_back(rank);
      me.options.timeout = 20;
      auto next = me.take(me.group->shrink(survivors, *me.store));
      me.group = std::move(next);
      me.rank = me.group->options().rank;
      me.ranks = 2;
      me.prepare();
      me.allocate();
      for (int launch = 0; launch < 3; ++launch)
        if (std::string wrong = me.sum(launch); !wrong.empty())
          return wrong;
      return "";
    }));
  for (int victim = 0; victim < 3; ++victim) {
    auto ended = collect(started[victim]);
    for (int rank = 0; rank < 3; ++rank)
      if (rank == victim)
        EXPECT_TRUE(WIFSIGNALED(ended[rank].status));
      else
        EXPECT_EQ(ended[rank].said, "") << "rank " << rank;
  }
}

TEST_F(GroupTest, DifferentKernelsAreRefused) {
  struct Case {
    KernelRequest other;
    const char *says;
  };
  KernelRequest source = sumRequest(), algorithm = sumRequest(),
                grid = sumRequest(3), label = sumRequest();
  label.label = "i32";
  source.source = sumSource("sum", "max");
  algorithm.algorithm = "two_shot";
  const Case cases[] = {{source, "from another source"},
                        {algorithm, "two_shot"},
                        {grid, "3 blocks of 1 x 64 threads"},
                        {label, "kernel 'sum' of i32 ("}};
  for (auto [number, entry] : llvm::enumerate(cases)) {
    const Case &test = entry;
    auto ended = run(2, [&, number = number](Rank &me) -> std::string {
      me.options.name = "case " + std::to_string(number);
      me.join();
      auto kernel = me.group->prepare(me.rank == 0 ? sumRequest() : test.other);
      if (kernel)
        return "no error";
      std::string said = llvm::toString(kernel.takeError());
      // Nothing was launched: the group goes on, also with what was refused.
      if (me.group->ended())
        return "it has ended: " + *me.group->ended();
      me.prepare(sumRequest());
      me.allocate();
      if (std::string wrong = me.sum(0); !wrong.empty())
        return wrong;
      me.prepare(test.other);
      return said;
    });
    EXPECT_TRUE(has(ended[0].said, test.says)) << ended[0].said;
    for (const Ended &end : ended)
      EXPECT_TRUE(has(end.said, "ranks disagree: rank ")) << end.said;
  }
}

TEST_F(GroupTest, ADifferentLaunchIsNamed) {
  std::vector<std::vector<Child>> started;
  for (bool graph : {false, true})
    started.push_back(start(2, [graph](Rank &me) -> std::string {
      me.options.name = graph ? "graph" : "eager";
      me.options.timeout = kImpatience;
      me.start();
      GroupKernel *first = me.kernel;
      me.prepare(sumRequest(4));
      GroupKernel *second = me.kernel;
      const cuda::Driver &cu = **cuda::Driver::get();
      CUstream stream = me.makeStream();
      CUgraphExec replays[2] = {};
      for (auto [kernel, replay] :
           {std::pair(first, &replays[0]), std::pair(second, &replays[1])}) {
        me.kernel = kernel;
        if (std::string wrong = me.sum(0); !wrong.empty())
          return wrong;
        cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        if (auto error = me.launch(stream))
          return llvm::toString(std::move(error));
        CUgraph captured;
        cu.StreamEndCapture(stream, &captured);
        cu.GraphInstantiate(replay, captured, 0);
      }
      me.kernel = me.rank ? second : first;
      std::string said;
      if (!graph) {
        said = me.failure();
      } else {
        cu.GraphLaunch(replays[me.rank], stream);
        said = llvm::toString(me.group->poll());
      }
      me.done();
      return said;
    }));
  for (bool graph : {false, true}) {
    auto ended = collect(started[graph]);
    std::string in = graph ? ", in a graph" : "";
    for (int rank : {0, 1})
      EXPECT_TRUE(has(ended[rank].said,
                      std::string(graph ? "launch 1" : "launch 2") +
                          " of kernel 'sum' (all_reduce by one_shot/pull, " +
                          (rank ? "2" : "4") + " blocks of 1 x 64 threads)" +
                          in + " instead"))
          << ended[rank].said;
  }
}

TEST_F(GroupTest, TwoLaunchesAtOnceAreReported) {
  auto ended = run(2, [](Rank &me) -> std::string {
    me.options.timeout = 20;
    me.start();
    const cuda::Driver &cu = **cuda::Driver::get();
    CUstream stream = me.makeStream(), other = me.makeStream();
    cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (auto error = me.launch(stream))
      return llvm::toString(std::move(error));
    CUgraph captured;
    cu.StreamEndCapture(stream, &captured);
    // One graph, instantiated twice, replayed twice at once.
    CUgraphExec first, second;
    cu.GraphInstantiate(&first, captured, 0);
    cu.GraphInstantiate(&second, captured, 0);
    if (me.rank == 1)
      me.take(me.store->get("both", 60));
    unsigned long before = countCalls("exchange");
    std::atomic<bool> ended = false;
    std::thread beside([&] { cu.GraphLaunch(first, stream); });
    std::thread watch([&] {
      while (me.rank == 0 && !ended && countCalls("exchange") < before + 2)
        usleep(1000);
      if (me.rank == 0)
        me.leaveIf(me.store->set("both", "yes"));
    });
    cu.GraphLaunch(second, other);
    beside.join();
    ended = true;
    watch.join();
    return llvm::toString(me.group->poll());
  });
  EXPECT_TRUE(has(ended[0].said, "another launch ran on the same channels"))
      << ended[0].said;
}

TEST_F(GroupTest, ARankThatDoesNotComeIsNamed) {
  auto ended = run(2, [](Rank &me) -> std::string {
    if (me.rank == 1)
      return "";
    auto mesh = cuda::Mesh::connect(*me.store, "world", 0, 2, 1);
    return mesh ? "no error" : llvm::toString(mesh.takeError());
  });
  EXPECT_TRUE(has(ended[0].said, "rank 0 waits for rank 1 to come"))
      << ended[0].said;
}

TEST_F(GroupTest, CallsInAnotherOrderAreNamed) {
  auto ended = run(2, [](Rank &me) -> std::string {
    me.join();
    if (me.rank == 0) {
      me.prepare();
      return "no error";
    }
    me.allocate();
    return "no error";
  });
  EXPECT_TRUE(has(ended[0].said, "rank 0 is at 'preparing a kernel'"))
      << ended[0].said;
  EXPECT_TRUE(has(ended[0].said, "rank 1 at 'allocating a window'"))
      << ended[0].said;
}

TEST_F(GroupTest, AnyThreadMayAskWhyRanksAgreeOnNothing) {
  auto ended = run(2, [](Rank &me) -> std::string {
    me.join();
    if (me.rank == 1)
      return ""; // Its end is what the others are told of.
    std::string asked;
    std::atomic<bool> over{false};
    std::thread other([&] {
      bool last = false;
      while (asked.empty() && !last) {
        last = over;
        asked = me.group->ended().value_or("");
      }
    });
    auto window = me.group->allocate(kBytes);
    std::string said = window ? "" : llvm::toString(window.takeError());
    over = true;
    other.join();
    if (said.empty() || asked.empty() || asked != *me.group->ended())
      return "said '" + said + "', and asked '" + asked + "'";
    return "both: " + said;
  });
  EXPECT_TRUE(has(ended[0].said, "both: ")) << ended[0].said;
  EXPECT_TRUE(has(ended[0].said, "rank 1")) << ended[0].said;
}

TEST_F(GroupTest, AbortEndsWaits) {
  auto ended = run(2, [](Rank &me) -> std::string {
    me.options.timeout = 60;
    me.start();
    if (me.rank == 1) {
      me.take(me.store->get("ended", 60));
      return "";
    }
    std::thread other([&] {
      usleep(300000);
      me.group->abort("the test says so");
    });
    me.fill(0);
    llvm::Error error = me.launch();
    other.join();
    if (!error)
      error = me.group->poll();
    me.leaveIf(me.store->set("ended", "yes"));
    return llvm::toString(std::move(error));
  });
  EXPECT_TRUE(has(ended[0].said, "the group was aborted: the test says so"))
      << ended[0].said;
}

TEST_F(GroupTest, PeersHearOfAnAbort) {
  auto ended = run(3, [](Rank &me) -> std::string {
    me.options.timeout = 60;
    me.start();
    if (me.rank == 2) {
      me.group->abort("the test says so");
      // Still there: it is not its end that they hear of.
      me.take(me.store->get("heard 0", 60));
      me.take(me.store->get("heard 1", 60));
      return "";
    }
    auto begun = std::chrono::steady_clock::now();
    std::string said;
    if (me.rank == 0) {
      auto window = me.group->allocate(kBytes);
      said = window ? "a window" : llvm::toString(window.takeError());
    } else {
      // One that waits in no meeting.
      while (said.empty() && std::chrono::steady_clock::now() - begun <
                                 std::chrono::seconds(30))
        if (llvm::Error error = me.group->checkPeer(2))
          said = llvm::toString(std::move(error));
    }
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begun;
    me.leaveIf(me.store->set("heard " + std::to_string(me.rank), "yes"));
    // Nor that of one of them.
    me.take(me.store->get("heard " + std::to_string(1 - me.rank), 60));
    return took.count() < 20 ? said : "late: " + said;
  });
  const char *reason =
      " given up: rank 2: the group was aborted: the test says so";
  EXPECT_TRUE(has(ended[0].said, reason) && has(ended[0].said, "rank 2 has"))
      << ended[0].said;
  EXPECT_TRUE(has(ended[1].said, reason) && !has(ended[1].said, "late"))
      << ended[1].said;
}

TEST_F(GroupTest, WhyAPeerGaveUpIsHeardAfterItHasLeft) {
  auto ended = run(2, [](Rank &me) -> std::string {
    auto mesh =
        me.take(cuda::Mesh::connect(*me.store, "world", me.rank, 2, 60));
    if (me.rank == 1) {
      me.take(me.store->get("sent", 60));
      mesh->giveUp("enough");
      mesh.reset(); // With a message that it has not read.
      me.leaveIf(me.store->set("left", "yes"));
      return "";
    }
    llvm::consumeError(mesh->all("asking", "", 0.05).takeError());
    me.leaveIf(me.store->set("sent", "yes"));
    me.take(me.store->get("left", 60));
    return mesh->silenceReason(1);
  });
  EXPECT_EQ(ended[0].said, "it has given up: enough");
}

} // namespace
