//===- WorldTest.cpp - Runs of kernels and their reports ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"

#include "llvm/Support/JSON.h"

#include <set>

using namespace commsir;
using namespace commsir::cpu;
using namespace commsir::test;

/// Each rank puts its array into the next rank's window and signals.
static const char ring[] = R"(
comms.kernel @ring(%data: !comms.window<16xf32>, %in: memref<16xf32>, %s: !comms.signal<4>) {
  %t = comms.team world
  %r = comms.rank %t
  %n = comms.size %t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %up = arith.addi %r, %c1 : index
  %next = arith.remui %up, %n : index
  %e = comms.epoch
  %launch = arith.index_cast %e : index to i64
  %b = comms.block_id
  %is0 = arith.cmpi eq, %b, %c0 : index
  scf.if %is0 {
    comms.put_signal %in[%c0] to %data[%c0] count %c16 at %next of %t then inc %s[%c0]
      : memref<16xf32>, !comms.window<16xf32>, !comms.signal<4>
    %tok = comms.wait_signal %s[%c0] ge %launch : !comms.signal<4>
  }
  comms.barrier %t grid
  comms.return
})";

/// Runs the ring and looks at every element of every rank.
static void checkRing(int64_t ranks, const RunOptions &options) {
  Source source;
  jit::CompileOptions compile;
  compile.ranks = ranks;
  auto kernel = source.compile(ring, compile);
  ASSERT_TRUE(kernel);
  auto world = makeWorld(*kernel, options);
  ASSERT_TRUE(world);
  for (int64_t r = 0; r < ranks; ++r)
    for (auto [i, x] : llvm::enumerate(part<float>(*world, *kernel, "in", r)))
      x = static_cast<float>(r * 100 + i);
  EXPECT_EQ(runReport(*world), "");
  for (int64_t r = 0; r < ranks; ++r) {
    EXPECT_EQ(part<int64_t>(*world, *kernel, "s", r)[0], options.launches);
    for (auto [i, x] : llvm::enumerate(part<float>(*world, *kernel, "data", r)))
      ASSERT_EQ(x, static_cast<float>((r + ranks - 1) % ranks * 100 + i))
          << "rank " << r;
  }
}

TEST(World, RoundRobin) {
  RunOptions options;
  options.blocks = 3;
  options.launches = 4;
  checkRing(5, options);
}

TEST(World, ShuffledSchedules) {
  RunOptions options;
  options.blocks = 2;
  options.launches = 3;
  options.shuffle = true;
  for (options.seed = 0; options.seed < 20; ++options.seed)
    checkRing(4, options);
}

TEST(World, SeveralWorkers) {
  RunOptions options;
  options.blocks = 2;
  options.launches = 5;
  options.fast = true;
  for (options.workers = 1; options.workers <= 4; ++options.workers)
    checkRing(6, options);
}

TEST(World, ManyBlocks) {
  RunOptions options;
  options.blocks = 2;
  checkRing(8192, options);
}

TEST(World, RunsAgainWithTheNextLaunch) {
  Source source;
  auto kernel = source.compile(R"(
comms.kernel @count(%y: memref<1xi64>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %e = comms.epoch
  %n = arith.index_cast %e : index to i64
  memref.store %n, %y[%c0] : memref<1xi64>
  comms.return
})");
  ASSERT_TRUE(kernel);
  RunOptions options;
  options.launches = 3;
  auto world = makeWorld(*kernel, options);
  EXPECT_EQ(runReport(*world), "");
  EXPECT_EQ(part<int64_t>(*world, *kernel, "y", 1)[0], 3);
  EXPECT_EQ(runReport(*world), "");
  EXPECT_EQ(part<int64_t>(*world, *kernel, "y", 1)[0], 6);
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// Rank 0 waits for a signal that rank 1 never sends; the others for rank 0.
static const char missing[] = R"(
comms.kernel @missing(%s: !comms.signal<4>) attributes {ranks = 3 : i64} {
  %t = comms.team world
  %r = comms.rank %t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2 : i64
  %is0 = arith.cmpi eq, %r, %c0 : index
  scf.if %is0 {
    %tok = comms.wait_signal_from %s[%c1] ge %two from %c1 of %t : !comms.signal<4>
  }
  comms.barrier %t block
  comms.return
})";

static RunError expectError(const char *text, const RunOptions &options,
                            bool assertBounds = true) {
  Source source;
  jit::CompileOptions compile;
  compile.assertBounds = assertBounds;
  auto kernel = source.compile(text, compile);
  auto world = kernel ? makeWorld(*kernel, options) : nullptr;
  if (!world)
    return {};
  auto result = world->run();
  if (auto *error = std::get_if<RunError>(&result))
    return *error;
  ADD_FAILURE() << "the run ended without an error";
  return {};
}

static void expectMissing(const RunOptions &options) {
  RunError error = expectError(missing, options);
  EXPECT_EQ(error.kind, RunError::Deadlock);
  ASSERT_EQ(error.waiting.size(), 3u);
  EXPECT_EQ(error.waiting[0].rank, 0);
  EXPECT_EQ(error.waiting[0].op, "comms.wait_signal_from");
  EXPECT_EQ(error.waiting[0].location, "test.mlir:10:12");
  EXPECT_EQ(error.waiting[0].what, "signal s[1] at rank 0: observed 0, "
                                   "expected >= 2; missing signal from rank 1");
  EXPECT_EQ(error.waiting[1].op, "comms.barrier");
  EXPECT_EQ(error.waiting[1].what,
            "barrier of block 0 of 3 ranks: 2 "
            "arrived, expected 3; missing rank 0 (waits at "
            "test.mlir:10:12)");
}

TEST(Report, Deadlock) { expectMissing({}); }

TEST(Report, AwaitedRanksAreNamedOnce) {
  RunOptions options;
  options.blocks = 3;
  RunError error = expectError(R"(
comms.kernel @k(%s: !comms.signal<1>) attributes {ranks = 3 : i64} {
  %t = comms.team world
  %r = comms.rank %t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %waits = arith.cmpi eq, %r, %c1 : index
  scf.if %waits {
    %tok = comms.wait_signal %s[%c0] ge %one : !comms.signal<1>
  }
  comms.barrier %t grid
  comms.return
})",
                               options);
  ASSERT_EQ(error.waiting.size(), 9u);
  EXPECT_EQ(error.waiting[0].what,
            "barrier of all blocks of 3 ranks: 6 arrived, expected 9; missing "
            "rank 1 block 0 (waits at test.mlir:10:12) and 2 more of its "
            "blocks");
}

TEST(Report, DeadlockOfSeveralWorkers) {
  RunOptions options;
  options.fast = true;
  for (options.workers = 1; options.workers <= 3; ++options.workers)
    for (int i = 0; i < 20; ++i)
      expectMissing(options);
}

/// Rank 1 does not send its tile.
static std::string withheld(llvm::StringRef protocol) {
  std::string text = R"(
comms.kernel @withheld(%x: memref<64xf32>, %y: memref<64xf32>) attributes {ranks = 3 : i64} {
  %t = comms.team world
  %r = comms.rank %t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ch = comms.channel 0 multicast over %t slots 1 : !comms.channel<PROTOCOL, 64xf32>
  %sends = arith.cmpi ne, %r, %c1 : index
  scf.if %sends {
    %tile = comms.tile_load %x[%c0] : memref<64xf32> -> tensor<64xf32>
    comms.send %tile on %ch[%c0] : tensor<64xf32>, !comms.channel<PROTOCOL, 64xf32>
  }
  comms.channel_barrier %ch : !comms.channel<PROTOCOL, 64xf32>
  comms.for_peers %t as %p {
    %got = comms.recv %ch[%c0] from %p : !comms.channel<PROTOCOL, 64xf32> -> tensor<64xf32>
    comms.tile_store %got, %y[%c0] : tensor<64xf32>, memref<64xf32>
  }
  comms.return
})";
  for (size_t at; (at = text.find("PROTOCOL")) != std::string::npos;)
    text.replace(at, 8, protocol.str());
  return text;
}

TEST(Report, MissingPacketNamesItsSender) {
  RunError error = expectError(withheld("ll").c_str(), {});
  EXPECT_EQ(error.kind, RunError::Deadlock);
  ASSERT_EQ(error.waiting.size(), 2u);
  EXPECT_NE(error.waiting[0].what.find("observed flag 0, expected flag 1; "
                                       "missing data from rank 1 (has ended)"),
            std::string::npos)
      << error.render();
}

TEST(Report, MissingLineNamesItsSender) {
  RunError error = expectError(withheld("ll128").c_str(), {});
  EXPECT_EQ(error.kind, RunError::Deadlock);
  ASSERT_EQ(error.waiting.size(), 2u);
  EXPECT_NE(error.waiting[0].what.find("line "), std::string::npos);
  EXPECT_NE(error.waiting[0].what.find("observed flag 0, expected flag 1; "
                                       "missing data from rank 1 (has ended)"),
            std::string::npos)
      << error.render();
}

TEST(Report, MissingElementNamesItsSender) {
  RunError error = expectError(withheld("lamport").c_str(), {});
  ASSERT_EQ(error.waiting.size(), 2u);
  EXPECT_NE(error.waiting[1].what.find("observed poison, expected data; "
                                       "missing data from rank 1 (has ended)"),
            std::string::npos)
      << error.render();
}

TEST(Report, BoundsAtRunTime) {
  RunError error = expectError(R"(
comms.kernel @far(%s: !comms.signal<4>) attributes {ranks = 2 : i64} {
  %t = comms.team world
  %r = comms.rank %t
  %c4 = arith.constant 4 : index
  %index = arith.addi %r, %c4 : index
  comms.signal inc %s[%index] at %r of %t : !comms.signal<4>
  comms.return
})",
                               {}, /*assertBounds=*/false);
  EXPECT_EQ(error.kind, RunError::Bounds);
  EXPECT_NE(error.message.find("cell 4 of 's', which has 4"), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("test.mlir:7:3"), std::string::npos)
      << error.message;
}

TEST(Report, PeerOutsideTheTeam) {
  RunError error = expectError(R"(
comms.kernel @nobody(%s: !comms.signal<4>) attributes {ranks = 2 : i64} {
  %t = comms.team world
  %r = comms.rank %t
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %peer = arith.addi %r, %c1 : index
  comms.signal inc %s[%c0] at %peer of %t : !comms.signal<4>
  comms.return
})",
                               {});
  EXPECT_EQ(error.kind, RunError::Bounds);
  EXPECT_NE(error.message.find("rank of a peer"), std::string::npos)
      << error.message;
}

static const char polls[] = R"(
comms.kernel @polls(%s: !comms.signal<1>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  scf.while : () -> () {
    %v = comms.read_signal %s[%c0] : !comms.signal<1>
    %again = arith.cmpi eq, %v, %zero : i64
    scf.condition(%again)
  } do {
    scf.yield
  }
  comms.return
})";

TEST(Limits, Steps) {
  RunOptions options;
  options.maxSteps = 1000;
  RunError error = expectError(polls, options);
  EXPECT_EQ(error.kind, RunError::StepLimit);
  ASSERT_EQ(error.waiting.size(), 2u);
  EXPECT_EQ(error.waiting[0].op, "comms.read_signal");
}

TEST(Limits, Time) {
  RunOptions options;
  options.timeLimit = 0.2;
  for (bool fast : {false, true}) {
    options.fast = fast;
    EXPECT_EQ(expectError(polls, options).kind, RunError::TimeLimit);
  }
}

TEST(Limits, TimeOfALoopThatNeverWaits) {
  RunOptions options;
  options.timeLimit = 0.2;
  RunError error = expectError(R"(
comms.kernel @spins(%y: memref<1xi64>) attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %many = arith.constant 1000000000000000 : index
  %zero = arith.constant 0 : i64
  %sum = scf.for %i = %c0 to %many step %c1 iter_args(%a = %zero) -> i64 {
    %n = arith.index_cast %i : index to i64
    %x = arith.xori %a, %n : i64
    %m = arith.muli %x, %n : i64
    scf.yield %m : i64
  }
  memref.store %sum, %y[%c0] : memref<1xi64>
  comms.return
})",
                               options);
  EXPECT_EQ(error.kind, RunError::TimeLimit);
  ASSERT_EQ(error.waiting.size(), 1u);
  EXPECT_EQ(error.waiting[0].op, "scf.for");
  EXPECT_EQ(error.waiting[0].location, "test.mlir:7:10");
}

//===----------------------------------------------------------------------===//
// Options and traces
//===----------------------------------------------------------------------===//

TEST(World, RefusesOptionsThatDoNotFit) {
  Source source;
  auto kernel = source.compile(missing);
  ASSERT_TRUE(kernel);
  auto refused = [&](RunOptions options) {
    auto world = World::create(*kernel, options);
    return world ? std::string() : toString(world.takeError());
  };
  RunOptions options;
  options.blocks = 0;
  EXPECT_NE(refused(options).find("number of blocks is 0"), std::string::npos);
  options = {};
  options.launches = -1;
  EXPECT_NE(refused(options).find("number of launches is -1"),
            std::string::npos);
  options = {};
  options.blocks = INT64_MAX;
  EXPECT_NE(refused(options).find("use fewer"), std::string::npos);
  options = {};
  options.fast = options.shuffle = true;
  EXPECT_NE(refused(options).find("cannot be drawn from a seed"),
            std::string::npos);
}

/// What fuzz-run relies on.
TEST(World, CanariesEndTheProcess) {
  Source source;
  jit::CompileOptions compile;
  compile.ranks = 2;
  compile.assertBounds = false;
  auto kernel = source.compile(R"(
comms.kernel @far(%x: memref<5xi8>, %i: index) {
  %v = arith.constant 1 : i8
  memref.store %v, %x[%i] : memref<5xi8>
  comms.return
})",
                               compile);
  ASSERT_TRUE(kernel);
  RunOptions options;
  options.guardArrays = true;
  auto store = [&](int64_t at) {
    auto world = makeWorld(*kernel, options);
    for (int64_t rank = 0; rank < 2; ++rank)
      part<int64_t>(*world, *kernel, "i", rank)[0] = at;
    return runReport(*world);
  };
  EXPECT_EQ(store(0), "");
  EXPECT_EQ(store(4), "");
  for (int64_t at : {-4096, -1, 5, 4100})
    EXPECT_DEATH(store(at), "written outside its arrays") << at;
}

TEST(World, RefusesMoreMemoryThanThereIs) {
  Source source;
  auto kernel = source.compile(R"(
comms.kernel @huge(%x: !comms.window<1099511627776xf32>) attributes {ranks = 64 : i64} {
  comms.return
})");
  ASSERT_TRUE(kernel);
  auto world = World::create(*kernel, {});
  ASSERT_FALSE(world);
  EXPECT_NE(
      toString(world.takeError()).find("use fewer ranks or smaller arrays"),
      std::string::npos);
}

TEST(Trace, HoldsATrackForEachBlock) {
  std::string trace;
  RunOptions options;
  options.blocks = 2;
  options.trace = &trace;
  checkRing(3, options);
  auto value = llvm::json::parse(trace);
  ASSERT_TRUE(bool(value));
  std::set<std::pair<int64_t, int64_t>> tracks;
  bool waits = false;
  for (const llvm::json::Value &event :
       *value->getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object &entry = *event.getAsObject();
    if (entry.getString("ph") != "X")
      continue;
    tracks.insert({*entry.getInteger("pid"), *entry.getInteger("tid")});
    waits |= entry.getString("name") == "comms.barrier";
  }
  EXPECT_EQ(tracks.size(), 6u);
  EXPECT_TRUE(waits);
}
