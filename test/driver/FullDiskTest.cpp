//===- FullDiskTest.cpp - Errors name the requested file ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/driver/Session.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <csignal>
#include <sys/resource.h>

using namespace commsir::driver;
namespace fs = llvm::sys::fs;

namespace {

/// Files can be made, but nothing can be written to them.
class FullDisk : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("commsir-test", folder));
    std::error_code error;
    llvm::raw_fd_ostream(path("kernel.mlir"), error)
        << "comms.kernel @k(%y: memref<4xf32>) { comms.return }";
    // LLVM takes this signal as soon as a file is to be removed by one.
    OutputFiles files;
    ASSERT_FALSE(files.write(path("any"), {"any"}));
    before = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlimit none{0, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  }

  void TearDown() override {
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
    fs::remove_directories(folder);
  }

  std::string path(llvm::StringRef name) const {
    llvm::SmallString<128> full(folder);
    llvm::sys::path::append(full, name);
    return full.str().str();
  }

  /// Runs the kernel and expects that `name` could not be written.
  void expectRefusal(std::vector<const char *> arguments,
                     llvm::StringRef name) {
    std::string kernel = path("kernel.mlir");
    arguments.insert(arguments.end(), {kernel.c_str(), "--ranks=2"});
    auto options = parseOptions(arguments);
    ASSERT_TRUE(bool(options));
    mlir::DialectRegistry registry;
    mlir::comms::registerAllDialects(registry);
    mlir::MLIRContext context(registry);
    Session session(*options, context);
    const Report &report = session.execute();
    EXPECT_EQ(report.exitCode, ExitUsage);
    EXPECT_NE(
        report.error.find("cannot write '" + path(name) + "': File too large"),
        std::string::npos)
        << report.error;
    EXPECT_FALSE(fs::exists(path(name)));
  }

  llvm::SmallString<128> folder;
  rlimit limit{};
  void (*before)(int) = nullptr;
};

} // namespace

TEST_F(FullDisk, OfATrace) {
  expectRefusal({("--trace=" + path("t.json")).c_str()}, "t.json");
}

TEST_F(FullDisk, OfAnObject) {
  expectRefusal({("--dump-object=" + path("k.o")).c_str()}, "k.o");
}

TEST_F(FullDisk, OfAnOutput) {
  expectRefusal({("--output=y=" + path("y-%r.npy")).c_str()}, "y-0.npy");
}
