//===- NcclProcessesTest.cpp - Processes with NCCL ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are processes over the driver of FakeCuda.cpp and the NCCL of
// FakeNccl.cpp. If NCCL refuses something to one of them, all get the error.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/CudaGroup.h"

#include "test/gpu/Threads.h"

#include <dlfcn.h>
#include <nccl.h>

using namespace commsir;
using namespace commsir::test;
using group::Group;

namespace {

constexpr int kRanks = 3;
constexpr size_t kCount = 24;
constexpr size_t kBytes = kCount * sizeof(float);

/// "" or what is wrong with a group and a sum of this rank.
std::string sum(const std::string &folder, int rank) {
  auto store = llvm::cantFail(group::createFileStore(folder));
  group::GroupOptions options;
  options.rank = rank;
  options.ranks = kRanks;
  options.device = rank;
  options.timeout = 20;
  options.windows = "nccl";
  auto made = group::createCudaGroup(options, *store);
  if (!made)
    return llvm::toString(made.takeError());
  Group &group = **made;
  std::string window = "!comms.window<24xf32>";
  group::KernelRequest request;
  request.source = "comms.kernel @sum(%x: " + window + ", %y: " + window +
                   ") {\n  %team = comms.team world\n  comms.all_reduce sum "
                   "%team ins(%x : " +
                   window + ") outs(%y : " + window + ")\n  comms.return\n}\n";
  request.algorithm = "one_shot";
  request.protocol = "pull";
  request.blocks = 2;
  request.threads = 64;
  request.cluster = 1;
  auto kernel = group.prepare(request);
  auto memory = group.allocate(1024);
  if (!kernel || !memory)
    return llvm::toString(
        llvm::joinErrors(kernel.takeError(), memory.takeError()));
  auto *x = static_cast<float *>(*memory), *y = x + 128;
  for (size_t i = 0; i < kCount; ++i)
    x[i] = float(100 * rank) + float(i);
  group::Argument arguments[] = {{x, kBytes}, {y, kBytes}};
  if (auto error = group.launch(**kernel, arguments, nullptr))
    return llvm::toString(std::move(error));
  if (auto error = group.poll())
    return llvm::toString(std::move(error));
  for (size_t i = 0; i < kCount; ++i)
    if (y[i] != float(100 * (0 + 1 + 2)) + kRanks * float(i))
      return "element " + std::to_string(i) + " is " + std::to_string(y[i]);
  return "";
}

/// What every rank says, each in a process, with an NCCL that lacks `lacks`.
std::vector<std::string> asProcesses(const char *lacks) {
  llvm::SmallString<128> folder;
  if (llvm::sys::fs::createUniqueDirectory("commsir-nccl", folder))
    return {"no folder"};
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      auto work = [&] {
        setenv("COMMSIR_FAKE_GPUS", "8", 1);
        setenv("COMMSIR_FAKE_KERNEL", "exchange 24", 1);
        std::string cache = testing::TempDir() + "/commsir-group-cache";
        setenv("COMMSIR_CACHE_DIR", cache.c_str(), 1);
        return sum(std::string(folder), rank);
      };
      return inProcess(work, lacks);
    }));
  std::vector<std::string> said;
  for (auto &rank : ranks)
    said.push_back(rank.get());
  llvm::sys::fs::remove_directories(folder);
  return said;
}

TEST(NcclProcessesTest, SumsOverWindowsOfOtherProcesses) {
  for (const std::string &said : asProcesses(""))
    EXPECT_EQ(said, "");
}

TEST(NcclProcessesTest, AllRanksGetTheErrorOfOne) {
  const std::pair<const char *, const char *> cases[] = {
      {"memory", "rank 1: ncclMemAlloc of "},
      {"register", "rank 1: ncclCommWindowRegister: "},
      {"windows", "is NCCL 2.27.7; 2.28 or newer is needed"},
  };
  for (auto [lacks, part] : cases)
    for (const std::string &said : asProcesses(lacks))
      EXPECT_NE(said.find(part), std::string::npos) << lacks << ": " << said;
}

TEST(NcclProcessesTest, ARankThatDoesNotComeIntoNcclEndsAll) {
  std::vector<std::string> said = asProcesses("start");
  EXPECT_NE(said[1].find("rank 1 of 3: unhandled system error (socketConnect"),
            std::string::npos)
      << said[1];
  for (int rank : {0, 2})
    EXPECT_NE(said[rank].find("remote process exited"), std::string::npos)
        << said[rank];
}

/// The fake itself: an id of no process is NCCL's error.
TEST(NcclProcessesTest, AnUnknownIdIsAnError) {
  std::string path = COMMSIR_LIBRARIES "/fake-nccl/libnccl.so.2";
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library);
  auto *init = reinterpret_cast<decltype(&ncclCommInitRankConfig)>(
      dlsym(library, "ncclCommInitRankConfig"));
  auto *tell = reinterpret_cast<decltype(&ncclGetLastError)>(
      dlsym(library, "ncclGetLastError"));
  ncclUniqueId id{};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(init(&comm, 2, id, 0, &config), ncclInvalidArgument);
  EXPECT_NE(std::string(tell(nullptr)).find("unique id"), std::string::npos);
  EXPECT_EQ(comm, nullptr);
  dlclose(library);
}

} // namespace
