//===- OptionsTest.cpp - The command line of comms-run --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Options.h"

#include "gtest/gtest.h"

using namespace commsir::driver;

namespace {

std::string errorOf(std::vector<const char *> arguments) {
  llvm::Expected<Options> options = parseOptions(arguments);
  return options ? "no error" : llvm::toString(options.takeError());
}

bool contains(const std::string &text, llvm::StringRef part) {
  return llvm::StringRef(text).contains(part);
}

} // namespace

#define EXPECT_ERROR(part, ...)                                                \
  EXPECT_TRUE(contains(errorOf({__VA_ARGS__}), part)) << errorOf({__VA_ARGS__})

TEST(Options, ReadsBothSpellings) {
  auto options =
      parseOptions({"k.mlir", "--ranks=8", "--blocks", "2", "--input",
                    "x=x-%r.npy", "--input=y=random:1", "--expect", "y=y.npy",
                    "--rtol", "1e-3", "--memory-limit", "2G"});
  ASSERT_TRUE(bool(options)) << llvm::toString(options.takeError());
  EXPECT_EQ(options->file, "k.mlir");
  EXPECT_EQ(options->ranks, 8);
  EXPECT_EQ(options->blocks, 2);
  ASSERT_EQ(options->inputs.size(), 2u);
  EXPECT_EQ(options->inputs[1].name, "y");
  EXPECT_EQ(options->inputs[1].value, "random:1");
  EXPECT_EQ(options->rtol, 1e-3);
  EXPECT_EQ(options->memoryLimit, uint64_t(2) << 30);
}

TEST(Options, RefusesBadNumbers) {
  EXPECT_ERROR("out of range", "k.mlir", "--ranks", "0");
  EXPECT_ERROR("out of range", "k.mlir", "--ranks", "-3");
  EXPECT_ERROR("out of range", "k.mlir", "--ranks", "9999999999");
  EXPECT_ERROR("not a whole number", "k.mlir", "--ranks", "eight");
  EXPECT_ERROR("not a whole number", "k.mlir", "--ranks=");
  EXPECT_ERROR("out of range", "k.mlir", "--blocks", "0");
  EXPECT_ERROR("out of range", "k.mlir", "--launches", "0");
  EXPECT_ERROR("not a number", "k.mlir", "--rtol", "nan");
  EXPECT_ERROR("not a number", "k.mlir", "--rtol", "-1");
  EXPECT_ERROR("not a size", "k.mlir", "--memory-limit", "99999999999T");
  EXPECT_ERROR("out of range; it must lie between 1 and 1048576", "k.mlir",
               "--ranks", "99999999999999999999");
  EXPECT_ERROR("out of range; it must be 0 or more", "k.mlir", "--seed", "-1");
  EXPECT_ERROR("out of range; it must lie between 0 and", "k.mlir", "--seed",
               "99999999999999999999");
  EXPECT_ERROR("seconds above 0", "k.mlir", "--time-limit", "0");
  EXPECT_ERROR("write one from 1 to 16", "k.mlir", "--target", "cuda",
               "--cluster", "3");
}

TEST(Options, RefusesBadBindings) {
  EXPECT_ERROR("not NAME=VALUE", "k.mlir", "--input", "x");
  EXPECT_ERROR("not NAME=VALUE", "k.mlir", "--input", "=x.npy");
  EXPECT_ERROR("given twice", "k.mlir", "--output", "y=a-%r.npy", "--output",
               "y=b-%r.npy");
}

TEST(Options, ProposesTheNearestName) {
  EXPECT_ERROR("did you mean '--ranks'?", "k.mlir", "--rank", "8");
  EXPECT_ERROR("did you mean '--fuzz-schedules'?", "k.mlir", "--fuzz-schedule",
               "8");
  EXPECT_ERROR("--help lists them", "k.mlir", "--completely-different");
}

TEST(Options, ProposesTheNearestValue) {
  for (auto [option, given, meant] :
       {std::tuple("--target", "cudaa",
                   "'cudaa': known are cpu, cuda; did you "
                   "mean 'cuda'?"),
        std::tuple("--memory", "Weak", "did you mean 'weak'?"),
        std::tuple("--races", "ignor", "did you mean 'ignore'?"),
        std::tuple("--windows", "ncl", "did you mean 'nccl'?"),
        std::tuple("--impl", "generatedx", "did you mean 'generated'?")})
    EXPECT_ERROR(meant, "k.mlir", option, given);
}

TEST(Options, RefusesIncompatibleOptions) {
  EXPECT_ERROR("no kernel file", "--ranks", "8");
  EXPECT_ERROR("two kernel files", "a.mlir", "b.mlir");
  EXPECT_ERROR("needs a value", "k.mlir", "--ranks");
  EXPECT_ERROR("takes no value", "k.mlir", "--quiet=yes");
  EXPECT_ERROR("--fast has no fixed order", "k.mlir", "--fast", "--seed", "1");
  EXPECT_ERROR("--bitwise", "k.mlir", "--bitwise", "--atol", "1");
  EXPECT_ERROR("--json and --dump-ir", "k.mlir", "--json", "--dump-ir");
}

TEST(Options, RefusesOptionsWithoutEffect) {
  EXPECT_ERROR("--bitwise requires a comparison", "k.mlir", "--bitwise");
  EXPECT_ERROR("--rtol requires a comparison", "k.mlir", "--rtol", "1");
  EXPECT_ERROR("--workers requires --fast", "k.mlir", "--workers", "2");
  EXPECT_ERROR("--check-events requires", "k.mlir", "--no-check",
               "--check-events", "9");
  EXPECT_ERROR("write --ranks into them", "--ranks", "2", "--batch", "lines");
  EXPECT_ERROR("leave out 'k.mlir'", "k.mlir", "--batch", "lines");
  EXPECT_EQ(errorOf({"--batch", "lines"}), "no error");
}

TEST(Options, HelpNamesEveryExitCodeAndFitsATerminal) {
  std::string help = helpText();
  for (char code = '0'; code <= '7'; ++code)
    EXPECT_TRUE(
        contains(help, (llvm::Twine("\n  ") + llvm::Twine(code) + "  ").str()));
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(help).split(lines, '\n');
  for (llvm::StringRef line : lines)
    EXPECT_LE(line.size(), 80u) << line.str();
}
