//===- FiberTag.h - Tells ThreadSanitizer of fibers -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ThreadSanitizer follows the calls of each stack, and has to be told when a
// thread goes on with another one. In other builds all of this is nothing.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_FIBERTAG_H
#define COMMSIR_RUNTIME_CPU_FIBERTAG_H

#include <utility>

#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#endif

namespace commsir::cpu {

/// A stack, as ThreadSanitizer knows it.
#if __has_feature(thread_sanitizer)
class FiberTag {
public:
  FiberTag() = default;
  FiberTag(FiberTag &&other) noexcept { *this = std::move(other); }
  FiberTag &operator=(FiberTag &&other) noexcept {
    std::swap(tag, other.tag);
    std::swap(isOwn, other.isOwn);
    return *this;
  }
  ~FiberTag() { drop(); }
  /// A new stack, in place of the last one, whose calls never return.
  void renew() {
    drop();
    tag = __tsan_create_fiber(0);
    isOwn = true;
  }
  /// The one that this thread is on.
  void note() { tag = __tsan_get_current_fiber(); }
  /// Right before this thread goes on with it. No call of its own, which would
  /// begin on one stack and end on the other.
  [[clang::always_inline]] void enter() { __tsan_switch_to_fiber(tag, 0); }

private:
  void drop() {
    if (std::exchange(isOwn, false))
      __tsan_destroy_fiber(tag);
  }
  void *tag = nullptr;
  bool isOwn = false;
};
#else
struct FiberTag {
  void renew() {}
  void note() {}
  void enter() {}
};
#endif

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_FIBERTAG_H
