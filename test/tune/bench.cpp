//===- bench.cpp - The measuring loop, with made-up contenders ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Bench.h"
#include "runtime/bench/BenchCompiler.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace commsir;
using namespace commsir::tune;

namespace {

/// What a made-up contender does.
enum class Kind { Right, Late, Wrong, Forgets, Fails };

/// Broadcasts by copying; writes what it does into a log.
class Made : public Contender {
public:
  Made(std::string name, Kind config, const Reference &inputs, std::string &log)
      : name(std::move(name)), config(config), inputs(inputs), log(log),
        output(inputs.input(0).size()) {}

  llvm::Error poison() override {
    log += name + "p ";
    std::memset(output.data(), kOutputPoison, output.size());
    return llvm::Error::success();
  }
  llvm::Expected<double> replay() override {
    log += name + " ";
    ++replays;
    if (config == Kind::Fails && replays > 3)
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "lost");
    if (config != Kind::Forgets)
      llvm::copy(inputs.input(0), output.begin());
    if (config == Kind::Wrong)
      output[4] ^= 64;
    return config == Kind::Late ? 20 : 10;
  }
  llvm::Error read(int64_t, llvm::MutableArrayRef<char> out) override {
    llvm::copy(output, out.begin());
    return llvm::Error::success();
  }

private:
  std::string name;
  Kind config;
  const Reference &inputs;
  std::string &log;
  std::vector<char> output;
  int replays = 0;
};

class MadeTarget : public BenchTarget {
public:
  explicit MadeTarget(std::vector<std::pair<std::string, Kind>> configs)
      : configs(std::move(configs)) {}
  int64_t ranks() const override { return 2; }
  llvm::Error describe(Header &) override { return llvm::Error::success(); }
  std::vector<Candidate> baselines(const BenchCase &) override {
    std::vector<Candidate> all;
    for (unsigned i = 0; i < configs.size(); ++i) {
      Candidate one;
      one.name = configs[i].first;
      one.baseline = true;
      one.number = i;
      all.push_back(one);
    }
    return all;
  }
  llvm::Expected<std::unique_ptr<Contender>>
  make(Candidate &candidate, const BenchCase &,
       const Reference &inputs) override {
    if (!candidate.baseline)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "no compiler here");
    auto [name, config] = configs[candidate.number];
    return std::make_unique<Made>(name, config, inputs, log);
  }
  std::string log;

private:
  std::vector<std::pair<std::string, Kind>> configs;
};

Plan makePlan(bool ours = false) {
  const char *arguments[] = {"--target", "cpu", "--replays",     "2",
                             "--ranks",  "2",   "--repetitions", "3"};
  Plan plan = llvm::cantFail(parsePlan(arguments));
  plan.ours = ours;
  return plan;
}

const BenchCase kProblem{Operation::Broadcast, driver::Element::I32, 2, 64};

} // namespace

TEST(Bench, ContendersTakeTurnsThatMoveOn) {
  MadeTarget target({{"a", Kind::Right}, {"b", Kind::Late}});
  double last = 0;
  auto entries =
      measureProblem(makePlan(), target, kProblem, [&](double share) {
        EXPECT_GE(share, last);
        last = share;
      });
  // Poison, one replay that warms up, two that count; b begins the second turn.
  EXPECT_EQ(target.log,
            "ap a a a bp b b b bp b b b ap a a a ap a a a bp b b b ");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].samples, (Samples{{10, 10}, {10, 10}, {10, 10}}));
  EXPECT_EQ(entries[1].samples, (Samples{{20, 20}, {20, 20}, {20, 20}}));
  EXPECT_TRUE(entries[0].exact);
  EXPECT_DOUBLE_EQ(last, 1);
}

TEST(Bench, WrongResultsAreFoundAndLoseTheirTurns) {
  MadeTarget target(
      {{"a", Kind::Wrong}, {"b", Kind::Forgets}, {"c", Kind::Right}});
  auto entries = measureProblem(makePlan(), target, kProblem, [](double) {});
  EXPECT_EQ(entries[0].status, Status::Wrong);
  EXPECT_EQ(entries[0].message.find("rank 0, element 1: got "), 0u);
  EXPECT_TRUE(entries[0].samples.empty());
  EXPECT_FALSE(entries[0].isMeasured());
  EXPECT_EQ(entries[1].status, Status::Wrong);
  EXPECT_EQ(entries[2].status, Status::Ok);
  EXPECT_EQ(llvm::StringRef(target.log).count("ap"), 1u);
}

TEST(Bench, FailuresAreReported) {
  MadeTarget target({{"a", Kind::Fails}, {"b", Kind::Right}});
  auto entries =
      measureProblem(makePlan(/*ours=*/true), target, kProblem, [](double) {});
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].status, Status::Failed);
  EXPECT_EQ(entries[0].message, "lost");
  EXPECT_TRUE(entries[1].isMeasured());
  EXPECT_EQ(entries[2].message, "no compiler here");
  EXPECT_FALSE(entries[2].baseline);
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

TEST(Plan, SizesAreListsAndRanges) {
  EXPECT_EQ(llvm::cantFail(parseSizes("1K..16K")),
            (std::vector<int64_t>{1024, 2048, 4096, 8192, 16384}));
  EXPECT_EQ(llvm::cantFail(parseSizes("1K..64M*64,100")),
            (std::vector<int64_t>{1024, 65536, 4194304, 100}));
  EXPECT_EQ(llvm::cantFail(parseSizes("1G")),
            (std::vector<int64_t>{int64_t(1) << 30}));
  for (const char *text : {"", "x", "0", "-1", "1K..", "4K..1K", "1K..4K*1",
                           "1K..4K*x", "9999999G", "1..1024G*0", "1Q"}) {
    auto sizes = parseSizes(text);
    EXPECT_FALSE(bool(sizes)) << text;
    llvm::consumeError(sizes.takeError());
  }
}

static std::string errorOf(std::vector<const char *> arguments) {
  auto plan = parsePlan(arguments);
  return plan ? "" : llvm::toString(plan.takeError());
}

TEST(Plan, MistakesAreNamed) {
  EXPECT_EQ(errorOf({"--op", "all"}), "");
  EXPECT_NE(errorOf({"--op", "sum"}).find("all_gather"), std::string::npos);
  EXPECT_NE(errorOf({"--size", "1K"}).find("did you mean '--sizes'?"),
            std::string::npos);
  EXPECT_NE(errorOf({"--types", "f64"})
                .find("bf16, f16, f32, f8E4M3FN, f8E5M2, i32, i8"),
            std::string::npos);
  EXPECT_EQ(errorOf({"--types", "f8E4M3FN,f8E5M2,i8"}), "");
  for (auto [option, given, meant] :
       {std::tuple("--op", "allreduce", "did you mean 'all_reduce'?"),
        std::tuple("--types", "bf166", "did you mean 'bf16'?"),
        std::tuple("--algorithm", "one_sht", "did you mean 'one_shot'?"),
        std::tuple("--protocol", "lll", "did you mean 'll'?"),
        std::tuple("--target", "cpuu", "did you mean 'cpu'?"),
        std::tuple("--memory", "window", "did you mean 'windows'?"),
        std::tuple("--set", "step_byte=1K", "did you mean 'step_bytes'?")})
    EXPECT_NE(errorOf({option, given}).find(meant), std::string::npos)
        << errorOf({option, given});
  EXPECT_NE(errorOf({"--algorithm", "magic"}).find("two_shot"),
            std::string::npos);
  EXPECT_NE(errorOf({"--threads", "96"}).find("power of two"),
            std::string::npos);
  EXPECT_NE(errorOf({"--threads", "64", "--target", "cpu"}).find("--threads"),
            std::string::npos);
  EXPECT_NE(errorOf({"--tune", "t", "--explain"}).find("exclude"),
            std::string::npos);
  EXPECT_NE(errorOf({"--memory", "host"}).find("neither windows nor plain"),
            std::string::npos);
  EXPECT_NE(errorOf({"--compare", "a"}).find("two files"), std::string::npos);
  EXPECT_NE(errorOf({"--calls"}).find("value is missing"), std::string::npos);
  EXPECT_NE(errorOf({"--calls", "0"}).find("from 1"), std::string::npos);
  EXPECT_NE(errorOf({"--full=1"}).find("takes no value"), std::string::npos);
  EXPECT_NE(errorOf({"--no-baselines", "--only-baselines"}), "");
  EXPECT_NE(errorOf({"--cluster", "3"}).find("power of two; write one from 1"),
            std::string::npos);
  EXPECT_NE(errorOf({"--set", "steps=1"}).find("with a name of round_bytes, "),
            std::string::npos);
  EXPECT_NE(errorOf({"--set", "step_bytes"}).find("not NAME=LIST"),
            std::string::npos);
  EXPECT_NE(errorOf({"--set", "round_bytes=0"}).find("--set: "),
            std::string::npos);
}

TEST(Plan, OptionsWithoutEffectAreRefused) {
  EXPECT_NE(errorOf({"--tune", "t", "--least", "1"}).find("of a comparison"),
            std::string::npos);
  EXPECT_NE(errorOf({"--tune", "t", "--blocks", "1"}).find("tries all"),
            std::string::npos);
  EXPECT_EQ(errorOf({"--tune", "t", "--replays", "1", "--seed", "2"}), "");
  EXPECT_NE(errorOf({"--explain", "--replays", "1"}).find("of a measurement"),
            std::string::npos);
  EXPECT_EQ(errorOf({"--explain", "--blocks", "1", "--chip", "sm_100a"}), "");
  for (const char *use : {"--tune=t", "--explain", "--only-baselines"})
    EXPECT_NE(errorOf({use, "--set", "step_bytes=1"}).find("drop"),
              std::string::npos);
  EXPECT_NE(errorOf({"--explain", "--chip", "H200"}).find("write sm_90"),
            std::string::npos);
  EXPECT_NE(errorOf({"--no-baselines", "--least", "1"}).find("nothing to"),
            std::string::npos);
  EXPECT_NE(errorOf({"--only-baselines", "--protocol", "ll"}).find("drop one"),
            std::string::npos);
  EXPECT_NE(errorOf({"--json", "a", "--svg", "a"}).find("name two"),
            std::string::npos);
  EXPECT_NE(errorOf({"--target", "cpu", "--timeout", "1"}).find("has none"),
            std::string::npos);
  EXPECT_NE(errorOf({"sum.mlir"}).find("comms-run runs kernels"),
            std::string::npos);
  EXPECT_NE(errorOf({"--sizes", "1K.."}).find("'1K..': a size is missing"),
            std::string::npos);
}

TEST(Plan, SizesThatNoOperationHasAreRefused) {
  for (const char *name : {"--rows", "--hidden"}) {
    EXPECT_NE(errorOf({name, "8"}).find("drop it, or add --op"),
              std::string::npos);
    EXPECT_EQ(errorOf({name, "8", "--op", "all_reduce,rows"}), "");
    EXPECT_EQ(errorOf({name, "8", "--tune", "t"}), "");
    EXPECT_EQ(errorOf({name, "8", "--help"}), "");
  }
  EXPECT_NE(errorOf({"--sizes", "1K", "--op", "rows"}).find("give --rows"),
            std::string::npos);
  EXPECT_EQ(errorOf({"--sizes", "1K", "--op", "rows,all_gather"}), "");
  EXPECT_EQ(errorOf({"--acceptance", "--op", "rows"}), "");
}

TEST(Plan, ChoicesAreAllCombinations) {
  const char *arguments[] = {
      "--algorithm", "one_shot,two_shot", "--protocol", "ll", "--threads",
      "64,128",      "--blocks",          "1,2,4"};
  Plan plan = llvm::cantFail(parsePlan(arguments));
  EXPECT_EQ(plan.choices().size(), 12u);
  EXPECT_EQ(plan.choices()[5].blocks, 4);
  EXPECT_EQ(plan.choices()[5].threads, 128);
  EXPECT_EQ(plan.choices()[6].algorithm, "two_shot");
  EXPECT_EQ(plan.problems().size(), 9u);
}

TEST(Plan, AttributesAreSideBySide) {
  const char *arguments[] = {"--blocks",           "1,2",   "--set",
                             "step_bytes=auto,8M", "--set", "late_copies=0,1"};
  Plan plan = llvm::cantFail(parsePlan(arguments));
  auto choices = plan.choices();
  ASSERT_EQ(choices.size(), 8u);
  using Numbers = KernelNumbers;
  EXPECT_EQ(choices[0].numbers, (Numbers{{"late_copies", 0}}));
  EXPECT_EQ(choices[3].numbers,
            (Numbers{{"step_bytes", 8 << 20}, {"late_copies", 1}}));
  EXPECT_EQ(renderChoice(choices[7], {}),
            "commsir auto/auto b2 step_bytes=8388608 late_copies=1");
  const char *again[] = {"--set", "step_bytes=1", "--set", "step_bytes=2"};
  Plan last = llvm::cantFail(parsePlan(again));
  ASSERT_EQ(last.choices().size(), 1u);
  EXPECT_EQ(last.choices()[0].numbers, (Numbers{{"step_bytes", 2}}));
  for (const char *op : {"all_gather", "all_reduce_rmsnorm"}) {
    const char *one[] = {"--op", op};
    BenchCase problem = llvm::cantFail(parsePlan(one)).problems().front();
    std::string text = problem.kernelText(true, choices[3].numbers);
    EXPECT_NE(text.find(") attributes {comms.step_bytes = 8388608 : i64, "
                        "comms.late_copies = 1 : i64} {"),
              std::string::npos)
        << text;
    EXPECT_EQ(problem.kernelText().find("attributes"), std::string::npos);
  }
}
