//===- CollectiveTest.cpp - Calls of groups of GPUs -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests the kernel of each call, the copies for it, and the rules of captures.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/CollectiveTest.h"

#include "runtime/choose/Choose.h"
#include "runtime/group/Shape.h"
#include "runtime/support/GroupError.h"

#include "llvm/Support/raw_ostream.h"

using namespace commsir;
using namespace commsir::test;

namespace {

TEST_F(CollectiveTest, ManySizesShareKernels) {
  CollectiveLimits limits;
  limits.ownSizes = 2;
  run(limits, [](Calls &calls) -> std::string {
    // The first two sizes have kernels of their own, and are not copied.
    for (int64_t count : {17, 19, 17})
      if (auto wrong = calls.reduce(count, count); !wrong.empty())
        return wrong;
    if (calls.collectives->counts().staged || calls.kernels() != 2)
      return "the first sizes are copied";
    // The others share one.
    for (int64_t count : {101, 102, 103, 105, 106, 107})
      if (auto wrong = calls.reduce(count, sizeClass(count)); !wrong.empty())
        return wrong;
    if (calls.collectives->counts().staged != 6 || calls.kernels() != 3)
      return "sizes beyond the limit do not share a kernel";
    // Until they are used often.
    for (int turn = 0; turn < 3; ++turn)
      if (auto wrong = calls.reduce(101, sizeClass(101)); !wrong.empty())
        return wrong;
    if (auto wrong = calls.reduce(101, 101); !wrong.empty())
      return wrong;
    return calls.collectives->counts().staged == 9 && calls.kernels() == 4
               ? ""
               : "a size that is used often is copied still";
  });
}

TEST_F(CollectiveTest, ArraysAtAnyAddressAreTaken) {
  run({}, [](Calls &calls) -> std::string {
    if (auto wrong = calls.reduce(64, 64); !wrong.empty())
      return wrong;
    ++calls.in;
    for (int turn = 0; turn < 2; ++turn)
      if (auto wrong = calls.reduce(64, 64); !wrong.empty())
        return wrong;
    ++calls.out;
    if (auto wrong = calls.reduce(64, 64); !wrong.empty())
      return wrong;
    --calls.in, --calls.out;
    if (auto wrong = calls.reduce(64, 64); !wrong.empty())
      return wrong;
    StagingCounts counts = calls.collectives->counts();
    return counts.staged == 3 && counts.inPlace == 2 && calls.kernels() == 1
               ? ""
               : "an array that lies in between is not copied, or others are";
  });
}

TEST_F(CollectiveTest, KernelsAreDropped) {
  CollectiveLimits limits;
  limits.kernels = 2;
  run(limits, [](Calls &calls) -> std::string {
    // More sizes than are kept, in turns, so that plans outlive kernels.
    for (int turn = 0; turn < 3; ++turn)
      for (int64_t count : {17, 19, 101})
        if (auto wrong = calls.reduce(count, count); !wrong.empty())
          return wrong;
    return "";
  });
}

/// Sizes that come in turn, more than kernels are kept, drop no other's kernel
/// each time: those without one share the kernels of their classes.
TEST_F(CollectiveTest, KernelsStayWhereSizesTakeTurns) {
  CollectiveLimits limits;
  limits.kernels = 16;
  run(limits, [](Calls &calls) -> std::string {
    size_t before = 0;
    for (int turn = 0; turn < 6; ++turn) {
      for (int64_t count = 65; count < 97; ++count)
        if (auto wrong = calls.reduce(count, count); !wrong.empty())
          return wrong;
      if (turn == 2)
        before = calls.kernels();
    }
    if (calls.kernels() != before)
      return std::to_string(calls.kernels() - before) +
             " kernels were made in turns of sizes that had come before";
    return "";
  });
}

/// However many kernels there are, they take one channel memory in turn.
TEST_F(CollectiveTest, KernelsShareChannels) {
  setenv("COMMSIR_CHANNEL_BYTES", "262144", 1);
  run(
      {},
      [](Calls &calls) -> std::string {
        uint64_t bytes = 0;
        for (int turn = 0; turn < 2; ++turn)
          for (const char *op : {"all_reduce", "broadcast", "reduce"})
            for (int64_t count = 17; count < 200; count += 13) {
              Calls::expect(count);
              if (auto error =
                      calls.collectives->run(calls.make(op, count), nullptr))
                return llvm::toString(std::move(error));
              uint64_t now = calls.group->counts().channelBytes;
              if (bytes && now != bytes)
                return "channels have grown";
              bytes = now;
            }
        // A reduce has the code of an all_reduce.
        return calls.kernels() < 2 ? "the test shows nothing" : "";
      },
      2);
  unsetenv("COMMSIR_CHANNEL_BYTES");
}

/// What arrays hold makes no other code, but is compared between ranks.
TEST_F(CollectiveTest, LabelsShareCode) {
  run(
      {},
      [](Calls &calls) -> std::string {
        Calls::expect(48);
        auto call = [&](const std::string &label) {
          auto made = calls.make("all_reduce", 48);
          made.typeName = label;
          return llvm::toString(calls.collectives->run(made, nullptr));
        };
        for (int size = 1; size < 12; ++size)
          if (std::string said =
                  call("i32 in tensors of " + std::to_string(size));
              !said.empty())
            return said;
        if (calls.kernels() != 1)
          return std::to_string(calls.kernels()) + " kernels were loaded";
        std::string mine = "i32 of rank ";
        std::string said =
            call(mine + std::to_string(calls.group->options().rank));
        return said.find("ranks disagree") == std::string::npos
                   ? "no disagreement: " + said
                   : "";
      },
      2);
}

/// Ever new labels share one after the first: they drop no other kernel.
TEST_F(CollectiveTest, LabelsAreFew) {
  CollectiveLimits limits;
  limits.kernels = 24;
  run(
      limits,
      [](Calls &calls) -> std::string {
        Calls::expect(48);
        auto other = calls.make("all_reduce", 48);
        other.reduction = "max";
        auto labeled = calls.make("all_reduce", 48);
        auto run = [&](const CollectiveCall &call) {
          return llvm::toString(calls.collectives->run(call, nullptr));
        };
        std::string said = run(other);
        for (int size = 0; said.empty() && size < 60; ++size) {
          labeled.typeName = "i32 in tensors of " + std::to_string(size);
          said = run(labeled);
        }
        if (said.empty())
          said = run(other);
        if (!said.empty())
          return said;
        return calls.kernels() == 2
                   ? ""
                   : std::to_string(calls.kernels()) + " kernels were loaded";
      },
      2);
}

/// A table that nobody shipped.
std::string writeTable(const std::string &folder, const char *algorithm) {
  std::string path = folder + "/" + algorithm + ".json";
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  out << R"({"format": "commsir-table-1", "device": "fake", "chip": "sm_90",
"ranks": 1, "date": "2026-11-22", "recipes": [[")"
      << algorithm << R"(", "pull", 64, 1, 1, 2]],
"sections": [{"op": "all_reduce", "type": "i32", "columns": 0,
"points": [[64, 0, 1.0]]}]})";
  return path;
}

/// Kernels that were chosen by other tables are not launched any more.
TEST_F(CollectiveTest, TablesOfLaterMakeNewKernels) {
  run({}, [](Calls &calls) -> std::string {
    std::string folder = testing::TempDir() + "/" + std::to_string(getpid());
    if (llvm::sys::fs::create_directory(folder))
      return "no folder";
    uint64_t known = 0;
    for (const char *algorithm : {"", "one_shot", "two_shot"}) {
      if (*algorithm)
        if (auto error = tune::loadTables(writeTable(folder, algorithm)))
          return llvm::toString(std::move(error));
      for (int call = 0; call < 3; ++call)
        if (std::string wrong = calls.reduce(16, 16); !wrong.empty())
          return wrong;
      if (calls.kernels() != ++known)
        return std::string(algorithm) + ": there are " +
               std::to_string(calls.kernels()) + " kernels";
      KernelRequest open;
      open.source = R"(
comms.kernel @k(%x: memref<16xi32>, %y: memref<16xi32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<16xi32>) outs(%y : memref<16xi32>)
  comms.return
})";
      auto kernel = calls.group->prepare(open);
      if (!kernel)
        return llvm::toString(kernel.takeError());
      ++known;
      if (*algorithm && (*kernel)->choices().front().algorithm != algorithm)
        return "chosen was " + (*kernel)->choices().front().algorithm;
    }
    // What cannot be read changes nothing.
    uint64_t digest = tune::getTablesDigest();
    auto error = tune::loadTables(folder + "/none.json");
    std::string said = llvm::toString(std::move(error));
    if (said.find("cannot read the table") == std::string::npos)
      return "an error was expected: " + said;
    llvm::sys::fs::remove_directories(folder);
    return digest && tune::getTablesDigest() == digest ? "" : "it has changed";
  });
}

/// A prepared one comes to its kernel at once, also between others.
TEST_F(CollectiveTest, PreparedFusedCallsAreRepeated) {
  run(
      {},
      [](Calls &calls) -> std::string {
        constexpr int64_t rows = 4, columns = 512, count = rows * columns;
        int32_t *arrays[4];
        for (int32_t *&array : arrays)
          array = static_cast<int32_t *>(
              llvm::cantFail(calls.group->allocateOwn(count * 4)));
        Calls::expect(count);
        FusedCall call;
        call.op = "all_reduce";
        call.reduction = "sum";
        call.elementType = "i32";
        call.rows = rows;
        call.columns = columns;
        call.input.elements = count;
        call.outputs.push_back({{nullptr, count}, "i32", true, columns});
        std::string text = "(%sum: tensor<512xi32>) { comms.yield %sum : "
                           "tensor<512xi32> }";
        call.consume = text;
        if (llvm::Error error = calls.collectives->check(call))
          return llvm::toString(std::move(error));
        PreparedFused prepared(call);
        text.assign(text.size(), 'x');
        for (int32_t turn = 0; turn < 6; ++turn) {
          int32_t *input = arrays[turn % 2], *output = arrays[2 + turn % 2];
          std::iota(input, input + count, turn * 7);
          std::fill_n(output, count, -1);
          if (llvm::Error error =
                  calls.collectives->launch(prepared, {input, output}, nullptr))
            return llvm::toString(std::move(error));
          if (!std::equal(input, input + count, output))
            return "not all was reduced";
        }
        uint64_t launches = calls.group->counts().launches;
        return launches == 6 && calls.collectives->counts().inPlace == 6 &&
                       calls.kernels() == 1
                   ? ""
                   : std::to_string(launches) + " launches";
      },
      2);
}

TEST_F(CollectiveTest, CapturesNeedPreparedCalls) {
  CollectiveLimits limits;
  limits.ownSizes = 1;
  run(limits, [](Calls &calls) -> std::string {
    const cuda::Device &device = cuda::getDevice(*calls.group);
    const cuda::Driver &cu = device.driver();
    cuda::ContextGuard guard(cu, device.context());
    for (int64_t count : {17, 101})
      if (auto wrong = calls.reduce(count, count); !wrong.empty())
        return wrong;
    uint64_t kernels = calls.kernels();
    CUstream stream = calls.makeStream();
    for (int64_t count : {17, 101}) {
      if (cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
        return "no capture";
      // A kernel takes any size up to that of its class.
      if (auto wrong = calls.reduce(count, count, stream); !wrong.empty())
        return wrong;
      std::string unprepared = calls.reduce(300, 300, stream);
      if (unprepared.find("all_reduce sum of 300 i32") == std::string::npos ||
          unprepared.find("before capturing") == std::string::npos)
        return "an unprepared call in a capture: " + unprepared;
      // As the captured call left them.
      calls.fill(count);
      CUgraph graph = nullptr;
      CUgraphExec exec = nullptr;
      if (cu.StreamEndCapture(stream, &graph) ||
          cu.GraphInstantiate(&exec, graph, 0))
        return "no graph";
      Calls::expect(count);
      if (cu.GraphLaunch(exec, stream))
        return "no launch of the graph";
      if (auto wrong = calls.check(count); !wrong.empty())
        return "in a graph: " + wrong;
      cu.GraphExecDestroy(exec);
      cu.GraphDestroy(graph);
    }
    return calls.kernels() == kernels ? "" : "a capture has compiled something";
  });
}

TEST_F(CollectiveTest, DifferentSizesAreExchanged) {
  run({}, [](Calls &calls) -> std::string {
    for (int64_t count : {40, 0, 33}) {
      calls.fill(count);
      CollectiveCall call = calls.make("all_to_all_v", count);
      call.sendCounts = call.recvCounts = {count};
      // The size, the largest size, and the array where there is one.
      Calls::expectBytes(count ? "8,8," + std::to_string(4 * sizeClass(count))
                               : "8,8");
      if (auto error = calls.collectives->run(call, nullptr))
        return llvm::toString(std::move(error));
      if (auto wrong = calls.check(count); !wrong.empty())
        return wrong;
    }
    const cuda::Driver &cu = cuda::getDevice(*calls.group).driver();
    CUstream stream = calls.makeStream();
    cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CollectiveCall call = calls.make("all_to_all_v", 8);
    call.sendCounts = call.recvCounts = {8};
    std::string said = llvm::toString(calls.collectives->run(call, stream));
    CUgraph graph = nullptr;
    cu.StreamEndCapture(stream, &graph);
    cu.GraphDestroy(graph);
    return said.find("cannot be captured") != std::string::npos
               ? ""
               : "in a capture: " + said;
  });
}

/// What one sends is the kernel that the other receives by; the driver's own
/// kernels copy within a rank alone.
TEST_F(CollectiveTest, TwoRanksSendAndReceive) {
  auto work = [](Calls &calls) -> std::string {
    Calls::expect(32);
    int64_t rank = calls.group->options().rank;
    for (int64_t source : {0, 1, 0}) {
      CollectiveCall call = calls.make(source == rank ? "send" : "recv", 32);
      call.peer = 1 - rank;
      if (auto why = calls.collectives->unsupportedReason(call))
        return *why;
      if (auto error = calls.collectives->run(call, nullptr))
        return llvm::toString(std::move(error));
    }
    return calls.kernels() == 2 && calls.group->counts().launches == 3
               ? ""
               : "not one kernel for each direction";
  };
  run({}, work, 2);
  // One rank has no other; of three, two make a group.
  run(
      {},
      [](Calls &calls) -> std::string {
        CollectiveCall call = calls.make("send", 32);
        auto why = calls.collectives->unsupportedReason(call);
        return why && why->find("in a group of the two") != std::string::npos
                   ? ""
                   : why.value_or("a group of three sends");
      },
      3);
}

/// Memory for calls of any size; what lies in it is not looked at.
/// The kernels that calls of many sizes make, from one element to 6 MiB a part.
std::string countKernels(Calls &calls, const char *op, bool cuts, bool joins,
                         uint64_t most) {
  constexpr int64_t kMost = 1600000;
  char *in = static_cast<char *>(calls.takeMuch(2 * kMost));
  char *out = static_cast<char *>(calls.takeMuch(2 * kMost));
  uint64_t before = calls.kernels();
  for (int64_t count = 1; count < kMost; count += count / 3 + 1) {
    CollectiveCall call = calls.make(op, count);
    call.reduction =
        cuts && !joins && call.op != "scatter" ? "sum" : call.reduction;
    call.input = {in, count * (cuts ? 2 : 1)};
    call.output = {out, count * (joins ? 2 : 1)};
    call.root = 1;
    if (auto error = calls.collectives->run(call, nullptr))
      return llvm::toString(std::move(error));
  }
  uint64_t made = calls.kernels() - before;
  return made <= most ? ""
                      : std::string(op) + ": " + std::to_string(made) +
                            " kernels for sizes that were seen once\n";
}

TEST_F(CollectiveTest, SizesSeenOnceShareKernels) {
  setenv("COMMSIR_FAKE_RESIDENT", "12", 1);
  Calls::expectBytes("0");
  run(
      {},
      [](Calls &calls) {
        std::string wrong;
        for (auto [op, cuts, joins] : {std::tuple("all_reduce", false, false),
                                       {"reduce", false, false},
                                       {"broadcast", false, false},
                                       {"all_gather", false, true},
                                       {"reduce_scatter", true, false},
                                       {"all_to_all", true, true},
                                       {"gather", false, true},
                                       {"scatter", true, false}})
          wrong += countKernels(calls, op, cuts, joins, /*most=*/16);
        return wrong;
      },
      2);
  unsetenv("COMMSIR_FAKE_RESIDENT");
}

/// A kernel takes the root at launch, as it takes the number of elements: the
/// first root makes all kernels that the others need, also in a capture.
TEST_F(CollectiveTest, RootsShareKernels) {
  setenv("COMMSIR_FAKE_RESIDENT", "12", 1);
  Calls::expectBytes("0");
  constexpr int kRanks = 4;
  run(
      {},
      [](Calls &calls) -> std::string {
        constexpr int64_t kMost = 600000;
        char *in = static_cast<char *>(calls.takeMuch(kRanks * kMost));
        char *out = static_cast<char *>(calls.takeMuch(kRanks * kMost));
        CUstream stream = calls.makeStream();
        const cuda::Device &device = cuda::getDevice(*calls.group);
        const cuda::Driver &cu = device.driver();
        cuda::ContextGuard guard(cu, device.context());
        auto callAll = [&](int64_t root) -> std::string {
          for (auto [op, cuts, joins] : {std::tuple("broadcast", false, false),
                                         {"reduce", false, false},
                                         {"gather", false, true},
                                         {"scatter", true, false}})
            for (int64_t count : {int64_t(1000), kMost}) {
              CollectiveCall call = calls.make(op, count);
              call.root = root;
              call.input = {in, count * (cuts ? kRanks : 1)};
              call.output = {out, count * (joins ? kRanks : 1)};
              if (auto error = calls.collectives->run(call, stream))
                return op + (": " + llvm::toString(std::move(error)));
            }
          return "";
        };
        // Large sizes get kernels of their own when they are repeated.
        for (int turn = 0; turn < 2; ++turn)
          if (auto wrong = callAll(0); !wrong.empty())
            return wrong;
        uint64_t before = calls.kernels();
        // This root comes first in a capture.
        if (cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
          return "no capture";
        std::string captured = callAll(1);
        CUgraph graph = nullptr;
        cu.StreamEndCapture(stream, &graph);
        cu.GraphDestroy(graph);
        if (!captured.empty())
          return "in a capture: " + captured;
        for (int64_t root : {1, 2, 3, 0})
          if (auto wrong = callAll(root); !wrong.empty())
            return wrong;
        uint64_t made = calls.kernels() - before;
        return made == 0 ? ""
                         : std::to_string(made) + " kernels for other roots";
      },
      kRanks);
  unsetenv("COMMSIR_FAKE_RESIDENT");
}

/// Ranks that name different roots are told so, though one kernel takes all.
TEST_F(CollectiveTest, RootsAreCompared) {
  run(
      {},
      [](Calls &calls) -> std::string {
        Calls::expect(64);
        for (const char *op : {"broadcast", "reduce"}) {
          CollectiveCall call = calls.make(op, 64);
          if (auto error = calls.collectives->run(call, nullptr))
            return llvm::toString(std::move(error));
          call.root = calls.group->options().rank;
          if (call.root == 0)
            call.root = 2;
          std::string said =
              llvm::toString(calls.collectives->run(call, nullptr));
          for (const char *part : {"ranks disagree", "with root 1", "root 2"})
            if (said.find(part) == std::string::npos)
              return op + (": no disagreement: " + said);
          // The group stays usable.
          call.root = 1;
          if (auto error = calls.collectives->run(call, nullptr))
            return llvm::toString(std::move(error));
        }
        return "";
      },
      3);
}

/// The others have no output, and their input stays as it is.
TEST_F(CollectiveTest, ReductionsToOneRankKeepOtherOutputs) {
  run(
      {},
      [](Calls &calls) -> std::string {
        int64_t rank = calls.group->options().rank;
        for (int64_t root : {0, 1, 0}) {
          Calls::expect(64);
          calls.fill(64);
          CollectiveCall call = calls.make("reduce", 64);
          call.root = root;
          if (rank != root)
            call.output = {};
          if (auto error = calls.collectives->run(call, nullptr))
            return llvm::toString(std::move(error));
          if (rank == root)
            if (auto wrong = calls.check(64); !wrong.empty())
              return wrong;
          if (rank != root && calls.out[0] != -1)
            return "a rank that is not the root got a result";
          if (calls.in[63] - calls.in[0] != 63)
            return "the input is another";
        }
        return "";
      },
      2);
}

} // namespace
