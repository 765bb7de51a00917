//===- Rank.h - A rank of gpu-processes -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process with its own GPU, and the sums that show whether launches were
// right.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_PROCESSES_RANK_H
#define COMMSIR_TEST_GPU_PROCESSES_RANK_H

#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/RankDevices.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>

namespace commsir::embedded {
extern const unsigned char loadPtx[];
} // namespace commsir::embedded

namespace commsir::processes {

using namespace group;

inline double now() {
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
    options.device = cuda::getDeviceOf(rank, {});
    options.timeout = seconds(20);
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
  /// Time limits are these seconds, times COMMSIR_TEST_PATIENCE on machines
  /// that are slow or busy.
  static double seconds(double usual) {
    const char *times = std::getenv("COMMSIR_TEST_PATIENCE");
    return times ? usual * std::atof(times) : usual;
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
                               const char *protocol = "", int64_t blocks = 0,
                               const char *reduction = "sum") {
    std::string window = llvm::formatv("!comms.window<{0}xf32>", count).str();
    KernelRequest made;
    made.source = llvm::formatv("comms.kernel @{0}(%x: {1}, %y: {1}) {{\n"
                                "  %team = comms.team world\n"
                                "  comms.all_reduce {0} %team ins(%x : {1}) "
                                "outs(%y : {1})\n  comms.return\n}\n",
                                reduction, window)
                      .str();
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

  /// Number of a launch in which rank 0 alone gives what is not zero.
  static constexpr int64_t kAlone = -1;

  float value(int64_t rank, int64_t launch, int64_t i) {
    if (launch == kAlone && rank != 0)
      return 0;
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
  llvm::Error wait(CUstream stream) {
    double start = now(), limit = seconds(60);
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
    return capture([&] {
      for (int i = 0; i < times; ++i)
        for (Sum *sum : sums)
          check(launch(*sum, streams[0]));
    });
  }
  /// What `work` puts into the first stream.
  CUgraphExec capture(llvm::function_ref<void()> work) {
    CUgraph graph;
    CUgraphExec exec;
    check(driver().StreamBeginCapture(streams[0],
                                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "capturing");
    work();
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
  /// The same where the group has failed; `place` is named once.
  void meetInStore(const std::string &place) {
    check(store->set(place + std::to_string(options.rank), "here"));
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      take(store->get(place + std::to_string(rank), seconds(60)));
  }
  /// The ranks but `lost`, or all.
  std::vector<int64_t> others(int64_t lost = -1) const {
    std::vector<int64_t> ranks;
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      if (rank != lost)
        ranks.push_back(rank);
    return ranks;
  }
  /// Goes on as a group of these ranks.
  void shrink(llvm::ArrayRef<int64_t> survivors) {
    auto next = take(group->shrink(survivors, *store));
    group = std::move(next);
    options = group->options();
  }
  /// Sums are right, eager and in graphs.
  void sumAgain(const KernelRequest &what, int64_t count) {
    Sum again = makeSum(what, count);
    for (int i = 0; i < 5; ++i)
      sumOnce(again, i, streams[1]);
    CUgraphExec after = capture({&again});
    fill(again, 9, streams[1]);
    check(driver().GraphLaunch(after, streams[1]), "replaying");
    check(wait(streams[1]));
    compare(again, 9, streams[1]);
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

} // namespace commsir::processes

#endif // COMMSIR_TEST_GPU_PROCESSES_RANK_H
