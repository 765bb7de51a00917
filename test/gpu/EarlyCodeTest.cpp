//===- EarlyCodeTest.cpp - Code that is compiled during calls -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/EarlyCode.h"
#include "runtime/support/FatalErrors.h"

#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <stdexcept>
#include <sys/wait.h>
#include <vector>

using namespace commsir;
using namespace commsir::cuda;

namespace {

using Kernel = llvm::Expected<std::unique_ptr<jit::CudaKernel>>;

void waitUntilOver(EarlyCode &early, llvm::StringRef key,
                   const EarlyCode::Compile &compile) {
  while (!early.isOver(key, compile))
    std::this_thread::yield();
}

} // namespace

/// A call that compiles a kernel itself gets an error in each of these cases;
/// the same must not end the process where it happens during calls.
TEST(EarlyCode, NoFailureEndsTheProcess) {
  installFatalErrorHandlers();
  const std::vector<EarlyCode::Compile> failures = {
      []() -> Kernel { return llvm::createStringError("no code"); },
      []() -> Kernel { throw std::bad_alloc(); },
      []() -> Kernel { throw std::runtime_error("a fault"); },
      []() -> Kernel { throw 1; },
      []() -> Kernel { llvm::report_fatal_error("cannot select"); },
      []() -> Kernel { llvm::report_bad_alloc_error("no memory"); },
  };
  for (const EarlyCode::Compile &compile : failures) {
    EarlyCode early;
    waitUntilOver(early, "key", compile);
    EXPECT_EQ(early.take("key"), nullptr);
  }
}

TEST(EarlyCode, CompilesOnceUnderEachKey) {
  std::atomic<int> count{0};
  EarlyCode early;
  auto compile = [&]() -> Kernel {
    ++count;
    return nullptr;
  };
  for (int i = 0; i < 3; ++i)
    for (const char *key : {"one", "two"})
      waitUntilOver(early, key, compile);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(early.take("three"), nullptr);
}

TEST(EarlyCode, EndsAfterItsCompilers) {
  std::atomic<bool> isDone{false};
  {
    EarlyCode early;
    early.isOver("key", [&]() -> Kernel {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      isDone = true;
      return nullptr;
    });
  }
  EXPECT_TRUE(isDone);
}

/// A forked process has no compilers to wait for.
TEST(EarlyCode, EndsInAForkedProcess) {
  std::atomic<bool> mayEnd{false};
  auto early = std::make_unique<EarlyCode>();
  early->isOver("key", [&]() -> Kernel {
    while (!mayEnd)
      std::this_thread::yield();
    return nullptr;
  });
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    early.reset();
    _exit(0);
  }
  mayEnd = true;
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
