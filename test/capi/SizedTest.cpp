//===- SizedTest.cpp - Structs of programs with other headers -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program with an older header passes a smaller struct: the library must not
// read beyond it. A program with a newer header passes a larger one: the
// library must not ignore a field that the program sets.
//
//===----------------------------------------------------------------------===//

#include "test/capi/Ranks.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace commsir::test;

namespace {

/// The first `size` bytes of `given`, and behind them bytes that would be wrong
/// in any field.
template <typename T>
class Older {
public:
  Older(T given, size_t size) {
    given.size = size;
    std::memset(&bytes, 0x7f, sizeof bytes);
    std::memcpy(&bytes, &given, size);
  }
  const T *get() const { return &bytes; }

private:
  T bytes;
};

/// `given`, and behind it one field of a newer header.
template <typename T>
struct Newer {
  Newer(T known, int64_t added) : known(known), added(added) {
    this->known.size = sizeof *this;
  }
  const T *get() const { return &known; }
  T known;
  int64_t added;
};

commsir_collective sum(std::vector<float> &data) {
  commsir_collective call = {};
  call.op = "all_reduce";
  call.reduction = "sum";
  call.type = "f32";
  call.input = call.output = data.data();
  call.input_elements = call.output_elements = int64_t(data.size());
  return call;
}

/// y = x summed over the ranks, of one row.
commsir_fused fusedSum(std::vector<float> &x, commsir_operand &y) {
  commsir_fused call = {};
  call.op = "all_reduce";
  call.reduction = "sum";
  call.type = "f32";
  call.rows = 1;
  call.columns = int64_t(x.size());
  call.input = x.data();
  call.outputs = &y;
  call.output_count = 1;
  call.consume = "(%s: tensor<8xf32>) { comms.yield %s : tensor<8xf32> }";
  return call;
}

commsir_group_options optionsOf(int64_t rank, int64_t ranks) {
  commsir_group_options options = {};
  options.name = "sized";
  options.rank = rank;
  options.ranks = ranks;
  options.device = -1;
  return options;
}

/// Sizes that no header gives: unset, odd, an address.
constexpr size_t kNoSizes[] = {0, 4, 12, 0x7f0000000000};

} // namespace

TEST(Sized, OlderCollectivesRun) {
  runRanks(2, [](int64_t, commsir_group *group) {
    std::vector<float> data(8, 1);
    Older call(sum(data), offsetof(commsir_collective, algorithm));
    expectOk(commsir_group_collective(group, call.get(), nullptr));
    EXPECT_EQ(data, std::vector<float>(8, 2));
    EXPECT_EQ(commsir_group_why_not(group, call.get()), nullptr);
    commsir_prepared *prepared = nullptr;
    Older options(commsir_prepare_options{},
                  offsetof(commsir_prepare_options, timeout));
    expectOk(commsir_prepare(group, call.get(), options.get(), &prepared));
    expectOk(commsir_launch(prepared, data.data(), data.data(), nullptr));
    EXPECT_EQ(data, std::vector<float>(8, 4));
    commsir_group_destroy(group);
  });
}

TEST(Sized, OlderPartsRun) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    std::vector<float> x(4, float(rank)), first(4, -1), second(4, -1);
    commsir_collective call = {};
    call.size = sizeof call;
    call.op = "all_gather";
    call.type = "f32";
    call.input = x.data();
    call.input_elements = 4;
    commsir_part outputs[] = {{first.data(), 4}, {second.data(), 4}};
    commsir_parts parts = {};
    parts.outputs = outputs;
    parts.output_count = 2;
    parts.elements = 4;
    Older given(parts, sizeof parts);
    expectOk(
        commsir_group_collective_parts(group, &call, given.get(), nullptr));
    EXPECT_EQ(first, std::vector<float>(4, 0));
    EXPECT_EQ(second, std::vector<float>(4, 1));
    commsir_group_destroy(group);
  });
}

TEST(Sized, OlderFusedCallsRun) {
  runRanks(2, [](int64_t, commsir_group *group) {
    std::vector<float> x(8, 1), y(8);
    commsir_operand output = {y.data(), 8, "f32", 1, 8};
    Older call(fusedSum(x, output), offsetof(commsir_fused, produce));
    expectOk(commsir_group_fused(group, call.get(), nullptr));
    EXPECT_EQ(y, std::vector<float>(8, 2));
    commsir_prepared *prepared = nullptr;
    expectOk(commsir_prepare_fused(group, call.get(), nullptr, &prepared));
    commsir_group_destroy(group);
  });
}

TEST(Sized, OlderGroupsAndStoresWork) {
  MapStore store;
  Threads threads;
  for (int64_t rank = 0; rank < 2; ++rank)
    threads.run([&, rank] {
      Older options(optionsOf(rank, 2),
                    offsetof(commsir_group_options, timeout));
      Older face(store.face(), sizeof(commsir_store));
      commsir_group *group = nullptr;
      expectOk(commsir_group_create(options.get(), face.get(), &group));
      addUp(group, 8, 2);
      commsir_group_destroy(group);
    });
}

TEST(Sized, NewerStructsRunIfUnknownFieldsAreZero) {
  runRanks(1, [](int64_t, commsir_group *group) {
    std::vector<float> x(8, 1), y(8);
    commsir_operand output = {y.data(), 8, "f32", 1, 8};
    for (int64_t added : {0, 1}) {
      auto expect = [&](commsir_status status, const char *name) {
        if (added == 0)
          expectOk(status);
        else
          expectError(status, COMMSIR_USAGE, name);
      };
      Newer call(sum(x), added);
      expect(commsir_group_collective(group, call.get(), nullptr),
             "a field of commsir_collective that");
      Newer fused(fusedSum(x, output), added);
      expect(commsir_group_fused(group, fused.get(), nullptr),
             "a field of commsir_fused that");
      Newer options(commsir_prepare_options{}, added);
      commsir_prepared *prepared = nullptr;
      commsir_collective known = sum(x);
      known.size = sizeof known;
      expect(commsir_prepare(group, &known, options.get(), &prepared),
             "a field of commsir_prepare_options that");
      MapStore store;
      Newer face(store.face(), added);
      commsir_p2p *p2p = nullptr;
      expect(commsir_p2p_create("sized", 0, 2, face.get(), &p2p),
             "a field of commsir_store that");
      commsir_p2p_destroy(p2p);
    }
    commsir_group_destroy(group);
  });
}

TEST(Sized, InvalidSizesAreRefused) {
  runRanks(1, [](int64_t, commsir_group *group) {
    std::vector<float> data(8, 1);
    MapStore store;
    commsir_store face = store.face();
    commsir_p2p *p2p = nullptr;
    expectOk(commsir_p2p_create("sized", 0, 2, &face, &p2p));
    for (size_t bad : kNoSizes) {
      commsir_collective call = sum(data);
      call.size = bad;
      expectError(commsir_group_collective(group, &call, nullptr),
                  COMMSIR_USAGE, "set it to sizeof(commsir_collective)");
      char *reason = commsir_group_why_not(group, &call);
      ASSERT_NE(reason, nullptr);
      EXPECT_NE(std::strstr(reason, "commsir_collective.size"), nullptr);
      commsir_free(reason);
      call.size = sizeof call;
      commsir_parts parts = {};
      parts.size = bad;
      expectError(commsir_group_collective_parts(group, &call, &parts, nullptr),
                  COMMSIR_USAGE, "set it to sizeof(commsir_parts)");
      commsir_group_options options = optionsOf(0, 1);
      options.size = bad;
      commsir_group *other = nullptr;
      expectError(commsir_group_create(&options, &face, &other), COMMSIR_USAGE,
                  "set it to sizeof(commsir_group_options)");
      commsir_message message = {};
      message.size = bad;
      commsir_transfer *transfer = nullptr;
      expectError(commsir_p2p_send(p2p, &message, &transfer), COMMSIR_USAGE,
                  "set it to sizeof(commsir_message)");
    }
    commsir_p2p_destroy(p2p);
    commsir_group_destroy(group);
  });
}

TEST(Sized, StoresNeedBothFunctions) {
  commsir_group_options options = optionsOf(0, 1);
  options.size = sizeof options;
  MapStore store;
  commsir_store noSet = store.face(), noGet = noSet;
  noSet.set = nullptr;
  noGet.get = nullptr;
  for (const commsir_store *face : {&noSet, &noGet}) {
    commsir_group *group = nullptr;
    expectError(commsir_group_create(&options, face, &group), COMMSIR_USAGE,
                "a function of a store is a null pointer");
  }
}
