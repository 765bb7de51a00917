//===- FiberTag.h - Tells ThreadSanitizer of fibers -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ThreadSanitizer tracks the calls of each stack and must be told when a thread
// switches stacks. Empty in other builds.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_FIBERTAG_H
#define COMMSIR_RUNTIME_CPU_FIBERTAG_H

#include <utility>

#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#endif

namespace commsir::cpu {

/// A stack as ThreadSanitizer identifies it.
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
  /// Replaces the stack by a new one; calls on the old one never return.
  void renew() {
    drop();
    tag = __tsan_create_fiber(0);
    isOwn = true;
  }
  /// Stores the stack that this thread is on.
  void note() { tag = __tsan_get_current_fiber(); }
  /// Called right before this thread switches to the stack. Always inlined,
  /// because a call would begin on one stack and end on the other.
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
