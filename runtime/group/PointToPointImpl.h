//===- PointToPointImpl.h - The memory between two ranks --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to runtime/group. Each rank has a mailbox and a ring for each peer in
// a segment of shared memory; a peer writes messages to its ring.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_POINTTOPOINTIMPL_H
#define COMMSIR_RUNTIME_GROUP_POINTTOPOINTIMPL_H

#include "runtime/group/PointToPoint.h"
#include "runtime/group/Shared.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <cstddef>

namespace commsir::group {

constexpr uint64_t kMail = 0x6C69616D736D6F63;
/// Size of a ring, and of the pieces after which the other side is notified:
/// both sides copy at the same time, in their caches.
constexpr uint64_t kRingBytes = uint64_t(1) << 20, kPiece = uint64_t(128) << 10;
constexpr uint64_t kLine = 64, kMailboxBytes = 4096;
constexpr size_t kWhatBytes = 44;

/// Header of a message in the ring.
struct Envelope {
  uint64_t bytes;
  int64_t tag;
  char what[kWhatBytes];
  /// Checksum of the other fields, to detect data that no rank has sent.
  uint32_t check;

  uint32_t sum() const {
    return static_cast<uint32_t>(llvm::xxh3_64bits(llvm::ArrayRef(
        reinterpret_cast<const uint8_t *>(this), offsetof(Envelope, check))));
  }
};
static_assert(sizeof(Envelope) == kLine);

/// The state that a rank publishes to the others.
struct alignas(64) RankMailbox {
  uint64_t magic;
  SharedText<kNumberBytes> number;
  std::atomic<RankStatus> status;
  SharedText<kReasonBytes> reason;
  /// The word that sleepers of the rank wait on, and the number of sleepers.
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
};

/// From one rank; in bytes, from the beginning.
struct alignas(64) Ring {
  /// By the sender.
  std::atomic<uint64_t> written;
  /// By the receiver.
  alignas(64) std::atomic<uint64_t> read;
  /// Nothing goes between the two any more, for a reason that was written
  /// before.
  std::atomic<uint32_t> refused;
  std::atomic<GroupError::Kind> kind;
  SharedText<kReasonBytes> why;
};

static_assert(sizeof(RankMailbox) <= kMailboxBytes);

inline RankMailbox &mailboxOf(const Segment &segment) {
  return *reinterpret_cast<RankMailbox *>(segment.data());
}

inline uint64_t headsOf(int64_t ranks) {
  return llvm::alignTo(ranks * sizeof(Ring), 4096);
}

inline std::string named(int64_t rank) {
  return "rank " + std::to_string(rank);
}

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_POINTTOPOINTIMPL_H
