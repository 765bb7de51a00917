//===- Stragglers.cpp - Ranks that are late, before and in launches -------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/processes/Pauses.h"
#include "test/gpu/processes/Scenarios.h"

#include <random>

using namespace commsir;
using namespace commsir::processes;

/// Ranks come up to 10 ms late, in turn and at random.
std::string processes::runStragglers(Rank &me) {
  me.join();
  Sum small = me.makeSum(Rank::request(1024), 1024);
  Sum large = me.makeSum(Rank::request(300000, "two_shot", "ll", 32), 300000);
  std::mt19937 random(unsigned(me.options.rank + 1));
  for (int64_t launch = 0; launch < me.number; ++launch) {
    if (random() % 2)
      usleep(random() % 10000);
    me.sumOnce(launch % 3 ? small : large, launch, me.streams[launch % 2]);
  }
  return "";
}

namespace {

constexpr int64_t kCount = 4096, kBlocks = 4, kThreads = 128;
/// Launches of a graph: nobody waits between them.
constexpr int kChain = 4;

/// A sum that stops where this rank's memory says.
class PausedSum {
public:
  PausedSum(Rank &me, const char *algorithm, const char *protocol,
            const Sum *like)
      : me(me) {
    KernelRequest what = Rank::request(kCount, algorithm, protocol, kBlocks);
    what.threads = kThreads;
    what.cluster = 1;
    Paused paused = me.take(insertPauses(what, me.options.ranks));
    places = paused.places;
    sum = me.makeSum(paused.request, kCount, like);
    size_t bytes = size_t(kBlocks * places) * sizeof(int64_t);
    turns = CUdeviceptr(me.take(me.group->allocateOwn(bytes)));
    done = CUdeviceptr(me.take(me.group->allocateOwn(bytes)));
    for (CUdeviceptr memory : {turns, done})
      me.check(me.driver().MemsetD8Async(memory, 0, bytes, stream()),
               "clearing");
    me.check(launch());
    me.check(me.wait(stream()));
    graph = me.capture([&] {
      for (int i = 0; i < kChain; ++i)
        me.check(launch());
    });
  }

  CUstream stream() { return me.streams[0]; }
  llvm::Error launch() {
    size_t bytes = size_t(sum.count) * sizeof(float),
           counters = size_t(kBlocks * places) * sizeof(int64_t);
    Argument arguments[] = {{sum.x, bytes},
                            {sum.y, bytes},
                            {reinterpret_cast<void *>(turns), counters},
                            {reinterpret_cast<void *>(done), counters}};
    return me.group->launch(*sum.kernel, arguments, stream());
  }

  void setTurns(int64_t at, int64_t value) {
    me.check(me.driver().MemcpyHtoDAsync(turns + size_t(at) * sizeof(value),
                                         &value, sizeof(value), stream()),
             "setting a pause");
  }

  /// Once, with data of their own, eager or replayed.
  double run(int64_t number, bool replay) {
    me.fill(sum, number, stream());
    me.check(me.driver().StreamSynchronize(stream()), "filling");
    double start = now();
    if (replay)
      me.check(me.driver().GraphLaunch(graph, stream()), "replaying");
    else
      me.check(launch());
    me.check(me.wait(stream()));
    double seconds = now() - start;
    me.compare(sum, number, stream());
    return seconds;
  }

  int64_t places = 0;
  Sum sum;

private:
  Rank &me;
  CUdeviceptr turns = 0, done = 0;
  CUgraphExec graph = nullptr;
};

} // namespace

/// One block of one rank, others each time, stops for up to 10 ms in the middle
/// of a kernel: before a send, a receive or a barrier. All algorithms over all
/// protocols, `number` times each, eager and in replays.
std::string processes::runPauses(Rank &me) {
  me.join();
  std::mt19937 random(5); // The same on all ranks.
  double longest = 0, perTurn = 0;
  int64_t kernels = 0, launches = 0;
  std::unique_ptr<PausedSum> first;
  for (const char *algorithm : {"one_shot", "two_shot", "ring", "permutation"})
    for (const char *protocol : {"ll", "ll128", "lamport", "push", "pull"}) {
      auto paused = std::make_unique<PausedSum>(me, algorithm, protocol,
                                                first ? &first->sum : nullptr);
      ++kernels;
      if (!first) {
        // What a round of the loop takes.
        constexpr int64_t many = 1 << 19;
        double idle = paused->run(0, false);
        for (int i = 0; i < 3; ++i)
          idle = std::min(idle, paused->run(0, false));
        paused->setTurns(0, many);
        perTurn = std::max(paused->run(0, false) - idle, 1e-4) / many;
        paused->setTurns(0, 0);
      }
      for (int64_t round = 0; round < me.number; ++round, ++launches) {
        int64_t victim = random() % me.options.ranks;
        int64_t at = random() % (kBlocks * paused->places);
        // A graph stops in each of its launches, and a place may be in a loop.
        bool replay = round % 2;
        double seconds = random() % 1000 * 1e-5 / (replay ? double(kChain) : 1);
        bool mine = victim == me.options.rank;
        if (mine)
          paused->setTurns(at, int64_t(seconds / perTurn));
        longest = std::max(longest, paused->run(round, replay));
        if (mine)
          paused->setTurns(at, 0);
      }
      if (!first)
        first = std::move(paused);
    }
  if (me.number && longest < 2e-3)
    me.fail("no launch was late");
  return llvm::formatv("{0} launches of {1} kernels, the longest of {2:f1} ms",
                       launches, kernels, longest * 1e3)
      .str();
}
