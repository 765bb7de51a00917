//===- Interrupt.h - Ctrl-C during a call -----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python runs the handlers of signals on its main thread, when that asks for
// it. So waits there end often enough to ask, and with them those of CommsIR.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_INTERRUPT_H
#define COMMSIR_RUNTIME_TORCH_C10D_INTERRUPT_H

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace commsir::torch_c10d {

/// What Module.cpp knows of Python.
struct Interrupts {
  /// Whether this thread is the one that handles signals.
  bool (*isMain)() = nullptr;
  /// Runs handlers; true: one has raised, which is kept for `raise`.
  bool (*heard)() = nullptr;
  void (*raise)() = nullptr;
  static Interrupts &get();
};

/// While it lives, waits of this thread may be interrupted, also those that
/// libcommsir asks for by `isInterrupted`.
class Interruptible {
public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;
};

/// Runs handlers of signals where this thread may be interrupted; true, from
/// then on: one has raised.
bool isInterrupted();
/// The same for C.
int askInterrupted();
/// Throws what a handler has raised, if one has.
void throwInterrupt();

/// How often a wait asks.
inline constexpr std::chrono::milliseconds kAsk{50};

/// Waits until `ready` or `deadline`; false: it is over or was interrupted.
template <typename Ready>
bool waitAsking(std::condition_variable &changed,
                std::unique_lock<std::mutex> &lock,
                std::chrono::steady_clock::time_point deadline, Ready ready) {
  while (!ready()) {
    auto now = std::chrono::steady_clock::now();
    if (now >= deadline)
      return false;
    changed.wait_until(lock, std::min(deadline, now + kAsk));
    if (ready())
      break;
    lock.unlock();
    bool over = isInterrupted();
    lock.lock();
    if (over)
      return ready();
  }
  return true;
}

/// Work whose wait hears of signals, and throws what a handler has raised.
class InterruptibleWork : public c10d::Work {};

/// Waits for work of another backend, which knows nothing of signals. When it
/// is interrupted, calls `stop` and throws. Of InterruptibleWork, the wait.
void waitInterruptibly(const c10::intrusive_ptr<c10d::Work> &work,
                       std::chrono::milliseconds timeout,
                       const std::function<void()> &stop);

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_INTERRUPT_H
