//===- GroupTest.cpp - Groups of GPUs, without a GPU ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are processes over the driver of FakeCuda.cpp, which runs one kernel,
// `exchange 24`. processes.py tests what only a GPU can show.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Group.h"
#include "runtime/cuda/Mapping.h"
#include "runtime/cuda/Mesh.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "runtime/support/FatalErrors.h"
#include "runtime/support/GroupError.h"
#include "test/FailingNew.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <future>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;

namespace {

constexpr size_t kCount = 24;
constexpr size_t kBytes = kCount * sizeof(float);
/// Seconds that ranks wait in tests where one does not come; those that come
/// have to be there by then, on a busy machine too.
constexpr double kImpatience = 4;

std::string sumSource(const char *name = "sum", const char *kind = "sum") {
  std::string window = "!comms.window<24xf32>";
  return std::string("comms.kernel @") + name + "(%x: " + window +
         ", %y: " + window + ") {\n  %team = comms.team world\n" +
         "  comms.all_reduce " + kind + " %team ins(%x : " + window +
         ") outs(%y : " + window + ")\n  comms.return\n}\n";
}

KernelRequest sumRequest(int64_t blocks = 2) {
  KernelRequest request;
  request.source = sumSource();
  request.algorithm = "one_shot";
  request.protocol = "pull";
  request.blocks = blocks;
  request.threads = 64;
  return request;
}

/// A rank of a test: what it says is what failed; "": nothing.
class Rank {
public:
  Rank(const std::string &folder, int64_t rank, int64_t ranks)
      : folder(folder), rank(rank), ranks(ranks) {
    options.rank = rank;
    options.ranks = ranks;
    options.device = int(rank);
    options.timeout = 20;
    options.windows = "plain";
    store = llvm::cantFail(createFileStore(folder));
  }

  void join() { group = take(createCudaGroup(options, *store)); }
  void prepare(const KernelRequest &request = sumRequest()) {
    kernel = take(group->prepare(request));
  }
  void allocate() {
    x = static_cast<float *>(take(group->allocate(kBytes)));
    y = static_cast<float *>(take(group->allocate(kBytes)));
  }
  void start() {
    join();
    prepare();
    allocate();
  }

  /// Fills x so that the sum tells who took part, in which launch.
  void fill(int launch) {
    for (size_t i = 0; i < kCount; ++i)
      x[i] = float((rank + 1) * 1000 + launch * 10) + float(i);
  }
  std::string check(int launch, int64_t members, float ranksSum) {
    for (size_t i = 0; i < kCount; ++i) {
      float wanted = ranksSum * 1000 + float(members) * float(launch * 10) +
                     float(members) * float(i);
      if (y[i] != wanted)
        return "element " + std::to_string(i) + " is " + std::to_string(y[i]) +
               ", not " + std::to_string(wanted);
    }
    return "";
  }
  llvm::Error launch(void *stream = nullptr) {
    Argument arguments[] = {{x, kBytes}, {y, kBytes}};
    return group->launch(*kernel, arguments, stream);
  }
  /// One launch; "" or what is wrong with it.
  std::string sum(int launch) {
    fill(launch);
    if (auto error = this->launch())
      return llvm::toString(std::move(error));
    if (auto error = group->poll())
      return llvm::toString(std::move(error));
    return check(launch, ranks, float(ranks * (ranks + 1)) / 2);
  }
  /// Says that this rank is done, and waits for the others to be: peers read
  /// what it ran.
  void done() {
    leaveIf(store->set(options.name + " done " + std::to_string(rank), "yes"));
    for (int64_t peer = 0; peer < ranks; ++peer)
      take(store->get(options.name + " done " + std::to_string(peer), 60));
  }
  void leaveIf(llvm::Error error) {
    if (error)
      leave(llvm::toString(std::move(error)));
  }

  CUstream makeStream() {
    const cuda::Device &device = cuda::getDevice(*group);
    cuda::ContextGuard guard(device.driver(), device.context());
    CUstream stream = nullptr;
    if (device.driver().StreamCreate(&stream, CU_STREAM_NON_BLOCKING))
      leave("no stream");
    return stream;
  }

  /// A graph of one launch.
  CUgraphExec captureLaunch(CUstream stream) {
    const cuda::Driver &cu = cuda::getDevice(*group).driver();
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    if (cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
      leave("no capture");
    leaveIf(launch(stream));
    if (cu.StreamEndCapture(stream, &graph) ||
        cu.GraphInstantiate(&exec, graph, 0))
      leave("no graph");
    return exec;
  }

  /// The error that the next launch ends in.
  std::string failure() {
    fill(99);
    if (auto error = launch())
      return llvm::toString(std::move(error));
    return llvm::toString(group->poll());
  }

  template <typename T>
  T take(llvm::Expected<T> value) {
    if (!value)
      leave(llvm::toString(value.takeError()));
    return std::move(*value);
  }
  /// Says `text` and ends the process.
  [[noreturn]] void leave(llvm::StringRef text) {
    ssize_t written = write(out, text.data(), text.size());
    _exit(written == ssize_t(text.size()) ? 0 : 1);
  }

  int out = -1;

  std::string folder;
  int64_t rank, ranks;
  GroupOptions options;
  std::unique_ptr<Store> store;
  std::unique_ptr<Group> group;
  GroupKernel *kernel = nullptr;
  float *x = nullptr, *y = nullptr;
};

/// How often the driver's function was called.
unsigned long countCalls(const char *function) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto *count = reinterpret_cast<unsigned long (*)(const char *)>(
      dlsym(library, "fakeCalls"));
  return count(function);
}

/// "" or what went wrong, in a process of its own.
using Work = std::function<std::string(Rank &)>;

struct Ended {
  int status = 0;
  std::string said;
};

class GroupTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("commsir-group", path));
    folder = path.str().str();
    setenv("COMMSIR_FAKE_GPUS", "8", 1);
    setenv("COMMSIR_FAKE_KERNEL", "exchange 24", 1);
    // One folder for all tests: each compiles what the others have not.
    std::string cache = testing::TempDir() + "/commsir-group-cache";
    setenv("COMMSIR_CACHE_DIR", cache.c_str(), 1);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  struct Started {
    std::vector<pid_t> pids;
    std::vector<int> pipes;
  };

  /// Runs `work` as each rank.
  std::vector<Ended> run(int ranks, const Work &work) {
    return collect(start(ranks, work));
  }
  /// The same in two parts: what waits long can wait while others run.
  Started start(int ranks, const Work &work) {
    Started started;
    for (int rank = 0; rank < ranks; ++rank) {
      int ends[2];
      EXPECT_EQ(pipe(ends), 0);
      pid_t pid = fork();
      if (pid == 0) {
        close(ends[0]);
        Rank me(folder, rank, ranks);
        me.out = ends[1];
        me.leave(work(me));
      }
      close(ends[1]);
      started.pids.push_back(pid);
      started.pipes.push_back(ends[0]);
    }
    return started;
  }
  static std::vector<Ended> collect(const Started &started) {
    std::vector<Ended> result(started.pids.size());
    for (auto [pid, pipe, ended] :
         llvm::zip(started.pids, started.pipes, result)) {
      char buffer[4096];
      ssize_t bytes;
      while ((bytes = read(pipe, buffer, sizeof(buffer))) > 0)
        ended.said.append(buffer, size_t(bytes));
      close(pipe);
      waitpid(pid, &ended.status, 0);
    }
    return result;
  }
  /// All ranks end well.
  void expectWell(int ranks, const Work &work) {
    for (auto [rank, ended] : llvm::enumerate(run(ranks, work))) {
      EXPECT_EQ(ended.said, "") << "rank " << rank;
      EXPECT_EQ(ended.status, 0) << "rank " << rank;
    }
  }
  static bool has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  }

  std::string folder;
};

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
static float *allocateApart(Rank &me, size_t parts) {
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
  std::vector<Started> started;
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

namespace {

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

} // namespace

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

TEST_F(GroupTest, ADifferentLaunchIsNamed) {
  std::vector<Started> started;
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
static bool dropped(Rank &me, std::chrono::milliseconds patience) {
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
