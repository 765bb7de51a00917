//===- OneSidedTest.cpp - Puts and signals in streams, without a GPU ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ranks over the driver of FakeCuda.cpp, whose streams execute operations
// at once or, during a capture, in the graph.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/OneSided.h"
#include "runtime/cuda/Mesh.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;

namespace {

constexpr size_t kCount = 1000;

/// A rank of two, with a window of numbers and four cells.
struct Rank {
  Rank(const std::string &folder, int64_t rank) : rank(rank), peer(1 - rank) {
    GroupOptions options;
    options.rank = rank;
    options.ranks = 2;
    options.device = int(rank);
    options.timeout = 20;
    options.windows = "plain";
    store = llvm::cantFail(createFileStore(folder));
    group = llvm::cantFail(createCudaGroup(options, *store));
    side = std::make_unique<OneSided>(*group);
    data = static_cast<int64_t *>(
        llvm::cantFail(group->allocate(kCount * sizeof(int64_t))));
    llvm::cantFail(side->reserve(4));
  }
  const cuda::Device &device() const { return cuda::getDevice(*group); }
  const cuda::Driver &cu() const { return device().driver(); }
  CUstream makeStream() {
    cuda::ContextGuard guard(cu(), device().context());
    CUstream stream = nullptr;
    cu().StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    return stream;
  }
  void putSignal(int64_t first, int64_t cell, SignalKind kind, int64_t value,
                 CUstream stream) {
    for (size_t i = 0; i < kCount; ++i)
      source[i] = first + int64_t(i);
    llvm::cantFail(side->putSignal(peer, data, source, sizeof(source), cell,
                                   kind, value, stream));
  }
  void wait(int64_t cell, int64_t value, CUstream stream,
            WaitKind kind = WaitKind::AtLeast) {
    llvm::cantFail(side->wait(cell, kind, value, peer, 0, stream));
  }
  std::string waitOnHost(int64_t cell, int64_t value, double timeout) {
    return llvm::toString(
        side->wait(cell, WaitKind::AtLeast, value, peer, timeout, nullptr));
  }
  bool holds(int64_t first) const {
    for (size_t i = 0; i < kCount; ++i)
      if (data[i] != first + int64_t(i))
        return false;
    return true;
  }

  int64_t rank, peer;
  std::unique_ptr<Store> store;
  std::unique_ptr<Group> group;
  std::unique_ptr<OneSided> side;
  int64_t *data = nullptr, source[kCount] = {};
};

/// What a rank returns is what failed; "": nothing.
using Work = std::function<std::string(Rank &)>;

void runPair(const Work &work, int killed = -1) {
  setenv("COMMSIR_FAKE_GPUS", "2", 1);
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("commsir-pair", folder));
  pid_t children[2];
  for (int64_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0)
      continue;
    std::string said;
    {
      Rank member(folder.str().str(), rank);
      said = work(member);
    }
    if (!said.empty())
      fprintf(stderr, "rank %d: %s\n", int(rank), said.c_str());
    _exit(said.empty() ? 0 : 1);
  }
  for (int rank = 0; rank < 2; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[rank], &status, 0), children[rank]);
    if (rank != killed)
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "rank " << rank << " ended with " << status;
  }
  llvm::sys::fs::remove_directories(folder);
}

/// Both go on only when the other has come as far; values grow.
void meet(Rank &self, int64_t value) {
  llvm::cantFail(
      self.side->signal(self.peer, 3, SignalKind::Set, value, nullptr));
  self.wait(3, value, nullptr);
}

} // namespace

TEST(OneSidedTest, StreamsPutSignalAndWait) {
  runPair([](Rank &self) -> std::string {
    CUstream stream = self.makeStream();
    for (int64_t round = 1; round <= 50; ++round) {
      self.putSignal(round * 1000 + self.rank, 0, SignalKind::Set, round,
                     stream);
      self.wait(0, round, stream);
      if (!self.holds(round * 1000 + self.peer))
        return "the data of round " + std::to_string(round) + " is not here";
      meet(self, round);
      // And the same pulled: the peer has what this rank has put.
      int64_t got[kCount] = {};
      llvm::cantFail(
          self.side->get(self.peer, self.data, got, sizeof(got), stream));
      if (got[kCount - 1] != round * 1000 + self.rank + int64_t(kCount) - 1)
        return "another number than was put";
      llvm::cantFail(
          self.side->signal(self.peer, 1, SignalKind::Add, 2, stream));
      self.wait(1, 2 * round, stream, WaitKind::Equal);
      if (llvm::cantFail(self.side->read(1)) != 2 * round)
        return "the sum is wrong";
      llvm::cantFail(
          self.side->signal(self.peer, 2, SignalKind::Set, round, stream));
      self.wait(2, round, stream);
    }
    llvm::cantFail(self.side->reset(1, stream));
    std::string said =
        llvm::cantFail(self.side->read(1)) ? "a cell was not reset" : "";
    meet(self, 100);
    return said;
  });
}

TEST(OneSidedTest, GraphsHoldThem) {
  runPair([](Rank &self) -> std::string {
    CUstream stream = self.makeStream();
    const cuda::Driver &cu = self.cu();
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    if (self.group->isKept())
      return "it is kept for graphs before there are any";
    {
      cuda::ContextGuard guard(cu, self.device().context());
      cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      self.putSignal(500 + self.rank, 0, SignalKind::Add, 1, stream);
      self.wait(0, 1, stream);
      llvm::cantFail(self.side->reset(0, stream));
      cu.StreamEndCapture(stream, &graph);
      cu.GraphInstantiate(&exec, graph, 0);
    }
    if (self.data[0] != 0 || llvm::cantFail(self.side->read(0)) != 0)
      return "capturing has done what the graph should";
    if (!self.group->isKept())
      return "nobody knows that a graph may use it";
    for (int64_t round = 1; round <= 5; ++round) {
      meet(self, 2 * round);
      cuda::ContextGuard guard(cu, self.device().context());
      cu.GraphLaunch(exec, stream);
      if (!self.holds(500 + self.peer))
        return "the data is not here";
      self.data[0] = 0;
      meet(self, 2 * round + 1);
    }
    return "";
  });
}

/// Captures `enqueue`, which puts `first` + the rank and on at the peer, and
/// takes its signal from `cell`; replays that five times.
static std::string replay(Rank &self, int64_t first, int64_t cell,
                          llvm::function_ref<void(CUstream)> enqueue) {
  CUstream stream = self.makeStream();
  const cuda::Driver &cu = self.cu();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  {
    cuda::ContextGuard guard(cu, self.device().context());
    cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    enqueue(stream);
    cu.StreamEndCapture(stream, &graph);
    cu.GraphInstantiate(&exec, graph, 0);
  }
  for (int64_t round = 1; round <= 5; ++round) {
    meet(self, 2 * round);
    cuda::ContextGuard guard(cu, self.device().context());
    cu.GraphLaunch(exec, stream);
    if (!self.holds(first + self.peer))
      return "the data is not here";
    if (llvm::cantFail(self.side->read(cell)) != 0)
      return "the signal was not taken";
    self.data[0] = 0;
    meet(self, 2 * round + 1);
  }
  return llvm::toString(self.group->poll());
}

TEST(OneSidedTest, GraphsTakeAddedSignals) {
  runPair([](Rank &self) {
    return replay(self, 500, 0, [&](CUstream stream) {
      self.putSignal(500 + self.rank, 0, SignalKind::Add, 1, stream);
      llvm::cantFail(self.side->take(0, 1, self.peer, stream));
    });
  });
}

TEST(OneSidedTest, GraphsMeetInARowOfCells) {
  runPair([](Rank &self) {
    return replay(self, 700, self.peer, [&](CUstream stream) {
      for (size_t i = 0; i < kCount; ++i)
        self.source[i] = 700 + self.rank + int64_t(i);
      llvm::cantFail(self.side->put(self.peer, self.data, self.source,
                                    sizeof(self.source), stream));
      llvm::cantFail(self.side->signalOthers(0, 1, stream));
      llvm::cantFail(self.side->takeFromOthers(0, 1, stream));
    });
  });
}

TEST(OneSidedTest, ARowInVainNamesTheRank) {
  runPair([](Rank &self) -> std::string {
    CUstream stream = self.makeStream();
    if (self.rank == 1)
      // Until the other has ended.
      return self.waitOnHost(3, 1, 20).empty() ? "nobody signaled" : "";
    llvm::cantFail(self.group->setTimeout(0.05));
    llvm::cantFail(self.side->takeFromOthers(1, 1, stream));
    std::string said = llvm::toString(self.group->poll());
    return said.find("got no signal from rank 1") == std::string::npos ||
                   said.find(
                       "cell 2 of the group: observed 0, expected >= 1") ==
                       std::string::npos
               ? "'" + said + "'"
               : "";
  });
}

TEST(OneSidedTest, ATakeInVainEndsTheGroup) {
  runPair([](Rank &self) -> std::string {
    CUstream stream = self.makeStream();
    std::string refused =
        llvm::toString(self.side->take(0, 1, /*source=*/2, stream));
    if (refused.find("rank 2 is not in a group of 2") == std::string::npos)
      return refused;
    if (self.rank == 1)
      // Until the other has ended.
      return self.waitOnHost(1, 1, 20).empty() ? "nobody signaled" : "";
    llvm::cantFail(self.group->setTimeout(0.05));
    llvm::cantFail(self.side->signal(0, 0, SignalKind::Add, 1, stream));
    llvm::cantFail(self.side->take(0, 2, /*source=*/1, stream));
    std::string said = llvm::toString(self.group->poll());
    if (said.find("got no signal from rank 1") == std::string::npos ||
        said.find("cell 0 of the group: observed 1, expected >= 2") ==
            std::string::npos)
      return "'" + said + "'";
    if (!self.group->ended())
      return "the group goes on with signals that are out of step";
    said = llvm::toString(self.side->take(0, 1, 1, stream));
    return said.find("got no signal from") == std::string::npos
               ? "'" + said + "'"
               : "";
  });
}

TEST(OneSidedTest, TheHostSeesTimeAndDeath) {
  runPair(
      [](Rank &self) -> std::string {
        meet(self, 1);
        if (self.rank == 1) {
          self.putSignal(7, 0, SignalKind::Set, 4, nullptr);
          self.wait(1, 1, nullptr);
          raise(SIGKILL);
        }
        if (std::string said = self.waitOnHost(0, 4, 20); !said.empty())
          return said;
        if (!self.holds(7))
          return "the data is not here";
        std::string said = self.waitOnHost(0, 5, 0.05);
        if (said.find("the timeout of 0.1 s has passed\n  cell 0 of the group: "
                      "observed 4, "
                      "expected >= 5") == std::string::npos)
          return said;
        llvm::cantFail(self.side->signal(1, 1, SignalKind::Set, 1, nullptr));
        said = self.waitOnHost(0, 5, 20);
        if (said.find("rank 1 is gone") == std::string::npos)
          return said;
        said =
            llvm::toString(self.side->put(1, self.data, self.data, 8, nullptr));
        return said.find("rank 1 is gone") == std::string::npos ? said : "";
      },
      /*killed=*/1);
}

/// What a wait asks may release what it waits for.
TEST(OneSidedTest, AHookReleasesTheCell) {
  static OneSided *released = nullptr;
  runPair([](Rank &self) -> std::string {
    alarm(60);
    if (self.rank == 1) {
      llvm::cantFail(self.side->release(0));
      return "";
    }
    released = self.side.get();
    setInterrupt([] {
      if (auto *side = std::exchange(released, nullptr))
        llvm::cantFail(side->release(0));
      return 0;
    });
    std::string said = self.waitOnHost(0, 5, 20);
    setInterrupt(nullptr);
    return said.find("released the cell") == std::string::npos ? said : "";
  });
}

TEST(OneSidedTest, FailuresOfTheDriverAreErrors) {
  runPair([](Rank &self) -> std::string {
    std::string said;
    auto expect = [&](const char *function, const char *text,
                      llvm::function_ref<llvm::Error()> call) {
      setenv("COMMSIR_FAKE_FAIL", function, 1);
      std::string error = llvm::toString(call());
      unsetenv("COMMSIR_FAKE_FAIL");
      if (error.find(text) == std::string::npos)
        said += "'" + error + "' does not say '" + text + "'\n";
    };
    OneSided &side = *self.side;
    expect("MemcpyAsync", "copying between windows", [&] {
      return side.put(self.peer, self.data, self.source, 8, nullptr);
    });
    expect("MemcpyAsync", "setting a signal", [&] {
      return side.signal(self.peer, 0, SignalKind::Set, 1, nullptr);
    });
    expect("StreamWriteValue64", "setting a signal", [&] {
      return side.signal(self.peer, 0, SignalKind::Set, 16, nullptr);
    });
    expect("StreamWaitValue64", "waiting for a signal", [&] {
      return side.wait(0, WaitKind::AtLeast, 0, self.peer, 0, nullptr);
    });
    expect("LaunchKernelEx", "adding to a signal", [&] {
      return side.signal(self.peer, 0, SignalKind::Add, 1, nullptr);
    });
    meet(self, 1);
    return said;
  });
}
