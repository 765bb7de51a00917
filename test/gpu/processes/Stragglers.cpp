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
      : me(me), name(llvm::formatv("{0} over {1}", algorithm, protocol)) {
    KernelRequest what = Rank::request(kCount, algorithm, protocol, kBlocks);
    what.threads = kThreads;
    what.cluster = 1;
    Paused paused = me.take(insertPauses(what, me.options.ranks));
    size = size_t(kBlocks * paused.places);
    sum = me.makeSum(paused.request, kCount, like);
    turns = CUdeviceptr(me.take(me.group->allocateOwn(bytes())));
    done = CUdeviceptr(me.take(me.group->allocateOwn(bytes())));
    static_assert(kUntouched == -1);
    me.check(me.driver().MemsetD8Async(turns, 0, bytes(), stream()),
             "clearing");
    me.check(me.driver().MemsetD8Async(done, 0xFF, bytes(), stream()),
             "clearing");
    me.check(launch());
    me.check(me.wait(stream()));
    reached = findReached(readDone());
    if (reached.empty())
      me.fail(llvm::Twine(name) + ": no block came to any place");
    graph = me.capture([&] {
      for (int i = 0; i < kChain; ++i)
        me.check(launch());
    });
  }

  CUstream stream() { return me.streams[0]; }
  llvm::Error launch() {
    size_t elements = size_t(sum.count) * sizeof(float);
    Argument arguments[] = {{sum.x, elements},
                            {sum.y, elements},
                            {reinterpret_cast<void *>(turns), bytes()},
                            {reinterpret_cast<void *>(done), bytes()}};
    return me.group->launch(*sum.kernel, arguments, stream());
  }

  void setTurns(int64_t at, int64_t value) {
    me.check(me.driver().MemcpyHtoDAsync(turns + size_t(at) * sizeof(value),
                                         &value, sizeof(value), stream()),
             "setting a pause");
  }
  /// Ends the process unless the last launch has stopped at that place, that
  /// long, and at no other.
  void expectStop(int64_t at, int64_t value) {
    const std::vector<int64_t> found = readDone();
    for (int64_t place : reached)
      if (found[size_t(place)] != (place == at ? spin(value) : 0))
        me.fail(llvm::formatv("{0}: told to go round {1} times at place {2}, "
                              "it did something else at place {3}",
                              name, value, at, place)
                    .str());
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

  /// Places to which this rank comes, of each block.
  std::vector<int64_t> reached;
  Sum sum;

private:
  size_t bytes() const { return size * sizeof(int64_t); }
  std::vector<int64_t> readDone() {
    std::vector<int64_t> found(size);
    me.check(me.driver().MemcpyDtoHAsync(found.data(), done, bytes(), stream()),
             "reading pauses");
    me.check(me.driver().StreamSynchronize(stream()), "reading pauses");
    return found;
  }

  Rank &me;
  std::string name;
  size_t size = 0;
  CUdeviceptr turns = 0, done = 0;
  CUgraphExec graph = nullptr;
};

/// Seconds that a round of the loop takes.
double measureTurn(PausedSum &paused) {
  constexpr int64_t many = 1 << 19;
  int64_t at = paused.reached.front();
  double idle = paused.run(0, false);
  for (int i = 0; i < 3; ++i)
    idle = std::min(idle, paused.run(0, false));
  paused.setTurns(at, many);
  double busy = paused.run(0, false);
  paused.expectStop(at, many);
  paused.setTurns(at, 0);
  return std::max(busy - idle, 1e-4) / many;
}

/// Launches in which a block of one rank, others each time, is late.
class Pauses {
public:
  explicit Pauses(Rank &me) : me(me) {}

  /// `me.number` launches of a kernel, eager and in replays by turns.
  void run(PausedSum &paused, double perTurn) {
    for (int64_t round = 0; round < me.number; ++round, ++launches) {
      bool mine = int64_t(random() % me.options.ranks) == me.options.rank;
      int64_t at = paused.reached[random() % paused.reached.size()];
      // A graph stops in each of its launches, and a place may be in a loop.
      bool replay = round % 2;
      double seconds = random() % 1000 * 1e-5 / (replay ? double(kChain) : 1);
      auto turns = mine ? int64_t(seconds / perTurn) : 0;
      if (mine)
        paused.setTurns(at, turns);
      longest = std::max(longest, paused.run(round, replay));
      paused.expectStop(at, turns);
      if (mine)
        paused.setTurns(at, 0);
    }
  }

  int64_t launches = 0;
  /// Seconds of a launch.
  double longest = 0;

private:
  Rank &me;
  std::mt19937 random{5}; // The same on all ranks.
};

} // namespace

/// One block of one rank, others each time, stops for up to 10 ms in the middle
/// of a kernel: before a send, a receive or a barrier. All algorithms over all
/// protocols, `number` times each, eager and in replays.
std::string processes::runPauses(Rank &me) {
  me.join();
  Pauses pauses(me);
  double perTurn = 0;
  int64_t kernels = 0;
  std::unique_ptr<PausedSum> first;
  for (const char *algorithm : {"one_shot", "two_shot", "ring", "permutation"})
    for (const char *protocol : {"ll", "ll128", "lamport", "push", "pull"}) {
      auto paused = std::make_unique<PausedSum>(me, algorithm, protocol,
                                                first ? &first->sum : nullptr);
      ++kernels;
      if (!first)
        perTurn = measureTurn(*paused);
      pauses.run(*paused, perTurn);
      if (!first)
        first = std::move(paused);
    }
  if (me.number && pauses.longest < 2e-3)
    me.fail("no launch was late");
  return llvm::formatv("{0} launches of {1} kernels, the longest of {2:f1} ms",
                       pauses.launches, kernels, pauses.longest * 1e3)
      .str();
}
