//===- Processes.cpp - Groups of processes on GPUs, put to the test -------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// gpu-processes SCENARIO RANKS [NUMBER]: forks RANKS processes, a GPU each,
// which carry out the scenario. Every rank prints one line: "rank 2: ok …", or
// what went wrong; the exit status is the number of ranks that failed.
// processes.py runs them all.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Group.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/group/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;

namespace commsir::embedded {
extern const unsigned char loadPtx[];
} // namespace commsir::embedded

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// One kernel and its arrays: an all-reduce of f32 whose result tells rank,
/// launch and element.
struct Sum {
  GroupKernel *kernel = nullptr;
  int64_t count = 0;
  float *x = nullptr, *y = nullptr;
  std::vector<float> host;
};

/// One rank of a scenario. What fails ends the process, with a line.
class Rank {
public:
  Rank(const std::string &folder, int64_t rank, int64_t ranks, int64_t number)
      : number(number) {
    options.rank = rank;
    options.ranks = ranks;
    options.device = int(rank);
    options.timeout = 20;
    if (const char *windows = std::getenv("COMMSIR_TEST_WINDOWS"))
      options.windows = windows;
    store = take(createFileStore(folder));
  }

  [[noreturn]] void leave(const llvm::Twine &text, int status) {
    llvm::outs() << "rank " << options.rank << ": " << text << "\n";
    llvm::outs().flush();
    _exit(status);
  }
  [[noreturn]] void fail(const llvm::Twine &text) { leave(text, 1); }
  template <typename T>
  T take(llvm::Expected<T> value) {
    if (!value)
      fail(llvm::toString(value.takeError()));
    return std::move(*value);
  }
  void check(llvm::Error error) {
    if (error)
      fail(llvm::toString(std::move(error)));
  }
  void check(CUresult result, const char *what) {
    check(driver().check(result, what));
  }
  /// Launches a kernel of Load.cu.
  template <typename... Types>
  void load(const char *name, unsigned blocks, unsigned threads,
            CUstream stream, Types... arguments) {
    CUfunction &function = loaded[name];
    if (!loadModule)
      check(driver().ModuleLoadDataEx(&loadModule, embedded::loadPtx, 0,
                                      nullptr, nullptr),
            "loading Load.cu");
    if (!function) {
      check(driver().ModuleGetFunction(&function, loadModule, name), name);
      check(driver().FuncLoad(function), name);
    }
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.blockDimX = threads;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    void *values[] = {&arguments...};
    check(driver().LaunchKernelEx(&config, function, values, nullptr), name);
  }
  /// A communicator of NCCL's own, of all ranks; the store knows it by `name`.
  ncclComm_t makeNccl(const char *name) {
    const cuda::Nccl &nccl = *take(cuda::Nccl::get());
    ncclUniqueId id{};
    if (options.rank == 0) {
      nccl.GetUniqueId(&id);
      check(store->set(name, {id.internal, sizeof(id.internal)}));
    }
    std::string said = take(store->get(name, 20));
    std::memcpy(id.internal, said.data(), sizeof(id.internal));
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    check(nccl.check(nccl.CommInitRankConfig(&comm, int(options.ranks), id,
                                             int(options.rank), &config),
                     "ncclCommInitRankConfig"));
    return comm;
  }
  const cuda::Driver &driver() { return cuda::getDevice(*group).driver(); }

  void join() {
    double start = now();
    group = take(createCudaGroup(options, *store));
    joinSeconds = now() - start;
    check(driver().CtxSetCurrent(cuda::getDevice(*group).context()),
          "cuCtxSetCurrent");
    for (CUstream &stream : streams)
      check(driver().StreamCreate(&stream, CU_STREAM_NON_BLOCKING),
            "cuStreamCreate");
  }

  static KernelRequest request(int64_t count, const char *algorithm = "",
                               const char *protocol = "", int64_t blocks = 0) {
    std::string window = llvm::formatv("!comms.window<{0}xf32>", count).str();
    KernelRequest made;
    made.source = "comms.kernel @sum(%x: " + window + ", %y: " + window +
                  ") {\n  %team = comms.team world\n  comms.all_reduce sum "
                  "%team ins(%x : " +
                  window + ") outs(%y : " + window + ")\n  comms.return\n}\n";
    made.algorithm = algorithm;
    made.protocol = protocol;
    made.blocks = blocks;
    return made;
  }

  /// Over arrays of its own, or over those of `like`, which are as long.
  Sum makeSum(const KernelRequest &what, int64_t count,
              const Sum *like = nullptr) {
    Sum sum;
    sum.kernel = take(group->prepare(what));
    sum.count = count;
    if (like) {
      sum.x = like->x;
      sum.y = like->y;
    } else {
      sum.x = static_cast<float *>(take(group->allocate(size_t(count) * 4)));
      sum.y = static_cast<float *>(take(group->allocate(size_t(count) * 4)));
    }
    sum.host.resize(size_t(count));
    return sum;
  }

  float value(int64_t rank, int64_t launch, int64_t i) {
    return float((rank + 1) * 7 + launch % 1000 + i % 251);
  }
  void fill(Sum &sum, int64_t launch, CUstream stream) {
    for (int64_t i = 0; i < sum.count; ++i)
      sum.host[size_t(i)] = value(options.rank, launch, i);
    check(driver().MemcpyHtoDAsync(CUdeviceptr(sum.x), sum.host.data(),
                                   size_t(sum.count) * 4, stream),
          "filling");
    check(driver().MemsetD8Async(CUdeviceptr(sum.y), 0xFF,
                                 size_t(sum.count) * 4, stream),
          "poisoning");
  }
  llvm::Error launch(Sum &sum, CUstream stream) {
    size_t bytes = size_t(sum.count) * 4;
    Argument arguments[] = {{sum.x, bytes}, {sum.y, bytes}};
    return group->launch(*sum.kernel, arguments, stream);
  }
  /// Waits for the stream; the group's error if it has one.
  llvm::Error wait(CUstream stream, double limit = 60) {
    double start = now();
    while (true) {
      if (auto error = group->poll()) {
        // The kernel ends on its own.
        while (driver().StreamQuery(stream) == CUDA_ERROR_NOT_READY)
          if (now() - start > limit)
            fail("a kernel did not end");
        return error;
      }
      CUresult result = driver().StreamQuery(stream);
      if (result == CUDA_SUCCESS)
        return group->poll();
      if (result != CUDA_ERROR_NOT_READY)
        return driver().check(result, "running");
      if (now() - start > limit)
        fail("a stream did not end");
    }
  }
  void compare(Sum &sum, int64_t launch, CUstream stream) {
    check(driver().MemcpyDtoHAsync(sum.host.data(), CUdeviceptr(sum.y),
                                   size_t(sum.count) * 4, stream),
          "reading");
    check(driver().StreamSynchronize(stream), "reading");
    for (int64_t i = 0; i < sum.count; ++i) {
      float wanted = 0;
      for (int64_t rank = 0; rank < options.ranks; ++rank)
        wanted += value(rank, launch, i);
      if (sum.host[size_t(i)] != wanted)
        fail(llvm::formatv("launch {0} of {1} elements: element {2} is {3}, "
                           "not {4}",
                           launch, sum.count, i, sum.host[size_t(i)], wanted)
                 .str());
    }
  }
  void sumOnce(Sum &sum, int64_t number, CUstream stream) {
    fill(sum, number, stream);
    check(launch(sum, stream));
    check(wait(stream));
    compare(sum, number, stream);
  }
  CUgraphExec capture(llvm::ArrayRef<Sum *> sums, int times = 1) {
    CUgraph graph;
    CUgraphExec exec;
    check(driver().StreamBeginCapture(streams[0],
                                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "capturing");
    for (int i = 0; i < times; ++i)
      for (Sum *sum : sums)
        check(launch(*sum, streams[0]));
    check(driver().StreamEndCapture(streams[0], &graph), "capturing");
    check(driver().GraphInstantiate(&exec, graph, 0), "instantiating");
    check(driver().GraphInstantiate(&second, graph, 0), "instantiating");
    return exec;
  }
  /// All ranks have come here.
  void meet() {
    void *window = take(group->allocate(1));
    check(group->release(window));
  }
  void expect(const std::string &text, llvm::StringRef part) {
    if (!llvm::StringRef(text).contains(part))
      fail("the error does not say '" + part + "': " + text);
  }

  GroupOptions options;
  int64_t number;
  std::unique_ptr<Store> store;
  std::unique_ptr<Group> group;
  CUstream streams[4] = {};
  CUmodule loadModule = nullptr;
  std::map<std::string, CUfunction> loaded;
  CUgraphExec second = nullptr;
  double joinSeconds = 0;
};

//===----------------------------------------------------------------------===//
// Scenarios
//===----------------------------------------------------------------------===//

/// Sizes shrink and grow, eager and replayed.
std::string runSizes(Rank &me) {
  me.join();
  std::vector<Sum> sums;
  double start = now(), first = 0;
  for (int64_t count : {1 << 20, 1, 4096, 33, 262144, 1000, 65536}) {
    sums.push_back(me.makeSum(Rank::request(count), count));
    if (first == 0) {
      me.sumOnce(sums.back(), 0, me.streams[0]);
      first = now() - start;
    }
  }
  for (int64_t round = 0; round < me.number; ++round)
    for (Sum &sum : sums)
      me.sumOnce(sum, round, me.streams[round % 2]);
  std::vector<CUgraphExec> graphs;
  for (Sum &sum : sums)
    graphs.push_back(me.capture({&sum}, 3));
  for (int64_t round = 0; round < me.number; ++round)
    for (auto [sum, graph] : llvm::zip(sums, graphs)) {
      me.fill(sum, round, me.streams[1]);
      me.check(me.driver().GraphLaunch(graph, me.streams[1]), "replaying");
      me.check(me.wait(me.streams[1]));
      me.compare(sum, round, me.streams[1]);
      // Eager between replays.
      me.sumOnce(sum, round + 1, me.streams[0]);
    }
  return llvm::formatv("group in {0:f0} ms, first sum after {1:f0} ms; {2}",
                       me.joinSeconds * 1e3, first * 1e3,
                       cuda::getWindowsNote(*me.group))
      .str();
}

/// A launch by the group against the driver's call alone.
std::string runOverhead(Rank &me) {
  me.options.name += std::to_string(me.options.rank);
  me.options.rank = 0;
  me.options.ranks = 1;
  me.options.device = 0;
  if (me.number) // One process measures.
    return "";
  me.join();
  Sum sum = me.makeSum(Rank::request(1024, "one_shot", "pull", 1), 1024);
  const jit::CudaKernel &code = cuda::getCode(*sum.kernel);
  cuda::StateOptions limits;
  auto bare = me.take(
      cuda::LoadedKernel::load(cuda::getDevice(*me.group), code, 0, limits));
  auto scratch =
      me.take(cuda::Memory::allocate(cuda::getDevice(*me.group), 16 << 20));
  for (size_t i = 0; i < code.args().size(); ++i)
    bare->bindParts(unsigned(i), {scratch.address() + (i << 20)});
  auto measure = [&](const std::function<void()> &one) {
    std::vector<double> times;
    for (int batch = 0; batch < 60; ++batch) {
      double start = now();
      for (int i = 0; i < 200; ++i)
        one();
      times.push_back((now() - start) / 200 * 1e6);
      me.check(me.driver().StreamSynchronize(me.streams[0]), "waiting");
    }
    llvm::sort(times);
    return times[times.size() / 2];
  };
  auto byGroup = [&] { me.check(me.launch(sum, me.streams[0])); };
  auto byDriver = [&] { me.check(bare->launch(me.streams[0])); };
  measure(byGroup);
  double group = measure(byGroup), driver = measure(byDriver);
  std::string text =
      llvm::formatv("launch by the group {0:f2} us, bare {1:f2} us", group,
                    driver)
          .str();
  auto inCapture = [&](const std::function<void()> &one) {
    CUgraph graph;
    me.check(me.driver().StreamBeginCapture(
                 me.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             "capturing");
    double start = now();
    for (int i = 0; i < 2000; ++i)
      one();
    double each = (now() - start) / 2000 * 1e6;
    me.check(me.driver().StreamEndCapture(me.streams[0], &graph), "capturing");
    return each;
  };
  inCapture(byGroup);
  return text + llvm::formatv("; captured {0:f2} us, bare {1:f2} us",
                              inCapture(byGroup), inCapture(byDriver))
                    .str();
}

/// Rank `number` is killed, in the middle of launches or of replays; the others
/// say so, shrink, and go on.
std::string runKill(Rank &me, bool graph) {
  me.options.timeout = 1.5;
  me.join();
  Sum sum = me.makeSum(Rank::request(4096), 4096);
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
  while (said.empty() && now() - start < 20) {
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
  std::vector<int64_t> survivors;
  for (int64_t rank = 0; rank < me.options.ranks; ++rank)
    if (rank != victim)
      survivors.push_back(rank);
  start = now();
  auto next = me.take(me.group->shrink(survivors, *me.store));
  double shrunk = now() - start;
  me.group = std::move(next);
  me.options = me.group->options();
  for (int64_t count : {4096, 100000}) {
    Sum again = me.makeSum(Rank::request(count), count);
    for (int i = 0; i < 5; ++i)
      me.sumOnce(again, i, me.streams[1]);
    CUgraphExec after = me.capture({&again});
    me.fill(again, 9, me.streams[1]);
    me.check(me.driver().GraphLaunch(after, me.streams[1]), "replaying");
    me.check(me.wait(me.streams[1]));
    me.compare(again, 9, me.streams[1]);
  }
  return llvm::formatv("reported {0:f2} s after the start, shrunk in {1:f2} s",
                       seconds, shrunk)
      .str();
}

/// Rank 1 launches, or replays, another kernel than the others.
std::string runMismatch(Rank &me, bool graph) {
  me.options.timeout = 1;
  const KernelRequest usual = Rank::request(4096, "one_shot", "ll", 4);
  const std::pair<KernelRequest, const char *> others[] = {
      {Rank::request(4096, "two_shot", "ll", 4), "two_shot/ll"},
      {Rank::request(4096, "one_shot", "lamport", 4), "one_shot/lamport"},
      {Rank::request(4096, "one_shot", "ll", 2), "2 blocks of"},
  };
  for (auto [i, other] : llvm::enumerate(others)) {
    me.options.name = "mismatch " + std::to_string(i);
    me.join();
    Sum ours = me.makeSum(usual, 4096);
    Sum theirs = me.makeSum(other.first, 4096, &ours);
    me.sumOnce(ours, 1, me.streams[0]);
    me.sumOnce(theirs, 2, me.streams[0]);
    CUgraphExec replayOurs = me.capture({&ours}),
                replayTheirs = me.capture({&theirs});
    me.meet();
    bool odd = me.options.rank == 1;
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
    me.expect(said, odd ? "one_shot/ll, 4 blocks" : other.second);
    me.expect(said, "instead");
    if (graph)
      me.expect(said, "in a graph");
    sleep(1); // Peers read what this rank ran.
    me.group.reset();
  }
  return "";
}

/// Ranks come up to 10 ms late, in turn and at random.
std::string runStragglers(Rank &me) {
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

/// Many launches of 200 kernels in one order; the results of some are looked
/// at, in each batch of others.
std::string runMany(Rank &me) {
  me.join();
  const char *protocols[] = {"ll", "lamport", "pull", "ll"};
  std::vector<Sum> sums;
  for (int64_t i = 0; i < 200; ++i) {
    int64_t count = 1 + (i * i * 37) % 20000;
    sums.push_back(
        me.makeSum(Rank::request(count, i % 2 ? "two_shot" : "one_shot",
                                 protocols[i % 4], 1 + i % 4),
                   count, nullptr));
  }
  std::mt19937 random(1);
  double start = now();
  for (int64_t launch = 0; launch < me.number;) {
    std::vector<size_t> looked;
    for (int i = 0; i < 4; ++i)
      looked.push_back(random() % sums.size());
    for (size_t at : looked)
      me.fill(sums[at], launch, me.streams[0]);
    me.check(me.driver().StreamSynchronize(me.streams[0]), "filling");
    for (int i = 0; i < 2000; ++i, ++launch)
      me.check(me.launch(sums[random() % sums.size()], me.streams[0]));
    for (size_t at : looked)
      me.check(me.launch(sums[at], me.streams[0]));
    me.check(me.wait(me.streams[0]));
    for (size_t at : looked) {
      Sum &sum = sums[at];
      int64_t filled = launch - 2000;
      // Twice the same kernel: what was filled last.
      me.compare(sum, filled, me.streams[0]);
    }
  }
  return llvm::formatv("{0} launches in {1:f1} s", me.group->counts().launches,
                       now() - start)
      .str();
}

/// Arrays of a product of matrices, and what its first row is.
struct Product {
  static constexpr unsigned n = 1024;
  CUdeviceptr a = 0, b = 0, c = 0;

  explicit Product(Rank &me) {
    for (CUdeviceptr *array : {&a, &b, &c})
      *array = CUdeviceptr(me.take(me.group->allocateOwn(size_t(n) * n * 4)));
    // Numbers from 0 to 7: products are exact.
    for (CUdeviceptr array : {a, b})
      me.load("fill", 64, 256, me.streams[3], array, n * n, array, 0u,
              /*type=*/0, /*rank=*/unsigned(array == b), /*launch=*/0u);
    me.load("fill", 64, 256, me.streams[3], c, 0u, c, n * n, 0, 0u, 0u);
  }
  void launch(Rank &me) {
    me.load("gemm", n / 16 * n / 16, 256, me.streams[3], a, b, c, n);
  }
  void compare(Rank &me) {
    auto read = [&](CUdeviceptr from, size_t count) {
      std::vector<float> host(count);
      me.check(me.driver().MemcpyDtoHAsync(host.data(), from, count * 4,
                                           me.streams[3]),
               "reading");
      me.check(me.driver().StreamSynchronize(me.streams[3]), "the product");
      return host;
    };
    std::vector<float> left = read(a, n), right = read(b, size_t(n) * n),
                       row = read(c, n);
    for (unsigned column = 0; column < n; ++column) {
      float wanted = 0;
      for (unsigned k = 0; k < n; ++k)
        wanted += left[k] * right[size_t(k) * n + column];
      if (row[column] != wanted)
        me.fail(llvm::formatv("the product's column {0} is {1}, not {2}",
                              column, row[column], wanted)
                    .str());
    }
  }
};

/// Two kernels that are declared concurrent, started in opposite order on even
/// and odd ranks, beside NCCL and a product of matrices that fills the GPU.
std::string runOrder(Rank &me) {
  me.join();
  KernelRequest first = Rank::request(8192, "one_shot", "ll", 4),
                other = Rank::request(65536, "two_shot", "ll", 8);
  first.concurrent = other.concurrent = true;
  Sum sums[] = {me.makeSum(first, 8192), me.makeSum(other, 65536)};
  for (Sum &sum : sums)
    me.sumOnce(sum, 0, me.streams[0]);
  const cuda::Nccl &nccl = *me.take(cuda::Nccl::get());
  ncclComm_t comm = me.makeNccl("id");
  constexpr size_t count = 1 << 20;
  void *x = me.take(me.group->allocate(count * 4));
  void *y = me.take(me.group->allocate(count * 4));
  Product product(me);
  for (int64_t round = 0; round < me.number; ++round) {
    for (Sum &sum : sums)
      me.fill(sum, round, me.streams[&sum - sums]);
    me.check(nccl.check(
        nccl.AllReduce(x, y, count, ncclFloat, ncclSum, comm,
                       reinterpret_cast<cudaStream_t>(me.streams[2])),
        "ncclAllReduce"));
    product.launch(me);
    int begin = me.options.rank % 2;
    for (int i : {begin, 1 - begin})
      me.check(me.launch(sums[i], me.streams[i]));
    for (int i : {0, 1}) {
      me.check(me.wait(me.streams[i]));
      me.compare(sums[i], round, me.streams[i]);
    }
  }
  me.check(me.driver().StreamSynchronize(me.streams[2]), "NCCL");
  product.compare(me);
  nccl.CommDestroy(comm);
  return "";
}

/// A group around a communicator of the caller's, on which nothing was run.
std::string runAdopted(Rank &me) {
  auto device = me.take(cuda::Device::open(me.options.device));
  const cuda::Driver &cu = device.driver();
  me.check(cu.check(cu.CtxSetCurrent(device.context()), "cuCtxSetCurrent"));
  const cuda::Nccl &nccl = *me.take(cuda::Nccl::get());
  ncclComm_t comm = me.makeNccl("adopted");
  me.options.ncclComm = comm;
  me.options.windows = "nccl";
  me.join();
  Sum small = me.makeSum(Rank::request(1000), 1000);
  Sum large = me.makeSum(Rank::request(300000), 300000);
  for (int64_t launch = 0; launch < 20; ++launch)
    me.sumOnce(launch % 2 ? small : large, launch, me.streams[0]);
  // The communicator is the caller's still.
  me.fill(large, 7, me.streams[0]);
  me.check(nccl.check(
      nccl.AllReduce(large.x, large.y, size_t(large.count), ncclFloat, ncclSum,
                     comm, reinterpret_cast<cudaStream_t>(me.streams[0])),
      "ncclAllReduce"));
  me.compare(large, 7, me.streams[0]);
  std::string note = cuda::getWindowsNote(*me.group).str();
  me.meet();
  me.group.reset();
  nccl.CommDestroy(comm);
  return note;
}

/// Kernels that call NCCL's device library, beside themselves in two graphs.
/// Number 1: with a communicator of the caller's own.
std::string runDeviceLibrary(Rank &me) {
  auto device = me.take(cuda::Device::open(me.options.device));
  const cuda::Driver &cu = device.driver();
  me.check(cu.check(cu.CtxSetCurrent(device.context()), "cuCtxSetCurrent"));
  ncclComm_t comm = me.number ? me.makeNccl("device library") : nullptr;
  me.options.ncclComm = comm;
  me.options.windows = "nccl";
  me.join();
  KernelRequest what = Rank::request(20000, "one_shot", "pull", 8);
  what.impl = "nccl";
  CUstream stream = me.streams[0];
  Sum sum = me.makeSum(what, 20000);
  // What is generated takes turns with it.
  Sum generated =
      me.makeSum(Rank::request(20000, "one_shot", "push", 8), 20000, &sum);
  CUgraphExec first = me.capture({&sum, &generated}, 3);
  me.take(me.group->prepare(what)); // For one more capture.
  CUgraphExec other = me.capture({&sum}, 2);
  int64_t launch = 0;
  for (int round = 0; round < 20; ++round) {
    me.sumOnce(sum, ++launch, stream);
    for (CUgraphExec graph : {first, other}) {
      me.fill(sum, ++launch, stream);
      me.check(cu.check(cu.GraphLaunch(graph, stream), "cuGraphLaunch"));
      me.check(me.wait(stream));
      me.compare(sum, launch, stream);
    }
    me.sumOnce(generated, ++launch, stream);
  }
  me.meet();
  me.group.reset();
  if (comm)
    me.take(cuda::Nccl::get())->CommDestroy(comm);
  return "";
}

/// One operation, type and size.
struct Operation {
  GroupKernel *kernel = nullptr;
  int op = 0, type = 0;
  unsigned count = 0, inputs = 0, outputs = 0;
  size_t width = 0;
};

/// More than 200 of them, over the same arrays.
std::vector<Operation> makeOperations(Rank &me) {
  struct Kind {
    const char *text;
    unsigned inputParts, outputParts;
  };
  auto ranks = unsigned(me.options.ranks);
  std::string root = "broadcast root " + std::to_string(ranks - 1);
  // As Load.cu numbers them.
  const Kind kinds[] = {
      {"all_reduce sum", 1, 1},     {"all_reduce max", 1, 1},
      {"all_gather", 1, ranks},     {"reduce_scatter sum", ranks, 1},
      {"all_to_all", ranks, ranks}, {root.c_str(), 1, 1}};
  const std::pair<const char *, size_t> types[] = {
      {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i32", 4}};
  std::vector<Operation> made;
  for (auto [op, kind] : llvm::enumerate(kinds))
    for (auto [type, element] : llvm::enumerate(types))
      for (unsigned count :
           {1u, 7u, 64u, 257u, 1024u, 3000u, 8192u, 20001u, 65536u}) {
        Operation one{nullptr,
                      int(op),
                      int(type),
                      count,
                      count * kind.inputParts,
                      count * kind.outputParts,
                      element.second};
        std::string in = llvm::formatv("!comms.window<{0}x{1}>", one.inputs,
                                       element.first),
                    out = llvm::formatv("!comms.window<{0}x{1}>", one.outputs,
                                        element.first);
        KernelRequest request;
        request.source = "comms.kernel @one(%x: " + in + ", %y: " + out +
                         ") {\n  %team = comms.team world\n  comms." +
                         kind.text + " %team ins(%x : " + in +
                         ") outs(%y : " + out + ")\n  comms.return\n}\n";
        one.kernel = me.take(me.group->prepare(request));
        made.push_back(one);
      }
  return made;
}

/// `number` launches of distinct operations, types and sizes: the data of each
/// are new, each result is checked on the device, and now and then a rank is
/// up to 10 ms late.
std::string runChecked(Rank &me) {
  me.join();
  std::vector<Operation> operations = makeOperations(me);
  size_t bytes = size_t(65536) * 4 * size_t(me.options.ranks);
  void *x = me.take(me.group->allocate(bytes));
  void *y = me.take(me.group->allocate(bytes));
  auto wrong = CUdeviceptr(me.take(me.group->allocateOwn(12)));
  CUstream stream = me.streams[0];
  me.check(me.driver().MemsetD8Async(wrong, 0, 12, stream), "clearing");
  // The same choices on all ranks, but for who is late.
  std::mt19937 random(1), late{unsigned(me.options.rank + 2)};
  auto rank = unsigned(me.options.rank), ranks = unsigned(me.options.ranks);
  double start = now();
  for (int64_t launch = 0; launch < me.number; ++launch) {
    const Operation &one = operations[random() % operations.size()];
    unsigned most = std::max(one.inputs, one.outputs);
    unsigned blocks = std::min(most / 1024 + 1, 64u);
    me.load("fill", blocks, 256, stream, x, one.inputs, y, one.outputs,
            one.type, rank, unsigned(launch));
    if (late() % 1000 == 0)
      me.load("delay", 1, 1, stream, uint64_t(late() % 10'000'000));
    Argument arguments[] = {{x, one.inputs * one.width},
                            {y, one.outputs * one.width}};
    me.check(me.group->launch(*one.kernel, arguments, stream));
    me.load("check", blocks, 256, stream, y, one.outputs, one.type, one.op,
            one.count, rank, ranks, unsigned(launch), wrong);
    if (launch % 1000 != 999 && launch + 1 != me.number)
      continue;
    me.check(me.wait(stream));
    unsigned said[3] = {};
    me.check(me.driver().MemcpyDtoHAsync(said, wrong, sizeof(said), stream),
             "reading");
    me.check(me.driver().StreamSynchronize(stream), "reading");
    if (said[0])
      me.fail(llvm::formatv("{0} wrong elements by launch {1}, the first in "
                            "launch {2}, element {3}",
                            said[0], launch, int64_t(said[1]) - 1, said[2])
                  .str());
  }
  return llvm::formatv("{0} launches of {1} operations, all checked, in {2:f1} "
                       "s",
                       me.number, operations.size(), now() - start)
      .str();
}

/// One captured graph, instantiated twice and replayed twice at once.
std::string runBusy(Rank &me) {
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
std::string runLimit(Rank &me) {
  me.options.timeout = 60;
  me.join();
  Sum sum = me.makeSum(Rank::request(4096), 4096);
  CUgraphExec replay = me.capture({&sum}, 5);
  me.fill(sum, 1, me.streams[0]);
  me.check(me.driver().GraphLaunch(replay, me.streams[0]), "replaying");
  me.check(me.wait(me.streams[0]));
  me.compare(sum, 1, me.streams[0]);
  me.check(me.group->setTimeout(1));
  me.meet();
  if (me.options.rank + 1 == me.options.ranks) {
    sleep(5); // Longer than the others wait.
    return "";
  }
  double start = now();
  me.check(me.driver().GraphLaunch(replay, me.streams[0]), "replaying");
  llvm::Error error = me.wait(me.streams[0]);
  double seconds = now() - start;
  if (!error)
    me.fail("no error where a rank stayed away");
  std::string said = llvm::toString(std::move(error));
  if (seconds < 0.9 || seconds > 4)
    me.fail(llvm::formatv("it took {0:f1} s where the limit is 1: {1}", seconds,
                          said)
                .str());
  return llvm::formatv("reported after {0:f2} s", seconds).str();
}

std::string runScenario(llvm::StringRef name, Rank &me) {
  if (name == "sizes")
    return runSizes(me);
  if (name == "overhead")
    return me.options.rank == 0 ? runOverhead(me) : "";
  if (name == "kill" || name == "kill-replay")
    return runKill(me, name == "kill-replay");
  if (name == "mismatch" || name == "mismatch-replay")
    return runMismatch(me, name == "mismatch-replay");
  if (name == "stragglers")
    return runStragglers(me);
  if (name == "many")
    return runMany(me);
  if (name == "order")
    return runOrder(me);
  if (name == "busy")
    return runBusy(me);
  if (name == "limit-replay")
    return runLimit(me);
  if (name == "adopted")
    return runAdopted(me);
  if (name == "device-library")
    return runDeviceLibrary(me);
  if (name == "checked")
    return runChecked(me);
  me.fail("there is no scenario '" + name + "'");
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    llvm::errs() << "usage: gpu-processes SCENARIO RANKS [NUMBER]\n";
    return 2;
  }
  llvm::StringRef name = argv[1];
  int ranks = std::atoi(argv[2]);
  int64_t number = argc > 3 ? std::atoll(argv[3]) : 0;
  llvm::SmallString<128> folder;
  if (ranks < 1 ||
      llvm::sys::fs::createUniqueDirectory("gpu-processes", folder))
    return 2;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t pid = fork();
    if (pid == 0) {
      Rank me(std::string(folder), rank, ranks, number);
      std::string text = runScenario(name, me);
      me.leave("ok " + text, 0);
    }
    pids.push_back(pid);
  }
  bool kills = name.starts_with("kill");
  int failed = 0;
  for (auto [rank, pid] : llvm::enumerate(pids)) {
    int status = 0;
    waitpid(pid, &status, 0);
    bool victim = kills && int64_t(rank) == number;
    bool well = victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                       : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well && WIFSIGNALED(status))
      llvm::outs() << "rank " << rank << ": ended by signal "
                   << WTERMSIG(status) << "\n";
    failed += !well;
  }
  llvm::sys::fs::remove_directories(folder);
  return failed;
}
