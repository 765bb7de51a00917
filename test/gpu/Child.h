//===- Child.h - Processes of a test, and what they say ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test that must not share a process, or that kills it, runs in a child. The
// child says what is wrong, and its parent reads that.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_CHILD_H
#define COMMSIR_TEST_GPU_CHILD_H

#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace commsir::test {

/// How a child ended: the status of waitpid, and what it said.
struct Ended {
  int status = 0;
  std::string said;
};

class Child {
public:
  /// Begins a child that does `work` and says its result. `work` is given where
  /// `leave` can say something earlier.
  static Child start(const std::function<std::string(int out)> &work) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t pid = fork();
    EXPECT_GE(pid, 0);
    if (pid == 0) {
      close(ends[0]);
      leave(ends[1], work(ends[1]));
    }
    close(ends[1]);
    return Child(pid, ends[0]);
  }

  /// In the child: says `text`, and ends the process without destructors.
  [[noreturn]] static void leave(int out, llvm::StringRef text) {
    ssize_t written = write(out, text.data(), text.size());
    _exit(written == ssize_t(text.size()) ? 0 : 1);
  }

  /// Waits for its end, once.
  Ended wait() const {
    Ended ended;
    char buffer[4096];
    for (ssize_t bytes; (bytes = read(in, buffer, sizeof buffer)) > 0;)
      ended.said.append(buffer, size_t(bytes));
    close(in);
    waitpid(pid, &ended.status, 0);
    return ended;
  }

private:
  Child(pid_t pid, int in) : pid(pid), in(in) {}

  pid_t pid;
  int in;
};

} // namespace commsir::test

#endif // COMMSIR_TEST_GPU_CHILD_H
