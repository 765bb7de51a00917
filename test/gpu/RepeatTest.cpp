//===- RepeatTest.cpp - Repeated calls ------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group recognizes a repeated call by its arguments, and launches its kernel
// without any other work. Counts the driver calls and allocations of such a
// launch, over the driver of FakeCuda.cpp, and checks that only identical calls
// are recognized.
//
//===----------------------------------------------------------------------===//

#include "runtime/choose/Choose.h"
#include "runtime/group/Collective.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "test/FailingNew.h"
#include "test/gpu/Threads.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <numeric>
#include <sstream>

using namespace commsir;
using namespace commsir::group;

namespace {

using Counts = std::map<std::string, long>;

/// What the driver has been asked so far.
Counts countAsked() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  auto ask = reinterpret_cast<const char *(*)()>(dlsym(library, "fakeCounts"));
  std::istringstream lines(ask());
  Counts counts;
  std::string name;
  for (long count = 0; lines >> name >> count;)
    counts[name] = count;
  return counts;
}

class Repeated {
public:
  explicit Repeated(Group &group, CollectiveLimits limits = {})
      : collectives(group, limits),
        // As a thread of torch's has it.
        current(cuda::getDevice(group).driver(),
                cuda::getDevice(group).context()) {
    for (int32_t *&array : arrays) {
      array = static_cast<int32_t *>(llvm::cantFail(group.allocateOwn(4096)));
      std::iota(array, array + 1024, int32_t(&array - arrays) * 10000);
    }
    texts.op = "all_reduce";
    texts.reduction = "sum";
    texts.elementType = "i32";
    texts.input = {arrays[0], 64};
    texts.output = {arrays[1], 64};
    setenv("COMMSIR_FAKE_KERNEL", "identity 256", 1);
  }

  /// "": it was found, and has done what it should.
  std::string repeat() {
    auto done = collectives.repeat(texts, nullptr);
    if (!done)
      return "not found";
    if (*done)
      return llvm::toString(std::move(*done));
    return std::memcmp(texts.input.data, texts.output.data, 256)
               ? "the output is wrong"
               : "";
  }
  /// By the long way, which remembers it.
  std::string make() {
    CollectiveCall call;
    call.op = texts.op;
    call.reduction = texts.reduction;
    call.elementType = texts.elementType;
    call.typeName = texts.typeName ? texts.typeName : "";
    call.input = texts.input;
    call.output = texts.output;
    if (llvm::Error error = collectives.run(call, nullptr))
      return llvm::toString(std::move(error));
    collectives.remember(texts, call);
    return "";
  }

  CollectiveTexts texts;
  int32_t *arrays[4] = {};
  Collectives collectives;

private:
  cuda::ContextGuard current;
};

std::string asOne(const std::function<std::string(Group &)> &work) {
  return test::inProcess([&] {
    return test::asThreads(
        1, "plain",
        [&](Group &group, int, test::Together &) { return work(group); })[0];
  });
}

TEST(RepeatTest, ACallIsThreeOfTheDriversAndNoMemory) {
  EXPECT_EQ(asOne([](Group &group) -> std::string {
              Repeated calls(group);
              if (calls.repeat() != "not found")
                return "it was not made yet";
              for (int turn = 0; turn < 2; ++turn)
                if (std::string wrong = calls.make() + calls.repeat();
                    !wrong.empty())
                  return wrong;
              Counts before = countAsked();
              unsigned long start = test::takenHere;
              std::string wrong = calls.repeat();
              unsigned long end = test::takenHere;
              if (!wrong.empty())
                return wrong;
              std::string asked;
              for (auto &[name, count] : countAsked())
                if (long more = count - before[name])
                  asked += name + " " + std::to_string(more) + ", ";
              asked += std::to_string(group.counts().launches) + " launches, " +
                       std::to_string(calls.collectives.counts().inPlace) +
                       " in place, memory " + std::to_string(end - start);
              return asked;
            }),
            "CtxGetCurrent 1, LaunchKernelEx 1, StreamGetCaptureInfo 1, "
            "5 launches, 5 in place, memory 0");
}

TEST(RepeatTest, AnotherCallIsNotTheSame) {
  EXPECT_EQ(
      asOne([](Group &group) -> std::string {
        Repeated calls(group);
        if (std::string wrong = calls.make() + calls.repeat(); !wrong.empty())
          return wrong;
        const CollectiveTexts made = calls.texts;
        // Where a caller's text lay lies another.
        char reduction[] = "sum";
        calls.texts.reduction = reduction;
        std::string said = calls.repeat();
        std::strcpy(reduction, "max");
        said += "; max " + calls.repeat();
        auto with = [&](const char *what, auto change) {
          calls.texts = made;
          change(calls.texts);
          said += std::string("; ") + what + " " + calls.repeat();
        };
        with("su", [](auto &call) { call.reduction = "su"; });
        with("sums", [](auto &call) { call.reduction = "sums"; });
        with("name", [](auto &call) { call.typeName = "ui32"; });
        with("type", [](auto &call) { call.elementType = "f32"; });
        with("algorithm", [](auto &call) { call.algorithm = "two_shot"; });
        with("protocol", [](auto &call) { call.protocol = "pull"; });
        with("root", [](auto &call) { call.root = 1; });
        with("sizes", [](auto &call) {
          call.input.elements = call.output.elements = 65;
        });
        with("no array", [](auto &call) { call.input.data = nullptr; });
        with("odd",
             [&](auto &call) { call.output.data = calls.arrays[1] + 1; });
        with("null", [](auto &call) { call.typeName = ""; });
        with("arrays", [&](auto &call) {
          call.input.data = calls.arrays[2];
          call.output.data = calls.arrays[3];
        });
        return said;
      }),
      "; max not found; su not found; sums not found; name not found; type not "
      "found; algorithm not found; protocol not found; root not found; sizes "
      "not found; no array not found; odd not found; null ; arrays ");
}

/// Texts that are longer than any that is kept, and calls of other sizes that
/// take the place of one another.
TEST(RepeatTest, ManyCallsAreFoundOrMadeAgain) {
  EXPECT_EQ(asOne([](Group &group) -> std::string {
              Repeated calls(group);
              std::string name(40, 'n');
              calls.texts.typeName = name.c_str();
              if (std::string wrong = calls.make(); !wrong.empty())
                return wrong;
              if (calls.repeat() != "not found")
                return "a long text was found";
              calls.texts.typeName = nullptr;
              int found = 0;
              for (int turn = 0; turn < 3; ++turn)
                for (int64_t elements = 16; elements < 28; ++elements) {
                  std::string text = "identity " + std::to_string(elements * 4);
                  setenv("COMMSIR_FAKE_KERNEL", text.c_str(), 1);
                  calls.texts.input.elements = elements;
                  calls.texts.output.elements = elements;
                  if (auto done =
                          calls.collectives.repeat(calls.texts, nullptr)) {
                    ++found;
                    if (*done)
                      return llvm::toString(std::move(*done));
                  } else if (std::string wrong = calls.make(); !wrong.empty()) {
                    return wrong;
                  }
                }
              return group.counts().launches == 3 * 12 + 1 && found > 10
                         ? ""
                         : std::to_string(found) + " were found, of " +
                               std::to_string(group.counts().launches);
            }),
            "");
}

/// Wherever its arrays lie, a call with arithmetic reads and fills them, and
/// nothing next to them.
TEST(RepeatTest, AFusedCallTakesArraysAtAnyAddress) {
  EXPECT_EQ(
      asOne([](Group &group) -> std::string {
        Repeated calls(group);
        FusedCall call;
        call.op = "all_reduce";
        call.reduction = "sum";
        call.elementType = "i32";
        call.rows = 2;
        call.columns = 32;
        call.consume =
            "(%sum: tensor<32xi32>) { comms.yield %sum : tensor<32xi32> }";
        call.input = {nullptr, 64};
        call.outputs.push_back({{nullptr, 64}, "i32", /*perRow=*/true, 32});
        PreparedFused prepared(call);
        std::string said;
        for (int from = 0; from < 3; ++from)
          for (int to = 0; to < 3; ++to)
            for (bool isPrepared : {false, true}) {
              int32_t *input = calls.arrays[0] + 7 * from;
              int32_t *output = calls.arrays[1] + 3 * to;
              std::fill_n(calls.arrays[1], 128, -1);
              call.input.data = input;
              call.outputs[0].array.data = output;
              void *arrays[] = {input, output};
              if (llvm::Error error =
                      isPrepared
                          ? calls.collectives.launch(prepared, arrays, nullptr)
                          : calls.collectives.run(call, nullptr))
                return llvm::toString(std::move(error));
              if (std::memcmp(input, output, 256) || output[64] != -1 ||
                  (to && output[-1] != -1))
                said += llvm::formatv("{0} to {1}; ", from, to).str();
            }
        auto counts = calls.collectives.counts();
        return said + std::to_string(counts.inPlace) + " in place, " +
               std::to_string(counts.staged) + " staged";
      }),
      "2 in place, 16 staged");
}

/// No call is led to a kernel that it would not get by the long way.
TEST(RepeatTest, ChangesSelectAnotherKernel) {
  EXPECT_EQ(
      asOne([](Group &group) -> std::string {
        CollectiveLimits limits;
        limits.kernels = 1;
        Repeated calls(group, limits);
        if (std::string wrong = calls.make() + calls.repeat(); !wrong.empty())
          return wrong;
        calls.texts.reduction = "max";
        if (std::string wrong = calls.make() + calls.repeat(); !wrong.empty())
          return wrong;
        calls.texts.reduction = "sum";
        std::string said = "dropped: " + calls.repeat();
        if (std::string wrong = calls.make() + calls.repeat(); !wrong.empty())
          return wrong;
        std::string path = testing::TempDir() + "/repeat-" +
                           std::to_string(getpid()) + ".json";
        std::error_code error;
        {
          llvm::raw_fd_ostream out(path, error);
          out << R"({"format": "commsir-table-1", "device": "fake",
"chip": "sm_90", "ranks": 1, "date": "2026-11-22",
"recipes": [["one_shot", "pull", 64, 1, 1, 2]],
"sections": [{"op": "all_reduce", "type": "i32", "columns": 0,
"points": [[64, 0, 1.0]]}]})";
        }
        if (llvm::Error bad = tune::loadTables(path))
          return llvm::toString(std::move(bad));
        said += ", other tables: " + calls.repeat();
        return said + calls.make() + calls.repeat();
      }),
      "dropped: not found, other tables: not found");
}

} // namespace
