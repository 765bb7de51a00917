//===- ParallelTest.cpp - Failures of threads reach their caller ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/FatalErrors.h"
#include "runtime/support/StartThread.h"

#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

using namespace commsir;

namespace {

/// What runInParallel throws if `failing` is the number that fails.
std::string textOfFailure(unsigned count, unsigned failing,
                          const std::function<void()> &fail) {
  std::atomic<bool> isOver{false};
  std::exception_ptr failure = catchFailure([&] {
    runInParallel(
        count,
        [&](unsigned i) {
          if (i == failing)
            fail();
          // The others work until they are told to stop.
          while (!isOver)
            std::this_thread::yield();
        },
        [&] { isOver = true; });
  });
  return failure ? describeFailure(failure) : "";
}

} // namespace

TEST(Parallel, RunsEachNumberOnce) {
  for (unsigned count : {0u, 1u, 5u}) {
    std::vector<std::atomic<int>> runs(count);
    runInParallel(count, [&](unsigned i) { ++runs[i]; }, [] {});
    for (std::atomic<int> &one : runs)
      EXPECT_EQ(one, 1);
  }
}

TEST(Parallel, AFailureStopsTheOthersAndIsThrown) {
  installFatalErrorHandlers();
  for (unsigned failing : {0u, 1u, 3u}) {
    auto with = [&](const std::function<void()> &fail) {
      return textOfFailure(4, failing, fail);
    };
    EXPECT_EQ(with([] { throw std::runtime_error("a fault"); }), "a fault");
    EXPECT_EQ(with([] { throw std::bad_alloc(); }),
              "out of memory; use fewer ranks or smaller arrays");
    EXPECT_EQ(with([] { llvm::report_bad_alloc_error("no memory"); }),
              "out of memory; use fewer ranks or smaller arrays");
    EXPECT_NE(with([] {
                llvm::report_fatal_error("cannot select");
              }).find("LLVM gave up: cannot select"),
              std::string::npos);
    EXPECT_EQ(with([] { throw 1; }), "an exception of unknown type");
  }
}
