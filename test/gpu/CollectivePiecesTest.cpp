//===- CollectivePiecesTest.cpp - Calls that are larger than a kernel -----===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gpu/CollectiveTest.h"

#include "runtime/group/Shape.h"
#include "runtime/support/GroupError.h"

#include <sys/mman.h>

using namespace commsir;
using namespace commsir::test;

namespace {

/// An all-reduce of three pieces of `piece` elements goes in three launches.
std::string reduceInPieces(Calls &calls, int64_t piece) {
  int64_t count = 3 * piece;
  int32_t *arrays[2];
  for (int32_t *&array : arrays)
    array = static_cast<int32_t *>(
        llvm::cantFail(calls.group->allocateOwn(count * 4)));
  Calls::expect(piece);
  for (int32_t turn = 0; turn < 2; ++turn) {
    std::iota(arrays[0], arrays[0] + count, turn * 7);
    std::fill_n(arrays[1], count, -1);
    CollectiveCall call = calls.make("all_reduce", count);
    call.input.data = arrays[0];
    call.output.data = arrays[1];
    call.algorithm = "one_shot";
    call.protocol = "pull";
    if (auto error = calls.collectives->run(call, nullptr))
      return llvm::toString(std::move(error));
    if (!std::equal(arrays[0], arrays[0] + count, arrays[1]))
      return "not all was reduced";
  }
  uint64_t launches = calls.group->counts().launches;
  return launches == 6 && calls.collectives->counts().staged == 0
             ? ""
             : std::to_string(launches) + " launches, or copies";
}

/// What needs more channel memory than there is goes in pieces.
TEST_F(CollectiveTest, LargeMessagesGoInPieces) {
  setenv("COMMSIR_CHANNEL_BYTES", "300000", 1);
  run({}, [](Calls &calls) { return reduceInPieces(calls, 32768); }, 2);
  unsetenv("COMMSIR_CHANNEL_BYTES");
}

/// Also where the limit is the driver's, and the group's is far.
TEST_F(CollectiveTest, WhereTheDriverHasNoMoreMessagesGoInPieces) {
  setenv("COMMSIR_FAKE_MEMORY", "35000000", 1);
  run(
      {},
      [](Calls &calls) -> std::string {
        // 64 MiB of channels; the group's own 8 MiB are there.
        KernelRequest request;
        request.source = R"(
comms.kernel @all_reduce(%x: memref<8388608xi32>, %y: memref<8388608xi32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<8388608xi32>) outs(%y : memref<8388608xi32>)
  comms.return
})";
        request.algorithm = "one_shot";
        request.protocol = "pull";
        auto kernel = calls.group->prepare(request);
        if (kernel)
          return "there is memory for it: the test shows nothing";
        llvm::Error error = kernel.takeError();
        bool limit = isLimit(error);
        std::string said = llvm::toString(std::move(error));
        if (!limit || said.find("allocating") == std::string::npos)
          return "no limit: " + said;
        return reduceInPieces(calls, 1 << 21);
      },
      2);
  unsetenv("COMMSIR_FAKE_MEMORY");
}

/// A collective with arithmetic goes in runs of rows.
TEST_F(CollectiveTest, LargeFusedCallsGoInPieces) {
  setenv("COMMSIR_CHANNEL_BYTES", "300000", 1);
  run(
      {},
      [](Calls &calls) -> std::string {
        constexpr int64_t rows = 192, columns = 512, count = rows * columns;
        int32_t *arrays[2];
        for (int32_t *&array : arrays)
          array = static_cast<int32_t *>(
              llvm::cantFail(calls.group->allocateOwn(count * 4)));
        // The limit has room for 32 rows.
        Calls::expect(count / 6);
        FusedCall call;
        call.op = "all_reduce";
        call.reduction = "sum";
        call.elementType = "i32";
        call.rows = rows;
        call.columns = columns;
        call.input = {arrays[0], count};
        call.outputs.push_back({{arrays[1], count}, "i32", true, columns});
        call.consume = "(%sum: tensor<512xi32>) { comms.yield %sum : "
                       "tensor<512xi32> }";
        PreparedFused prepared(call);
        for (int32_t turn = 0; turn < 4; ++turn) {
          std::iota(arrays[0], arrays[0] + count, turn * 7);
          std::fill_n(arrays[1], count, -1);
          llvm::Error error =
              turn % 2 ? calls.collectives->launch(
                             prepared, {arrays[0], arrays[1]}, nullptr)
                       : calls.collectives->run(call, nullptr);
          if (error)
            return llvm::toString(std::move(error));
          if (!std::equal(arrays[0], arrays[0] + count, arrays[1]))
            return "not all was reduced";
        }
        uint64_t launches = calls.group->counts().launches;
        return launches == 24 && calls.collectives->counts().inPlace == 4
                   ? ""
                   : std::to_string(launches) + " launches";
      },
      2);
  unsetenv("COMMSIR_CHANNEL_BYTES");
}

/// A call of more than 4 MiB goes in about equal pieces by one kernel, from its
/// first launch on, prepared or not.
TEST_F(CollectiveTest, LargeFusedCallsGoInEqualPieces) {
  run(
      {},
      [](Calls &calls) -> std::string {
        constexpr int64_t columns = 4096, rows = 515, pieces = 3;
        constexpr int64_t count = rows * columns, row = columns * 4;
        Calls::expectBytes(std::to_string(172 * row) + "," +
                           std::to_string(172 * row) + "," +
                           std::to_string(171 * row));
        auto take = [&] {
          return static_cast<int32_t *>(
              llvm::cantFail(calls.group->allocateOwn(count * 4)));
        };
        int32_t *input = take(), *output = take();
        FusedCall call;
        call.op = "all_reduce";
        call.reduction = "sum";
        call.elementType = "i32";
        call.rows = rows;
        call.columns = columns;
        call.input = {input, count};
        call.outputs.push_back({{output, count}, "i32", true, columns});
        call.consume = "(%sum: tensor<4096xi32>) { comms.yield %sum : "
                       "tensor<4096xi32> }";
        PreparedFused prepared(call);
        for (int32_t turn = 0; turn < 4; ++turn) {
          std::iota(input, input + count, turn * 7);
          std::fill_n(output, count, -1);
          llvm::Error error = turn % 2 ? calls.collectives->launch(
                                             prepared, {input, output}, nullptr)
                                       : calls.collectives->run(call, nullptr);
          if (error)
            return llvm::toString(std::move(error));
          if (!std::equal(input, input + count, output))
            return "not all was reduced";
        }
        uint64_t launches = calls.group->counts().launches;
        return launches == 4 * pieces && calls.kernels() == 1 &&
                       calls.collectives->counts().inPlace == 4
                   ? ""
                   : std::to_string(launches) + " launches of " +
                         std::to_string(calls.kernels()) + " kernels";
      },
      2);
}

/// A call in pieces is captured in pieces: it has no kernel of its own yet.
TEST_F(CollectiveTest, LargeCallsMadeOnceAreCaptured) {
  setenv("COMMSIR_FAKE_RESIDENT", "12", 1);
  Calls::expectBytes("0");
  run(
      {},
      [](Calls &calls) -> std::string {
        constexpr int64_t kCount = 1500000;
        const cuda::Device &device = cuda::getDevice(*calls.group);
        const cuda::Driver &cu = device.driver();
        cuda::ContextGuard guard(cu, device.context());
        CUstream stream = calls.makeStream();
        char *in = static_cast<char *>(calls.takeMuch(2 * kCount)),
             *out = static_cast<char *>(calls.takeMuch(2 * kCount));
        for (auto [op, cuts, joins] : {std::tuple("broadcast", false, false),
                                       {"reduce_scatter", true, false},
                                       {"gather", false, true},
                                       {"scatter", true, false}}) {
          CollectiveCall call = calls.make(op, kCount);
          if (call.op == "reduce_scatter")
            call.reduction = "sum";
          call.input = {in, kCount * (cuts ? 2 : 1)};
          call.output = {out, kCount * (joins ? 2 : 1)};
          if (auto error = calls.collectives->run(call, stream))
            return llvm::toString(std::move(error));
          if (cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
            return "no capture";
          auto error = calls.collectives->run(call, stream);
          CUgraph graph = nullptr;
          cu.StreamEndCapture(stream, &graph);
          cu.GraphDestroy(graph);
          if (error)
            return op + (": " + llvm::toString(std::move(error)));
        }
        return "";
      },
      2);
  unsetenv("COMMSIR_FAKE_RESIDENT");
}

/// A size that is repeated is compiled during its calls. All ranks take the
/// kernel at one call, also where one of them comes late to each.
TEST_F(CollectiveTest, CallsGoOnWithoutTheKernelThatIsCompiled) {
  setenv("COMMSIR_FAKE_RESIDENT", "12", 1);
  group::compilesAtOnce = 0;
  Calls::expectBytes("0");
  run(
      {},
      [](Calls &calls) -> std::string {
        constexpr int64_t kCount = 1500000;
        char *in = static_cast<char *>(calls.takeMuch(2 * kCount)),
             *out = static_cast<char *>(calls.takeMuch(2 * kCount));
        for (auto [op, cuts, joins] :
             {std::tuple("reduce_scatter", true, false),
              {"broadcast", false, false},
              {"all_gather", false, true}}) {
          CollectiveCall call = calls.make(op, kCount);
          if (call.op == "reduce_scatter")
            call.reduction = "sum";
          call.input = {in, kCount * (cuts ? 2 : 1)};
          call.output = {out, kCount * (joins ? 2 : 1)};
          uint64_t kernels = calls.kernels();
          int turns = 0;
          for (uint64_t launches = 2; launches != 1; ++turns) {
            if (turns == 100)
              return op + std::string(" never got its kernel");
            usleep(calls.group->options().rank * 10000);
            uint64_t before = calls.group->counts().launches;
            if (auto error = calls.collectives->run(call, nullptr))
              return op + (": " + llvm::toString(std::move(error)));
            launches = calls.group->counts().launches - before;
          }
          // The first turns take what there is, and not many of them.
          if (turns < 3 || turns > 34)
            return op + std::string(turns < 3 ? " waited for its kernel"
                                              : " went on for too long");
          if (calls.kernels() <= kernels)
            return op + std::string(" has no kernel of its own");
        }
        return "";
      },
      2);
  unsetenv("COMMSIR_FAKE_RESIDENT");
}

/// A tensor may begin anywhere on one rank and at a multiple of 256 bytes on
/// the other: both are in one kernel.
TEST_F(CollectiveTest, ArraysThatLieInBetweenOnOneRankAreTaken) {
  run(
      {},
      [](Calls &calls) -> std::string {
        calls.in += calls.group->options().rank;
        return calls.reduce(64, 64);
      },
      2);
}

/// Address space of `bytes` bytes, all of it the same 2 MiB of memory.
char *takeRepeated(size_t bytes) {
  constexpr size_t kPiece = size_t(2) << 20;
  int file = memfd_create("repeated", MFD_CLOEXEC);
  auto *whole = static_cast<char *>(
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  bool isMapped = file >= 0 && whole != MAP_FAILED && !ftruncate(file, kPiece);
  for (size_t at = 0; isMapped && at < bytes; at += kPiece)
    isMapped = mmap(whole + at, kPiece, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  return isMapped ? whole : nullptr;
}

/// Messages of 1 GiB go in pieces, or in rounds, of bounded channel memory.
TEST_F(CollectiveTest, LargeMessagesTakeBoundedChannels) {
  setenv("COMMSIR_FAKE_RESIDENT", "12", 1);
  setenv("COMMSIR_FAKE_NAME", "NVIDIA H100 80GB HBM3", 1);
  Calls::expectBytes("0");
  constexpr int kRanks = 4;
  run(
      {},
      [](Calls &calls) -> std::string {
        constexpr int64_t kBytes = int64_t(1) << 30;
        constexpr int64_t kMost = int64_t(256) << 20;
        char *in = takeRepeated(kBytes), *out = takeRepeated(kBytes);
        if (!in || !out)
          return "no address space";
        for (auto [op, cuts, joins] : {std::tuple("all_reduce", false, false),
                                       {"broadcast", false, false},
                                       {"all_gather", false, true},
                                       {"reduce_scatter", true, false}}) {
          int64_t part = kBytes / 4 / (cuts || joins ? kRanks : 1);
          CollectiveCall call = calls.make(op, part);
          if (call.op == "reduce_scatter")
            call.reduction = "sum";
          call.input = {in, part * (cuts ? kRanks : 1)};
          call.output = {out, part * (joins ? kRanks : 1)};
          if (auto error = calls.collectives->run(call, nullptr))
            return op + (": " + llvm::toString(std::move(error)));
          auto bytes = int64_t(calls.group->counts().channelBytes);
          if (bytes <= 0 || bytes > kMost)
            return op + (": " + std::to_string(bytes >> 20)) + " MiB";
        }
        return "";
      },
      kRanks);
  unsetenv("COMMSIR_FAKE_NAME");
  unsetenv("COMMSIR_FAKE_RESIDENT");
}

} // namespace
