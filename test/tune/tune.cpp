//===- tune.cpp - The tuner's journal and questions -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Tune.h"

#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

using namespace commsir;
using namespace commsir::tune;

namespace {
class JournalTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> name;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("tune", "journal", name));
    path = name.str().str();
  }
  void TearDown() override { llvm::sys::fs::remove(path); }

  std::unique_ptr<Journal> open(std::string identity = "{\"me\":1}") {
    return llvm::cantFail(Journal::open(path, identity));
  }
  void append(llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error, llvm::sys::fs::OF_Append) << text;
    ASSERT_FALSE(error);
  }
  std::string path;
};
} // namespace

TEST_F(JournalTest, RemembersTimesAndFailures) {
  {
    auto journal = open();
    journal->begin("a");
    journal->end("a", {1.5, ""});
    journal->begin("b");
    journal->end("b", {std::nullopt, "too \"wide\"\n"});
    EXPECT_EQ(*journal->find("a")->time, 1.5);
  }
  auto journal = open();
  ASSERT_TRUE(journal->find("a"));
  EXPECT_EQ(*journal->find("a")->time, 1.5);
  ASSERT_TRUE(journal->find("b"));
  EXPECT_FALSE(journal->find("b")->time);
  EXPECT_EQ(journal->find("b")->failure, "too \"wide\"\n");
  EXPECT_FALSE(journal->find("c"));
}

TEST_F(JournalTest, HangingConfigsGetOneMoreChance) {
  open()->begin("a");
  auto journal = open();
  EXPECT_FALSE(journal->find("a"));
  journal->begin("a");
  journal = open();
  ASSERT_TRUE(journal->find("a"));
  EXPECT_NE(journal->find("a")->failure.find("did not return"),
            std::string::npos);
  // Known for good, and not by the number of begins.
  journal = open();
  EXPECT_TRUE(journal->find("a"));
}

TEST_F(JournalTest, HalfALineIsNoHarm) {
  {
    auto journal = open();
    journal->end("a", {1, ""});
  }
  append("{\"end\":\"b\",\"us\":2");
  {
    auto journal = open();
    EXPECT_TRUE(journal->find("a"));
    EXPECT_FALSE(journal->find("b"));
    journal->end("c", {3, ""});
  }
  auto journal = open();
  EXPECT_TRUE(journal->find("a"));
  EXPECT_TRUE(journal->find("c"));
}

TEST_F(JournalTest, AnotherRunsIsKept) {
  open()->end("a", {1, ""});
  auto other = Journal::open(path, "{\"me\":2}");
  ASSERT_FALSE(other);
  std::string words = llvm::toString(other.takeError());
  EXPECT_NE(words.find("{\"me\":1}"), std::string::npos) << words;
  EXPECT_NE(words.find("remove this one"), std::string::npos) << words;
  EXPECT_TRUE(open()->find("a"));
}

TEST_F(JournalTest, NotesAreKept) {
  append("my notes\n");
  auto other = Journal::open(path, "{\"me\":2}");
  ASSERT_FALSE(other);
  EXPECT_NE(llvm::toString(other.takeError()).find("is no journal of --tune"),
            std::string::npos);
}

TEST_F(JournalTest, AKilledProcessMayHaveLeftHalfTheFirstLine) {
  append("{\"me");
  open()->end("a", {1, ""});
  EXPECT_TRUE(open()->find("a"));
}

TEST_F(JournalTest, AFolderThatIsNotThereIsAnError) {
  auto journal = Journal::open("/no/such/folder/journal", "{}");
  ASSERT_FALSE(journal);
  EXPECT_NE(llvm::toString(journal.takeError()).find("/no/such/folder"),
            std::string::npos);
}

namespace {
class NoTarget : public BenchTarget {
public:
  int64_t ranks() const override { return 4; }
  llvm::Error describe(Header &) override { return llvm::Error::success(); }
  void describeMachine(ConfigQuery &query) const override {
    query.chip = "sm_90";
    query.multiprocessors = 132;
  }
  std::vector<Candidate> baselines(const BenchCase &) override { return {}; }
  llvm::Expected<std::unique_ptr<Contender>>
  make(Candidate &, const BenchCase &, const Reference &) override {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "none");
  }
};
} // namespace

/// A worker would be this program with its own arguments: all tests again.
TEST(Tune, AProgramWithOtherArgumentsStartsNoWorkers) {
  llvm::SmallString<128> table;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("tune", "json", table));
  Plan plan;
  plan.tune = table.str().str();
  plan.budget = 1;
  testing::internal::CaptureStderr();
  EXPECT_EQ(runTune(plan, {"--tune", plan.tune.c_str(), "--budget", "1"}), 2);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot start itself again"), std::string::npos) << said;
  llvm::sys::fs::remove(table);
}

TEST(Ranges, AreByOperationTypeAndLengthOfRows) {
  Plan plan = llvm::cantFail(parsePlan(
      {"--tune", "t.json", "--op", "reduce_scatter,all_reduce_rmsnorm",
       "--sizes", "1K,64K", "--types", "bf16", "--rows", "1,8", "--hidden",
       "64,128", "--ranks", "4"}));
  TuneRanges all = listRanges(plan, NoTarget());
  ASSERT_EQ(all.ranges.size(), 3u);
  // Tables count a reduce-scatter by its output.
  EXPECT_EQ(all.ranges[0].sizes, (std::vector<int64_t>{256, 16384}));
  EXPECT_EQ(all.problems[0].at(256).bytes, 1024);
  EXPECT_EQ(all.ranges[1].base.op, "all_reduce");
  EXPECT_EQ(all.ranges[1].base.columns, 64);
  EXPECT_EQ(all.ranges[2].base.columns, 128);
  EXPECT_EQ(all.ranges[2].sizes, (std::vector<int64_t>{1, 8}));
  ConfigQuery query = all.ranges[2].at(8);
  EXPECT_EQ(query.rows, 8);
  EXPECT_EQ(query.bytes, 8 * 128 * 2);
  EXPECT_EQ(query.multiprocessors, 132);
  EXPECT_FALSE(plan.check);
  EXPECT_EQ(plan.timeout, 2);
}
