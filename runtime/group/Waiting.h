//===- Waiting.h - What all waits of a rank do ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank that waits for a peer first looks for a short time, and then sleeps
// until the peer wakes it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_WAITING_H
#define COMMSIR_RUNTIME_GROUP_WAITING_H

#include <chrono>
#include <sched.h>

namespace commsir::group {

/// How often a rank that sleeps checks for what wakes nobody: a peer that has
/// died, Ctrl-C, a time limit.
inline constexpr std::chrono::milliseconds kPeriod(20);

/// Looks for some microseconds whether `ready()`, and returns whether it is. A
/// look costs less than a switch to another thread, and a switch less than a
/// sleep. Peers are mostly a few microseconds away. If they are not, each yield
/// gives away a slice of the processor's time to whatever else runs there,
/// which Linux counts as used; so there are few.
template <typename Ready>
bool spin(Ready &&ready) {
  constexpr unsigned looks = 64, yields = 3;
  for (unsigned i = 0; i < looks; ++i) {
    if (ready())
      return true;
    __builtin_ia32_pause();
  }
  for (unsigned i = 0; i < yields; ++i) {
    ::sched_yield();
    if (ready())
      return true;
  }
  return false;
}

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_WAITING_H
