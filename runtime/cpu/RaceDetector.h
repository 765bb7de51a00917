//===- RaceDetector.h - Accesses that nothing orders ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Remembers of each range of memory who wrote it last and who has read it
// since, and compares every access with those (Spec, M14).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_RACEDETECTOR_H
#define COMMSIR_RUNTIME_CPU_RACEDETECTOR_H

#include "runtime/cpu/Clocks.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>
#include <vector>

namespace commsir::cpu {

enum class Proxy : uint8_t { Generic, Async, Alias, CopyEngine };

/// An access: `time` of `thread` (VectorClock).
struct Event {
  uint32_t thread = 0, time = 0;
  /// Number of the block, over all ranks; or `kHost`.
  int32_t agent = 0;
  /// What made it, in the kernel's table of sources.
  int32_t site = -1;
  int64_t launch = 0;
  bool write = false;
  /// Of the kind that may race (packets, poison).
  bool strong = false;
  Proxy proxy = Proxy::Generic;

  static constexpr int32_t kHost = -1;
  bool operator==(const Event &) const = default;
};

/// What a strong write passes on to who reads it and then fences (M7).
using Passed = std::shared_ptr<const Knowledge>;

/// Two accesses that nothing orders, and the bytes that both touch.
struct Race {
  Event first, second;
  int64_t begin = 0, end = 0;
};

/// The accesses to one piece of memory: ranges of bytes, in pages.
class AccessHistory {
public:
  /// Adds `event` on [begin, end). `isOrdered` says whether an earlier event
  /// happens before it. Returns the first race.
  std::optional<Race> add(int64_t begin, int64_t end, const Event &event,
                          const Passed &passed,
                          llvm::function_ref<bool(const Event &)> isOrdered);
  /// Calls `visit` with what the last writes of [begin, end) pass on.
  void visitPassed(int64_t begin, int64_t end,
                   llvm::function_ref<void(const Passed &)> visit) const;

private:
  static constexpr int64_t kPageBits = 12, kPageBytes = 1 << kPageBits;
  /// Bytes [begin, end) of a page, of which the same is known.
  struct Range {
    uint16_t begin = 0, end = 0;
    Event last; // time 0: never written.
    Passed passed;
    llvm::SmallVector<Event, 1> reads;
  };
  /// Sorted; they do not overlap.
  using Page = std::vector<Range>;
  /// An access, and what it is compared with.
  struct Comparison;
  static void addToPage(Page &page, int64_t begin, int64_t end,
                        Comparison &comparison);
  llvm::DenseMap<int64_t, Page> pages;
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_RACEDETECTOR_H
