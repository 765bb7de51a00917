//===- GroupKernelsTest.cpp - Kernels of groups, and their channels -------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/GroupTest.h"

#include "runtime/support/FatalErrors.h"
#include "runtime/support/GroupError.h"
#include "test/FailingNew.h"

#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <future>
#include <thread>

using namespace commsir;
using namespace commsir::test;

namespace {

TEST_F(GroupTest, GraphsHaveChannelsOfTheirOwn) {
  expectWell(2, [](Rank &me) -> std::string {
    me.start();
    const cuda::Driver &cu = **cuda::Driver::get();
    CUstream stream = me.makeStream(), other = me.makeStream();
    std::vector<CUgraphExec> graphs;
    // The third and fourth need channels that were not made beforehand.
    for (int graph = 0; graph < 4; ++graph) {
      cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      for (int i = 0; i < 3; ++i)
        if (auto error = me.launch(stream))
          return llvm::toString(std::move(error));
      CUgraph captured;
      cu.StreamEndCapture(stream, &captured);
      graphs.emplace_back();
      cu.GraphInstantiate(&graphs.back(), captured, 0);
      cu.GraphDestroy(captured);
      if (std::string wrong = me.sum(graph); !wrong.empty())
        return wrong;
    }
    for (int round = 0; round < 5; ++round)
      for (CUgraphExec graph : graphs) {
        me.fill(round);
        cu.GraphLaunch(graph, other);
        if (auto error = me.group->poll())
          return llvm::toString(std::move(error));
        if (std::string wrong = me.check(round, 2, 3); !wrong.empty())
          return wrong;
      }
    return me.sum(7);
  });
}

/// Waits until all ranks have compiled the request next to their calls.
void compileBeside(Rank &me, const KernelRequest &request) {
  while (true) {
    auto isOver = me.group->compileEarly(request);
    if (!isOver)
      me.leave(llvm::toString(isOver.takeError()));
    if (*isOver)
      return;
    std::this_thread::yield();
  }
}

/// A request that no test before has put into the cache.
KernelRequest newRequest(const std::string &name) {
  KernelRequest request = sumRequest();
  request.source = sumSource(name.c_str());
  return request;
}

TEST_F(GroupTest, KernelsThatWereCompiledBesideCallsRun) {
  expectWell(2, [&](Rank &me) -> std::string {
    me.join();
    KernelRequest request = newRequest("beside_" + std::to_string(getppid()));
    compileBeside(me, request);
    me.prepare(request);
    me.allocate();
    return me.sum(0);
  });
}

/// The thread that compiles reports nothing: the call that needs the kernel
/// compiles it again, and each rank gets its error.
TEST_F(GroupTest, AKernelThatDoesNotCompileBesideCallsIsAnErrorOfItsCall) {
  expectWell(2, [&](Rank &me) -> std::string {
    me.start();
    KernelRequest wrong = sumRequest();
    wrong.source.replace(wrong.source.find("24xf32"), 6, "25xf32");
    compileBeside(me, wrong);
    auto kernel = me.group->prepare(wrong);
    if (kernel)
      return "no error";
    std::string said = llvm::toString(kernel.takeError());
    if (!has(said, "25"))
      return "another error: " + said;
    return me.sum(0);
  });
}

/// Rank 1 lacks memory at one of the first allocations of its compiler, or from
/// then on. (Where LLVM allocates, a failure may damage what it holds.)
TEST_F(GroupTest, MemoryThatRunsOutBesideCallsEndsNoRank) {
  for (bool once : {false, true})
    for (long n : {0, 1, 2, 5, 10}) {
      std::string name = "short_" + std::to_string(getpid()) + "_" +
                         std::to_string(once) + "_" + std::to_string(n);
      expectWell(2, [&](Rank &me) -> std::string {
        installFatalErrorHandlers();
        me.options.name = name;
        me.join();
        KernelRequest request = newRequest(name);
        if (me.rank == 1) {
          test::failsHere = test::Fails::Never;
          test::failingNew.once = once;
          test::failingNew.left = n;
        }
        compileBeside(me, request);
        test::failingNew.left = -1;
        me.prepare(request);
        me.allocate();
        std::string said = me.sum(0);
        return said.empty() ? "" : name + ": " + said;
      });
      if (HasFailure())
        return;
    }
}

TEST_F(GroupTest, ChannelMemoryIsBounded) {
  for (const Ended &end : run(2, [](Rank &me) -> std::string {
         me.options.channelBytes = 4 << 20;
         me.start();
         KernelRequest large = sumRequest();
         for (size_t at;
              (at = large.source.find("24xf32")) != std::string::npos;)
           large.source.replace(at, 6, "4194304xf32");
         large.protocol = "lamport";
         auto kernel = me.group->prepare(large);
         if (kernel)
           return "no error";
         std::string said = llvm::toString(kernel.takeError());
         // What was there goes on.
         std::string wrong = me.sum(0);
         return wrong.empty() ? said : wrong;
       }))
    EXPECT_TRUE(has(end.said, "and the group's limit is 4 MiB")) << end.said;
}

/// The driver's GPU holds two CTAs of any kernel on each multiprocessor.
TEST_F(GroupTest, ConcurrentKernelsMustFitTogether) {
  expectWell(2, [](Rank &me) -> std::string {
    me.start();
    KernelRequest concurrent = sumRequest();
    concurrent.concurrent = true;
    concurrent.source = sumSource("first");
    GroupKernel *first = me.take(me.group->prepare(concurrent));
    KernelRequest another = concurrent, large = sumRequest(120);
    another.source = sumSource("second");
    large.source = sumSource("large");
    for (const KernelRequest &request : {another, large}) {
      auto refused = me.group->prepare(request);
      if (refused)
        return "a kernel that does not fit is taken";
      std::string said = llvm::toString(refused.takeError());
      if (!has(said, "does not fit on GPU") || !has(said, "fewer blocks"))
        return said;
    }
    // Both orders, in streams of their own.
    GroupKernel *kernels[] = {me.kernel, first};
    CUstream streams[] = {me.makeStream(), me.makeStream()};
    for (int turn = 0; turn < 4; ++turn) {
      me.kernel = kernels[turn % 2];
      me.fill(turn);
      me.leaveIf(me.launch(streams[turn % 2]));
      if (std::string wrong = me.check(turn, 2, 3); !wrong.empty())
        return wrong;
    }
    return "";
  });
}

/// What kernels leave behind is zeroed for the next ones, and pieces that lie
/// next to each other become one.
TEST_F(GroupTest, ChannelMemoryIsUsedAgain) {
  expectWell(2, [](Rank &me) -> std::string {
    me.options.channelBytes = 96 << 20;
    me.start();
    auto makeLarge = [](const char *name) {
      KernelRequest large = sumRequest();
      large.source = sumSource(name);
      for (size_t at; (at = large.source.find("24xf32")) != std::string::npos;)
        large.source.replace(at, 6, "4194304xf32");
      large.check = false;
      return large;
    };
    GroupKernel *first = me.take(me.group->prepare(makeLarge("first")));
    uint64_t bytes = me.group->counts().channelBytes;
    for (const char *name : {"second", "first", "third"}) {
      auto refused = me.group->prepare(makeLarge("another"));
      if (refused)
        return "more than the limit was given out";
      std::string said = llvm::toString(refused.takeError());
      if (!has(said, "and the group's limit is 96 MiB"))
        return said;
      me.leaveIf(me.group->discard(*first));
      first = me.take(me.group->prepare(makeLarge(name)));
    }
    if (me.group->counts().channelBytes != bytes)
      return "there is more channel memory than before";
    // Launches of a kernel that is prepared anew begin at the first again.
    for (int turn = 0; turn < 3; ++turn) {
      for (int launch = 0; launch < 3; ++launch)
        if (std::string wrong = me.sum(launch); !wrong.empty())
          return wrong;
      me.leaveIf(me.group->discard(*me.kernel));
      me.prepare();
    }
    return "";
  });
}

TEST_F(GroupTest, KernelsOfGraphsAreKept) {
  expectWell(2, [](Rank &me) -> std::string {
    me.start();
    const cuda::Driver &cu = cuda::getDevice(*me.group).driver();
    CUstream stream = me.makeStream();
    GroupKernel *captured = me.kernel;
    CUgraphExec exec = me.captureLaunch(stream);
    // Prepared twice: the first discard takes nothing away.
    me.prepare();
    me.leaveIf(me.group->discard(*captured));
    me.prepare();
    if (me.kernel != captured)
      return "a kernel that is used elsewhere was discarded";
    me.leaveIf(me.group->discard(*captured));
    me.leaveIf(me.group->discard(*captured));
    me.prepare();
    if (me.kernel == captured)
      return "the kernel was not discarded";
    for (int turn = 0; turn < 3; ++turn) {
      if (std::string wrong = me.sum(turn); !wrong.empty())
        return "eager: " + wrong;
      me.fill(turn + 5);
      if (cu.GraphLaunch(exec, stream))
        return "no launch of the graph";
      me.leaveIf(me.group->poll());
      if (std::string wrong = me.check(turn + 5, 2, 3); !wrong.empty())
        return "in a graph: " + wrong;
    }
    return "";
  });
}

/// Drops the group of a rank; whether its end came in that time.
bool dropped(Rank &me, std::chrono::milliseconds patience) {
  auto ended = std::make_shared<std::promise<void>>();
  std::future<void> comes = ended->get_future();
  Group *group = me.group.release();
  group::drop(*group, [group, ended] {
    delete group;
    ended->set_value();
  });
  return comes.wait_for(patience) == std::future_status::ready;
}

/// Nor does it wait, for a GPU that is busy, with a lock that launches need.
TEST_F(GroupTest, CollectionIgnoresCaptures) {
  expectWell(2, [](Rank &me) -> std::string {
    me.start();
    const cuda::Driver &cu = cuda::getDevice(*me.group).driver();
    if (std::string wrong = me.sum(0); !wrong.empty())
      return wrong;
    me.done();
    CUstream stream = me.makeStream();
    if (cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
      return "no capture";
    unsigned long freed = countCalls("MemFree") + countCalls("MemFreeHost");
    if (!dropped(me, std::chrono::seconds(20)))
      return "the group has not ended";
    if (countCalls("MemFree") + countCalls("MemFreeHost") != freed)
      return "memory was freed during a capture";
    CUgraph graph = nullptr;
    if (cu.StreamEndCapture(stream, &graph))
      return "the capture was ended";
    me.options.name = "next";
    me.join();
    if (countCalls("MemFree") + countCalls("MemFreeHost") == freed)
      return "memory that was left has not been freed";
    return "";
  });
}

TEST_F(GroupTest, KernelsOfCapturesAreNotDropped) {
  expectWell(2, [](Rank &me) -> std::string {
    me.start();
    const cuda::Driver &cu = cuda::getDevice(*me.group).driver();
    CUstream stream = me.makeStream();
    CUgraphExec exec = me.captureLaunch(stream);
    if (dropped(me, std::chrono::milliseconds(300)))
      return "the group has ended";
    me.fill(3);
    if (cu.GraphLaunch(exec, stream))
      return "no launch of the graph";
    std::string wrong = me.check(3, 2, 3);
    me.done();
    return wrong;
  });
}

} // namespace
