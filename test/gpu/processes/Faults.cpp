//===- Faults.cpp - Launches that fail, and what comes after --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/processes/Scenarios.h"

#include <csignal>
#include <thread>

using namespace commsir;
using namespace commsir::processes;

/// The protocol of kernels whose own is no matter: COMMSIR_TEST_PROTOCOL, for
/// the one that a test's driver knows.
static const char *anyProtocol(const char *usual = "ll") {
  const char *named = std::getenv("COMMSIR_TEST_PROTOCOL");
  return named ? named : usual;
}

/// Such a kernel.
static KernelRequest anySum(int64_t count) {
  const char *protocol = anyProtocol("");
  return Rank::request(count, *protocol ? "one_shot" : "", protocol);
}

/// Sums are right, of the sizes that a test's driver knows.
static void sumAgain(Rank &me) {
  for (int64_t count : {4096, 100000})
    if (count == 4096 || !*anyProtocol(""))
      me.sumAgain(anySum(count), count);
}

/// Rank `number` is killed, in the middle of launches or of replays; the others
/// say so, shrink, and go on.
std::string processes::runKill(Rank &me, bool graph) {
  me.options.timeout = Rank::seconds(1.5);
  me.join();
  Sum sum = me.makeSum(anySum(4096), 4096);
  me.sumOnce(sum, 0, me.streams[0]);
  CUgraphExec replay = me.capture({&sum}, 50);
  me.meet();
  int64_t victim = me.number;
  double start = now();
  std::thread killer([&] {
    if (me.options.rank == victim) {
      usleep(150000);
      kill(getpid(), SIGKILL);
    }
  });
  std::string said;
  while (said.empty() && now() - start < Rank::seconds(20)) {
    if (graph)
      me.check(me.driver().GraphLaunch(replay, me.streams[0]), "replaying");
    llvm::Error error = llvm::Error::success();
    for (int i = 0; i < 50 && !graph && !error; ++i)
      error = me.launch(sum, me.streams[0]);
    if (!error)
      error = me.wait(me.streams[0]);
    if (error)
      said = llvm::toString(std::move(error));
  }
  double seconds = now() - start;
  killer.join();
  me.expect(said, llvm::formatv("rank {0}: its process (pid", victim).str());
  me.expect(said, "has ended");
  start = now();
  me.shrink(me.others(victim));
  double shrunk = now() - start;
  sumAgain(me);
  return llvm::formatv("reported {0:f2} s after the start, shrunk in {1:f2} s",
                       seconds, shrunk)
      .str();
}

namespace {
/// What one rank runs where the others run the usual sum.
struct Other {
  KernelRequest request;
  /// How the error names it.
  std::string name;
};
} // namespace

/// One rank, another each time, launches or replays another kernel than the
/// others: of another algorithm, protocol, grid, or another kernel altogether.
/// Bits of `number` say which of these; 0: all.
std::string processes::runMismatch(Rank &me, bool graph) {
  const std::string protocol = anyProtocol();
  const char *kind = protocol.c_str();
  me.options.timeout = Rank::seconds(0.5);
  me.options.name = "mismatch";
  me.join();
  const Other others[] = {
      {Rank::request(4096, "two_shot", kind, 4), "two_shot/" + protocol},
      {Rank::request(4096, "one_shot", "lamport", 4), "one_shot/lamport"},
      {Rank::request(4096, "one_shot", kind, 2), "2 blocks of"},
      {Rank::request(4096, "one_shot", kind, 4, "max"), "kernel 'max'"},
  };
  const std::string usual = "one_shot/" + protocol + ", 4 blocks";
  std::string told;
  for (auto [i, other] : llvm::enumerate(others)) {
    if (me.number && !(me.number >> i & 1))
      continue;
    Sum ours = me.makeSum(Rank::request(4096, "one_shot", kind, 4), 4096);
    Sum theirs = me.makeSum(other.request, 4096, &ours);
    me.sumOnce(ours, 1, me.streams[0]);
    // Only rank 0 gives what is not zero, so that a maximum is a sum.
    me.sumOnce(theirs, Rank::kAlone, me.streams[0]);
    CUgraphExec replayOurs = me.capture({&ours}),
                replayTheirs = me.capture({&theirs});
    me.meet();
    bool odd = me.options.rank == int64_t(i + 1) % me.options.ranks;
    if (graph)
      me.check(me.driver().GraphLaunch(odd ? replayTheirs : replayOurs,
                                       me.streams[0]),
               "replaying");
    else
      me.check(me.launch(odd ? theirs : ours, me.streams[0]));
    llvm::Error error = me.wait(me.streams[0]);
    if (!error)
      me.fail("no error where ranks ran different kernels");
    std::string said = llvm::toString(std::move(error));
    me.expect(said, odd ? usual : other.name);
    me.expect(said, "instead");
    if (graph)
      me.expect(said, "in a graph");
    // Peers read what this rank ran.
    me.meetInStore(llvm::formatv("told {0} ", i).str());
    told += (told.empty() ? "" : ", ") + other.name;
    me.shrink(me.others());
  }
  sumAgain(me);
  return told + ": named, and sums are right again";
}

/// The error that `error` is; ends the process where it is none of a group.
static GroupError take(Rank &me, llvm::Error error, const char *what) {
  std::optional<GroupError> taken;
  llvm::Error left = llvm::handleErrors(
      std::move(error), [&](const GroupError &group) { taken = group; });
  me.check(std::move(left));
  if (!taken)
    me.fail(llvm::Twine("no error where ") + what);
  return *taken;
}

namespace {

/// A sum for which one rank comes late, and which others abort.
class Abort {
public:
  Abort(Rank &me, bool graph) : me(me), graph(graph) {
    sum = me.makeSum(anySum(4096), 4096);
    me.sumOnce(sum, 0, me.streams[0]);
    replay = me.capture({&sum}, 20);
    me.fill(sum, 1, me.streams[0]);
    me.meet();
  }

  void comeLate() {
    // Its data would end the waits of those who have not heard of it yet.
    for (int64_t peer : me.others(me.number))
      awaitAbort(peer);
    me.check(me.group->setTimeout(Rank::seconds(1)));
    llvm::Error error = runOnce();
    // Data that have come are as good as those of ranks that stay.
    if (!error)
      return me.compare(sum, 1, me.streams[0]);
    auto kind = take(me, std::move(error), "").getKind();
    if (kind != GroupError::Kind::Peer && kind != GroupError::Kind::Disagree)
      me.fail("the late rank's error is of another kind");
  }

  /// Seconds from the abort to the end of the wait, which a thread aborts: on
  /// rank `first` by itself, elsewhere when that has been heard of.
  double abort(int64_t first) {
    double aborted = 0;
    std::thread other([&] {
      if (me.options.rank == first)
        usleep(100000); // The launch waits by then.
      else
        awaitAbort(first);
      aborted = now();
      me.group->abort("a test");
      me.check(me.store->set(key(me.options.rank), "yes"));
    });
    llvm::Error error = runOnce();
    double ended = now();
    other.join();
    expectAborted(std::move(error), "the group was aborted");
    // Of 20 s that it would have waited.
    if (ended - aborted > Rank::seconds(2))
      me.fail(
          llvm::formatv("it ended {0:f1} s after the abort", ended - aborted)
              .str());
    expectAborted(me.launch(sum, me.streams[0]), "the group had been aborted");
    return ended - aborted;
  }

private:
  static std::string key(int64_t rank) {
    return llvm::formatv("aborted {0}", rank).str();
  }
  void awaitAbort(int64_t rank) {
    me.take(me.store->get(key(rank), Rank::seconds(60)));
  }
  llvm::Error runOnce() {
    llvm::Error error =
        graph ? me.driver().check(
                    me.driver().GraphLaunch(replay, me.streams[0]), "replaying")
              : me.launch(sum, me.streams[0]);
    return error ? std::move(error) : me.wait(me.streams[0]);
  }
  void expectAborted(llvm::Error error, const char *where) {
    GroupError said = take(me, std::move(error), where);
    me.expect(said.getMessage(), "the group was aborted: a test");
    if (said.getKind() != GroupError::Kind::Aborted)
      me.fail(llvm::Twine("the error is of another kind where ") + where);
  }

  Rank &me;
  bool graph;
  Sum sum;
  CUgraphExec replay = nullptr;
};

} // namespace

/// Rank `number` comes late. Another aborts the group from a thread while its
/// launch waits; the rest hear of it and do likewise. Their waits end at once,
/// which the late one's does in its time limit; then all go on together.
std::string processes::runAbort(Rank &me, bool graph) {
  int64_t late = me.number;
  me.join();
  Abort scenario(me, graph);
  std::string said = "came late";
  if (me.options.rank == late)
    scenario.comeLate();
  else
    said = llvm::formatv("ended {0:f1} ms after the abort",
                         scenario.abort((late + 1) % me.options.ranks) * 1e3)
               .str();
  me.shrink(me.others());
  sumAgain(me);
  return said;
}

/// One captured graph, instantiated twice and replayed twice at once.
std::string processes::runBusy(Rank &me) {
  me.options.timeout = 2;
  me.join();
  Sum sum = me.makeSum(Rank::request(1024, "one_shot", "ll", 2), 1024);
  me.sumOnce(sum, 0, me.streams[0]);
  CUgraphExec first = me.capture({&sum});
  me.meet();
  if (me.options.rank == 1)
    usleep(300000); // Both replays of the others run by then.
  me.check(me.driver().GraphLaunch(first, me.streams[0]), "replaying");
  me.check(me.driver().GraphLaunch(me.second, me.streams[1]), "replaying");
  llvm::Error error = me.wait(me.streams[0]);
  if (!error)
    error = me.wait(me.streams[1]);
  std::string said = llvm::toString(std::move(error));
  if (me.options.rank != 1)
    me.expect(said, "another launch ran on the same channels");
  return "";
}

/// A time limit that is set after the capture holds for what the graph
/// launches: the last rank stays away from its second replay.
std::string processes::runLimit(Rank &me) {
  me.options.timeout = 60;
  me.join();
  Sum sum = me.makeSum(anySum(4096), 4096);
  CUgraphExec replay = me.capture({&sum}, 5);
  me.fill(sum, 1, me.streams[0]);
  me.check(me.driver().GraphLaunch(replay, me.streams[0]), "replaying");
  me.check(me.wait(me.streams[0]));
  me.compare(sum, 1, me.streams[0]);
  me.check(me.group->setTimeout(1));
  me.meet();
  if (me.options.rank + 1 == me.options.ranks) {
    me.meetInStore("reported ");
    return "stayed away";
  }
  double start = now();
  me.check(me.driver().GraphLaunch(replay, me.streams[0]), "replaying");
  llvm::Error error = me.wait(me.streams[0]);
  double seconds = now() - start;
  if (!error)
    me.fail("no error where a rank stayed away");
  std::string said = llvm::toString(std::move(error));
  me.meetInStore("reported ");
  if (seconds < 0.9 || seconds > Rank::seconds(4))
    me.fail(llvm::formatv("it took {0:f1} s where the limit is 1: {1}", seconds,
                          said)
                .str());
  return llvm::formatv("reported after {0:f2} s", seconds).str();
}
