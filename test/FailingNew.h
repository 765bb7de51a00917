//===- FailingNew.h - An operator new that tests let fail -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces operator new in the test programs that FailingNew.cpp is linked
// into, by one that counts, and that fails when a test says so.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_FAILINGNEW_H
#define COMMSIR_TEST_FAILINGNEW_H

#include <atomic>

namespace commsir::test {

/// Which threads' allocations may fail.
enum class Fails { ByDefault, Never, Always };

struct FailingNew {
  /// Allocations that succeed before one fails; below 0: none fails.
  std::atomic<long> left{-1};
  /// One allocation fails, not all from then on.
  std::atomic<bool> once{false};
  /// Whether those of threads fail that are marked as ByDefault.
  std::atomic<bool> byDefault{true};
  std::atomic<bool> hasFailed{false};
};

extern FailingNew failingNew;
/// The mark of this thread, and how often it has taken memory.
extern thread_local Fails failsHere;
extern thread_local unsigned long takenHere;

} // namespace commsir::test

#endif // COMMSIR_TEST_FAILINGNEW_H
