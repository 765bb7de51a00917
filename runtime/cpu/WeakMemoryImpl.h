//===- WeakMemoryImpl.h - The state of weak memory --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to runtime/cpu.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_WEAKMEMORYIMPL_H
#define COMMSIR_RUNTIME_CPU_WEAKMEMORYIMPL_H

#include "runtime/cpu/WeakMemory.h"

#include "llvm/ADT/STLExtras.h"

namespace commsir::cpu {

/// What a value of a cell passes on to those who acquire it.
struct WeakMemory::Message {
  /// To blocks of any rank.
  Knowledge any;
  /// To blocks of the rank that released, where kernels use narrow scopes.
  llvm::SmallVector<std::pair<int64_t, Knowledge>, 1> within;

  void addWithin(int64_t rank, const Knowledge &known) {
    auto *same =
        llvm::find_if(within, [&](auto &one) { return one.first == rank; });
    if (same != within.end())
      same->second.join(known);
    else
      within.emplace_back(rank, known);
  }
  void join(const Message &other) {
    any.join(other.any);
    for (const auto &[rank, known] : other.within)
      addWithin(rank, known);
  }
};

/// Something that others do not see yet.
struct WeakMemory::Item {
  enum Kind : uint8_t { Store, Signal, Transfer } kind = Store;
  /// What it changes.
  char *address = nullptr;
  int64_t bytes = 0;
  /// Store: the new bytes, or, while the block runs, those that others see.
  /// Transfer: what was read.
  std::vector<char> data;
  /// Store: what becomes visible as a whole; isPacket: words that have flags.
  int64_t grain = 8;
  bool isPacket = false;
  /// Store: an earlier write of the place comes behind it (M5, M25).
  bool isOvertaken = false;
  /// Store: the op that made it.
  int32_t site = -1;
  /// Signal.
  int64_t change = 0, value = 0;
  Event event;
  std::shared_ptr<const Message> message;
  /// Transfer: the lane (see laneOf) and what it reads.
  int lane = 0;
  int64_t way = -1;
  char *source = nullptr;
  bool isRead = false, isFlushed = false;
  int64_t *counter = nullptr;
  Event reads;

  bool overlaps(const char *other, int64_t count) const {
    return other < address + bytes && address < other + count;
  }
};

/// What transfers of one way have happened so far, as a thread of a clock.
struct WeakMemory::Lane {
  uint32_t thread = 0, time = 0, flushed = 0;
};

/// Memory that an op is about to write, as it is before.
struct WeakMemory::Snapshot {
  std::unique_ptr<Item> item;
  /// The kernel says what it has stored, vector by vector.
  bool isTold = false;
};

struct WeakMemory::Agent {
  uint32_t thread = 0, time = 1;
  int64_t rank = 0, block = 0;
  Fiber *fiber = nullptr;
  Knowledge now;
  /// What release fences have ordered before later relaxed signals, as far as
  /// all ranks and as far as this rank; and what relaxed reads have seen that
  /// acquire fences are to order.
  Knowledge fencedAny, fencedRank, seenAny, seenRank;
  /// A copy of fencedAny for strong writes; null: there is none yet.
  Passed passed;
  /// What the arrival at a barrier that it is making passes on.
  Knowledge arriving;
  /// What a fence of proxy async of this block has ordered before bulk copies.
  VectorClock async;
  const WeakOp *op = nullptr;
  int32_t site = -1;
  std::map<std::pair<int, int64_t>, Lane> lanes;
  std::vector<std::unique_ptr<Item>> items;
  /// A bit for each place where a store may be held (maskOf).
  uint64_t heldMask = 0;
  /// The reads of the last transfer.
  Event lastReads;
  bool isApplied = false;
  llvm::SmallVector<Snapshot, 1> open;
  /// The side of a transfer on this rank, until the other is known.
  std::optional<std::tuple<bool, char *, int64_t>> side;
  /// Packets and poison whose loads may have passed something on.
  llvm::SmallVector<std::pair<char *, int64_t>, 1> loads;
  AccessHistory scratch;
};

struct WeakMemory::Cell {
  struct Version {
    int64_t value = 0;
    Event event;
    std::shared_ptr<const Message> message;
    bool isSet = false;
    /// The blocks that have read it, and when first.
    llvm::SmallVector<std::pair<uint32_t, uint32_t>, 1> readers;
  };
  std::deque<Version> versions;
  /// Number of the first of them.
  size_t first = 0;
  /// The version that a block has read last.
  llvm::DenseMap<int32_t, size_t> seen;
};

/// A bit for each kind of place of a range: two ranges that share no bit do not
/// overlap.
inline uint64_t maskOf(const char *address, int64_t bytes) {
  auto first = reinterpret_cast<uintptr_t>(address) >> 9,
       last = (reinterpret_cast<uintptr_t>(address) + bytes - 1) >> 9;
  if (last - first >= 63)
    return ~uint64_t(0);
  uint64_t mask = (uint64_t(2) << (last - first)) - 1;
  unsigned by = first % 64;
  return by ? mask << by | mask >> (64 - by) : mask;
}

/// Lanes of an agent: the sources of its puts, their destinations, bulk copies,
/// and copies by an engine. Ways: -1 is by load and store; over GIN it is the
/// context times the number of ranks, plus the peer; of bulk copies their
/// number.
constexpr int kSources = 0, kDests = 1, kBulk = 2, kEngine = 3;

/// The most bytes of one store that are held back.
constexpr int64_t kMostBytes = 256;

/// Reads a synchronization record. `broken` are bits of Broken.
WeakOp parseWeakOp(llvm::StringRef text, unsigned broken);

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_WEAKMEMORYIMPL_H
