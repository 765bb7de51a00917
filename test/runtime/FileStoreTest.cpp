//===- FileStoreTest.cpp - The folder in which ranks meet -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include <sys/stat.h>

using namespace commsir;
using namespace commsir::test;

static std::string getError(group::Store &store, const char *key) {
  auto value = store.get(key, 0);
  return value ? "" : llvm::toString(value.takeError());
}

static std::string openError(const std::string &path) {
  auto store = group::createFileStore(path);
  return store ? "" : llvm::toString(store.takeError());
}

TEST(FileStore, KeysAndValues) {
  Folder folder;
  auto store = llvm::cantFail(group::createFileStore(folder.path + "/a/b"));
  std::string value("some\0thing", 10);
  for (const char *key : {"one", "../one", "a/b c", "/etc/one"}) {
    EXPECT_FALSE(bool(store->set(key, value)));
    EXPECT_EQ(llvm::cantFail(store->get(key, 0)), value);
    EXPECT_FALSE(bool(store->set(key, "")));
    EXPECT_EQ(llvm::cantFail(store->get(key, 0)), "");
  }
  EXPECT_NE(getError(*store, "two").find("has not arrived within"),
            std::string::npos);
  struct stat status = {};
  for (const char *made : {"/a", "/a/b"}) {
    ASSERT_EQ(::stat((folder.path + made).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u);
  }
  ASSERT_EQ(::stat((folder.path + "/a/b/one").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

/// What ranks find there, only ranks of this user have written.
TEST(FileStore, FoldersAndFilesOfOthers) {
  Folder folder;
  std::string path = folder.path + "/store";
  auto store = llvm::cantFail(group::createFileStore(path));
  auto expect = [](const std::string &said, const char *part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  EXPECT_FALSE(bool(store->set("link", "value")));
  ASSERT_EQ(::symlink((path + "/link").c_str(), (path + "/to").c_str()), 0);
  expect(getError(*store, "to"), "it is a link");
  ASSERT_EQ(::mkfifo((path + "/pipe").c_str(), 0600), 0);
  expect(getError(*store, "pipe"), "it is not a plain file");
  ::chmod((path + "/link").c_str(), 0666);
  expect(getError(*store, "link"), "users other than its owner");
  EXPECT_FALSE(bool(store->set("large", "")));
  ASSERT_EQ(::truncate((path + "/large").c_str(), off_t(1) << 40), 0);
  expect(getError(*store, "large"), "larger than anything that a rank writes");
  for (unsigned mode : {0777u, 0770u, 01777u}) {
    ::chmod(path.c_str(), mode);
    expect(openError(path), "users other than its owner");
  }
  ::chmod(path.c_str(), 0755);
  EXPECT_EQ(openError(path), "");
  ASSERT_EQ(::symlink(path.c_str(), (path + "-link").c_str()), 0);
  expect(openError(path + "-link"), "it is a link");
  expect(openError(path + "-link/"), "it is a link");
  expect(openError("/proc/self/status"), "ranks cannot rendezvous in folder");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    expect(openError(path), "it belongs to user 12345");
  }
}
