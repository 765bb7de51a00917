//===- RequestTest.cpp - Requests that leave the choice open --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cache finds a kernel by its source, before any choice is made for it, so
// the entry must come from the same circumstances.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/GroupRequest.h"
#include "runtime/jit/Cache.h"
#include "test/gpu/Threads.h"

#include "llvm/Support/Regex.h"

using namespace commsir;

namespace {

constexpr uint64_t kMuch = uint64_t(1) << 30;

class Requests {
public:
  /// "one_shot/lamport 8 x 1 x 128", after '*' when it was in the cache.
  std::string compile(const group::KernelRequest &request,
                      const cuda::RequestLimits &limits = {kMuch}) {
    auto kernel = cuda::compileRequest(request, /*ranks=*/4, device, limits);
    if (!kernel)
      return llvm::toString(kernel.takeError());
    channelBytes = 0;
    for (const jit::ArgInfo &argument : (*kernel)->args())
      if (argument.hidden)
        channelBytes += argument.bytes();
    const jit::Choice &choice = (*kernel)->choices().front();
    jit::LaunchShape shape = (*kernel)->shape();
    return ((*kernel)->cached() ? "*" : "") + choice.algorithm + "/" +
           choice.protocol + " " + std::to_string(shape.blocks) + " x " +
           std::to_string(shape.cluster) + " x " +
           std::to_string(shape.threads);
  }

  /// Of the kernel before.
  uint64_t channelBytes = 0;

private:
  cuda::Device device = llvm::cantFail(cuda::Device::open(0));
};

group::KernelRequest makeRequest(const std::string &elements = "16384") {
  group::KernelRequest request;
  std::string source = R"(
comms.kernel @sum(%x: memref<16384xi32>, %y: memref<16384xi32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<16384xi32>) outs(%y : memref<16384xi32>)
  comms.return
})";
  for (size_t at = 0; (at = source.find("16384", at)) != std::string::npos;
       at += elements.size())
    source.replace(at, 5, elements);
  request.source = source;
  request.check = false;
  return request;
}

/// Whether it is what `compile` says of a kernel that was in no cache, and no
/// error.
bool isChoice(const std::string &said) {
  return llvm::Regex("^[a-z_]+/[a-z0-9]+ [0-9]+ x [0-9]+ x [0-9]+$")
      .match(said);
}

std::string compileOpen() {
  Requests requests;
  group::KernelRequest request = makeRequest();
  std::string first = requests.compile(request);
  if (!isChoice(first))
    return "the first: " + first;
  uint64_t usual = requests.channelBytes;
  for (const char *from : {"memory", "disk"}) {
    if (std::string again = requests.compile(request); again != "*" + first)
      return std::string(from) + ": " + again + " and not *" + first;
    jit::Cache::shared().forget();
  }
  jit::CacheCounts counts = jit::Cache::shared().counts();
  if (counts.built != 1 || counts.fromDisk != 2) // The source's and its kernel.
    return std::to_string(counts.built) + " built, " +
           std::to_string(counts.fromDisk) + " from disk";
  // Less memory than the way takes: another, which fits, and no error.
  constexpr uint64_t little = uint64_t(1) << 19;
  std::string small = requests.compile(request, {little});
  if (!isChoice(small) || small == first || usual <= little ||
      requests.channelBytes > little)
    return "with less memory: " + small + " of " +
           std::to_string(requests.channelBytes) + " bytes where " + first +
           " has " + std::to_string(usual);
  request.blocks = 3;
  if (std::string three = requests.compile(request);
      !isChoice(three) || three.find(" 3 x ") == std::string::npos)
    return "with three blocks: " + three;
  request.blocks = 0;
  // Others run during one that takes long.
  group::KernelRequest large = makeRequest("33554432");
  std::string whole = requests.compile(large),
              shared = requests.compile(large, {kMuch, 32}),
              alone = requests.compile(large);
  if (!isChoice(whole) || shared.find(" 32 x 1 x ") == std::string::npos ||
      whole.find(" 32 x 1 x ") != std::string::npos || alone != "*" + whole)
    return "whole: " + whole + ", on 32 CTAs: " + shared + ", and " + alone;
  std::string last = requests.compile(request);
  return last == "*" + first ? "" : "after the others: " + last;
}

TEST(RequestTest, TheKeyContainsTheInputsOfTheChoice) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("commsir-open", folder));
  EXPECT_EQ(test::inProcess([&] {
              setenv("COMMSIR_FAKE_GPUS", "1", 1);
              setenv("COMMSIR_CACHE_DIR", folder.c_str(), 1);
              return compileOpen();
            }),
            "");
  llvm::sys::fs::remove_directories(folder);
}

} // namespace
