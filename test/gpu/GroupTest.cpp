//===- GroupTest.cpp - Groups of GPUs, without a GPU ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/GroupTest.h"

#include "runtime/support/GroupError.h"

using namespace commsir;
using namespace commsir::test;

namespace {

TEST_F(GroupTest, LaunchesGiveTheSum) {
  for (int ranks : {1, 2, 3})
    expectWell(ranks, [ranks](Rank &me) -> std::string {
      me.options.name = "of " + std::to_string(ranks);
      me.start();
      for (int launch = 0; launch < 20; ++launch)
        if (std::string wrong = me.sum(launch); !wrong.empty())
          return wrong;
      GroupCounts counts = me.group->counts();
      if (counts.launches != 20 || counts.channelBytes < (1 << 20))
        return "counts are wrong";
      // What is known is not prepared again.
      if (me.take(me.group->prepare(sumRequest())) != me.kernel)
        return "a kernel was prepared twice";
      return "";
    });
}

TEST_F(GroupTest, WindowsAreFoundByAddress) {
  expectWell(2, [](Rank &me) -> std::string {
    me.start();
    Group &group = *me.group;
    if (!group.isSymmetric(me.x, kBytes) || !group.isSymmetric(me.x + 3, 4) ||
        group.isSymmetric(me.x, kBytes + 1) || group.isSymmetric(&me, 1))
      return "isSymmetric is wrong";
    int64_t peer = 1 - me.rank;
    if (me.sum(0) != "") // All have written.
      return "no sum";
    auto *theirs = static_cast<float *>(group.peerAddress(me.x + 5, peer));
    if (!theirs || *theirs != float((peer + 1) * 1000 + 5))
      return "peerAddress is wrong";
    if (group.peerAddress(me.x, 2) || group.peerAddress(&me, 0))
      return "peerAddress of nothing";
    if (me.sum(0) != "") // With the same x, which the other may still read.
      return "no sum";
    // Adopted memory is as good.
    uint64_t parts[] = {
        uint64_t(group.peerAddress(me.x, 0)),
        uint64_t(group.peerAddress(me.x, 1)),
    };
    void *x = me.x;
    if (auto error = group.adopt(x, kBytes, parts))
      if (!has(llvm::toString(std::move(error)), "already"))
        return "another error";
    if (auto error = group.release(me.y))
      return llvm::toString(std::move(error));
    if (group.isSymmetric(me.y, kBytes))
      return "released memory is symmetric";
    auto error = me.launch();
    if (!has(llvm::toString(std::move(error)), "is not symmetric memory"))
      return "a launch on released memory";
    return "";
  });
}

/// Memory of `parts` pieces of CUDA's virtual memory; 0: of cudaMalloc.
float *allocateApart(Rank &me, size_t parts) {
  const cuda::Device &device = cuda::getDevice(*me.group);
  cuda::ContextGuard guard(device.driver(), device.context());
  CUdeviceptr address = 0;
  if (parts == 0) {
    device.driver().MemAlloc(&address, size_t(1) << 20);
    return reinterpret_cast<float *>(address);
  }
  auto *held = new cuda::Mapping(device.driver(), device.context());
  for (size_t part = 0; part < parts; ++part)
    me.leaveIf(held->create(device, size_t(64) << 10));
  me.leaveIf(held->map(device, int(me.rank)));
  return reinterpret_cast<float *>(held->get());
}

TEST_F(GroupTest, MemoryOfOthersIsShared) {
  for (size_t parts : {0, 1, 3})
    expectWell(3, [parts](Rank &me) -> std::string {
      me.options.name = "in " + std::to_string(parts);
      me.join();
      me.prepare();
      // Elsewhere on each rank, and of three pieces across their seams.
      char *memory = reinterpret_cast<char *>(
          allocateApart(me, parts == 1 ? 1 + size_t(me.rank) : parts));
      size_t seam = size_t(64) << 10;
      char *x = memory + (parts == 3 ? seam - 256 : size_t(me.rank) * 256);
      char *y = x + seam - (parts == 1 ? 8192 : 0);
      me.x = reinterpret_cast<float *>(x);
      me.y = reinterpret_cast<float *>(y);
      size_t bytes = size_t(y - x) + 1024;
      me.leaveIf(me.group->share(x, bytes));
      for (int launch = 0; launch < 3; ++launch)
        if (std::string wrong = me.sum(launch); !wrong.empty())
          return wrong;
      auto error = me.group->share(x, bytes);
      if (!has(llvm::toString(std::move(error)), "a window of the group"))
        return "memory was shared twice";
      me.done(); // Peers read x no more.
      me.group->forget(x);
      error = me.launch();
      if (!has(llvm::toString(std::move(error)), "is not symmetric memory"))
        return "a launch on memory that was forgotten";
      me.leaveIf(me.group->share(x, bytes));
      if (std::string wrong = me.sum(9); !wrong.empty())
        return wrong;
      return "";
    });
}

TEST_F(GroupTest, MemoryThatCannotBeSharedIsRefusedByAllRanks) {
  expectWell(2, [](Rank &me) -> std::string {
    me.join();
    auto *memory = reinterpret_cast<char *>(allocateApart(me, 0));
    size_t bytes = size_t(1) << 19;
    auto refused = [&](char *own, size_t size, const char *why) {
      auto error = me.group->share(own, size);
      std::string text = llvm::toString(std::move(error));
      if (!has(text, why))
        me.leave(text.empty() ? "was shared" : text);
    };
    static char elsewhere[512] __attribute__((aligned(256)));
    // Of one rank alone.
    refused(me.rank ? memory : memory + 1, bytes, "must be aligned to 256");
    refused(me.rank ? memory : elsewhere, 256, "looking for the allocation at");
    refused(memory, size_t(2) << 20, "is longer than its allocation");
    refused(memory, bytes + size_t(me.rank) * 256, "sharing");
    return "";
  });
}

TEST_F(GroupTest, LaunchesInTwoStreamsFollowEachOther) {
  expectWell(1, [](Rank &me) -> std::string {
    me.start();
    CUstream streams[] = {me.makeStream(), me.makeStream()};
    for (int i : {0, 0, 1, 1, 0})
      if (auto error = me.launch(streams[i]))
        return llvm::toString(std::move(error));
    return std::to_string(countCalls("StreamWaitEvent")) == "2"
               ? ""
               : "launches were ordered " +
                     std::to_string(countCalls("StreamWaitEvent")) + " times";
  });
}

TEST_F(GroupTest, BadArgumentsAreRefusedBeforeAnyLaunch) {
  expectWell(1, [](Rank &me) -> std::string {
    me.start();
    struct Case {
      std::vector<Argument> arguments;
      const char *says;
    };
    const Case cases[] = {
        {{{me.x, kBytes}}, "takes 2 arguments, 1 were given"},
        {{{me.x, kBytes}, {nullptr, 0}}, "takes 96 bytes, 0 were given"},
        {{{me.x, kBytes - 4}, {me.y, kBytes}}, "takes 96 bytes, 92 were"},
        {{{me.x + 1, kBytes}, {me.y, kBytes}}, "not a multiple of 256"},
        {{{reinterpret_cast<void *>(0x1000), kBytes}, {me.y, kBytes}},
         "argument 'x' of kernel 'sum' at 0x1000 is not symmetric memory"},
    };
    for (const Case &test : cases) {
      std::string said =
          llvm::toString(me.group->launch(*me.kernel, test.arguments, nullptr));
      if (!has(said, test.says))
        return said + " does not say: " + test.says;
    }
    if (me.group->counts().launches)
      return "something was launched";
    return me.sum(0);
  });
}

TEST_F(GroupTest, BadGroupsAreRefusedByAllRanks) {
  struct Case {
    std::function<void(Rank &)> spoil;
    const char *says;
  };
  const Case cases[] = {
      {[](Rank &me) { me.options.device = me.rank == 1 ? 77 : 0; },
       "GPU 77 was requested, but the machine shows 8"},
      {[](Rank &me) { me.options.device = 3; },
       "ranks 0 and 1 have the same GPU"},
      {[](Rank &me) {
         if (me.rank == 1)
           setenv("COMMSIR_FAKE_FAIL", "MemCreate", 1);
       },
       "FAKE_ERROR"},
      {[](Rank &me) {
         if (me.rank == 0)
           setenv("COMMSIR_FAKE_FAIL", "MemSetAccess", 1);
       },
       "has no access to the memory of rank"},
      {[](Rank &me) { me.options.ncclComm = &me; }, "NCCL"},
      {[](Rank &me) { me.options.ncclComm = reinterpret_cast<void *>(5); },
       "5 is not the address of an NCCL communicator: pass an ncclComm_t"},
  };
  for (auto [number, entry] : llvm::enumerate(cases)) {
    const Case &test = entry;
    auto ended = run(2, [&, number = number](Rank &me) -> std::string {
      me.options.name = "case " + std::to_string(number);
      // No NCCL, wherever the test runs.
      setenv("COMMSIR_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
      test.spoil(me);
      me.start();
      return "no error";
    });
    for (const Ended &end : ended)
      EXPECT_TRUE(has(end.said, test.says))
          << "case " << number << ": " << end.said;
  }
}

} // namespace
