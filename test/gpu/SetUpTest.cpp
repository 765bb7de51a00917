//===- SetUpTest.cpp - Failures of one rank, and later timeouts -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are threads over the driver of FakeCuda.cpp. If something fails on one
// of them, all get the error at once, and their state does not change.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroup.h"
#include "test/gpu/Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <dlfcn.h>

using namespace commsir;
using namespace commsir::test;
using group::Argument;
using group::Group;
using group::GroupKernel;
using group::KernelRequest;

namespace {

constexpr int kRanks = 2;
constexpr size_t kCount = 24;
constexpr size_t kBytes = kCount * sizeof(float);

KernelRequest request(const char *name = "sum") {
  std::string window = "!comms.window<24xf32>";
  KernelRequest made;
  made.source = "comms.kernel @" + std::string(name) + "(%x: " + window +
                ", %y: " + window + ") {\n  %team = comms.team world\n" +
                "  comms.all_reduce sum %team ins(%x : " + window +
                ") outs(%y : " + window + ")\n  comms.return\n}\n";
  made.algorithm = "one_shot";
  made.protocol = "pull";
  made.blocks = 2;
  made.threads = 64;
  made.cluster = 1;
  return made;
}

/// "" or what went wrong, of any rank.
std::string
asRanks(const std::function<std::string(Group &, int, Together &)> &work) {
  return inProcess([&] {
    setenv("COMMSIR_FAKE_GPUS", "8", 1);
    setenv("COMMSIR_FAKE_KERNEL", "exchange 24", 1);
    std::string cache = testing::TempDir() + "/commsir-group-cache";
    setenv("COMMSIR_CACHE_DIR", cache.c_str(), 1);
    return llvm::join(asThreads(kRanks, "plain", work), "");
  });
}

void fail(const char *function) {
  setenv("COMMSIR_FAKE_FAIL", (std::string(function) + " 1").c_str(), 1);
}
void failNothing() { unsetenv("COMMSIR_FAKE_FAIL"); }

unsigned long countCalls(const char *function) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto *count = reinterpret_cast<unsigned long (*)(const char *)>(
      dlsym(library, "fakeCalls"));
  return count(function);
}

/// "" when the error is that of rank 1.
std::string judge(llvm::Error error, const char *function) {
  if (!error)
    return std::string(function) + ": no error\n";
  std::string said = llvm::toString(std::move(error));
  if (said.rfind("rank 1: ", 0) == 0 &&
      said.find("FAKE_ERROR") != std::string::npos)
    return "";
  return std::string(function) + ": " + said + "\n";
}

/// A kernel and its arrays.
struct Sum {
  std::string make(Group &group) {
    auto prepared = group.prepare(request());
    if (!prepared)
      return llvm::toString(prepared.takeError());
    kernel = *prepared;
    auto window = group.allocate(1024);
    if (!window)
      return llvm::toString(window.takeError());
    x = static_cast<float *>(*window);
    y = x + 128;
    return "";
  }
  llvm::Error launch(Group &group, void *stream = nullptr) const {
    Argument arguments[] = {{x, kBytes}, {y, kBytes}};
    return group.launch(*kernel, arguments, stream);
  }
  std::string run(Group &group, int turn) const {
    int rank = int(group.options().rank);
    for (size_t i = 0; i < kCount; ++i)
      x[i] = float(100 * rank + turn) + float(i);
    if (auto error = launch(group))
      return llvm::toString(std::move(error));
    if (auto error = group.poll())
      return llvm::toString(std::move(error));
    for (size_t i = 0; i < kCount; ++i)
      if (y[i] != float(100 + 2 * turn) + 2 * float(i))
        return "element " + std::to_string(i) + " is " + std::to_string(y[i]);
    return "";
  }

  GroupKernel *kernel = nullptr;
  float *x = nullptr, *y = nullptr;
};

CUstream makeStream(Group &group) {
  const cuda::Device &device = cuda::getDevice(group);
  cuda::ContextGuard guard(device.driver(), device.context());
  CUstream stream = nullptr;
  device.driver().StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

/// Captures one launch; null: it failed with `error`.
CUgraphExec capture(Group &group, const Sum &sum, CUstream stream,
                    llvm::Error &error) {
  const cuda::Driver &cu = cuda::getDevice(group).driver();
  cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  error = sum.launch(group, stream);
  CUgraph graph = nullptr;
  cu.StreamEndCapture(stream, &graph);
  CUgraphExec made = nullptr;
  if (!error)
    cu.GraphInstantiate(&made, graph, 0);
  return made;
}

TEST(SetUp, AllRanksGetTheErrorOfOne) {
  for (const char *function :
       {"ModuleLoadDataEx", "StreamCreate", "EventCreate", "MemHostAlloc",
        "MemCreate", "MemAddressReserve", "MemMap", "MemSetAccess",
        "MemExportToShareableHandle", "MemImportFromShareableHandle",
        "MemcpyHtoD", "LaunchKernelEx", "MemsetD8"}) {
    fail(function);
    std::string said = asRanks(
        [](Group &, int, Together &) -> std::string { return "started"; });
    failNothing();
    size_t first = said.find("rank 1: "), second = said.find("rank 1: ", 1);
    EXPECT_EQ(first, 0u) << function << ": " << said;
    EXPECT_NE(second, std::string::npos) << function << ": " << said;
    EXPECT_NE(said.find("FAKE_ERROR"), std::string::npos) << said;
  }
}

/// Channels of the kernels that come after lie at the same places on all ranks,
/// or the sum would not be right.
TEST(SetUp, AfterAFailureOfOneRankAllGoOn) {
  EXPECT_EQ(
      asRanks([](Group &group, int rank, Together &together) {
        std::string wrong;
        auto with = [&](const char *function, auto work) {
          together.once(rank, [&] { fail(function); });
          wrong += judge(work(), function);
        };
        for (const char *function : {"ModuleLoadDataEx", "FuncGetAttribute",
                                     "MemHostAlloc", "MemcpyHtoDAsync"})
          with(function, [&] { return group.prepare(request()).takeError(); });
        for (const char *function : {"MemCreate", "MemsetD8"})
          with(function, [&] { return group.allocate(4096).takeError(); });
        KernelRequest large = request("large");
        for (size_t at;
             (at = large.source.find("24xf32")) != std::string::npos;)
          large.source.replace(at, 6, "8388608xf32");
        large.check = false;
        for (const char *function : {"MemCreate", "MemsetD8"})
          with(function, [&] { return group.prepare(large).takeError(); });
        together.once(rank, failNothing);
        Sum sum;
        wrong += sum.make(group);
        for (int turn = 0; turn < 3 && wrong.empty(); ++turn)
          wrong += sum.run(group, turn);
        return wrong;
      }),
      "");
}

TEST(SetUp, ACaptureThatOneRankCannotServeFailsOnAll) {
  EXPECT_EQ(asRanks([](Group &group, int rank, Together &together) {
              Sum sum;
              std::string wrong = sum.make(group);
              CUstream stream = makeStream(group);
              const cuda::Driver &cu = cuda::getDevice(group).driver();
              llvm::Error error = llvm::Error::success();
              // The first has channels that were made beforehand.
              for (bool fails : {false, true, false}) {
                together.once(
                    rank, fails ? [] { fail("MemcpyHtoDAsync"); }
                                : [] { failNothing(); });
                CUgraphExec graph = capture(group, sum, stream, error);
                if (fails) {
                  wrong += judge(std::move(error), "MemcpyHtoDAsync");
                  continue;
                }
                if (error)
                  wrong += llvm::toString(std::move(error));
                if (graph)
                  cu.GraphLaunch(graph, stream);
              }
              llvm::consumeError(std::move(error));
              return wrong.empty() ? sum.run(group, 5) : wrong;
            }),
            "");
}

TEST(SetUp, ATimeoutOfLaterHoldsForKernelsThatAreThere) {
  std::string said =
      asRanks([](Group &group, int rank, Together &together) -> std::string {
        Sum sum;
        if (std::string wrong = sum.make(group); !wrong.empty())
          return wrong;
        for (double timeout : {20.0, 30.0, 30.0}) {
          llvm::cantFail(group.setTimeout(timeout));
          if (std::string wrong = sum.run(group, 1); !wrong.empty())
            return wrong;
        }
        // Written where it has changed, in two halves.
        together.wait();
        if (countCalls("MemsetD32Async") != 2 * kRanks)
          return "written too often";
        std::string told;
        if (rank == 0) {
          llvm::cantFail(group.setTimeout(0.25));
          llvm::Error error = sum.launch(group);
          told = llvm::toString(error ? std::move(error) : group.poll());
        }
        together.wait();
        return told;
      });
  EXPECT_NE(said.find("gave up waiting after 0.25 s"), std::string::npos)
      << said;
}

TEST(SetUp, ATimeoutOfLaterHoldsForGraphsThatAreThere) {
  std::string said =
      asRanks([](Group &group, int rank, Together &together) -> std::string {
        Sum sum;
        if (std::string wrong = sum.make(group); !wrong.empty())
          return wrong;
        const cuda::Driver &cu = cuda::getDevice(group).driver();
        CUstream stream = makeStream(group);
        llvm::Error error = llvm::Error::success();
        CUgraphExec graph = capture(group, sum, stream, error);
        if (error)
          return llvm::toString(std::move(error));
        cu.GraphLaunch(graph, stream);
        if (auto failed = group.poll())
          return llvm::toString(std::move(failed));
        together.wait();
        std::string told;
        if (rank == 0) {
          llvm::cantFail(group.setTimeout(0.25));
          cu.GraphLaunch(graph, stream);
          told = llvm::toString(group.poll());
        }
        together.wait();
        return told;
      });
  EXPECT_NE(said.find("gave up waiting after 0.25 s"), std::string::npos)
      << said;
}

} // namespace
