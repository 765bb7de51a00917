//===- Handle.h - What C has a pointer to -----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread may end an object while others are in calls of it, or begin new
// ones. So the pointer that C has is to a handle, which stays until the process
// ends and knows whether its object is there; it is some hundred bytes. The
// object goes with the last call that uses it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CAPI_HANDLE_H
#define COMMSIR_RUNTIME_CAPI_HANDLE_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace commsir::capi {

class Handle {
public:
  Handle();
  virtual ~Handle() = default;
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;

  /// A call of a thread. Without one the object may be gone.
  class Call {
  public:
    /// `evenClosed`: also between `close` and the end.
    explicit Call(Handle &handle, bool evenClosed = false);
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;
    explicit operator bool() const { return entered; }

  private:
    friend class Handle;
    Handle &handle;
    const bool entered;
    /// Of this thread, the call that this one is within.
    Call *const outer;
  };

  /// No call begins from now on, but for those `evenClosed`.
  void close() { state.fetch_or(kClosed); }
  /// Waits until calls of other threads have ended; false: some have not.
  bool awaitCalls(std::chrono::milliseconds most);
  /// Ends the object, here or with the last call. Once: false is later.
  bool finish();

protected:
  /// Ends the object. `isLate`: in a thread that may not wait for peers.
  virtual void end(bool isLate) = 0;

private:
  static constexpr uint64_t kClosed = uint64_t(1) << 63;
  static constexpr uint64_t kFinished = uint64_t(1) << 62;
  static constexpr uint64_t kCalls = kFinished - 1;
  bool enter(bool evenClosed);
  void leave();
  uint64_t countOwn() const;

  /// Calls that are under way, and the two bits above.
  std::atomic<uint64_t> state{0};
  std::mutex mutex;
  std::condition_variable left;
};

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_HANDLE_H
