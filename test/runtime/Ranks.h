//===- Ranks.h - Groups of processes, for tests -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_RUNTIME_RANKS_H
#define COMMSIR_TEST_RUNTIME_RANKS_H

#include "runtime/group/Collective.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

namespace commsir::test {

/// A folder that is removed at the end.
struct Folder {
  Folder() {
    llvm::SmallString<128> made;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("commsir-ranks", made));
    path = made.str().str();
  }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string path;
};

/// What a rank works with. `complain` notes a failure, which the parent
/// reports.
struct Member {
  group::Group *group = nullptr;
  group::Store *store = nullptr;
  std::string folder, said;
  int64_t rank = 0, ranks = 0;
  void complain(const llvm::Twine &text) { said += text.str() + "\n"; }
  /// Notes the error, if it is one.
  bool good(llvm::Error error) {
    if (!error)
      return true;
    complain(llvm::toString(std::move(error)));
    return false;
  }
  /// Notes it when the error is not one of `kind` whose text has all `parts`.
  void expect(llvm::Error error, group::GroupError::Kind kind,
              std::initializer_list<llvm::StringRef> parts) {
    if (!error)
      return complain("there is no error");
    bool right = false;
    llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &info) {
      right |= info.isA<group::GroupError>() &&
               static_cast<const group::GroupError &>(info).getKind() == kind;
    });
    std::string text = llvm::toString(std::move(error));
    for (llvm::StringRef part : parts)
      right &= llvm::StringRef(text).contains(part);
    if (!right)
      complain("another error than expected: " + text);
  }
};

/// Runs `body` as `ranks` processes that make a group. Reports what they
/// complain of, and those that end in another way than by returning, except
/// `killed`. `cache`: a folder of kernels that is kept; the default is new.
inline void runRanks(int64_t ranks, llvm::function_ref<void(Member &)> body,
                     double timeout = 60, int64_t killed = -1,
                     const std::string &cache = "") {
  Folder folder;
  auto pathOf = [&](int64_t rank) {
    return folder.path + "/said-" + std::to_string(rank);
  };
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    std::string kernels = cache.empty() ? folder.path + "/cache" : cache;
    ::setenv("COMMSIR_CACHE_DIR", kernels.c_str(), 1);
    Member member;
    member.folder = folder.path;
    member.rank = rank;
    member.ranks = ranks;
    group::GroupOptions options;
    options.rank = rank;
    options.ranks = ranks;
    options.timeout = timeout;
    auto store = group::createFileStore(folder.path + "/store");
    if (!store)
      ::_exit(3);
    member.store = store->get();
    {
      auto group = group::createGroup(options, **store);
      if (!group) {
        member.complain(llvm::toString(group.takeError()));
      } else {
        member.group = group->get();
        body(member);
      }
    }
    std::ofstream(pathOf(rank)) << member.said;
    ::_exit(0);
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    if (rank == killed)
      continue;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "rank " << rank << " ended with " << status;
    auto said = llvm::MemoryBuffer::getFile(pathOf(rank));
    EXPECT_TRUE(said && (*said)->getBuffer().empty())
        << "rank " << rank << ": "
        << (said ? (*said)->getBuffer().str() : std::string("said nothing"));
  }
}

} // namespace commsir::test

#endif // COMMSIR_TEST_RUNTIME_RANKS_H
