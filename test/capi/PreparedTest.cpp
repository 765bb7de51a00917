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
#include <utility>
#include <vector>

using namespace commsir::test;

namespace {

/// An all-reduce of so many floats; no address is given.
commsir_collective sumOf(int64_t elements) {
  commsir_collective call = {};
  call.size = sizeof call;
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

/// An all-reduce of `rows` rows of 8 floats, then r = sum + b and q = r * sum.
class Fused {
public:
  explicit Fused(int64_t rows) : residual{nullptr, rows * 8, "f32", 1, 8} {
    outputs[0] = outputs[1] = residual;
    call.size = sizeof call;
    call.op = "all_reduce";
    call.reduction = "sum";
    call.type = "f32";
    call.rows = rows;
    call.columns = 8;
    call.arguments = &residual;
    call.argument_count = 1;
    call.outputs = outputs;
    call.output_count = 2;
    call.consume = "(%s: tensor<8xf32>, %b: tensor<8xf32>) {\n"
                   "  %r = arith.addf %s, %b : tensor<8xf32>\n"
                   "  %q = arith.mulf %r, %s : tensor<8xf32>\n"
                   "  comms.yield %r, %q : tensor<8xf32>, tensor<8xf32>\n}";
  }
  commsir_operand residual, outputs[2];
  commsir_fused call = {};
};

commsir_prepared *prepare(commsir_group *group, const commsir_fused &call,
                          double timeout = 0) {
  commsir_prepare_options options = {sizeof options, timeout};
  commsir_prepared *prepared = nullptr;
  expectOk(commsir_prepare_fused(group, &call, &options, &prepared));
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
      call.size = sizeof call;
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

TEST(Prepared, DifferentCallsOfRanksAreErrors) {
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

TEST(Prepared, TheTimeoutIsChecked) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_collective call = sumOf(16);
    commsir_prepared *prepared = nullptr;
    for (double bad : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
      commsir_prepare_options options = {sizeof options, bad};
      expectError(commsir_prepare(group, &call, &options, &prepared),
                  COMMSIR_USAGE, "timeout");
    }
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

TEST(PreparedFused, LaunchesOnOtherArrays) {
  runRanks(3, [](int64_t rank, commsir_group *group) {
    commsir_prepared *prepared = prepare(group, Fused(2).call);
    commsir_prepared *other = prepare(group, Fused(4).call);
    for (int i = 0; i < 6; ++i) {
      for (auto [made, size] :
           {std::pair(prepared, 16), std::pair(other, 32)}) {
        std::vector<float> x(size, float(rank + i)), b(size, 0.5f), r(size),
            q(size);
        void *arrays[] = {x.data(), b.data(), r.data(), q.data()};
        expectOk(commsir_launch_fused(made, arrays, 4, nullptr));
        float sum = float(3 + 3 * i);
        EXPECT_EQ(r, std::vector<float>(size, sum + 0.5f));
        EXPECT_EQ(q, std::vector<float>(size, (sum + 0.5f) * sum));
      }
    }
    commsir_prepared_release(prepared);
    commsir_prepared_release(other);
    commsir_group_destroy(group);
  });
}

TEST(PreparedFused, KeepsNothingOfTheCaller) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    commsir_prepared *prepared = nullptr;
    {
      std::string op = "all_reduce", kind = "max", type = "f32",
                  produce = "(%x: tensor<8xf32>, %w: tensor<8xf32>) {\n"
                            "  %p = arith.mulf %x, %w : tensor<8xf32>\n"
                            "  comms.yield %p : tensor<8xf32>\n}";
      commsir_operand source = {nullptr, 8, type.data(), 0, 8};
      commsir_operand output = {nullptr, 16, type.data(), 1, 8};
      commsir_fused call = {};
      call.size = sizeof call;
      call.op = op.data();
      call.reduction = kind.data();
      call.type = type.data();
      call.rows = 2;
      call.columns = 8;
      call.outputs = &output;
      call.output_count = 1;
      call.produce = produce.data();
      call.sources = &source;
      call.source_count = 1;
      expectOk(commsir_prepare_fused(group, &call, nullptr, &prepared));
      for (std::string *text : {&op, &kind, &type, &produce})
        text->assign(text->size(), 'x');
    }
    for (float weight : {2.0f, 3.0f}) {
      std::vector<float> x(16, float(rank + 1)), w(8, weight), y(16);
      void *arrays[] = {x.data(), w.data(), y.data()};
      expectOk(commsir_launch_fused(prepared, arrays, 3, nullptr));
      EXPECT_EQ(y, std::vector<float>(16, 2 * weight));
    }
    commsir_prepared_release(prepared);
    commsir_group_destroy(group);
  });
}

TEST(PreparedFused, DifferentCallsOfRanksAreErrors) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    commsir_prepared *one = prepare(group, Fused(2).call);
    commsir_prepared *two = prepare(group, Fused(4).call);
    std::vector<float> x(32, 1), b(32), r(32), q(32);
    void *arrays[] = {x.data(), b.data(), r.data(), q.data()};
    // Both were launched, so that each is a repeated call.
    for (commsir_prepared *made : {one, two, one, two})
      expectOk(commsir_launch_fused(made, arrays, 4, nullptr));
    expectError(commsir_launch_fused(rank ? one : two, arrays, 4, nullptr),
                COMMSIR_DISAGREE, "all_reduce");
    // As after any such call, the group can be used.
    expectOk(commsir_launch_fused(one, arrays, 4, nullptr));
    EXPECT_EQ(r.front(), 2);
    commsir_group_destroy(group);
  });
}

TEST(PreparedFused, SizesAreCheckedWhenItIsPrepared) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_prepared *prepared = nullptr;
    auto refuse = [&](const commsir_fused &call, const char *part) {
      expectError(commsir_prepare_fused(group, &call, nullptr, &prepared),
                  COMMSIR_USAGE, part);
      EXPECT_EQ(prepared, nullptr);
    };
    Fused right(2), cut(2), unknown(2), missing(2), none(2);
    cut.residual.elements = 15;
    refuse(cut.call, "argument 0 has 15 elements");
    unknown.outputs[1].type = "f31";
    refuse(unknown.call, "f31");
    missing.call.arguments = nullptr;
    refuse(missing.call, "null pointer");
    none.call.output_count = 0;
    refuse(none.call, "no output");
    commsir_prepare_options options = {sizeof options, -1};
    EXPECT_EQ(commsir_prepare_fused(group, &right.call, &options, &prepared),
              COMMSIR_USAGE);
    EXPECT_EQ(commsir_prepare_fused(group, nullptr, nullptr, &prepared),
              COMMSIR_USAGE);
    EXPECT_EQ(commsir_prepare_fused(group, &right.call, nullptr, nullptr),
              COMMSIR_USAGE);
    commsir_group_destroy(group);
  });
}

TEST(PreparedFused, OtherArraysThanWerePrepared) {
  runRanks(1, [](int64_t, commsir_group *group) {
    commsir_prepared *fused = prepare(group, Fused(2).call);
    commsir_prepared *plain = prepare(group, sumOf(16));
    std::vector<float> x(16, 1), b(16), r(16), q(16);
    void *arrays[] = {x.data(), b.data(), r.data(), q.data()};
    expectError(commsir_launch_fused(fused, arrays, 3, nullptr), COMMSIR_USAGE,
                "prepared with 4");
    expectError(commsir_launch_fused(fused, nullptr, 4, nullptr), COMMSIR_USAGE,
                "null pointer");
    expectError(commsir_launch_fused(plain, arrays, 2, nullptr), COMMSIR_USAGE,
                "commsir_launch");
    expectError(commsir_launch(fused, x.data(), r.data(), nullptr),
                COMMSIR_USAGE, "commsir_launch_fused");
    expectError(commsir_launch_fused(fused, arrays, 4, &x), COMMSIR_USAGE,
                "stream");
    EXPECT_EQ(commsir_launch_fused(nullptr, arrays, 4, nullptr), COMMSIR_USAGE);
    arrays[2] = nullptr;
    EXPECT_EQ(commsir_launch_fused(fused, arrays, 4, nullptr), COMMSIR_USAGE);
    arrays[2] = r.data();
    expectOk(commsir_launch_fused(fused, arrays, 4, nullptr));
    commsir_prepared_release(fused);
    expectError(commsir_launch_fused(fused, arrays, 4, nullptr), COMMSIR_USAGE,
                "freed");
    commsir_group_destroy(group);
  });
}

TEST(PreparedFused, ARegionThatDoesNotCompileIsAnErrorOfTheLaunch) {
  runRanks(2, [](int64_t, commsir_group *group) {
    Fused wrong(2), right(2);
    wrong.call.consume = "(%s: tensor<8xf32>, %b: tensor<8xf32>) { nonsense }";
    commsir_prepared *bad = prepare(group, wrong.call);
    commsir_prepared *good = prepare(group, right.call);
    std::vector<float> x(16, 1), b(16), r(16), q(16);
    void *arrays[] = {x.data(), b.data(), r.data(), q.data()};
    for (int i = 0; i < 2; ++i)
      expectError(commsir_launch_fused(bad, arrays, 4, nullptr),
                  COMMSIR_COMPILE, "nonsense");
    expectOk(commsir_launch_fused(good, arrays, 4, nullptr));
    EXPECT_EQ(q.front(), 4);
    commsir_group_destroy(group);
  });
}

TEST(PreparedFused, TimeoutOfALaunch) {
  runRanks(2, [](int64_t rank, commsir_group *group) {
    std::vector<float> x(16, 1), b(16), r(16), q(16);
    void *arrays[] = {x.data(), b.data(), r.data(), q.data()};
    commsir_prepared *quick = prepare(group, Fused(2).call, 0.3);
    expectOk(commsir_launch_fused(quick, arrays, 4, nullptr));
    if (rank == 0)
      EXPECT_EQ(commsir_launch_fused(quick, arrays, 4, nullptr),
                COMMSIR_DEADLOCK);
    else
      sleepFor(1.5);
    commsir_group_destroy(group);
  });
}

TEST(Prepared, TheLibraryHasTheHeadersInterface) {
  EXPECT_EQ(commsir_abi_version(), COMMSIR_ABI_VERSION);
}
