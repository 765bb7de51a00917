//===- Interrupt.h - Ctrl-C during a call -----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python runs signal handlers on its main thread only when that thread asks for
// it. Waits on that thread, including those of CommsIR, therefore return
// regularly to ask.
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

/// Python functions that Module.cpp provides.
struct Interrupts {
  /// Whether this thread handles signals.
  bool (*isMain)() = nullptr;
  /// Runs signal handlers. Returns true if one raised; `raise` rethrows it.
  bool (*heard)() = nullptr;
  void (*raise)() = nullptr;
  static Interrupts &get();
};

/// In this scope, waits of this thread can be interrupted, including those of
/// libcommsir, which calls `isInterrupted`.
class Interruptible {
public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;
};

/// Runs signal handlers if this thread can be interrupted. Returns true from
/// the time a handler has raised.
bool isInterrupted();
/// Same, for C.
int askInterrupted();
/// Throws the exception of a handler, if one has raised.
void throwInterrupt();

/// Interval at which a wait asks.
inline constexpr std::chrono::milliseconds kAsk{50};

/// Waits until `ready` or `deadline`. Returns false after the deadline or an
/// interrupt.
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

/// Work whose wait can be interrupted; it then throws the handler's exception.
class InterruptibleWork : public c10d::Work {};

/// Waits for work of another backend, which ignores signals. When interrupted,
/// calls `stop` and throws. For InterruptibleWork, just waits.
void waitInterruptibly(const c10::intrusive_ptr<c10d::Work> &work,
                       std::chrono::milliseconds timeout,
                       const std::function<void()> &stop);

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_INTERRUPT_H
