//===- GroupTest.cpp - Groups of processes on the CPU ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

using namespace commsir;
using namespace commsir::test;
using Kind = group::GroupError::Kind;

/// Each rank puts its array into the next rank's window and signals.
static const char ring[] = R"(
comms.kernel @ring(%data: !comms.window<16xf32>, %in: memref<16xf32>, %s: !comms.signal<4>) {
  %t = comms.team world
  %r = comms.rank %t
  %n = comms.size %t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %up = arith.addi %r, %c1 : index
  %next = arith.remui %up, %n : index
  %e = comms.epoch
  %launch = arith.index_cast %e : index to i64
  %b = comms.block_id
  %is0 = arith.cmpi eq, %b, %c0 : index
  scf.if %is0 {
    comms.put_signal %in[%c0] to %data[%c0] count %c16 at %next of %t then inc %s[%c0]
      : memref<16xf32>, !comms.window<16xf32>, !comms.signal<4>
    %tok = comms.wait_signal %s[%c0] ge %launch : !comms.signal<4>
  }
  comms.barrier %t grid
  comms.return
})";

static std::string allReduceText(int64_t elements) {
  std::string type = "memref<" + std::to_string(elements) + "xf32>";
  return "comms.kernel @sum(%x: " + type + ", %y: " + type +
         ") {\n  %team = comms.team world\n  comms.all_reduce sum %team "
         "ins(%x : " +
         type + ") outs(%y : " + type + ")\n  comms.return\n}\n";
}

static group::CollectiveCall sumOf(std::vector<float> &x,
                                   std::vector<float> &y) {
  group::CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "sum";
  call.elementType = "f32";
  call.input = {x.data(), static_cast<int64_t>(x.size())};
  call.output = {y.data(), static_cast<int64_t>(y.size())};
  return call;
}

/// All-reduces `elements` ones of `ranks` ranks; notes what is wrong.
static bool reduceOnes(Member &member, group::Collectives &collectives,
                       int64_t elements, int64_t ranks) {
  std::vector<float> x(elements, 1), y(elements);
  if (!member.good(collectives.run(sumOf(x, y), nullptr)))
    return false;
  if (y == std::vector<float>(elements, static_cast<float>(ranks)))
    return true;
  member.complain("a sum is wrong");
  return false;
}

TEST(GroupTest, KernelsUseWindowsSignalsAndBlocks) {
  for (int64_t blocks : {1, 4})
    runRanks(3, [&](Member &member) {
      auto window = member.group->allocate(16 * sizeof(float));
      if (!window)
        return member.complain(llvm::toString(window.takeError()));
      auto *data = static_cast<float *>(*window);
      group::KernelRequest request;
      request.source = ring;
      request.blocks = blocks;
      auto kernel = member.group->prepare(request);
      if (!kernel)
        return member.complain(llvm::toString(kernel.takeError()));
      if ((*kernel)->args().size() != 3)
        member.complain("three arguments are the caller's");
      for (int launch = 0; launch < 50; ++launch) {
        std::vector<float> in(16, float(100 * launch + member.rank));
        group::Argument arguments[] = {
            {data, 64}, {in.data(), 64}, {nullptr, 0}};
        if (!member.good(member.group->launch(**kernel, arguments, nullptr)))
          return;
        int64_t before = (member.rank + member.ranks - 1) % member.ranks;
        // The rank before may have begun its next launch.
        auto now = float(100 * launch + before);
        if (data[0] != now && (launch == 49 || data[0] != now + 100))
          return member.complain("launch " + llvm::Twine(launch) +
                                 ": the window holds something else");
        group::Argument none[] = {{nullptr, 0}};
        if (launch == 49)
          member.expect(member.group->launch(**kernel, none, nullptr),
                        Kind::Usage, {"takes 3 arguments, not 1"});
      }
      int64_t peer = (member.rank + 1) % member.ranks;
      void *theirs = member.group->peerAddress(data + 1, peer);
      if (!theirs || *static_cast<float *>(theirs) != float(4900 + member.rank))
        member.complain("a peer's part is not where it is said to be");
      if (member.group->isSymmetric(data, 65) ||
          !member.group->isSymmetric(data + 8, 32))
        member.complain("isSymmetric is wrong");
      member.good(member.group->release(*window));
      member.expect(member.group->release(*window), Kind::Usage,
                    {"not a window"});
    });
}

/// All ranks have to take the same window, at the same place.
TEST(GroupTest, OtherWindowsAreNamed) {
  for (bool isOffset : {false, true})
    runRanks(2, [&](Member &member) {
      std::array<float *, 2> windows = {};
      for (float *&window : windows)
        window =
            static_cast<float *>(llvm::cantFail(member.group->allocate(256)));
      group::KernelRequest request;
      request.source = ring;
      auto kernel = member.group->prepare(request);
      if (!kernel)
        return member.complain(llvm::toString(kernel.takeError()));
      std::vector<float> in(16);
      float *used =
          isOffset ? windows[0] + 4 * member.rank : windows[member.rank];
      group::Argument arguments[] = {{used, 64}, {in.data(), 64}, {nullptr, 0}};
      llvm::Error error = member.group->launch(**kernel, arguments, nullptr);
      if (isOffset)
        member.expect(std::move(error), Kind::Disagree,
                      {"rank 0: launch of kernel @", "in window 1\n",
                       "in window 1 from byte 16 on"});
      else
        member.expect(std::move(error), Kind::Disagree,
                      {"in window 1", "in window 2"});
    });
}

TEST(GroupTest, OtherWindowsAreNotReleased) {
  runRanks(2, [&](Member &member) {
    std::array<void *, 2> windows = {};
    for (void *&window : windows)
      window = llvm::cantFail(member.group->allocate(256));
    member.expect(
        member.group->release(windows[member.rank]), Kind::Disagree,
        {"release window 1 of 256 bytes", "release window 2 of 256 bytes"});
  });
}

TEST(GroupTest, ProcessesCompileOnce) {
  runRanks(4, [&](Member &member) {
    group::KernelRequest request;
    request.source = allReduceText(64);
    auto kernel = member.group->prepare(request);
    if (!kernel)
      return member.complain(llvm::toString(kernel.takeError()));
    group::GroupCounts counts = member.group->counts();
    // Files that each rank adds to the folder of the group.
    std::string name = member.folder + "/compiled-";
    if (counts.compiled)
      std::ofstream(name + std::to_string(member.rank));
    group::Collectives collectives(*member.group);
    reduceOnes(member, collectives, 64, member.ranks);
    int64_t compilers = 0;
    for (int64_t rank = 0; rank < member.ranks; ++rank)
      compilers += llvm::sys::fs::exists(name + std::to_string(rank));
    if (compilers != 1 || counts.compiled + counts.fromCache != 1)
      member.complain(llvm::Twine(compilers) + " ranks compiled");
  });
}

TEST(GroupTest, ChannelMemoryIsUsedAgain) {
  runRanks(3, [&](Member &member) {
    for (int round = 0; round < 6; ++round)
      for (const char *protocol : {"ll", "ll128", "lamport", "pull"}) {
        group::KernelRequest request;
        request.source = allReduceText(256);
        request.algorithm = "one_shot";
        request.protocol = protocol;
        auto kernel = member.group->prepare(request);
        if (!kernel)
          return member.complain(llvm::toString(kernel.takeError()));
        for (int launch = 0; launch < 5; ++launch) {
          std::vector<float> x(256, float(member.rank + launch)), y(256);
          group::Argument arguments[] = {{x.data(), 1024}, {y.data(), 1024}};
          if (!member.good(member.group->launch(**kernel, arguments, nullptr)))
            return;
          if (y != std::vector<float>(256, float(3 + 3 * launch)))
            return member.complain(llvm::Twine(protocol) + ": wrong sum");
        }
        if (!member.good(member.group->discard(**kernel)))
          return;
      }
    if (member.group->counts().channelBytes != 0)
      member.complain("channel memory was not given back");
  });
}

TEST(GroupTest, ErrorsOfTheCompilerKeepTheGroup) {
  runRanks(2, [&](Member &member) {
    group::KernelRequest request;
    request.source = "comms.kernel @k() { comms.nothing }";
    auto kernel = member.group->prepare(request);
    if (kernel)
      return member.complain("a wrong text compiles");
    std::string text = llvm::toString(kernel.takeError());
    if (!llvm::StringRef(text).contains("comms.nothing"))
      member.complain("the error does not say what is wrong: " + text);
    request.source = allReduceText(int64_t(1) << 30);
    request.algorithm = "one_shot";
    request.protocol = "pull";
    auto large = member.group->prepare(request);
    if (large)
      return member.complain("8 GiB fit 512 MiB of channel memory");
    member.expect(large.takeError(), Kind::Limit, {"channelBytes"});
    group::Collectives collectives(*member.group);
    reduceOnes(member, collectives, 100, member.ranks);
  });
}

/// Also when it fails again before the others have looked.
TEST(GroupTest, AllRanksGetTheErrorOfOne) {
  runRanks(4, [&](Member &member) {
    if (member.rank == 1) {
      ::setenv("COMMSIR_COMPILER", "off", 1);
      ::setenv("COMMSIR_CACHE_DIR", (member.folder + "/none").c_str(), 1);
    }
    group::KernelRequest request;
    request.algorithm = "one_shot";
    request.protocol = "pull";
    for (int64_t elements = 8; elements < 8 * 40; elements += 8) {
      request.source = allReduceText(elements);
      auto kernel = member.group->prepare(request);
      if (kernel)
        return member.complain("kernel " + llvm::Twine(elements / 8) +
                               " is there, but not on rank 1");
      std::string text = llvm::toString(kernel.takeError());
      if (!llvm::StringRef(text).contains("COMMSIR_COMPILER=off"))
        return member.complain("kernel " + llvm::Twine(elements / 8) + ": " +
                               text);
    }
    if (member.group->counts().channelBytes != 0)
      member.complain("channel memory was not given back");
  });
}

TEST(GroupTest, ADeadRankIsNamed) {
  runRanks(
      4,
      [&](Member &member) {
        group::Collectives collectives(*member.group);
        if (!reduceOnes(member, collectives, 1000, member.ranks))
          return;
        if (member.rank == 2)
          ::raise(SIGKILL);
        std::vector<float> x(1000), y(1000);
        group::CollectiveCall call = sumOf(x, y);
        member.expect(collectives.run(call, nullptr), Kind::Peer,
                      {"rank 2 (process ", "has died, by signal 9"});
        // It stays so.
        member.expect(collectives.run(call, nullptr), Kind::Peer,
                      {"can no longer be used: ", "rank 2", "shrink"});
        member.expect(member.group->poll(), Kind::Peer, {"rank 2"});
        int64_t survivors[] = {0, 1, 3};
        auto smaller = member.group->shrink(survivors, *member.store);
        if (!smaller)
          return member.complain(llvm::toString(smaller.takeError()));
        group::Collectives again(**smaller);
        reduceOnes(member, again, 1000, 3);
        member.expect(member.group->poll(), Kind::Peer, {"rank 2"});
      },
      60, 2);
}

/// A store through which a rank says something else of itself.
class LyingStore : public group::Store {
public:
  LyingStore(group::Store &store, std::string build)
      : store(store), build(std::move(build)) {}
  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override {
    if (!key.contains("/ack/"))
      return store.set(key, value);
    return store.set(key, value.split(' ').first.str() + " " + build);
  }
  llvm::Expected<std::string> get(llvm::StringRef key,
                                  double timeout) override {
    return store.get(key, timeout);
  }

private:
  group::Store &store;
  std::string build;
};

/// Their kernels need not keep to the same protocol.
TEST(GroupTest, RanksOfAnotherBuildAreRefused) {
  runRanks(3, [&](Member &member) {
    LyingStore other(*member.store, "9.9.9 (LLVM 99)\nABCDEF");
    group::GroupOptions options = member.group->options();
    options.name = "mixed";
    group::Store &store = member.rank == 2 ? other : *member.store;
    member.expect(group::createGroup(options, store).takeError(),
                  Kind::Disagree,
                  {"group 'mixed': rank 0 runs CommsIR",
                   "but rank 2 CommsIR 9.9.9 (LLVM 99), build ABCDEF"});
  });
}

/// Polls a cell that nobody writes, by its own loop.
static const char poller[] = R"(
comms.kernel @poller(%s: !comms.signal<1>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  scf.while : () -> () {
    %now = comms.read_signal %s[%c0] : !comms.signal<1>
    %none = arith.cmpi slt, %now, %one : i64
    scf.condition(%none)
  } do {
    scf.yield
  }
  comms.return
})";

TEST(GroupTest, AKernelThatOnlyPollsIsEnded) {
  runRanks(2, [&](Member &member) {
    group::KernelRequest request;
    request.source = poller;
    request.check = false;
    auto kernel = member.group->prepare(request);
    if (!kernel)
      return member.complain(llvm::toString(kernel.takeError()));
    member.good(member.group->setTimeout(1));
    group::Argument none[] = {{nullptr, 0}};
    // Of two ranks that wait in vain, one may hear it of the other.
    member.expect(member.group->launch(**kernel, none, nullptr), Kind::Peer,
                  {"has waited 1.0 s for its peers", "kernel @poller"});
  });
}

/// The parser recurses: without a limit the process would end.
TEST(GroupTest, NestingThatOverflowsTheStackIsRefused) {
  runRanks(1, [&](Member &member) {
    group::KernelRequest request;
    request.source = "comms.kernel @deep(%x: ";
    for (int depth = 0; depth < 100000; ++depth)
      request.source += "tuple<";
    auto kernel = member.group->prepare(request);
    if (kernel)
      return member.complain("it was taken");
    std::string said = llvm::toString(kernel.takeError());
    if (said.find("kernel:1:") == std::string::npos ||
        said.find("nested more than 256 deep") == std::string::npos)
      member.complain(said);
  });
}

/// Its blocks are counted in shared memory.
TEST(GroupTest, AnAwaitedRankIsNamedOnce) {
  runRanks(2, [&](Member &member) {
    group::KernelRequest request;
    request.source = "comms.kernel @all() {\n  %t = comms.team world\n"
                     "  comms.barrier %t grid\n  comms.return\n}\n";
    request.blocks = 4;
    auto kernel = member.group->prepare(request);
    if (!kernel)
      return member.complain(llvm::toString(kernel.takeError()));
    if (member.rank == 1) {
      member.good(member.store->get("told", 60).takeError());
      return;
    }
    member.good(member.group->setTimeout(0.5));
    member.expect(member.group->launch(**kernel, {}, nullptr), Kind::Peer,
                  {"barrier of all blocks of 2 ranks: 4 arrived, expected 8; "
                   "missing rank 1 (ended prepare a kernel @",
                   ") with 4 of its 4 blocks"});
    member.good(member.store->set("told", "1"));
  });
}

/// All ranks add to the memory of all, one after the other.
static const char adder[] = R"(
comms.kernel @adder(%w: !comms.window<512xi32>) {
  %team = comms.team lsa
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %many = arith.constant 20000 : index
  %all = comms.multimem %w of %team : !comms.window<512xi32> -> memref<512xi32, #comms.space<multimem>>
  %ones = arith.constant dense<1> : tensor<512xi32>
  scf.for %i = %c0 to %many step %c1 {
    comms.multimem_reduce sum %ones, %all[%c0] : tensor<512xi32>, memref<512xi32, #comms.space<multimem>>
  }
  comms.barrier %team block
  comms.return
})";

TEST(GroupTest, ARankMayDieAnywhere) {
  for (int round = 0; round < 8; ++round)
    runRanks(
        3,
        [&](Member &member) {
          auto window = member.group->allocate(512 * sizeof(int32_t));
          if (!window)
            return member.complain(llvm::toString(window.takeError()));
          group::KernelRequest request;
          request.source = adder;
          request.check = false;
          auto kernel = member.group->prepare(request);
          if (!kernel)
            return member.complain(llvm::toString(kernel.takeError()));
          std::thread killer;
          if (member.rank == 1)
            killer = std::thread([&] {
              std::this_thread::sleep_for(std::chrono::microseconds(700) *
                                          round);
              ::raise(SIGKILL);
            });
          group::Argument arguments[] = {{*window, 2048}};
          while (true)
            if (llvm::Error error =
                    member.group->launch(**kernel, arguments, nullptr))
              return member.expect(std::move(error), Kind::Peer, {"rank 1"});
        },
        60, 1);
}

TEST(GroupTest, DifferentCallsAreNamedOnEveryRank) {
  // One that would not hang by itself: the same kernel, for other sizes.
  for (int64_t other : {1001, 70000})
    runRanks(3, [&](Member &member) {
      int64_t elements = member.rank == 1 ? other : 1000;
      std::vector<float> x(elements), y(elements);
      group::CollectiveCall call = sumOf(x, y);
      group::Collectives collectives(*member.group);
      std::string mine = "all_reduce sum of 1000 f32",
                  theirs = "all_reduce sum of " + std::to_string(other);
      member.expect(collectives.run(call, nullptr), Kind::Disagree,
                    {"ranks disagree", mine, theirs, "rank 1"});
    });
}

/// All have failed in the same step: they meet again, and what the caller keeps
/// in the group (a kernel that counts its launches, a window) is as it was.
TEST(GroupTest, RanksThatDisagreedGoOn) {
  runRanks(3, [&](Member &member) {
    group::Collectives collectives(*member.group);
    auto window = member.group->allocate(16 * sizeof(float));
    if (!window)
      return member.complain(llvm::toString(window.takeError()));
    group::KernelRequest request;
    request.source = ring;
    auto kernel = member.group->prepare(request);
    if (!kernel)
      return member.complain(llvm::toString(kernel.takeError()));
    std::vector<float> in(16, float(member.rank));
    auto passOn = [&] {
      group::Argument arguments[] = {
          {*window, 64}, {in.data(), 64}, {nullptr, 0}};
      return member.good(member.group->launch(**kernel, arguments, nullptr));
    };
    for (int round = 0; round < 12; ++round) {
      // A size that gets a kernel of its own on the ranks that count it, pieces
      // of a large one, a kernel that all have, and one that none has.
      int64_t mine = round % 2 ? 1000 : 40000, odd = mine;
      const char *op = "all_reduce";
      bool isOdd = member.rank == round % member.ranks;
      if (round % 3 == 0)
        odd = round % 2 ? 999 : 300000;
      else if (isOdd)
        op = "broadcast";
      int64_t elements = isOdd ? odd : mine;
      std::vector<float> x(elements, 1), y(elements);
      group::CollectiveCall call = sumOf(x, y);
      call.op = op;
      if (!passOn())
        return;
      member.expect(collectives.run(call, nullptr), Kind::Disagree,
                    {"ranks disagree", "rank " + std::to_string(round % 3)});
      if (member.group->ended())
        return member.complain("the group has ended: " +
                               *member.group->ended());
      // What comes next may be a call, or a step of the caller's.
      if (round % 4 == 3 && !passOn())
        return;
      for (int64_t size : {mine, int64_t(1000), int64_t(7)})
        if (!reduceOnes(member, collectives, size, member.ranks))
          return;
    }
    if (member.group->timesRecovered() != 12)
      member.complain("other failures than expected");
    if (!passOn())
      return;
    int64_t before = (member.rank + member.ranks - 1) % member.ranks;
    if (static_cast<float *>(*window)[3] != float(before))
      member.complain("the window holds something else");
    member.good(member.group->release(*window));
  });
}

TEST(GroupTest, RanksThatDisagreedOnArithmeticGoOn) {
  runRanks(2, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<float> x(32, 1), y(32);
    group::FusedCall call;
    call.op = "all_reduce";
    call.reduction = "sum";
    call.elementType = "f32";
    call.rows = member.rank ? 4 : 2;
    call.columns = 8;
    call.input = {x.data(), call.rows * 8};
    call.outputs = {{{y.data(), call.rows * 8}, "f32", /*perRow=*/true, 8}};
    for (int round = 0; round < 3; ++round) {
      member.expect(collectives.run(call, nullptr), Kind::Disagree,
                    {"of 2x8 f32 with arithmetic", "of 4x8 f32"});
      if (!reduceOnes(member, collectives, 32, 2))
        return;
    }
  });
}

TEST(GroupTest, OneRankKeepsItsOneRow) {
  runRanks(1, [](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<float> x = {1, 2, 3, 4}, y(1);
    group::FusedCall call;
    call.op = "reduce_scatter";
    call.reduction = "sum";
    call.elementType = "f32";
    call.rows = 1;
    call.columns = 4;
    call.input = {x.data(), 4};
    call.outputs = {{{y.data(), 1}, "f32", /*perRow=*/true, 1}};
    call.consume = "(%s: tensor<4xf32>) { %t = comms.row_reduce sum %s : "
                   "tensor<4xf32> -> tensor<1xf32> comms.yield %t : "
                   "tensor<1xf32> }";
    member.good(collectives.run(call, nullptr));
    EXPECT_EQ(y[0], 10);
  });
}

TEST(GroupTest, DisagreementsAndCallsWithoutSteps) {
  runRanks(2, [&](Member &member) {
    group::Collectives collectives(*member.group);
    auto window = member.group->allocate(64);
    if (!window)
      return member.complain(llvm::toString(window.takeError()));
    int64_t other = 1 - member.rank;
    std::vector<float> x(member.rank ? 65 : 64), y(x.size());
    member.expect(collectives.run(sumOf(x, y), nullptr), Kind::Disagree,
                  {"ranks disagree"});
    for (int time = 0; time < 2; ++time)
      member.expect(member.group->poll(), Kind::Disagree, {"ranks disagree"});
    member.expect(member.group->checkPeer(other), Kind::Disagree,
                  {"ranks disagree"});
    char own[32];
    uint64_t parts[2] = {reinterpret_cast<uintptr_t>(own),
                         reinterpret_cast<uintptr_t>(own)};
    if (!member.good(member.group->adopt(own, sizeof own, parts)) ||
        !member.group->isSymmetric(own, sizeof own))
      member.complain("nothing was adopted");
    if (member.group->timesRecovered())
      member.complain("ranks have met already");
    if (reduceOnes(member, collectives, 64, 2))
      member.good(member.group->poll());
  });
}

/// Those that had no part in the disagreement have kernels that go with it.
TEST(GroupTest, OthersOnTheGroupGoOnAfterADisagreement) {
  runRanks(3, [&](Member &member) {
    group::Collectives first(*member.group), second(*member.group);
    std::vector<float> rows(16, 1), sums(16);
    group::FusedCall fused;
    fused.op = "all_reduce";
    fused.reduction = "sum";
    fused.elementType = "f32";
    fused.rows = 2;
    fused.columns = 8;
    fused.input = {rows.data(), 16};
    fused.outputs = {{{sums.data(), 16}, "f32", /*perRow=*/true, 8}};
    for (int round = 0; round < 6; ++round) {
      // Often enough that a repeated call is a launch.
      for (int time = 0; time < 6; ++time)
        if (!reduceOnes(member, first, 64, member.ranks) ||
            !reduceOnes(member, second, 64, member.ranks) ||
            !reduceOnes(member, second, 50, member.ranks) ||
            !member.good(second.run(fused, nullptr)))
          return;
      std::vector<float> x(member.rank == round % 3 ? 65 : 64), y(x.size());
      group::CollectiveCall call = sumOf(x, y);
      member.expect(first.run(call, nullptr), Kind::Disagree,
                    {"ranks disagree", "all_reduce sum of 65 f32"});
      bool works = round % 2 ? reduceOnes(member, second, 64, member.ranks)
                             : member.good(second.run(fused, nullptr));
      if (!works || sums[3] != float(member.ranks))
        return member.complain("round " + llvm::Twine(round));
    }
    if (member.group->timesRecovered() != 6)
      member.complain("other failures than expected");
  });
}

/// A kernel that both have is there until both have dropped it.
TEST(GroupTest, CollectivesOfOneGroupShareKernels) {
  runRanks(2, [&](Member &member) {
    group::CollectiveLimits one;
    one.kernels = 1;
    group::Collectives first(*member.group, one), second(*member.group);
    for (int round = 0; round < 3; ++round)
      for (int64_t size : {64, 256, 64})
        if (!reduceOnes(member, second, 64, 2) ||
            !reduceOnes(member, first, size, 2) ||
            !reduceOnes(member, second, 64, 2))
          return;
  });
}

/// Before an exchange of several sizes: they are no elements of the caller's.
TEST(GroupTest, SizesThatRanksTellEachOtherAreCalledSizes) {
  runRanks(2, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<int64_t> x(2, member.rank), y(2);
    group::CollectiveCall call;
    call.op = member.rank ? "all_to_all" : "all_to_all_v";
    call.elementType = "i64";
    call.input = {x.data(), 2};
    call.output = {y.data(), 2};
    if (!member.rank)
      call.sendCounts = call.recvCounts = {1, 1};
    member.expect(collectives.run(call, nullptr), Kind::Disagree,
                  {"rank 0: all_to_all of 1 sizes for each rank",
                   "rank 1: all_to_all of 1 i64 for each rank"});
    call.op = "all_to_all_v";
    call.sendCounts = call.recvCounts = {1, 1};
    if (member.good(collectives.run(call, nullptr)) &&
        y != std::vector<int64_t>{0, 1})
      member.complain("something else has come");
  });
}

/// A step that is not a collective's: nobody knows what it has left behind.
TEST(GroupTest, WindowsOfOtherSizesAreNone) {
  runRanks(3, [&](Member &member) {
    group::Collectives collectives(*member.group);
    auto first = member.group->allocate(64);
    if (!first)
      return member.complain(llvm::toString(first.takeError()));
    for (int64_t other : {0, 1, 2}) {
      member.expect(
          member.group->allocate(member.rank == other ? 128 : 64).takeError(),
          Kind::Disagree,
          {"rank " + std::to_string(other) + ": allocate 128 bytes",
           "rank " + std::to_string((other + 1) % 3) + ": allocate 64 bytes",
           "the group can still be used"});
      // What was there before is as it was.
      if (!reduceOnes(member, collectives, 16, 3))
        return;
      if (!member.group->isSymmetric(*first, 64))
        member.complain("the first window is gone");
    }
    if (member.good(member.group->allocate(64).takeError()))
      member.good(member.group->release(*first));
  });
}

TEST(GroupTest, OtherDisagreementsEndTheGroup) {
  runRanks(3, [&](Member &member) {
    group::Collectives collectives(*member.group);
    if (!reduceOnes(member, collectives, 100, member.ranks))
      return;
    std::vector<float> x(100), y(100);
    group::CollectiveCall call = sumOf(x, y);
    if (member.rank == 1)
      member.expect(member.group->allocate(64).takeError(), Kind::Disagree,
                    {"allocate 64 bytes", "all_reduce sum of 100 f32"});
    else
      member.expect(collectives.run(call, nullptr), Kind::Disagree,
                    {"rank 1: allocate 64 bytes"});
    // Ranks 0 and 2 learn from rank 1 that it will not go on.
    member.expect(collectives.run(call, nullptr),
                  member.rank == 1 ? Kind::Disagree : Kind::Peer,
                  {"allocate 64 bytes"});
    if (!member.group->ended())
      member.complain("the group goes on");
    member.expect(collectives.run(call, nullptr),
                  member.rank == 1 ? Kind::Disagree : Kind::Peer,
                  {"group 'world' can no longer be used: ranks disagree",
                   "allocate 64 bytes", "make a new group"});
    member.good(member.store->set("done" + std::to_string(member.rank), "1"));
    for (int64_t rank = 0; rank < 3; ++rank)
      member.good(
          member.store->get("done" + std::to_string(rank), 60).takeError());
  });
}

/// A rank that goes, or dies, instead of meeting the others again.
TEST(GroupTest, AMissingRankAfterADisagreementIsNamed) {
  for (bool dies : {false, true})
    runRanks(
        3,
        [&](Member &member) {
          group::Collectives collectives(*member.group);
          std::vector<float> x(member.rank == 1 ? 101 : 100), y(x.size());
          group::CollectiveCall call = sumOf(x, y);
          member.expect(collectives.run(call, nullptr), Kind::Disagree,
                        {"ranks disagree"});
          if (member.rank == 1 && dies)
            ::raise(SIGKILL);
          if (member.rank == 1)
            return;
          for (int turn = 0; turn < 2; ++turn)
            member.expect(collectives.run(call, nullptr), Kind::Peer,
                          {"ranks disagree", "could not recover", "rank 1",
                           dies ? "has died" : "has left the group"});
        },
        60, dies ? 1 : -1);
}

TEST(GroupTest, AnAbortAfterADisagreementIsLasting) {
  runRanks(2, [&](Member &member) {
    group::Collectives collectives(*member.group);
    std::vector<float> x(member.rank == 1 ? 101 : 100), y(x.size());
    group::CollectiveCall call = sumOf(x, y);
    member.expect(collectives.run(call, nullptr), Kind::Disagree,
                  {"ranks disagree"});
    if (member.rank == 1)
      member.group->abort("enough");
    for (int turn = 0; turn < 2; ++turn)
      member.expect(collectives.run(call, nullptr),
                    member.rank == 1 ? Kind::Aborted : Kind::Peer,
                    {"rank 1", "enough"});
    member.good(member.store->set("done" + std::to_string(member.rank), "1"));
    member.good(member.store->get("done" + std::to_string(1 - member.rank), 60)
                    .takeError());
  });
}

/// A kernel of one rank's text only.
TEST(GroupTest, DifferentKernelsAreNamedOnEveryRank) {
  runRanks(2, [&](Member &member) {
    group::KernelRequest request;
    request.source = allReduceText(member.rank ? 128 : 64);
    request.name = "sum";
    auto kernel = member.group->prepare(request);
    if (kernel)
      return member.complain("two kernels are one");
    member.expect(kernel.takeError(), Kind::Disagree,
                  {"rank 0: prepare a kernel @sum(%x: memref<64xf32>, ",
                   "rank 1: prepare a kernel @sum(%x: memref<128xf32>, "});
  });
}

TEST(GroupTest, AnAbsentRankIsNamedAfterTheTimeout) {
  runRanks(
      3,
      [&](Member &member) {
        // Rank 1 comes when the others have given up.
        if (member.rank == 1) {
          for (int64_t rank : {0, 2})
            member.good(member.store->get("done" + std::to_string(rank), 60)
                            .takeError());
          return;
        }
        member.expect(member.group->allocate(64).takeError(), Kind::Peer,
                      {"4.0 s", "allocate 64 bytes", "rank 1 has ended step"});
        member.good(
            member.store->set("done" + std::to_string(member.rank), "1"));
      },
      4); // Enough to make the group on a busy machine.
}

TEST(GroupTest, AbortEndsAWait) {
  runRanks(2, [&](Member &member) {
    if (member.rank == 1) {
      // Rank 0 waits for nobody: it must be told.
      member.good(member.store->get("waits", 60).takeError());
      member.good(member.store->get("ended", 60).takeError());
      return;
    }
    member.good(member.store->set("waits", "1"));
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      member.group->abort("enough");
    });
    member.expect(member.group->allocate(64).takeError(), Kind::Aborted,
                  {"aborted on rank 0: enough"});
    other.join();
    member.expect(member.group->allocate(64).takeError(), Kind::Aborted,
                  {"enough"});
    member.good(member.store->set("ended", "1"));
  });
}

TEST(GroupTest, AbortIsHeardByPeers) {
  runRanks(2, [&](Member &member) {
    if (member.rank == 0)
      member.group->abort("enough");
    member.expect(member.group->allocate(64).takeError(), Kind::Aborted,
                  {"rank 0", "enough"});
    member.good(member.store->set("done" + std::to_string(member.rank), "1"));
    member.good(member.store->get("done" + std::to_string(1 - member.rank), 60)
                    .takeError());
  });
}

TEST(GroupTest, AForkedProcessIsNoMember) {
  runRanks(2, [&](Member &member) {
    pid_t child = ::fork();
    if (child == 0) {
      auto memory = member.group->allocate(64);
      std::string text = memory ? "" : llvm::toString(memory.takeError());
      ::_exit(llvm::StringRef(text).contains("forked") ? 0 : 1);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0)
      member.complain("the child is taken for a member");
    group::Collectives collectives(*member.group);
    reduceOnes(member, collectives, 100, member.ranks);
  });
}

TEST(GroupTest, WrongOptionsAreRefused) {
  Folder folder;
  auto store = group::createFileStore(folder.path);
  ASSERT_TRUE(bool(store));
  auto refusal = [&](int64_t rank, int64_t ranks, double timeout) {
    group::GroupOptions options;
    options.rank = rank;
    options.ranks = ranks;
    options.timeout = timeout;
    auto group = group::createCpuGroup(options, **store);
    return group ? "" : llvm::toString(group.takeError());
  };
  EXPECT_NE(refusal(2, 2, 1).find("rank 2 is not one of"), std::string::npos);
  EXPECT_NE(refusal(0, 0, 1).find("1 to 1024 ranks"), std::string::npos);
  EXPECT_NE(refusal(0, 1, 0).find("timeout"), std::string::npos);
  EXPECT_NE(refusal(1, 2, 0.1).find("is every rank running"),
            std::string::npos);
}

/// Nobody waits for memory that rank 0 cannot make.
TEST(GroupTest, AllRanksGetTheErrorOfRankZero) {
  Folder folder;
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < 2; ++rank) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    auto store = llvm::cantFail(group::createFileStore(folder.path));
    group::GroupOptions options;
    options.rank = rank;
    options.ranks = 2;
    options.timeout = 600;
    if (rank == 0)
      options.channelBytes = uint64_t(1) << 55;
    auto group = group::createGroup(options, *store);
    std::string said =
        group ? "a group was made" : llvm::toString(group.takeError());
    const char *wanted = rank ? "rank 0: cannot" : "cannot";
    bool isRight = llvm::StringRef(said).starts_with(wanted) &&
                   llvm::StringRef(said).contains("bytes of shared memory");
    if (!isRight)
      llvm::errs() << "rank " << rank << ": " << said << "\n";
    ::_exit(isRight ? 0 : 1);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(GroupTest, NothingIsLeftInSharedMemory) {
  runRanks(
      2,
      [&](Member &member) {
        auto window = member.group->allocate(1 << 20);
        if (!window)
          return member.complain(llvm::toString(window.takeError()));
        std::memset(*window, 1, 1 << 20);
        if (member.rank == 1)
          ::raise(SIGKILL);
      },
      60, 1);
  for (const auto &entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_EQ(entry.path().string().find("commsir"), std::string::npos);
}
