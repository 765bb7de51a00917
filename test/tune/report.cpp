//===- report.cpp - Tables, JSON and drawings -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchReport.h"
#include "runtime/support/Size.h"

#include "Noise.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace commsir;
using namespace commsir::tune;

static Entry makeEntry(std::string name, bool baseline, int64_t bytes,
                       Samples samples) {
  Entry entry;
  entry.op = "all_reduce";
  entry.type = "bf16";
  entry.bytes = bytes;
  entry.contender = std::move(name);
  entry.baseline = baseline;
  entry.samples = std::move(samples);
  return entry;
}

/// Ours takes 2, baselines take 5 and 4; one is wrong and would be faster.
static Report makeReport() {
  Report report;
  Header &header = report.header;
  header.target = "cuda";
  header.date = "2026-01-02 03:04 UTC";
  header.commsir = "0.1.0";
  header.device = "8 x \"H200\" <A&B>";
  header.nccl = "2.28.9";
  header.ranks = 8;
  header.mode = "graph";
  header.calls = 60;
  header.replays = 2;
  header.repetitions = 2;
  header.floor = Floor{0.5, 1, 300};
  report.entries = {makeEntry("slow", true, 1024, {{5, 5}, {5, 5}}),
                    makeEntry("fast", true, 1024, {{4, 4}, {4, 4}}),
                    makeEntry("broken", true, 1024, {{1, 1}, {1, 1}}),
                    makeEntry("commsir a", false, 1024, {{2, 2}, {2, 2}}),
                    makeEntry("commsir b", false, 1024, {{3, 3}, {3, 3}}),
                    makeEntry("lonely", false, 4096, {{7, 9}, {8, 8}})};
  report.entries[2].status = Status::Wrong;
  report.entries[2].message = "rank 3, element 17: got 1, expected 2";
  report.entries[3].floor = 1.6;
  report.compareWithBaselines();
  return report;
}

static std::string print(const Report &report, size_t most = 1) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTable(report, os, most);
  return text;
}

TEST(Report, ComparesWithTheBestRightBaseline) {
  Report report = makeReport();
  EXPECT_EQ(report.entries[3].against, "fast");
  EXPECT_DOUBLE_EQ(report.entries[3].speedup.value, 2);
  EXPECT_EQ(report.entries[0].against, "fast");
  EXPECT_DOUBLE_EQ(report.entries[0].speedup.value, 0.8);
  EXPECT_EQ(report.entries[1].against, "");
  EXPECT_EQ(report.entries[2].against, "");
  EXPECT_EQ(report.entries[5].against, "");
  EXPECT_TRUE(report.hasWrong());
  report.entries[2].status = Status::Failed;
  EXPECT_FALSE(report.hasWrong());
}

TEST(Report, TableShowsTheBestAllBaselinesAndErrors) {
  std::string table = print(makeReport());
  EXPECT_NE(table.find("commsir a"), std::string::npos);
  EXPECT_EQ(table.find("commsir b"), std::string::npos);
  EXPECT_NE(table.find("slow"), std::string::npos);
  EXPECT_NE(table.find("WRONG: rank 3, element 17: got 1, expected 2"),
            std::string::npos);
  EXPECT_NE(table.find("2.00 [2.00 2.00] fast"), std::string::npos);
  EXPECT_NE(table.find("1.25"), std::string::npos); // 2 / 1.6: times the floor.
  EXPECT_NE(table.find("CUDA graph of 60 calls"), std::string::npos);
  EXPECT_NE(table.find("NCCL 2.28.9"), std::string::npos);
  EXPECT_NE(print(makeReport(), 0).find("commsir b"), std::string::npos);
}

TEST(Report, JsonComesBackAsItWent) {
  Report report = makeReport();
  std::string text;
  llvm::raw_string_ostream os(text);
  printJson(report, os);
  auto back = parseJson(text, "x.json");
  ASSERT_TRUE(bool(back)) << llvm::toString(back.takeError());
  EXPECT_EQ(print(*back, 0), print(report, 0));
  EXPECT_EQ(back->entries[5].samples, report.entries[5].samples);
  EXPECT_EQ(back->header.device, report.header.device);
  EXPECT_EQ(back->header.floor->bandwidth, 300);
}

static std::string errorOf(llvm::StringRef text) {
  auto report = parseJson(text, "x.json");
  return report ? "" : llvm::toString(report.takeError());
}

TEST(Report, DamagedJsonIsRefusedWithTheReason) {
  EXPECT_NE(errorOf("{").find("'x.json' is not JSON"), std::string::npos);
  EXPECT_NE(errorOf("[]").find("not a report of comms-bench"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"format": "commsir-bench", "version": 9})")
                .find("another version"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"format": "commsir-bench", "version": 1})")
                .find("is damaged"),
            std::string::npos);
  std::string head = R"({"format": "commsir-bench", "version": 1, "header":
    {"target": "cpu", "date": "", "ranks": 2, "mode": "eager"}, "results": )";
  EXPECT_EQ(errorOf(head + "[]}"), "");
  EXPECT_NE(errorOf(head + "7}").find("results"), std::string::npos);
  EXPECT_NE(errorOf(head + "[{}]}").find("results[0]"), std::string::npos);
  std::string entry = R"("op": "o", "type": "t", "bytes": 1, "contender": "c",
    "baseline": true, )";
  EXPECT_EQ(errorOf(head + "[{" + entry +
                    R"("status": "ok", "samples_us": [[1]]}]})"),
            "");
  EXPECT_NE(
      errorOf(head + "[{" + entry + R"("status": "ok", "samples_us": [[0]]}]})")
          .find("greater than 0"),
      std::string::npos);
  EXPECT_NE(errorOf(head + "[{" + entry +
                    R"("status": "fine", "samples_us": [[1]]}]})")
                .find("status"),
            std::string::npos);
  auto expectEntry = [&](const char *rest, const char *words) {
    EXPECT_NE(errorOf(head + "[{" + entry + rest + "}]}").find(words),
              std::string::npos)
        << rest;
  };
  expectEntry(R"("status": "ok", "samples_us": [[1e999]])", "samples_us");
  expectEntry(R"("status": "ok", "samples_us": [[]])", "at least one time");
  expectEntry(R"("status": "ok", "samples_us": [[1]], "floor_us": 1e999)",
              "floor_us");
  expectEntry(R"("status": "ok", "samples_us": [[1]], "floor_us": -1)",
              "floor_us");
  expectEntry(R"("status": "failed", "samples_us": [], "bytes": -4)", "bytes");
  auto expectHeader = [&](const char *old, const char *now, const char *words) {
    std::string changed = head;
    changed.replace(changed.find(old), strlen(old), now);
    EXPECT_NE(errorOf(changed + "[]}").find(words), std::string::npos) << now;
  };
  expectHeader(R"("ranks": 2)", R"("ranks": 0)", "header.ranks");
  expectHeader(R"("mode": "eager")", R"("mode": "fast")", "header.mode");
  expectHeader(R"("ranks": 2)", R"("ranks": 2, "calls": -1)", "calls");
  expectHeader(R"("ranks": 2)",
               R"("ranks": 2, "floor": {"launch_us": 1e999, "hop_us": 1,
                "bandwidth_gb_s": 1})",
               "header.floor");
}

TEST(Report, TextsFromFilesReachNoTerminalAsControls) {
  Report report = makeReport();
  report.header.device = "H\x1b[31m200\n";
  report.entries[2].message = "two\nlines";
  std::string text;
  llvm::raw_string_ostream os(text);
  printJson(report, os);
  auto back = parseJson(text, "x.json");
  ASSERT_TRUE(bool(back)) << llvm::toString(back.takeError());
  EXPECT_EQ(back->header.device, "H [31m200 ");
  EXPECT_EQ(back->entries[2].message, "two lines");
}

TEST(Report, EveryPrefixOfJsonIsRefused) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printJson(makeReport(), os);
  size_t end = llvm::StringRef(text).rtrim().size();
  for (size_t length = 0; length < end; length += 7)
    EXPECT_NE(errorOf(llvm::StringRef(text).take_front(length)), "");
}

TEST(Report, SvgIsWellFormedAndNamesTheLines) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printSvg(makeReport(), os);
  EXPECT_EQ(text.rfind("<svg", 0), 0u);
  EXPECT_NE(text.find("</svg>"), std::string::npos);
  for (const char *name : {"commsir (best)", "fast", "slow", "floor"})
    EXPECT_NE(text.find(std::string(">") + name + "<"), std::string::npos);
  EXPECT_EQ(text.find("broken"), std::string::npos);
  EXPECT_EQ(text.find("<A&B>"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
  // Nothing that is opened stays open.
  EXPECT_EQ(llvm::StringRef(text).count("<text"),
            llvm::StringRef(text).count("</text>"));
}

TEST(Report, SvgOfNothingIsEmptyButWhole) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printSvg(Report(), os);
  EXPECT_NE(text.find("</svg>"), std::string::npos);
}

TEST(Floor, CountsTheBytesOfEachOperation) {
  Floor floor{1, 2, 100}; // 100 GB/s: 100,000 bytes a microsecond.
  EXPECT_NEAR(floorTime(floor, "all_reduce", 4, 400000), 3 + 6, 1e-9);
  EXPECT_NEAR(floorTime(floor, "all_gather", 4, 400000), 3 + 12, 1e-9);
  EXPECT_NEAR(floorTime(floor, "reduce_scatter", 4, 400000), 3 + 3, 1e-9);
  EXPECT_NEAR(floorTime(floor, "all_to_all", 4, 400000), 3 + 3, 1e-9);
  EXPECT_NEAR(floorTime(floor, "broadcast", 4, 400000), 3 + 4, 1e-9);
  EXPECT_NEAR(floorTime(floor, "all_reduce", 1, 400000), 1, 1e-9);
}

TEST(Size, IsWrittenInTheUnitThatSuits) {
  EXPECT_EQ(renderSize(100), "100 B");
  EXPECT_EQ(renderSize(1024), "1 KiB");
  EXPECT_EQ(renderSize(1536 * 1024), "1.5 MiB");
  EXPECT_EQ(renderSize(int64_t(1) << 30), "1 GiB");
}
