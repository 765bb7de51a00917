//===- memory.cpp - The channel memory of configs -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/CollectiveInfo.h"
#include "runtime/bench/BenchCompiler.h"
#include "runtime/choose/ChannelMemory.h"
#include "runtime/choose/ChooseKernel.h"
#include "runtime/choose/Model.h"
#include "runtime/choose/Table.h"

#ifdef COMMSIR_CUDA
#include "runtime/group/cuda/Channels.h"
#include "runtime/jit/cuda/CudaKernel.h"
#endif

#include "mlir/IR/BuiltinOps.h"

#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace commsir;
using namespace commsir::tune;

static constexpr uint64_t kGiB = uint64_t(1) << 30;

static ConfigQuery ask(std::string op, int64_t ranks, int64_t bytes) {
  ConfigQuery query;
  query.op = std::move(op);
  query.reduction = "sum";
  query.elementType = "bf16";
  query.bytes = bytes;
  query.ranks = ranks;
  query.chip = "sm_90";
  query.device = "NVIDIA H200";
  query.memory = kGiB;
  return query;
}

static std::string name(const Config &config) {
  return config.algorithm + "/" + config.protocol;
}

/// The kernels that the benchmark compiles, flat and on rows.
static std::vector<BenchCase> listProblems(int64_t ranks) {
  std::vector<BenchCase> problems;
  for (Operation operation : allOperations())
    for (driver::Element element : {driver::Element::BF16, driver::Element::I8})
      problems.push_back({operation, element, ranks, int64_t(6) << 20, 0});
  for (Operation operation : rowOperations())
    problems.push_back(
        {operation, driver::Element::BF16, ranks, int64_t(8) << 20, 4096});
  return problems;
}

static Config makeWay(const ConfigQuery &query,
                      const std::pair<std::string, std::string> &pair) {
  return applyRecipe(suggestRecipe(query, pair.first, pair.second), query);
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

TEST(ChannelMemory, IsWithinTheBound) {
  for (int64_t ranks : {2, 8})
    for (const char *type : {"bf16", "i8", "f32", "f64"})
      for (const char *op :
           {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
            "broadcast", "reduce", "gather", "scatter", "send_recv"})
        for (int64_t bytes : {int64_t(64), int64_t(100000), int64_t(64) << 20})
          for (bool rows : {false, true}) {
            ConfigQuery query = ask(op, ranks, bytes);
            query.elementType = type;
            // Arrays of one rank to another are flat.
            if (rows && bytes >= 100000 && op != llvm::StringRef("send_recv")) {
              query.columns = 2048;
              query.rows = 16;
              query.bytes = 16 * 2048 * (type[0] == 'i' ? 1 : 2);
            }
            query.windows = ranks == 2 && !query.rows;
            for (const auto &pair : listPairs(query, true)) {
              Config config = makeWay(query, pair);
              auto counted = countChannels(query, config);
              ASSERT_TRUE(counted) << op << " " << type << " " << name(config);
              EXPECT_LE(*counted, boundChannels(query))
                  << op << " " << type << " " << bytes << " " << name(config);
            }
          }
}

TEST(ChannelMemory, NamesItsMemory) {
  ConfigQuery query = ask("all_reduce", 8, int64_t(256) << 20);
  auto take = [&](const char *algorithm, const char *protocol) {
    return countChannels(query, {algorithm, protocol, 128, 1024, 1});
  };
  // Three buffers for pieces of all ranks, and three for the sums.
  EXPECT_EQ(take("permutation", "lamport"), uint64_t(1536) << 20);
  // In rounds of 128 MiB, of which there are two.
  ASSERT_TRUE(take("permutation", "push"));
  EXPECT_LE(*take("permutation", "push"), uint64_t(512) << 20);
  query.windows = true; // The sums go where they belong.
  EXPECT_EQ(take("permutation", "lamport"), uint64_t(768) << 20);
  EXPECT_FALSE(take("no_shot", "push"));
  query.elementType = "pear";
  EXPECT_FALSE(take("permutation", "push"));
}

#ifdef COMMSIR_CUDA
// Every operation by every algorithm and protocol: what is counted is what
// kernels ask groups for.
TEST(ChannelMemory, EqualsThatOfCompiledKernels) {
  Compiler compiler;
  int compared = 0;
  for (const BenchCase &problem : listProblems(4)) {
    ConfigQuery query = makeQuery(problem);
    query.chip = "sm_90";
    query.windows = problem.columns == 0;
    for (const auto &pair : listPairs(query, true)) {
      Config config = makeWay(query, pair);
      config.blocks = 4;
      std::string what = problem.describe() + " " + name(config);
      auto counted = countChannels(query, config);
      if (!counted) {
        ADD_FAILURE() << what << " cannot be counted";
        continue;
      }
      jit::CudaOptions options;
      options.ranks = problem.ranks;
      options.blocks = config.blocks;
      options.threads = config.threads;
      options.cluster = config.cluster;
      options.algorithm = config.algorithm;
      options.protocol = config.protocol;
      options.check = false;
      options.optLevel = 0;
      options.linker = "driver"; // PTX is enough.
      auto error = compiler.withModule(
          problem.kernelText(query.windows),
          [&](mlir::OwningOpRef<mlir::ModuleOp> module) -> llvm::Error {
            auto kernel = jit::compileCuda(std::move(module), "bench", options);
            if (!kernel)
              return kernel.takeError();
            uint64_t windows = 0;
            for (const jit::ArgInfo &argument : (*kernel)->args())
              if (argument.hidden &&
                  llvm::StringRef(argument.name).starts_with("channel"))
                windows += argument.bytes();
            EXPECT_EQ(windows, *counted) << what;
            // The group adds state, signals and counters.
            auto layout = cuda::ChannelLayout::of(**kernel);
            if (!layout)
              return layout.takeError();
            EXPECT_GE(layout->bytes, *counted) << what;
            EXPECT_LE(layout->bytes, *counted + (1 << 20)) << what;
            ++compared;
            return llvm::Error::success();
          });
      EXPECT_FALSE(bool(error))
          << what << ": " << llvm::toString(std::move(error));
    }
  }
  EXPECT_GT(compared, 60);
}
#endif

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

// What the shipped tables and the model would take, were there more memory.
TEST(ChannelMemory, NothingAboveTheLimitIsChosen) {
  Tables none, shipped = Tables::load("");
  struct {
    const char *op;
    int64_t ranks, mebibytes;
  } const cases[] = {
      {"all_reduce", 8, 256},     {"all_reduce", 8, 1024},
      {"all_reduce", 2, 1024},    {"all_gather", 8, 256},
      {"all_gather", 4, 256},     {"all_gather", 2, 1024},
      {"all_to_all", 4, 1024},    {"broadcast", 8, 1024},
      {"reduce_scatter", 4, 256},
  };
  int leftOut = 0;
  for (const Tables *tables : {&none, &shipped})
    for (const auto &one : cases) {
      ConfigQuery query = ask(one.op, one.ranks, one.mebibytes << 20);
      query.windows = one.op == llvm::StringRef("broadcast");
      ConfigChoice answer = chooseFrom(*tables, query);
      auto bytes = countChannels(query, answer.config);
      ASSERT_TRUE(bytes) << one.op;
      EXPECT_LE(*bytes, kGiB) << explain(query, answer);
      for (const RejectedConfig &other : answer.tooLarge)
        EXPECT_GT(other.bytes, kGiB) << explain(query, answer);
      leftOut += !answer.tooLarge.empty();
    }
  EXPECT_GT(leftOut, 3);
}

/// Lamport is the fastest, and takes a slot for every tile; push takes rounds.
static constexpr const char *kLamportFirst =
    R"({"format": "commsir-table-1", "device": "NVIDIA H200",
 "chip": "sm_90", "ranks": 8, "date": "2026-01-02",
 "recipes": [["permutation", "lamport", 1024, 1, 8, 128],
             ["permutation", "push", 1024, 1, 8, 128]],
 "sections": [{"op": "all_reduce", "type": "bf16", "points":
   [[1024, 0, 2, 1, 4], [268435456, 0, 1400, 1, 1410]]}]})";

TEST(ChannelMemory, ExplainNamesOmittedConfigs) {
  Tables tables;
  tables.own.push_back(
      llvm::cantFail(parseTable(kLamportFirst, "made-8.json")));
  ConfigQuery query = ask("all_reduce", 8, int64_t(256) << 20);
  ConfigChoice answer = chooseFrom(tables, query);
  std::string text = explain(query, answer);
  EXPECT_NE(text.find("permutation/lamport"), std::string::npos) << text;
  EXPECT_NE(text.find("left out, it takes 1.5 GiB of channel memory, and the "
                      "limit is 1 GiB"),
            std::string::npos)
      << text;
  EXPECT_EQ(name(answer.config), "permutation/push") << text;
  query.memory = 0;
  answer = chooseFrom(tables, query);
  EXPECT_EQ(name(answer.config), "permutation/lamport");
  EXPECT_EQ(explain(query, answer).find("left out"), std::string::npos);
}

TEST(ChannelMemory, WhereNothingFitsTheFastestIsNamed) {
  Tables none;
  ConfigQuery query = ask("all_reduce", 8, int64_t(256) << 20);
  query.protocol = "ll";
  query.memory = 64 << 20;
  ConfigChoice answer = chooseFrom(none, query);
  EXPECT_EQ(answer.config.protocol, "ll");
  EXPECT_NE(answer.source.find("lack of a config"), std::string::npos);
}

TEST(ChannelMemory, TablesAndTheModelAreAskedInTurn) {
  Tables tables;
  tables.own.push_back(llvm::cantFail(parseTable(
      R"({"format": "commsir-table-1", "device": "NVIDIA H200",
 "chip": "sm_90", "ranks": 8, "date": "2026-01-02",
 "recipes": [["permutation", "lamport", 1024, 1, 8, 128]],
 "sections": [{"op": "all_reduce", "type": "bf16", "points":
   [[1024, 0, 2], [1073741824, 0, 500]]}]})",
      "small-8.json")));
  ConfigChoice answer =
      chooseFrom(tables, ask("all_reduce", 8, int64_t(1024) << 20));
  EXPECT_EQ(answer.source, "cost model");
  ASSERT_FALSE(answer.tooLarge.empty());
  EXPECT_EQ(answer.tooLarge.front().config.microseconds, 500);
  answer = chooseFrom(tables, ask("all_reduce", 8, 1 << 20));
  EXPECT_NE(answer.source.find("table small-8"), std::string::npos);
}

TEST(ChannelMemory, CollectivesOfAKernelShareIt) {
  llvm::SmallString<128> path;
  int file = -1;
  ASSERT_FALSE(
      llvm::sys::fs::createTemporaryFile("made-8", "json", file, path));
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << kLamportFirst;
  llvm::cantFail(loadTables(path));
  llvm::sys::fs::remove(path);
  Compiler compiler;
  auto choose = [&](uint64_t memory) {
    std::vector<std::string> configs;
    llvm::cantFail(compiler.withModule(
        R"(
comms.kernel @two(%x: memref<134217728xbf16>, %y: memref<134217728xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<134217728xbf16>) outs(%y : memref<134217728xbf16>)
  comms.all_reduce sum %team ins(%y : memref<134217728xbf16>) outs(%x : memref<134217728xbf16>)
  comms.return
})",
        [&](mlir::OwningOpRef<mlir::ModuleOp> module) -> llvm::Error {
          ConfigQuery wish;
          wish.ranks = 8;
          wish.chip = "sm_90";
          wish.memory = memory;
          for (auto kernel : module->getOps<mlir::comms::KernelOp>())
            for (auto &[query, answer] :
                 chooseForKernel(kernel, wish).collectives)
              configs.push_back(name(answer.config));
          return llvm::Error::success();
        }));
    return configs;
  };
  std::string fast = "permutation/lamport", small = "permutation/push";
  EXPECT_EQ(choose(0), (std::vector<std::string>{fast, fast}));
  EXPECT_EQ(choose(3 * kGiB), (std::vector<std::string>{fast, fast}));
  EXPECT_EQ(choose(2 * kGiB), (std::vector<std::string>{fast, small}));
  EXPECT_EQ(choose(kGiB), (std::vector<std::string>{small, small}));
  llvm::cantFail(loadTables(""));
}

TEST(ChannelMemory, TheLimitComesFromTheEnvironment) {
  unsetenv("COMMSIR_CHANNEL_BYTES");
  EXPECT_EQ(llvm::cantFail(getChannelLimit()), kGiB);
  setenv("COMMSIR_CHANNEL_BYTES", "4096", 1);
  EXPECT_EQ(llvm::cantFail(getChannelLimit()), 4096u);
  setenv("COMMSIR_CHANNEL_BYTES", "3M", 1);
  EXPECT_EQ(llvm::cantFail(getChannelLimit()), 3u << 20);
  setenv("COMMSIR_CHANNEL_BYTES", "much", 1);
  auto wrong = getChannelLimit();
  ASSERT_FALSE(wrong);
  EXPECT_NE(llvm::toString(wrong.takeError())
                .find("'much' is not a number of bytes: write one like "
                      "536870912, 512M or 2G"),
            std::string::npos);
  unsetenv("COMMSIR_CHANNEL_BYTES");
}
