//===- Shared.h - The layout of a group's shared memory ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout of a group's first segment: a Board, one RankRecord per rank, then for
// each subgroup (a set of ranks that run kernels together: the world, and each
// ordered pair of ranks for send and recv) one MemberRecord per member and an
// arena.
//
// All ranks map the segment; a rank writes only to its own records.
//
// Because a faulty rank may write anywhere, each value is read once and
// validated before use. Texts end where their fields do.
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

/// Replaces everything in `text` that is not printable UTF-8. For texts that
/// another process has written.
std::string makeReadable(llvm::StringRef text);

/// A text that one rank writes and others read at any time. A reader may see
/// part of an older text; the number next to the text shows that.
template <size_t Bytes>
class SharedText {
public:
  void put(llvm::StringRef text);
  /// The bytes up to the first zero, unchecked.
  std::string raw() const;
  std::string str() const { return makeReadable(raw()); }

private:
  static_assert(Bytes % sizeof(uint64_t) == 0);
  std::array<std::atomic<uint64_t>, Bytes / sizeof(uint64_t)> words;
};

/// Header of the segment.
struct alignas(64) Board {
  uint64_t magic;
  int64_t ranks;
  /// Futex of sleeping threads; changes when one is to wake up.
  alignas(64) std::atomic<uint32_t> bell;
  /// Number of sleeping threads.
  std::atomic<uint32_t> sleepers;
  /// Spin lock for memory that several ranks update: rank of the owner plus 1;
  /// 0: free.
  alignas(64) std::atomic<uint32_t> lock;
};

inline constexpr uint64_t kMagic = 0x3230756F72676D63;
inline constexpr size_t kReasonBytes = 1024;
inline constexpr size_t kTextBytes = 160;
/// Bytes of a rank's number in the store (support/Rendezvous.h).
inline constexpr size_t kNumberBytes = 40;

/// State of a rank. Damaged: the stored value is not one of the others.
enum class RankStatus : uint32_t {
  Absent,
  Member,
  Left,
  Failed,
  Aborted,
  Damaged
};

RankStatus readRankStatus(const std::atomic<RankStatus> &status);

/// Text that follows the name of a rank in errors.
inline constexpr const char kDamaged[] =
    " can no longer be followed: a rank has written over memory by which ranks "
    "know of each other";

/// Shared state of one rank.
struct alignas(64) RankRecord {
  /// Number of its threads that sleep.
  std::atomic<uint32_t> asleep;
  std::atomic<RankStatus> status;
  std::atomic<int32_t> process;
  /// Step in which the rank failed because ranks disagreed, and from which they
  /// may recover; 0: none. Written before `status`.
  std::atomic<uint64_t> failedStep;
  /// Last failed step from which the rank is ready to recover, and has
  /// recovered.
  std::atomic<uint64_t> readyStep, recoveredStep;
  /// Reason of the failure or abort; written before `status`.
  SharedText<kReasonBytes> reason;
};

/// One step that all members of a subgroup take: a launch, an allocation, ….
struct Step {
  /// 0 while the other fields are written.
  std::atomic<uint64_t> number;
  std::atomic<uint64_t> digest;
  SharedText<kTextBytes> text;
  /// Checksum of the three fields (`checkOf`). It lets a reader tell a step
  /// that differs from a step that was overwritten.
  std::atomic<uint64_t> check;
};

/// Value of a step's `check`.
uint64_t checkOf(uint64_t number, uint64_t digest, llvm::StringRef text);

/// Number of steps kept. No rank gets so far ahead that another still needs an
/// older step.
inline constexpr uint64_t kSteps = 8;

/// Shared state of one member of a subgroup.
struct alignas(64) MemberRecord {
  /// The last step that the member has ended.
  std::atomic<uint64_t> ended;
  /// Counter of barriers: the last one that the member has reached.
  std::atomic<uint64_t> met;
  /// The last even and the last odd barrier at which the member reported that
  /// its part failed, with the reason. A member may report again at the next
  /// barrier before all have read this one, but not at the one after.
  struct {
    std::atomic<uint64_t> point;
    SharedText<kReasonBytes> reason;
  } failed[2];
  Step steps[kSteps];
  /// A segment that the member made for the others. They know its size.
  std::atomic<int64_t> segmentProcess, segmentFile;
};

/// Waits at most `microseconds` until a futex differs from `seen`. A wake-up
/// reaches the sleepers whose `bits` overlap.
void sleepAt(std::atomic<uint32_t> &futex, uint32_t seen, uint32_t bits,
             int64_t microseconds);
void wakeAt(std::atomic<uint32_t> &futex, uint32_t bits);

/// Cuts `text` so that it and a final zero fit in `bytes` bytes.
llvm::StringRef cutText(llvm::StringRef text, size_t bytes);

/// Copies a text, with a final zero, to a field of fixed size.
void putText(char *field, size_t bytes, llvm::StringRef text);

/// The step of that number, or null if the member has not begun it or no longer
/// remembers it.
const Step *findStep(const MemberRecord &place, uint64_t number);

/// Whether a step has the checksum of these fields; if not, something has
/// written over it.
bool isIntact(const Step &step, uint64_t number, uint64_t digest,
              llvm::StringRef text);

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_SHARED_H
