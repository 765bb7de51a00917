//===- Shared.h - What the processes of a group share -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout of a group's first segment: a Board, one Seat a rank, then for
// each party (a set of ranks that run kernels together: the world, and each
// ordered pair of ranks for send and recv) a Place each member and an arena.
//
// All ranks map the segment; nobody writes to the place of another.
//
// A rank that runs wild may, all the same: what is read here is read once, and
// taken for what it may be only after a look. Texts end where their fields do.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_SHARED_H
#define COMMSIR_RUNTIME_GROUP_SHARED_H

#include "llvm/ADT/StringRef.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace commsir::group {

/// What `text` has that is no text (control characters, bytes that are no
/// UTF-8) is replaced. Of whatever another process has written.
std::string makeReadable(llvm::StringRef text);

/// A text that one rank writes and others read at any time. A reader may see a
/// part of an older text, which it notices by what was written beside it.
template <size_t Bytes>
class SharedText {
public:
  void put(llvm::StringRef text);
  /// Up to its zero, as it stands there.
  std::string raw() const;
  std::string str() const { return makeReadable(raw()); }

private:
  static_assert(Bytes % sizeof(uint64_t) == 0);
  std::array<std::atomic<uint64_t>, Bytes / sizeof(uint64_t)> words;
};

/// At the start of the segment.
struct alignas(64) Board {
  uint64_t magic;
  int64_t ranks;
  /// What sleepers wait at: moves when somebody is woken.
  alignas(64) std::atomic<uint32_t> bell;
  /// How many sleep.
  std::atomic<uint32_t> sleepers;
  /// Around updates of memory by several ranks: who holds it, plus 1.
  alignas(64) std::atomic<uint32_t> lock;
};

inline constexpr uint64_t kMagic = 0x3230756F72676D63;
inline constexpr size_t kReasonBytes = 1024;
inline constexpr size_t kTextBytes = 160;
/// Of a rank's number in the store (support/Rendezvous.h).
inline constexpr size_t kNumberBytes = 40;

/// How a rank is. Damaged: what stands there is none of the others.
enum class RankStatus : uint32_t {
  Absent,
  Member,
  Left,
  Failed,
  Aborted,
  Damaged
};

RankStatus readRankStatus(const std::atomic<RankStatus> &status);

/// Of a rank, behind its name.
inline constexpr const char kDamaged[] =
    " can no longer be followed: a rank has written over memory by which ranks "
    "know of each other";

/// Of a rank.
struct alignas(64) RankRecord {
  /// How many of its threads sleep.
  std::atomic<uint32_t> asleep;
  std::atomic<RankStatus> status;
  std::atomic<int32_t> process;
  /// The step in which it has failed as ranks disagreed, and from which they
  /// may go on; 0: none. Written before `status`.
  std::atomic<uint64_t> failedStep;
  /// The last such step from which it wants to go on, and has gone on.
  std::atomic<uint64_t> readyStep, recoveredStep;
  /// Why it failed or was aborted; written before `status`.
  SharedText<kReasonBytes> reason;
};

/// One step that all members of a party take: a launch, an allocation, ….
struct Step {
  /// 0 while the rest is written.
  std::atomic<uint64_t> number;
  std::atomic<uint64_t> digest;
  SharedText<kTextBytes> text;
  /// Of the three (checkOf): a reader tells a step that differs from one that
  /// somebody has written over.
  std::atomic<uint64_t> check;
};

/// What stands in the `check` of a step.
uint64_t checkOf(uint64_t number, uint64_t digest, llvm::StringRef text);

/// Steps that are remembered: no rank is that far ahead of another that it
/// still has something to do with.
inline constexpr uint64_t kSteps = 8;

/// Of a member of a party.
struct alignas(64) MemberRecord {
  /// The last step that it has ended.
  std::atomic<uint64_t> ended;
  /// The last step, and the point in it, at which it has met the others.
  std::atomic<uint64_t> met;
  /// The last even and the last odd of those points at which it has said that
  /// its part has gone wrong, and why. It may say so again at the next point
  /// before all have looked at this one, but not at the one after.
  struct {
    std::atomic<uint64_t> point;
    SharedText<kReasonBytes> reason;
  } failed[2];
  Step steps[kSteps];
  /// A segment that it has made for the others, who know its size.
  std::atomic<int64_t> segmentProcess, segmentFile;
};

/// Waits until a futex moves from `seen`; at most `microseconds`. Sleepers of
/// the bits in `bits` are woken together.
void sleepAt(std::atomic<uint32_t> &futex, uint32_t seen, uint32_t bits,
             int64_t microseconds);
void wakeAt(std::atomic<uint32_t> &futex, uint32_t bits);

/// `text`, or as much of it as `bytes` with a zero at the end hold.
llvm::StringRef cutText(llvm::StringRef text, size_t bytes);

/// Copies a text into a field of fixed size, ended by a zero.
void putText(char *field, size_t bytes, llvm::StringRef text);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_SHARED_H
