//===- LyingPeerTest.cpp - A GPU rank that sends false data ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over the driver of FakeCuda.cpp. Rank 1 of two is only a mesh: it takes part
// in every step, and sends what it likes.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/PeerMemory.h"

#include "test/gpu/Threads.h"

#include "llvm/ADT/SmallString.h"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>

using namespace commsir;
using namespace commsir::cuda;
using namespace commsir::test;

namespace {

constexpr double kSeconds = 20;
constexpr size_t kBytes = size_t(64) << 10;
/// Bytes of the allocation that rank 1 offers a part of.
constexpr size_t kAll = 4 * kBytes;
const std::string kSharing = "sharing " + std::to_string(kBytes) + " bytes";

/// What rank 1 says in one step. With a file, the step exchanges files.
struct Step {
  std::string what, text;
  int file = -1;
};

/// The result of `honest`, which is rank 0 in a process of its own, while rank
/// 1 says `script`.
std::string beside(const std::vector<Step> &script,
                   const std::function<std::string(group::Store &)> &honest) {
  return inProcess([&]() -> std::string {
    setenv("COMMSIR_FAKE_GPUS", "2", 1);
    llvm::SmallString<128> folder;
    if (llvm::sys::fs::createUniqueDirectory("commsir-lies", folder))
      return "no folder";
    std::thread liar([&] {
      auto store = llvm::cantFail(group::createFileStore(folder));
      auto mesh =
          llvm::cantFail(Mesh::connect(*store, "world", 1, 2, kSeconds));
      for (const Step &step : script) {
        llvm::Error error = llvm::Error::success();
        if (step.file >= 0)
          error = mesh->exchange(step.what, File(dup(step.file)), kSeconds)
                      .takeError();
        else
          error = mesh->all(step.what, step.text, kSeconds).takeError();
        if (error)
          return llvm::consumeError(std::move(error));
      }
      // Stays until rank 0 has ended the group.
      (void)llvm::toString(mesh->all("", "", kSeconds).takeError());
    });
    auto store = llvm::cantFail(group::createFileStore(folder));
    std::string said = honest(*store);
    liar.join();
    llvm::sys::fs::remove_directories(folder);
    return said;
  });
}

/// As PeerMemory.cpp writes it.
std::string writeOffer(uint64_t offset, const std::vector<uint64_t> &sizes,
                       const CUipcMemHandle &handle = {}) {
  int64_t process = getppid();
  std::string text;
  auto put = [&](const void *data, size_t size) {
    text.append(static_cast<const char *>(data), size);
  };
  put(&process, sizeof(process));
  put(&offset, sizeof(offset));
  put(&handle, sizeof(handle));
  put(sizes.data(), sizes.size() * sizeof(uint64_t));
  return text;
}

/// What rank 0 says of sharing `kBytes` bytes, which rank 1 answers by
/// `script`; "" if it can reach the last byte of both.
std::string share(const std::vector<Step> &script) {
  return beside(script, [](group::Store &store) -> std::string {
    auto mesh = llvm::cantFail(Mesh::connect(store, "world", 0, 2, kSeconds));
    Device device = llvm::cantFail(Device::open(0));
    ContextGuard guard(device.driver(), device.context());
    CUdeviceptr own = 0;
    device.driver().MemAlloc(&own, kAll);
    auto shared = PeerMemory::share(device, *mesh, own, kBytes, kSeconds);
    if (!shared)
      return llvm::toString(shared.takeError());
    for (CUdeviceptr part : (*shared)->parts())
      device.driver().MemsetD8(part + kBytes - 1, 1, 1);
    return "";
  });
}

bool has(llvm::StringRef text, llvm::StringRef part) {
  return text.contains(part);
}

} // namespace

/// Where a part of cudaMalloc's memory begins.
TEST(LyingPeer, OffsetsOfAllocations) {
  // The test's own process is the one whose memory CUDA opens.
  int file = memfd_create("fake", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, off_t(kAll)), 0);
  struct {
    pid_t process;
    int file;
    size_t bytes;
  } named{getpid(), file, kAll};
  CUipcMemHandle handle{};
  std::memcpy(&handle, &named, sizeof(named));
  for (uint64_t offset :
       {uint64_t(0), uint64_t(kAll - kBytes), uint64_t(kAll - kBytes + 1),
        uint64_t(kAll), uint64_t(kAll + 1), uint64_t(1) << 63, UINT64_MAX,
        -uint64_t(kBytes), UINT64_MAX - kBytes + 2}) {
    std::string said = share({{kSharing, ""},
                              {kSharing, writeOffer(offset, {}, handle)},
                              {kSharing, ""},
                              {kSharing, ""}});
    std::string expected =
        offset <= kAll - kBytes
            ? ""
            : "rank 1 says that its part of " + std::to_string(kBytes) +
                  " bytes begins at byte " + std::to_string(offset) +
                  " of its memory, which has " + std::to_string(kAll) +
                  " bytes";
    EXPECT_EQ(said, expected);
  }
  close(file);
}

/// How virtual memory is cut: sizes that no memory has, or that are not those
/// of the files that come.
TEST(LyingPeer, SizesOfParts) {
  int file = memfd_create("fake", MFD_CLOEXEC), other = open("/dev/null", 0);
  ASSERT_EQ(ftruncate(file, off_t(kBytes)), 0);
  struct Lie {
    uint64_t offset;
    std::vector<uint64_t> sizes;
    int file;
    const char *expected;
  };
  const char *invalid = "has sent invalid data about its part of";
  const Lie lies[] = {
      {0, {kBytes}, file, ""},
      {1, {kBytes}, file, invalid},
      {UINT64_MAX, {kBytes}, file, invalid},
      {0, {kBytes / 2}, file, invalid},
      {0, {kBytes, 0}, file, invalid},
      {8, {UINT64_MAX, 8, kBytes}, file, invalid},
      {0, std::vector<uint64_t>(1025, kBytes), file, invalid},
      {kBytes, {2 * kBytes}, file, "mapping the part of rank 1"},
      {0, {uint64_t(1) << 62}, file, "rank 1"},
      {0, {kBytes}, other, "opening the part of rank 1"},
  };
  for (const Lie &lie : lies) {
    std::vector<Step> script = {{kSharing, ""},
                                {kSharing, writeOffer(lie.offset, lie.sizes)}};
    for (size_t part = 0; part < lie.sizes.size(); ++part)
      script.insert(script.end(),
                    {{kSharing, ""}, {kSharing, "", lie.file}, {kSharing, ""}});
    script.insert(script.end(), {{kSharing, ""}, {kSharing, ""}});
    std::string said = share(script);
    EXPECT_EQ(said.empty(), *lie.expected == 0) << said;
    EXPECT_TRUE(has(said, lie.expected)) << said;
  }
  close(file);
  close(other);
}

/// Descriptions that are too short, too long, or not whole.
TEST(LyingPeer, DescriptionsOfMemory) {
  std::string whole = writeOffer(0, {kBytes});
  for (const std::string &text :
       {std::string(), std::string(1, 'x'), whole.substr(0, 79),
        whole.substr(0, 81), whole + "x", whole + std::string(32000, 0)})
    EXPECT_TRUE(has(share({{kSharing, ""}, {kSharing, text}}),
                    "rank 1 has sent invalid data about its part of"));
}

/// What ranks tell each other while a group starts.
TEST(LyingPeer, AGroupStarts) {
  const std::string uuid(16, 'u'), process = std::to_string(getpid());
  const std::vector<Step> honest = {
      {"opening GPUs", ""},
      {"naming GPUs", ""},
      {"naming GPUs", process + " " + uuid},
      {"opening GPUs", ""},
      {"finding NCCL", "as asked for"},
      {"sharing memory", ""},
      {"starting the group", ""},
      {"reading limits", ""},
      {"comparing limits", "1048576 32 100"},
  };
  struct Lie {
    size_t step;
    std::string text;
    const char *expected;
  };
  const char *noGpu = "rank 1 has sent what does not name a GPU";
  const char *noLimits = "rank 1 has sent invalid limits";
  const Lie lies[] = {
      {0, "3GPU 1\x1b[31m\xff\n", "rank 1: GPU 1?[31m?"},
      {0, "\xff", "rank 1:"},
      {0, "1" + std::string(30000, 'x'), "xxx [...]"},
      {2, "", noGpu},
      {2, process, noGpu},
      {2, "-1 " + uuid, noGpu},
      {2, "99999999999999999999 " + uuid, noGpu},
      {2, process + " " + std::string(30000, 'u'), noGpu},
      {8, "", noLimits},
      {8, "\x1b\xff",
       "invalid limits: '?"
       "?'"},
      {8, "-1 32 100", noLimits},
      {8, "1048576 -1 100", noLimits},
      {8, "1048576 32 0", noLimits},
      {8, "1048576 32 100 7", noLimits},
      {8, "18446744073709551616 32 100", noLimits},
      {8, "1048576 9223372036854775808 100", noLimits},
  };
  auto start = [](group::Store &store) -> std::string {
    group::GroupOptions options;
    options.rank = 0;
    options.ranks = 2;
    options.device = 0;
    options.timeout = kSeconds;
    options.windows = "plain";
    auto group = group::createCudaGroup(options, store);
    return group ? "" : llvm::toString(group.takeError());
  };
  for (const Lie &lie : lies) {
    std::vector<Step> script = honest;
    script[lie.step].text = lie.text;
    std::string said = beside(script, start);
    EXPECT_TRUE(has(said, lie.expected)) << lie.step << ": " << said;
  }
}
