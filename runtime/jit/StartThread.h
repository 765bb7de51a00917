//===- StartThread.h - Work parallel to the compiler ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_STARTTHREAD_H
#define COMMSIR_RUNTIME_JIT_STARTTHREAD_H

#include <system_error>
#include <thread>
#include <utility>

namespace commsir::jit {

/// Starts a thread that runs `work`; returns none if the system cannot start
/// one.
template <typename Work>
std::thread startThread(Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error &) {
    return std::thread();
  }
}

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_STARTTHREAD_H
