//===- LoopbackTest.cpp - The adapter for hosts without one ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls LoopbackRma.cpp as NCCL does, over the host's memory: the ranks are
// threads.
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr int kHost = 1, kIncrement = 1, kAdd = 2;

/// The functions by their places: after the name, in the order of NCCL's
/// ncclRma_v14_t.
struct Table {
  const char *name;
  void *functions[20];
  template <typename... Args>
  int call(int place, Args... args) const {
    auto *function = reinterpret_cast<int (*)(Args...)>(functions[place]);
    return function(args...);
  }
};
enum Place {
  kInit,
  kDevices,
  kProperties,
  kListen,
  kConnect,
  kCreate,
  kRegister,
  kRegisterDmaBuf,
  kDeregister,
  kDestroy,
  kCloseColl,
  kCloseListen,
  kPut,
  kPutSignal,
  kGet,
  kFlush,
  kTest,
  kProgress,
  kQueryError,
  kFinalize
};

const Table *plugin() {
  void *library = dlopen(COMMSIR_LIBRARIES "/libnccl-rma-loopback.so",
                         RTLD_NOW | RTLD_LOCAL);
  return library
             ? static_cast<const Table *>(dlsym(library, "ncclRmaPlugin_v14"))
             : nullptr;
}

/// A rank with 3 MiB and a pair of signals.
struct Rank {
  const Table &rma;
  int rank, ranks;
  void *listener = nullptr, *coll = nullptr, *context = nullptr;
  void *memory = nullptr, *signalMemory = nullptr;
  std::vector<char> data = std::vector<char>(3 << 20);
  alignas(8) uint64_t signals[2] = {};
  char handle[128] = {};

  void connect(std::vector<void *> handles) {
    ASSERT_EQ(rma.call(kConnect, static_cast<void *>(nullptr), handles.data(),
                       ranks, rank, listener, &coll),
              0);
    ASSERT_EQ(rma.call(kCloseListen, listener), 0);
    int config[] = {1, -1, 1};
    ASSERT_EQ(rma.call(kCreate, coll, &config[0], &context), 0);
    ASSERT_EQ(rma.call(kRegister, coll, static_cast<void *>(data.data()),
                       data.size(), kHost, uint64_t(0), &memory),
              0);
    ASSERT_EQ(rma.call(kRegister, coll, static_cast<void *>(signals),
                       sizeof(signals), kHost, uint64_t(0), &signalMemory),
              0);
  }
  void *put(int peer, uint64_t from, size_t bytes, uint64_t to) {
    void *request = nullptr;
    EXPECT_EQ(rma.call(kPut, context, 0, from, memory, bytes, to, memory,
                       uint32_t(peer), &request),
              0);
    return request;
  }
  void *putSignal(int peer, uint64_t from, size_t bytes, uint64_t to,
                  int number, uint64_t value, uint32_t kind) {
    void *request = nullptr;
    EXPECT_EQ(rma.call(kPutSignal, context, 0, from, bytes ? memory : nullptr,
                       bytes, to, bytes ? memory : nullptr, uint32_t(peer),
                       uint64_t(8 * number), signalMemory, value, kind, true,
                       &request),
              0);
    return request;
  }
  void waitFor(void *request) {
    for (int done = 0; !done;)
      ASSERT_EQ(rma.call(kTest, coll, request, &done), 0);
  }
  /// As NCCL's thread does while kernels wait.
  void waitForSignal(int number, uint64_t least) {
    while (reinterpret_cast<std::atomic<uint64_t> &>(signals[number]) < least)
      ASSERT_EQ(rma.call(kProgress, context), 0);
  }
};

void run(int count, const std::function<void(Rank &)> &body) {
  const Table *rma = plugin();
  ASSERT_TRUE(rma) << dlerror();
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<void *> handles;
  for (int i = 0; i < count; ++i) {
    ranks.push_back(std::make_unique<Rank>(Rank{*rma, i, count}));
    Rank &rank = *ranks.back();
    ASSERT_EQ(rma->call(kListen, static_cast<void *>(nullptr), 0,
                        static_cast<void *>(rank.handle), &rank.listener),
              0);
    handles.push_back(rank.handle);
  }
  for (auto &rank : ranks)
    rank->connect(handles);
  std::vector<std::thread> threads;
  std::atomic<int> ended = 0;
  for (auto &rank : ranks)
    threads.emplace_back([&] {
      body(*rank);
      // Others may still wait for an answer.
      for (++ended; ended < count;)
        rma->call(kProgress, rank->context);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &rank : ranks) {
    bool failed = true;
    EXPECT_EQ(rma->call(kQueryError, rank->context, &failed), 0);
    EXPECT_FALSE(failed);
    EXPECT_EQ(rma->call(kDeregister, rank->coll, rank->memory), 0);
    EXPECT_EQ(rma->call(kDestroy, rank->context), 0);
    EXPECT_EQ(rma->call(kCloseColl, rank->coll), 0);
  }
}

} // namespace

TEST(Loopback, ASignalComesAfterAllPutsBeforeIt) {
  run(4, [](Rank &self) {
    int next = (self.rank + 1) % self.ranks;
    // Larger than a piece, and not a multiple of one.
    size_t bytes = (1 << 20) + 4321;
    std::memset(self.data.data(), 1 + self.rank, bytes);
    void *put = self.put(next, 0, bytes, bytes);
    void *signal = self.putSignal(next, 0, 10, 2 * bytes, 0, 0, kIncrement);
    self.waitForSignal(0, 1);
    char expected = char(1 + (self.rank + self.ranks - 1) % self.ranks);
    for (size_t i = bytes; i < 2 * bytes + 10; ++i)
      ASSERT_EQ(self.data[i], expected) << i;
    EXPECT_EQ(self.data[2 * bytes + 10], 0);
    self.waitFor(put);
    self.waitFor(signal);
  });
}

TEST(Loopback, SignalsOfAllRanksAreAdded) {
  run(3, [](Rank &self) {
    std::vector<void *> requests;
    for (int peer = 0; peer < self.ranks; ++peer)
      for (int i = 0; i < 50; ++i)
        requests.push_back(
            self.putSignal(peer, 0, 0, 0, 1, uint64_t(1) << 32, kAdd));
    self.waitForSignal(1, uint64_t(150) << 32);
    EXPECT_EQ(self.signals[1], uint64_t(150) << 32);
    EXPECT_EQ(self.signals[0], 0u);
    for (void *request : requests)
      self.waitFor(request);
  });
}

TEST(Loopback, APutOutsideOfMemoryIsAnError) {
  const Table *rma = plugin();
  ASSERT_TRUE(rma) << dlerror();
  Rank self{*rma, 0, 1};
  ASSERT_EQ(rma->call(kListen, static_cast<void *>(nullptr), 0,
                      static_cast<void *>(self.handle), &self.listener),
            0);
  self.connect({self.handle});
  self.put(0, 0, 100, self.data.size() - 99);
  int result = 0;
  for (int i = 0; i < 3; ++i)
    result |= rma->call(kProgress, self.context);
  EXPECT_NE(result, 0);
  bool failed = false;
  EXPECT_EQ(rma->call(kQueryError, self.context, &failed), 0);
  EXPECT_TRUE(failed);
}
