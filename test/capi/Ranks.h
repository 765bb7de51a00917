//===- Ranks.h - Ranks of a group in threads of a test ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_CAPI_RANKS_H
#define COMMSIR_TEST_CAPI_RANKS_H

#include "runtime/capi/commsir.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using Seconds = std::chrono::duration<double>;

namespace commsir::test {

/// A store in memory.
class MapStore {
public:
  commsir_store face() { return {sizeof(commsir_store), this, set, get}; }

private:
  static int set(void *self, const char *key, const void *data, size_t bytes) {
    auto &store = *static_cast<MapStore *>(self);
    std::lock_guard lock(store.mutex);
    store.values[key].assign(static_cast<const char *>(data), bytes);
    store.changed.notify_all();
    return 0;
  }
  static int get(void *self, const char *key, double timeout, void **data,
                 size_t *bytes) {
    auto &store = *static_cast<MapStore *>(self);
    std::unique_lock lock(store.mutex);
    if (!store.changed.wait_for(lock, Seconds(timeout),
                                [&] { return store.values.count(key); }))
      return 1;
    const std::string &value = store.values[key];
    *data = std::malloc(value.size() + 1);
    std::memcpy(*data, value.data(), value.size());
    *bytes = value.size();
    return 0;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
};

/// Threads that are joined at the end.
class Threads {
public:
  ~Threads() {
    for (std::thread &one : all)
      one.join();
  }
  void run(std::function<void()> body) { all.emplace_back(std::move(body)); }

private:
  std::vector<std::thread> all;
};

using Body = std::function<void(int64_t rank, commsir_group *)>;

inline commsir_group *makeGroup(MapStore &store, const char *name, int64_t rank,
                                int64_t ranks, double timeout) {
  commsir_group_options options = {};
  options.size = sizeof options;
  options.name = name;
  options.rank = rank;
  options.ranks = ranks;
  options.device = -1;
  options.timeout = timeout;
  commsir_store face = store.face();
  commsir_group *group = nullptr;
  EXPECT_EQ(commsir_group_create(&options, &face, &group), COMMSIR_OK)
      << commsir_error_message();
  return group;
}

/// Runs `body` on each rank of a new group; it destroys the group.
inline void runRanks(int64_t ranks, const Body &body, double timeout = 60,
                     const char *name = "world") {
  MapStore store;
  Threads threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.run([&, rank] {
      if (commsir_group *group = makeGroup(store, name, rank, ranks, timeout))
        body(rank, group);
    });
}

inline void expectOk(commsir_status status) {
  EXPECT_EQ(status, COMMSIR_OK) << commsir_error_message();
}

inline void expectError(commsir_status status, commsir_status wanted,
                        const char *part) {
  EXPECT_EQ(status, wanted) << commsir_error_message();
  EXPECT_NE(std::string(commsir_error_message()).find(part), std::string::npos)
      << commsir_error_message();
}

inline commsir_status allReduce(commsir_group *group,
                                std::vector<float> &data) {
  commsir_collective call = {};
  call.size = sizeof call;
  call.op = "all_reduce";
  call.reduction = "sum";
  call.type = "f32";
  call.input = call.output = data.data();
  call.input_elements = call.output_elements = int64_t(data.size());
  return commsir_group_collective(group, &call, nullptr);
}

/// All ranks add ones.
inline void addUp(commsir_group *group, size_t elements, int64_t ranks) {
  std::vector<float> data(elements, 1);
  expectOk(allReduce(group, data));
  EXPECT_EQ(data.front(), float(ranks));
  EXPECT_EQ(data.back(), float(ranks));
}

inline void sleepFor(double seconds) {
  std::this_thread::sleep_for(Seconds(seconds));
}

} // namespace commsir::test

#endif // COMMSIR_TEST_CAPI_RANKS_H
