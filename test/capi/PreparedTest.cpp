//===- PreparedTest.cpp - Prepared collectives through the C API ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/capi/Ranks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace commsir::test;

namespace {

/// An all-reduce of so many floats; no address is given.
commsir_collective sumOf(int64_t elements) {
  commsir_collective call = {};
  call.op = "all_reduce";
  call.reduction = "sum";
  call.type = "f32";
  call.input_elements = call.output_elements = elements;
  return call;
}

commsir_prepared *prepare(commsir_group *group, const commsir_collective &call,
                          double timeout = 0) {
  commsir_prepare_options options = {sizeof options, timeout};
  commsir_prepared *prepared = nullptr;
  expectOk(commsir_prepare(group, &call, &options, &prepared));
  return prepared;
}

} // namespace

TEST(Prepared, LaunchesOnArraysOfOneSize) {
  runRanks(3, [](int64_t rank, commsir_group *group) {
    commsir_prepared *prepared = prepare(group, sumOf(50));
    for (int i = 0; i < 10; ++i) {
      std::vector<float> x(50, float(rank + i)), y(50);
      expectOk(commsir_launch(prepared, x.data(), y.data(), nullptr));
      EXPECT_EQ(y.front(), float(3 + 3 * i));
      EXPECT_EQ(y.back(), float(3 + 3 * i));
      // In place, too.
      expectOk(commsir_launch(prepared, x.data(), x.data(), nullptr));
      EXPECT_EQ(x, y);
    }
    commsir_prepared_release(prepared);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, KeepsNothingOfTheCaller) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    commsir_prepared *prepared = nullptr;
    {
      std::string op = "broadcast", type = "i64";
      commsir_collective call = {};
      call.op = op.data();
      call.type = type.data();
      call.root = 1;
      call.input_elements = rank == 1 ? 4 : 0;
      call.output_elements = 4;
      expectOk(commsir_prepare(group, &call, nullptr, &prepared));
      op.assign(op.size(), 'x');
      type.assign(type.size(), 'x');
    }
    int64_t x[4] = {1, 2, 3, 4}, y[4] = {};
    expectOk(commsir_launch(prepared, rank == 1 ? x : nullptr, y, nullptr));
    EXPECT_EQ(std::memcmp(x, y, sizeof x), 0);
    commsir_prepared_release(prepared);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, RanksThatLaunchDifferentCallsAreTold) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    commsir_prepared *one = prepare(group, sumOf(16 + 16 * rank));
    commsir_prepared *both = prepare(group, sumOf(8));
    std::vector<float> x(32, 1);
    expectError(commsir_launch(one, x.data(), x.data(), nullptr),
                COMMSIR_DISAGREE, "all_reduce");
    EXPECT_FALSE(commsir_error_is_earlier());
    // As after any such call, the group can be used.
    std::vector<float> y(8, 1);
    expectOk(commsir_launch(both, y.data(), y.data(), nullptr));
    EXPECT_EQ(y.front(), 2);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, SizesAreCheckedWhenItIsPrepared) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_prepared *prepared = nullptr;
    auto refuse = [&](const commsir_collective &call, const char *part) {
      expectError(commsir_prepare(group, &call, nullptr, &prepared),
                  COMMSIR_USAGE, part);
      EXPECT_EQ(prepared, nullptr);
    };
    commsir_collective call = sumOf(16);
    call.output_elements = 15;
    refuse(call, "all_reduce");
    call = sumOf(16);
    call.input_elements = -1;
    refuse(call, "all_reduce");
    call = sumOf(16);
    call.type = "f31";
    refuse(call, "f31");
    call = sumOf(16);
    call.reduction = "median";
    refuse(call, "median");
    call = sumOf(16);
    call.op = "all_to_all_v";
    refuse(call, "commsir_group_collective");
    call = sumOf(16);
    call.op = "broadcast";
    call.root = 7;
    refuse(call, "no rank 7");
    call.op = nullptr;
    refuse(call, "null pointer");
    EXPECT_EQ(commsir_prepare(group, nullptr, nullptr, &prepared),
              COMMSIR_USAGE);
    call = sumOf(16);
    EXPECT_EQ(commsir_prepare(group, &call, nullptr, nullptr), COMMSIR_USAGE);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, ArraysThatAreMissing) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_prepared *prepared = prepare(group, sumOf(16));
    std::vector<float> x(16, 1);
    EXPECT_EQ(commsir_launch(prepared, nullptr, x.data(), nullptr),
              COMMSIR_USAGE);
    EXPECT_EQ(commsir_launch(prepared, x.data(), nullptr, nullptr),
              COMMSIR_USAGE);
    EXPECT_EQ(commsir_launch(nullptr, x.data(), x.data(), nullptr),
              COMMSIR_USAGE);
    expectOk(commsir_launch(prepared, x.data(), x.data(), nullptr));
    // None are needed where there is nothing to do.
    commsir_prepared *nothing = prepare(group, sumOf(0));
    expectOk(commsir_launch(nothing, nullptr, nullptr, nullptr));
    commsir_group_destroy(group);
  });
}

TEST(Prepared, AGroupOnTheCpuHasNoStream) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_prepared *prepared = prepare(group, sumOf(16));
    std::vector<float> x(16, 1);
    expectError(commsir_launch(prepared, x.data(), x.data(), &x), COMMSIR_USAGE,
                "stream");
    expectOk(commsir_launch(prepared, x.data(), x.data(), nullptr));
    commsir_group_destroy(group);
  });
}

TEST(Prepared, StaleHandlesAreRefused) {
  runRanks(1, [](int64_t, commsir_group *group) {
    std::vector<float> x(16, 1);
    commsir_prepared *prepared = prepare(group, sumOf(16));
    commsir_prepared_release(prepared);
    expectError(commsir_launch(prepared, x.data(), x.data(), nullptr),
                COMMSIR_USAGE, "freed");
    commsir_prepared_release(prepared); // Nothing.
    // Nor is it at once the handle of another call.
    commsir_prepared *other = prepare(group, sumOf(8));
    EXPECT_NE(other, prepared);
    EXPECT_EQ(commsir_launch(prepared, x.data(), x.data(), nullptr),
              COMMSIR_USAGE);
    // A pointer to something else.
    expectError(commsir_launch(reinterpret_cast<commsir_prepared *>(group),
                               x.data(), x.data(), nullptr),
                COMMSIR_USAGE, "something else");
    commsir_prepared_release(nullptr);
    commsir_prepared_release(other);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, HandlesAreUsedAgain) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_collective call = sumOf(16);
    std::vector<commsir_prepared *> seen;
    bool again = false;
    for (int i = 0; i < 3000; ++i) {
      commsir_prepared *one = nullptr;
      ASSERT_EQ(commsir_prepare(group, &call, nullptr, &one), COMMSIR_OK);
      again |=
          i > 2000 && std::find(seen.begin(), seen.end(), one) != seen.end();
      seen.push_back(one);
      commsir_prepared_release(one);
    }
    EXPECT_TRUE(again);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, AGroupThatHasEnded) {
  runRanks(1, [](int64_t, commsir_group *group) {
    std::vector<float> x(16, 1);
    commsir_prepared *prepared = prepare(group, sumOf(16));
    commsir_group_close(group);
    expectError(commsir_launch(prepared, x.data(), x.data(), nullptr),
                COMMSIR_ABORTED, "closed");
    commsir_group_destroy(group);
    expectError(commsir_launch(prepared, x.data(), x.data(), nullptr),
                COMMSIR_ABORTED, "closed");
    commsir_collective call = sumOf(16);
    commsir_prepared *late = nullptr;
    EXPECT_EQ(commsir_prepare(group, &call, nullptr, &late), COMMSIR_ABORTED);
    commsir_prepared_release(prepared);
  });
}

TEST(Prepared, AbortedGroup) {
  runRanks(1, [](int64_t, commsir_group *group) {
    std::vector<float> x(16, 1);
    commsir_prepared *prepared = prepare(group, sumOf(16));
    expectOk(commsir_group_abort(group, "enough"));
    expectError(commsir_launch(prepared, x.data(), x.data(), nullptr),
                COMMSIR_ABORTED, "enough");
    commsir_group_destroy(group);
  });
}

TEST(Prepared, TimeoutOfALaunch) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    std::vector<float> x(16, 1);
    commsir_prepared *quick = prepare(group, sumOf(16), 0.3);
    expectOk(commsir_launch(quick, x.data(), x.data(), nullptr));
    if (rank == 0)
      EXPECT_EQ(commsir_launch(quick, x.data(), x.data(), nullptr),
                COMMSIR_DEADLOCK);
    else
      sleepFor(1.5);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, OptionsOfOtherSizes) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_collective call = sumOf(16);
    commsir_prepared *prepared = nullptr;
    // Of a caller whose struct has no timeout: what is there is not read.
    commsir_prepare_options options = {sizeof(size_t), -1};
    expectOk(commsir_prepare(group, &call, &options, &prepared));
    options.size = sizeof options;
    EXPECT_EQ(commsir_prepare(group, &call, &options, &prepared),
              COMMSIR_USAGE);
    options.timeout = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(commsir_prepare(group, &call, &options, &prepared),
              COMMSIR_USAGE);
    // And of one whose struct has more.
    options = {sizeof options + 64, 5};
    expectOk(commsir_prepare(group, &call, &options, &prepared));
    commsir_group_destroy(group);
  });
}

TEST(Prepared, ErrorsOfEarlierLaunchesAreMarked) {
  runRanks(1, [](int64_t, commsir_group *group) {
    expectOk(commsir_group_abort(group, "over"));
    EXPECT_EQ(commsir_group_poll(group), COMMSIR_ABORTED);
    EXPECT_TRUE(commsir_error_is_earlier());
    EXPECT_EQ(commsir_group_poll(nullptr), COMMSIR_USAGE);
    EXPECT_FALSE(commsir_error_is_earlier());
    commsir_group_destroy(group);
  });
}

TEST(Prepared, TheLibraryHasTheHeadersInterface) {
  EXPECT_EQ(commsir_abi_version(), COMMSIR_ABI_VERSION);
}
