//===- HandlePool.h - Handles that callers free -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A freed handle keeps its memory, so that a later call with it finds the kind
// Freed. The pool reuses the memory only after many other handles were freed.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CAPI_HANDLEPOOL_H
#define COMMSIR_RUNTIME_CAPI_HANDLEPOOL_H

#include "runtime/capi/Handle.h"

#include <deque>
#include <mutex>
#include <utility>

namespace commsir::capi {

/// A pool of `T`, which derives from Tagged and has `kKind` and a
/// default-constructible `content`. Thread-safe.
template <typename T>
class HandlePool {
public:
  /// The process-wide pool, never destroyed.
  static HandlePool &get() {
    static auto *pool = new HandlePool;
    return *pool;
  }

  T *make(decltype(T::content) content) {
    T *made = reuse();
    if (!made)
      made = new T;
    made->content = std::move(content);
    made->kind = T::kKind;
    return made;
  }

  /// Frees a handle. A handle that is already free stays unchanged.
  void release(T *handle) {
    decltype(T::content) last;
    std::lock_guard<std::mutex> lock(mutex);
    if (!isWhole(handle))
      return;
    handle->kind = Tagged::Kind::Freed;
    std::swap(last, handle->content);
    freed.push_back(handle);
  }

private:
  /// Number of freed handles that are kept before the oldest is reused.
  static constexpr size_t kKept = 1024;

  T *reuse() {
    std::lock_guard<std::mutex> lock(mutex);
    if (freed.size() <= kKept)
      return nullptr;
    T *oldest = freed.front();
    freed.pop_front();
    return oldest;
  }

  std::mutex mutex;
  std::deque<T *> freed;
};

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_HANDLEPOOL_H
