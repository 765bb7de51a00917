//===- NcclTest.cpp - Kernels that call NCCL, without a GPU ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are threads over the driver of FakeCuda.cpp and the NCCL of
// FakeNccl.cpp. A process loads NCCL once, so each test is a separate process.
// run.py tests on GPUs what such kernels compute.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Communicator.h"
#include "runtime/cuda/Kernel.h"
#include "runtime/cuda/World.h"
#include "runtime/group/Group.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "test/gpu/Threads.h"

#include "dialect/Comms.h"
#include "lowering/Register.h"
#include "lowering/Translations.h"

#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <unistd.h>

using namespace commsir;

namespace {

constexpr int kRanks = 2;
constexpr size_t kCount = 24;
constexpr size_t kBytes = kCount * sizeof(float);

const char kSum[] = R"(
comms.kernel @sum(%x: !comms.window<24xf32>, %y: !comms.window<24xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<24xf32>) outs(%y : !comms.window<24xf32>)
  comms.return
})";

const char kGin[] = R"(
comms.kernel @tell(%s: !comms.signal<4>, %t: !comms.signal<3>) {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  comms.signal inc %s[%c1] at %c0 of %team gin <context_id = 1> : !comms.signal<4>
  comms.signal inc %t[%c1] at %c0 of %team gin <> : !comms.signal<3>
  comms.return
})";

const char kTeams[] = R"(
comms.kernel @teams(%w: !comms.window<8xf32>) attributes {lsa_size = 1 : i64} {
  %lsa = comms.team lsa
  comms.barrier %lsa block
  comms.return
})";

const char kMultimem[] = R"(
comms.kernel @all(%w: !comms.window<64xbf16>) {
  %c0 = arith.constant 0 : index
  %team = comms.team world
  %all = comms.multimem %w of %team : !comms.window<64xbf16> -> memref<64xbf16, #comms.space<multimem>>
  %sum = comms.multimem_load_reduce sum %all[%c0] : memref<64xbf16, #comms.space<multimem>> -> tensor<8xbf16>
  comms.multimem_store %sum, %all[%c0] : tensor<8xbf16>, memref<64xbf16, #comms.space<multimem>>
  comms.return
})";

using Kernel = std::unique_ptr<jit::CudaKernel>;

llvm::Expected<Kernel> compile(const char *source, const char *impl = "nccl") {
  static mlir::MLIRContext *context = nullptr;
  if (!context) {
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    mlir::comms::registerLLVMIRTranslationInterfaces(registry);
    context = new mlir::MLIRContext(registry);
  }
  jit::CudaOptions options;
  options.ranks = kRanks;
  options.blocks = 2;
  options.threads = 64;
  options.cluster = 1;
  options.algorithm = "one_shot";
  options.protocol = "pull";
  options.check = source == kSum;
  options.impl = impl;
  options.nccl = cuda::findNccl;
  return jit::compileCuda(
      mlir::parseSourceString<mlir::ModuleOp>(source, context), "", options);
}

Kernel compiled(const char *source, const char *impl = "nccl") {
  auto kernel = compile(source, impl);
  if (kernel)
    return std::move(*kernel);
  llvm::errs() << llvm::toString(kernel.takeError()) << "\n";
  _exit(1);
}

/// Tells the fake driver where the kernel's parameters are.
void announce(const jit::CudaKernel &kernel) {
  auto wordOf = [&](llvm::StringRef name) {
    size_t word = mlir::comms::nvvm::kArgumentsOffset / 8;
    for (const jit::ArgInfo &argument : kernel.args()) {
      if (argument.name == name)
        return std::to_string(word);
      bool parts = argument.kind == jit::ArgKind::Window ||
                   argument.kind == jit::ArgKind::Signal;
      word += parts ? kRanks : 1;
    }
    llvm::errs() << "no argument " << name << "\n";
    _exit(1);
  };
  std::string text = "nccl " + std::to_string(kCount) + "," +
                     wordOf("nccl.comm") + "," + wordOf("nccl.window.x") + "," +
                     wordOf("nccl.offset.x") + "," + wordOf("nccl.window.y") +
                     "," + wordOf("nccl.offset.y");
  setenv("COMMSIR_FAKE_KERNEL", text.c_str(), 1);
}

std::string log() {
  std::string path = COMMSIR_LIBRARIES "/fake-nccl/libnccl.so.2";
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return "NCCL was not loaded";
  return reinterpret_cast<const char *(*)()>(dlsym(library, "fakeNcclLog"))();
}

llvm::Expected<std::unique_ptr<cuda::World>>
makeWorld(const jit::CudaKernel &kernel,
          cuda::WindowKind windows = cuda::WindowKind::Auto,
          bool graph = false) {
  cuda::RunOptions options;
  options.windows = windows;
  options.launches = 3;
  options.graph = graph;
  return cuda::World::create(kernel, options);
}

/// The error that making a world of `kernel` ends in.
std::string refusal(const jit::CudaKernel &kernel,
                    cuda::WindowKind windows = cuda::WindowKind::Auto) {
  auto world = makeWorld(kernel, windows);
  return world ? "it was not refused" : llvm::toString(world.takeError());
}

class NcclTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("COMMSIR_FAKE_GPUS", "8", 1);
    std::string cache = testing::TempDir() + "/commsir-group-cache";
    setenv("COMMSIR_CACHE_DIR", cache.c_str(), 1);
  }

  static std::string run(const std::function<std::string()> &work,
                         const char *lacks = "",
                         const char *folder = "fake-nccl") {
    return test::inProcess(work, lacks, folder);
  }
  static void expect(const std::string &said,
                     std::initializer_list<const char *> parts) {
    for (const char *part : parts)
      EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  }
};

//===----------------------------------------------------------------------===//
// A world
//===----------------------------------------------------------------------===//

std::string sumInWorld(bool graph) {
  Kernel kernel = compiled(kSum);
  announce(*kernel);
  {
    auto world = makeWorld(*kernel, cuda::WindowKind::Auto, graph);
    if (!world)
      return llvm::toString(world.takeError());
    int x = kernel->findArg("x"), y = kernel->findArg("y");
    for (int rank = 0; rank < kRanks; ++rank)
      for (size_t i = 0; i < kCount; ++i)
        reinterpret_cast<float *>((*world)->memory(x, rank).data())[i] =
            float(100 * rank) + float(i);
    auto result = (*world)->run();
    if (auto *error = std::get_if<cpu::RunError>(&result))
      return error->message;
    for (int rank = 0; rank < kRanks; ++rank)
      for (size_t i = 0; i < kCount; ++i) {
        float got =
            reinterpret_cast<float *>((*world)->memory(y, rank).data())[i];
        if (got != 100 + 2 * float(i))
          return "element " + std::to_string(i) + " is " + std::to_string(got);
      }
  }
  return log();
}

TEST_F(NcclTest, RequirementsAreMadeAndFreedInOrder) {
  for (bool graph : {false, true})
    EXPECT_EQ(run([=] { return sumInWorld(graph); }),
              "init\nwindow\ndevice communicator of 2 barriers\n"
              "no device communicator\nno window\ndestroy\n");
}

TEST_F(NcclTest, AnNcclWithoutDeviceCommunicatorsIsRefused) {
  expect(run([] { return refusal(*compiled(kSum)); }, "", "fake-nccl-old"),
         {"fake-nccl-old/libnccl.so.2 has no ncclDevCommCreate",
          "COMMSIR_NCCL_LIBRARY", "leave impl=nccl out"});
}

TEST_F(NcclTest, AnOldNcclIsRefusedByFileAndVersion) {
  auto find = []() -> std::string {
    auto found = cuda::findNccl();
    return found ? "it was not refused" : llvm::toString(found.takeError());
  };
  expect(run(find, "windows"),
         {"fake-nccl/libnccl.so.2 is NCCL 2.27.7; 2.28 or newer is needed",
          "COMMSIR_NCCL_LIBRARY"});
}

TEST_F(NcclTest, StructuresOfAnotherReleaseAreNoticed) {
  expect(run([] { return refusal(*compiled(kSum)); }, "rank"),
         {"says that it is rank 1 of 2, not 0 of 2"});
}

TEST_F(NcclTest, TeamsOfAnotherSizeAreRefused) {
  expect(run([] { return refusal(*compiled(kTeams)); }, ""),
         {"reach of 1 ranks, and NCCL's have 2", "lsa_size = 2",
          "NCCL_LSA_TEAM_SIZE=1"});
}

TEST_F(NcclTest, GinThatIsNotThereIsRefused) {
  expect(run([] { return refusal(*compiled(kGin, "")); }, "gin"),
         {"ncclDevCommCreate", "GIN not supported.", "drop `gin`",
          "network adapter"});
  expect(run([] { return refusal(*compiled(kGin, "")); }, "contexts"),
         {"needs 2 GIN contexts, 7 signals and 0 counters; NCCL gives 0"});
  expect(run([] { return refusal(*compiled(kGin, "")); }, "adapter"),
         {"an adapter of kind 5", "NCCL_GIN_TYPE=2", "drop `gin`"});
}

TEST_F(NcclTest, CellsOfGinAreNumbered) {
  EXPECT_EQ(run([]() -> std::string {
              Kernel kernel = compiled(kGin, "");
              auto device = llvm::cantFail(cuda::Device::open(0));
              auto code =
                  llvm::cantFail(cuda::KernelCode::load(device, *kernel));
              auto params = code->makeParams(0);
              auto at = [&](const char *name) {
                return params[code->placeOf(kernel->findArg(name))];
              };
              return std::to_string(at("nccl.first.s")) + " " +
                     std::to_string(at("nccl.first.t"));
            }),
            "0 4");
}

TEST_F(NcclTest, MultimemIsRefusedBeforeALaunch) {
  std::string said = run([] { return refusal(*compiled(kMultimem)) + log(); });
  expect(said, {"kernel 'all' takes multicast addresses of NCCL",
                "multicast is off here"});
  EXPECT_EQ(said.find("device communicator"), std::string::npos) << said;
}

TEST_F(NcclTest, WindowsMustBeNccls) {
  expect(run([] { return refusal(*compiled(kSum), cuda::WindowKind::Plain); }),
         {"the windows are not NCCL's"});
}

TEST_F(NcclTest, WithoutNcclSuchKernelsDoNotCompile) {
  for (const char *source : {kSum, kGin})
    expect(run(
               [=] {
                 auto kernel = compile(source, source == kSum ? "nccl" : "");
                 return kernel ? "compiled"
                               : llvm::toString(kernel.takeError());
               },
               "", "nowhere"),
           {"calls NCCL's device library", "NCCL could not be loaded"});
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

group::KernelRequest sumRequest() {
  group::KernelRequest request;
  request.source = kSum;
  request.algorithm = "one_shot";
  request.protocol = "pull";
  request.blocks = 2;
  request.threads = 64;
  request.cluster = 1;
  request.impl = "nccl";
  return request;
}

std::string
asRanks(const std::function<std::string(group::Group &, int)> &work) {
  return llvm::join(
      test::asThreads(kRanks, "",
                      [&](group::Group &group, int rank, test::Together &) {
                        return work(group, rank);
                      }),
      "");
}

std::string sumInGroup(group::Group &group, int rank) {
  auto kernel = group.prepare(sumRequest());
  if (!kernel)
    return llvm::toString(kernel.takeError());
  // Two arrays of one window: neither begins where NCCL's window does.
  auto window = group.allocate(3 * 256 + kBytes);
  if (!window)
    return llvm::toString(window.takeError());
  auto *x = reinterpret_cast<float *>(static_cast<char *>(*window) + 256);
  auto *y = reinterpret_cast<float *>(static_cast<char *>(*window) + 768);
  for (size_t i = 0; i < kCount; ++i)
    x[i] = float(100 * rank) + float(i);
  group::Argument arguments[] = {{x, kBytes}, {y, kBytes}};
  for (int launch = 0; launch < 3; ++launch)
    if (auto error = group.launch(**kernel, arguments, nullptr))
      return llvm::toString(std::move(error));
  for (size_t i = 0; i < kCount; ++i)
    if (y[i] != 100 + 2 * float(i))
      return "element " + std::to_string(i) + " is " + std::to_string(y[i]);
  return "";
}

/// Two device communicators: one is for a capture.
TEST_F(NcclTest, GroupsLaunchSuchKernels) {
  EXPECT_EQ(run([] {
              announce(*compiled(kSum));
              return asRanks(sumInGroup) + log();
            }),
            "init\nwindow\ndevice communicator of 2 barriers\n"
            "device communicator of 2 barriers\nwindow\n"
            "no device communicator\nno device communicator\nno window\n"
            "no window\ndestroy\n");
}

/// Two ranks make a group, and rank 0 ends it by `first`; when it has, rank 1
/// does by `second`.
template <typename End>
static void endInTurn(End first, End second) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("commsir-end", folder));
  test::Together together(2);
  auto end = [&](int rank) {
    auto store = llvm::cantFail(group::createFileStore(folder));
    group::GroupOptions options;
    options.rank = options.device = rank;
    options.ranks = 2;
    options.timeout = 20;
    auto group = llvm::cantFail(group::createCudaGroup(options, *store));
    together.wait();
    if (rank == 0)
      first(std::move(group));
    together.wait();
    if (rank == 1)
      second(std::move(group));
  };
  std::thread other(end, 1);
  end(0);
  other.join();
  llvm::sys::fs::remove_directories(folder);
}

static void dropGroup(std::unique_ptr<group::Group> group) {
  group::Group *dropped = group.release();
  group::drop(*dropped, [dropped] { delete dropped; });
}

static double secondsOf(llvm::function_ref<void()> work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// What NCCL has been asked for when that is as many lines: threads may be at
/// it.
static std::string logOf(size_t lines) {
  for (int i = 0; i < 100 && llvm::count(log(), '\n') < ptrdiff_t(lines); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return log();
}

/// NCCL would wait for the other ranks, which may be elsewhere.
TEST_F(NcclTest, DestroyingAGroupAloneAborts) {
  EXPECT_EQ(run([] {
              auto end = [](std::unique_ptr<group::Group> group) {};
              endInTurn(end, end);
              return logOf(3);
            }),
            "init\nwindow\nabort\n");
}

/// What ranks drop at times of their own ends when the last has.
TEST_F(NcclTest, DroppingAGroupDoesNotWait) {
  EXPECT_EQ(run([] {
              double waited = 0;
              auto drop = [&](std::unique_ptr<group::Group> group) {
                waited = std::max(
                    waited, secondsOf([&] { dropGroup(std::move(group)); }));
              };
              endInTurn(drop, drop);
              std::string said = logOf(4);
              return waited < 1 ? said : "waited " + std::to_string(waited);
            }),
            "init\nwindow\nno window\ndestroy\n");
}

/// Nor does its process, when it ends before the last rank has.
TEST_F(NcclTest, ProcessesEndWithGroupsThatTheyDropped) {
  EXPECT_EQ(run([] {
              pid_t pid = fork();
              if (pid == 0) {
                auto drop = [](std::unique_ptr<group::Group> group) {
                  dropGroup(std::move(group));
                };
                auto leave = [](std::unique_ptr<group::Group> group) {
                  std::exit(0);
                };
                endInTurn<void (*)(std::unique_ptr<group::Group>)>(drop, leave);
              }
              int status = 1;
              double waited = secondsOf([&] { waitpid(pid, &status, 0); });
              return status       ? "status " + std::to_string(status)
                     : waited > 4 ? "waited " + std::to_string(waited)
                                  : std::string("ended");
            }),
            "ended");
}

TEST_F(NcclTest, MemoryThatNcclDoesNotKnowIsRefused) {
  std::string said = run([] {
    return asRanks([](group::Group &group, int rank) -> std::string {
      auto kernel = group.prepare(sumRequest());
      if (!kernel)
        return llvm::toString(kernel.takeError());
      auto *memory = static_cast<char *>(std::aligned_alloc(256, 512));
      std::vector<uint64_t> parts(kRanks, reinterpret_cast<uint64_t>(memory));
      if (auto error = group.adopt(memory, 512, parts))
        return llvm::toString(std::move(error));
      group::Argument arguments[] = {{memory, kBytes}, {memory + 256, kBytes}};
      auto error = group.launch(**kernel, arguments, nullptr);
      return error ? llvm::toString(std::move(error)) : "launched";
    });
  });
  expect(said, {"argument 'x' of kernel 'sum' is memory that NCCL has not "
                "registered for this group",
                "allocate it by the group"});
}

/// The second finds none; to prepare the kernel again makes one.
TEST_F(NcclTest, EveryCaptureHasADeviceCommunicator) {
  std::string said = run([] {
    return asRanks([](group::Group &group, int rank) -> std::string {
      auto kernel = group.prepare(sumRequest());
      if (!kernel)
        return llvm::toString(kernel.takeError());
      auto window = group.allocate(1024);
      if (!window)
        return llvm::toString(window.takeError());
      const cuda::Device &device = cuda::getDevice(group);
      const cuda::Driver &cu = device.driver();
      cuda::ContextGuard guard(cu, device.context());
      auto *base = static_cast<char *>(*window);
      group::Argument arguments[] = {{base, kBytes}, {base + 512, kBytes}};
      std::string said;
      for (int capture = 0; capture < 3; ++capture) {
        if (capture == 2 && !llvm::cantFail(group.prepare(sumRequest())))
          return "no kernel";
        CUstream stream = nullptr;
        CUgraph graph = nullptr;
        cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        auto error = group.launch(**kernel, arguments, stream);
        said += error ? llvm::toString(std::move(error)) : "captured\n";
        cu.StreamEndCapture(stream, &graph);
      }
      return rank == 0 ? said : "";
    });
  });
  EXPECT_EQ(said.rfind("captured\n", 0), 0u) << said;
  expect(said, {"no device communicator is left for one more capture",
                "Prepare the kernel again between captures", "impl=nccl"});
  EXPECT_TRUE(llvm::StringRef(said).ends_with("captured\n")) << said;
}

/// Nobody waits in NCCL for a rank that does not come there.
TEST_F(NcclTest, ARankWithoutMemoryEndsAllWaits) {
  std::string one = "rank 1: ncclMemAlloc of ";
  std::string both = run([] { return asRanks(sumInGroup); }, "memory");
  size_t first = both.find(one), second = both.find(one, first + 1);
  EXPECT_NE(second, std::string::npos) << both;
  expect(both, {"out of memory"});
  expect(run([] { return refusal(*compiled(kSum)); }, "memory"), {one.c_str()});
  expect(run([] { return asRanks(sumInGroup); }, "register"),
         {"rank 1: ncclCommWindowRegister"});
}

/// And what all have goes on: their channels lie at the same places.
TEST_F(NcclTest, AfterARankHadNoMemoryTheGroupGoesOn) {
  EXPECT_EQ(
      run([] {
        announce(*compiled(kSum));
        return llvm::join(
            test::asThreads(
                kRanks, "nccl",
                [](group::Group &group, int rank, test::Together &together) {
                  auto lack = [&](const char *what) {
                    together.once(
                        rank, [=] { setenv("COMMSIR_FAKE_NCCL", what, 1); });
                  };
                  std::string wrong;
                  for (const char *what : {"memory", "register"}) {
                    lack(what);
                    auto window = group.allocate(size_t(64) << 20);
                    if (window)
                      wrong += "allocated\n";
                    else if (std::string said =
                                 llvm::toString(window.takeError());
                             said.rfind("rank 1: nccl", 0) != 0)
                      wrong += said + "\n";
                  }
                  lack("");
                  return wrong + sumInGroup(group, rank);
                }),
            "");
      }),
      "");
}

TEST_F(NcclTest, AllRanksGetTheErrorOfARank) {
  expect(run([] { return asRanks(sumInGroup); }, "rank"),
         {"says that it is rank 1 of 2", "says that it is rank 2 of 2"});
}

} // namespace
