//===- GroupTest.h - Groups whose ranks are processes -----------*- C++ -*-===//
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

#ifndef COMMSIR_TEST_GPU_GROUPTEST_H
#define COMMSIR_TEST_GPU_GROUPTEST_H

#include "runtime/cuda/Mapping.h"
#include "runtime/group/Group.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "test/gpu/Child.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <vector>

namespace commsir::test {

using namespace commsir::group;

inline constexpr size_t kCount = 24;
inline constexpr size_t kBytes = kCount * sizeof(float);
/// Seconds that ranks wait in tests where one does not come; those that come
/// have to be there by then, on a busy machine too.
inline constexpr double kImpatience = 4;

inline std::string sumSource(const char *name = "sum",
                             const char *kind = "sum") {
  std::string window = "!comms.window<24xf32>";
  return std::string("comms.kernel @") + name + "(%x: " + window +
         ", %y: " + window + ") {\n  %team = comms.team world\n" +
         "  comms.all_reduce " + kind + " %team ins(%x : " + window +
         ") outs(%y : " + window + ")\n  comms.return\n}\n";
}

inline KernelRequest sumRequest(int64_t blocks = 2) {
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
  [[noreturn]] void leave(llvm::StringRef text) { Child::leave(out, text); }

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
inline unsigned long countCalls(const char *function) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto *count = reinterpret_cast<unsigned long (*)(const char *)>(
      dlsym(library, "fakeCalls"));
  return count(function);
}

/// "" or what went wrong, in a process of its own.
using Work = std::function<std::string(Rank &)>;

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

  /// Runs `work` as each rank.
  std::vector<Ended> run(int ranks, const Work &work) {
    return collect(start(ranks, work));
  }
  /// The same in two parts: what waits long can wait while others run.
  std::vector<Child> start(int ranks, const Work &work) {
    std::vector<Child> children;
    for (int rank = 0; rank < ranks; ++rank)
      children.push_back(Child::start([&, rank](int out) {
        Rank me(folder, rank, ranks);
        me.out = out;
        me.leave(work(me));
        return std::string();
      }));
    return children;
  }
  static std::vector<Ended> collect(const std::vector<Child> &children) {
    std::vector<Ended> result;
    for (const Child &child : children)
      result.push_back(child.wait());
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

} // namespace commsir::test

#endif // COMMSIR_TEST_GPU_GROUPTEST_H
