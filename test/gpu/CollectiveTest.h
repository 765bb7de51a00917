//===- CollectiveTest.h - Calls of a group of one GPU -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rank over the driver of FakeCuda.cpp, whose kernels copy, as collectives
// of one rank do.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_COLLECTIVETEST_H
#define COMMSIR_TEST_GPU_COLLECTIVETEST_H

#include "runtime/group/Collective.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "test/gpu/Child.h"

#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace commsir::test {

using namespace commsir::group;

/// A group of one GPU, in a process of its own.
class Calls {
public:
  Calls(const std::string &folder, CollectiveLimits limits, int rank, int ranks)
      : store(llvm::cantFail(createFileStore(folder))) {
    GroupOptions options;
    options.rank = rank;
    options.ranks = ranks;
    options.device = rank;
    options.windows = "plain";
    options.timeout = 20;
    group = llvm::cantFail(createCudaGroup(options, *store));
    collectives = std::make_unique<Collectives>(*group, limits);
    in = static_cast<int32_t *>(llvm::cantFail(group->allocateOwn(4096)));
    out = static_cast<int32_t *>(llvm::cantFail(group->allocateOwn(4096)));
  }

  /// What the driver's kernels are for, in elements of four bytes.
  static void expect(int64_t elements) {
    expectBytes(std::to_string(elements * 4));
  }
  static void expectBytes(const std::string &sizes) {
    std::string text = "identity " + sizes;
    setenv("COMMSIR_FAKE_KERNEL", text.c_str(), 1);
  }
  CollectiveCall make(const char *op, int64_t count) {
    CollectiveCall call;
    call.op = op;
    call.reduction =
        call.op == "all_reduce" || call.op == "reduce" ? "sum" : "";
    call.elementType = "i32";
    call.input = {in, count};
    call.output = {out, count};
    return call;
  }
  /// An all_reduce of `count` elements by a kernel for `elements`; "" or what
  /// went wrong.
  std::string reduce(int64_t count, int64_t elements, void *stream = nullptr) {
    expect(elements);
    fill(count);
    if (auto error = collectives->run(make("all_reduce", count), stream))
      return llvm::toString(std::move(error));
    return stream ? "" : check(count);
  }
  void fill(int64_t count) {
    std::iota(in, in + count, ++turn * 1000);
    std::fill_n(out, count + 16, -1);
  }
  std::string check(int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      if (out[i] != turn * 1000 + i)
        return std::to_string(count) + " elements: element " +
               std::to_string(i) + " is " + std::to_string(out[i]);
    return out[count] == -1 ? "" : "written behind the array";
  }
  CUstream makeStream() {
    const cuda::Device &device = cuda::getDevice(*group);
    cuda::ContextGuard guard(device.driver(), device.context());
    CUstream stream = nullptr;
    return device.driver().StreamCreate(&stream, CU_STREAM_NON_BLOCKING)
               ? nullptr
               : stream;
  }
  /// Array of the group.
  void *takeMuch(int64_t elements) {
    return llvm::cantFail(group->allocateOwn(elements * 4));
  }
  uint64_t kernels() const {
    return group->counts().compiled + group->counts().fromCache;
  }

  std::unique_ptr<Store> store;
  std::unique_ptr<Group> group;
  std::unique_ptr<Collectives> collectives;

  int32_t *in = nullptr, *out = nullptr;

private:
  int32_t turn = 0;
};

class CollectiveTest : public testing::Test {
protected:
  // What is compiled when does not depend on time, but where a test wants that.
  CollectiveTest() { group::compilesAtOnce = 1; }
  ~CollectiveTest() override { group::compilesAtOnce = 0; }

  /// Runs `work` as each rank, in a process of its own, which says "" when all
  /// is well.
  static void run(CollectiveLimits limits,
                  const std::function<std::string(Calls &)> &work,
                  int ranks = 1) {
    llvm::SmallString<128> folder;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("commsir-calls", folder));
    std::vector<Child> children;
    for (int rank = 0; rank < ranks; ++rank)
      children.push_back(Child::start([&, rank](int) {
        return be(rank, ranks, folder.str().str(), limits, work);
      }));
    for (const Child &child : children) {
      Ended ended = child.wait();
      EXPECT_EQ(ended.said, "");
      EXPECT_EQ(ended.status, 0);
    }
    llvm::sys::fs::remove_directories(folder);
  }

private:
  static std::string be(int rank, int ranks, const std::string &folder,
                        CollectiveLimits limits,
                        const std::function<std::string(Calls &)> &work) {
    setenv("COMMSIR_FAKE_GPUS", "8", 1);
    std::string cache = testing::TempDir() + "/commsir-group-cache";
    setenv("COMMSIR_CACHE_DIR", cache.c_str(), 1);
    Calls calls(folder, limits, rank, ranks);
    return work(calls);
  }
};

} // namespace commsir::test

#endif // COMMSIR_TEST_GPU_COLLECTIVETEST_H
