//===- Handle.h - Handles behind the C API's pointers -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread may end an object while other threads are in calls of it or begin
// new ones. C therefore holds a pointer to a handle, which lives until the
// process ends and knows whether its object still exists; a handle takes about
// a hundred bytes. The object is destroyed with the last call that uses it.
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

/// First base of every object that C has a pointer to. A call refuses a pointer
/// to an object of another kind or to a freed object.
class Tagged {
public:
  enum class Kind : uint32_t {
    Freed,
    Group,
    Kernel,
    Messages,
    Transfer,
    Prepared
  };
  explicit Tagged(Kind kind) : kind(kind) {}
  /// All begin with the same two words.
  virtual ~Tagged() = default;
  Tagged(const Tagged &) = delete;
  Tagged &operator=(const Tagged &) = delete;
  std::atomic<Kind> kind;
};

/// Whether the pointer from C refers to a `T`. `T::kKind` is its kind.
template <typename T>
bool isWhole(const T *object) {
  return object->kind.load(std::memory_order_relaxed) == T::kKind;
}

class Handle : public Tagged {
public:
  explicit Handle(Kind kind);

  /// One call of a thread. It keeps the object alive.
  class Call {
  public:
    /// `evenClosed`: the call may also begin between `close` and the end.
    explicit Call(Handle &handle, bool evenClosed = false);
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;
    explicit operator bool() const { return entered; }

  private:
    friend class Handle;
    Handle &handle;
    const bool entered;
    /// The enclosing call of this thread; null: none.
    Call *const outer;
  };

  /// From now on only calls with `evenClosed` may begin.
  void close() { state.fetch_or(kClosed); }
  /// Waits at most `most` for calls of other threads to end. Returns false if
  /// some have not.
  bool awaitCalls(std::chrono::milliseconds most);
  /// Ends the object now or with its last call. Returns false if that was
  /// requested before.
  bool finish();

protected:
  /// Ends the object. `isLate`: runs in a thread that must not wait for peers.
  virtual void end(bool isLate) = 0;

private:
  static constexpr uint64_t kClosed = uint64_t(1) << 63;
  static constexpr uint64_t kFinished = uint64_t(1) << 62;
  static constexpr uint64_t kCalls = kFinished - 1;
  bool enter(bool evenClosed);
  void leave();
  uint64_t countOwn() const;

  /// Number of calls in progress, and the two bits above.
  std::atomic<uint64_t> state{0};
  std::mutex mutex;
  std::condition_variable left;
};

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_HANDLE_H
