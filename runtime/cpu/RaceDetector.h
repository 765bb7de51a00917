//===- RaceDetector.h - Accesses that nothing orders ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Records the last write of each range of memory and the reads since then, and
// compares every access with them (Spec, M14).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_RACEDETECTOR_H
#define COMMSIR_RUNTIME_CPU_RACEDETECTOR_H

#include "runtime/cpu/Clocks.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace commsir::cpu {

enum class Proxy : uint8_t { Generic, Async, Alias, CopyEngine };

/// An access: `time` of `thread` (VectorClock). Small: every range of memory
/// has some.
struct Event {
  uint32_t thread = 0, time = 0;
  /// Counted from the run's first.
  uint32_t launch = 0;
  /// Its op, as an index of the kernel's table of sources; -1: unknown.
  int32_t site : 24 = -1;
  bool write : 1 = false;
  /// Of the kind that may race (packets, poison).
  bool strong : 1 = false;
  Proxy proxy : 2 = Proxy::Generic;

  bool operator==(const Event &) const = default;
};
static_assert(sizeof(Event) == 16);

/// What a reader of a strong write acquires by a fence (M7).
struct SharedKnowledge : llvm::RefCountedBase<SharedKnowledge>, Knowledge {
  explicit SharedKnowledge(const Knowledge &known) : Knowledge(known) {}
};
using Passed = llvm::IntrusiveRefCntPtr<SharedKnowledge>;

/// Two accesses that nothing orders, and the bytes that both touch.
struct Race {
  Event first, second;
  int64_t begin = 0, end = 0;
};

/// The accesses to memory, by its addresses: ranges of bytes, in pages.
class AccessHistory {
public:
  /// Adds `event` on [begin, end). `isOrdered` says whether an earlier event
  /// happens before it. Returns the first race.
  std::optional<Race> add(int64_t begin, int64_t end, const Event &event,
                          const Passed &passed,
                          llvm::function_ref<bool(const Event &)> isOrdered);
  /// The last write of some bytes, what it passes on, and who has read it.
  struct LastWrite {
    const Event &event;
    const Passed &passed;
    llvm::ArrayRef<Event> reads;
  };
  /// Calls `visit` for each last write of bytes in [begin, end).
  void visitWrites(int64_t begin, int64_t end,
                   llvm::function_ref<void(const LastWrite &)> visit) const;

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
  using Page = llvm::SmallVector<Range, 4>;
  /// An access, and what it is compared with.
  struct Comparison;
  static void addToPage(Page &page, int64_t begin, int64_t end,
                        Comparison &comparison);
  static constexpr int64_t kChunkBits = 6;
  using Chunk = std::array<Page, 1 << kChunkBits>;
  Page *findPage(int64_t number) const;
  Page &getPage(int64_t number);
  llvm::DenseMap<int64_t, std::unique_ptr<Chunk>> chunks;
  /// The chunks that were asked for last, by the last bits of their number.
  mutable std::array<std::pair<int64_t, Chunk *>, 64> recent = {};
};

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_RACEDETECTOR_H
