//===- AtomicFileTest.cpp - Files that appear whole or not at all ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/AtomicFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include "gtest/gtest.h"

using namespace commsir::driver;
namespace fs = llvm::sys::fs;

namespace {

class AtomicFile : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("commsir-test", folder));
  }
  void TearDown() override { fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) const {
    llvm::SmallString<128> full(folder);
    llvm::sys::path::append(full, name);
    return full.str().str();
  }

  /// Number of entries in the folder, temporary files included.
  unsigned entries() const {
    std::error_code error;
    unsigned count = 0;
    for (fs::directory_iterator it(folder, error), end; it != end && !error;
         it.increment(error))
      ++count;
    return count;
  }

  std::string content(llvm::StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(path(name));
    return buffer ? (*buffer)->getBuffer().str() : "(none)";
  }

  llvm::SmallString<128> folder;
};

bool succeeds(llvm::Error error) {
  bool ok = !error;
  llvm::consumeError(std::move(error));
  return ok;
}

} // namespace

TEST_F(AtomicFile, AppearsAtCommit) {
  OutputFiles files;
  EXPECT_TRUE(succeeds(files.write(path("50%25.bin"), {"ab", "c"})));
  EXPECT_EQ(content("50%25.bin"), "(none)");
  EXPECT_TRUE(succeeds(files.commit()));
  EXPECT_EQ(content("50%25.bin"), "abc");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AtomicFile, LeavesNothingWithoutCommit) {
  {
    OutputFiles files;
    EXPECT_TRUE(succeeds(files.write(path("a"), {"a"})));
    EXPECT_TRUE(succeeds(files.write(path("b"), {"b"})));
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(AtomicFile, KeepsOldContentUntilCommit) {
  OutputFiles first;
  EXPECT_TRUE(succeeds(first.write(path("a"), {"old"})));
  EXPECT_TRUE(succeeds(first.commit()));
  OutputFiles second;
  EXPECT_TRUE(succeeds(second.write(path("a"), {"new"})));
  EXPECT_EQ(content("a"), "old");
  EXPECT_TRUE(succeeds(second.commit()));
  EXPECT_EQ(content("a"), "new");
}

TEST_F(AtomicFile, FullDeviceUndoesTheOthers) {
  OutputFiles files;
  EXPECT_TRUE(succeeds(files.write(path("a"), {"a"})));
  EXPECT_TRUE(succeeds(files.write("/dev/full", {"b"})));
  llvm::Error error = files.commit();
  ASSERT_TRUE(bool(error));
  std::string text = llvm::toString(std::move(error));
  EXPECT_NE(text.find("/dev/full"), std::string::npos) << text;
  EXPECT_NE(text.find("No space left"), std::string::npos) << text;
  EXPECT_EQ(entries(), 0u);
}

TEST_F(AtomicFile, NamesTheMissingFolder) {
  OutputFiles files;
  llvm::Error error = files.write(path("no/such/a"), {"a"});
  ASSERT_TRUE(bool(error));
  std::string text = llvm::toString(std::move(error));
  EXPECT_NE(text.find("create the folder"), std::string::npos) << text;
}

TEST_F(AtomicFile, FolderIsNoFile) {
  OutputFiles files;
  EXPECT_FALSE(succeeds(files.write(folder, {"a"})));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(AtomicFile, ChecksOnlyTheFolder) {
  EXPECT_TRUE(succeeds(OutputFiles::checkFolder(path("a"))));
  EXPECT_TRUE(succeeds(OutputFiles::checkFolder("/dev/full")));
  EXPECT_FALSE(succeeds(OutputFiles::checkFolder(path("no/such/a"))));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(AtomicFile, ChecksThatItIsNoFolder) {
  llvm::Error error = OutputFiles::checkFolder(folder);
  ASSERT_TRUE(bool(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("Is a directory"),
            std::string::npos);
}
