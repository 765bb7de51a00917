//===- CpuSteps.cpp - Steps of a group on the CPU -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks begin and end steps together. A rank that waits looks, yields, and then
// sleeps until a peer wakes it.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CpuGroup.h"

#include "runtime/group/Process.h"
#include "runtime/group/Waiting.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cerrno>
#include <cstring>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

static uint32_t bitOf(int64_t rank) { return uint32_t(1) << (rank % 32); }

/// Storing and then looking for sleepers, here, and announcing sleep and then
/// looking at memory, in `sleepUntilWoken`, are both ordered by fences: one of
/// the two sees the other.
void CpuGroup::wakeAll() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (board().sleepers.load(std::memory_order_relaxed) == 0)
    return;
  uint32_t bits = 0;
  for (int64_t rank = 0; rank < settings.ranks; ++rank)
    if (rank != settings.rank &&
        rankRecord(rank).asleep.load(std::memory_order_relaxed))
      bits |= bitOf(rank);
  // `abort` wakes its own rank, too.
  if (broken.load(std::memory_order_relaxed))
    bits |= bitOf(settings.rank);
  if (!bits)
    return;
  board().bell.fetch_add(1, std::memory_order_release);
  wakeAt(board().bell, bits);
}

void CpuGroup::wakeRank(int64_t rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (board().sleepers.load(std::memory_order_relaxed) == 0 ||
      !rankRecord(rank).asleep.load(std::memory_order_relaxed))
    return;
  board().bell.fetch_add(1, std::memory_order_release);
  wakeAt(board().bell, bitOf(rank));
}

bool Waiter::rest(Subgroup &subgroup, llvm::function_ref<bool()> ready) {
  if (spin(ready))
    return true;
  Clock::time_point begun = Clock::now();
  while (!ready()) {
    if (group.findTrouble(subgroup))
      return ready();
    if (!sleep(subgroup, ready, begun))
      return false;
  }
  return true;
}

void CpuGroup::sleepUntilWoken(llvm::function_ref<bool()> ready,
                               std::chrono::microseconds most) {
  RankRecord &record = ownRecord();
  record.asleep.fetch_add(1, std::memory_order_relaxed);
  board().sleepers.fetch_add(1, std::memory_order_seq_cst);
  uint32_t seen = board().bell.load(std::memory_order_acquire);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!broken.load(std::memory_order_relaxed) && !ready())
    sleepAt(board().bell, seen, bitOf(settings.rank), most.count());
  board().sleepers.fetch_sub(1, std::memory_order_relaxed);
  record.asleep.fetch_sub(1, std::memory_order_relaxed);
}

bool Waiter::sleep(Subgroup &subgroup, llvm::function_ref<bool()> ready,
                   Clock::time_point begun) {
  group.sleepUntilWoken(ready, kPeriod);
  Clock::time_point now = Clock::now();
  if (!ready() && isInterruptRequested(now))
    return false;
  return ready() || !isTooLong(subgroup, now - begun);
}

bool Waiter::isTooLong(Subgroup &subgroup, Clock::duration time) {
  if (std::chrono::duration<double>(time).count() < group.timeout())
    return false;
  std::string text =
      "rank " + std::to_string(group.settings.rank) + " has waited " +
      llvm::formatv("{0:f1}", group.timeout()).str() +
      " s for its peers in step " +
      std::to_string(static_cast<int64_t>(subgroup.step)) + " of group '" +
      group.settings.name + "' (" + subgroup.text + ")";
  std::string late;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    const MemberRecord &place = subgroup.memberRecords[member];
    if (member == subgroup.own ||
        place.ended.load(std::memory_order_acquire) >= subgroup.step)
      continue;
    late += "\n  " + group.describeRank(subgroup, member);
    if (!findStep(place, subgroup.step))
      late += ", and has not come since; its process " +
              std::to_string(group.processOf(subgroup.members[member])) +
              " is alive";
  }
  // Who has ended the step has nothing left to do in it.
  for (int64_t rank : subgroup.members)
    if (late.empty() && rank != group.settings.rank)
      text += "\n  rank " + std::to_string(rank) + kDamaged;
  text += late + "\n  a rank that is only slow needs a longer timeout";
  group.endGroup(Kind::Peer, text);
  return true;
}

/// Asks the caller's hook, no more often than a sleeper looks around.
bool Waiter::isInterruptRequested(Clock::time_point now) {
  if (now - lastAsked < kPeriod)
    return false;
  lastAsked = now;
  if (!isInterrupted())
    return false;
  group.abort("interrupted while it waited");
  return true;
}

bool Waiter::poll(Subgroup &subgroup, bool moves) {
  if (moves)
    still.reset();
  // Looks at peers and at the clock cost: not each time.
  if (++polls % 64 != 0)
    return !group.broken.load(std::memory_order_relaxed);
  ::sched_yield();
  if (polls % 4096 != 0)
    return !group.broken.load(std::memory_order_relaxed);
  Clock::time_point now = Clock::now();
  if (!still)
    still = now;
  return !isInterruptRequested(now) && !group.findTrouble(subgroup) &&
         !isTooLong(subgroup, now - *still);
}

llvm::Error CpuGroup::begin(Subgroup &subgroup, uint64_t digest,
                            llvm::StringRef text) {
  if (llvm::Error error = ready())
    return error;
  subgroup.digest = digest;
  llvm::StringRef told = cutText(text, kTextBytes);
  subgroup.text.assign(told.begin(), told.end());
  subgroup.isCollective = announced != 0;
  uint64_t number = ++subgroup.step;
  Step &step = subgroup.ownMemberRecord().steps[number % kSteps];
  step.number.store(0, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  step.digest.store(digest, std::memory_order_relaxed);
  step.text.put(told);
  step.check.store(checkOf(number, digest, told), std::memory_order_relaxed);
  step.number.store(number, std::memory_order_release);
  return llvm::Error::success();
}

llvm::Error CpuGroup::end(Subgroup &subgroup) {
  if (broken.load(std::memory_order_relaxed))
    return failure();
  if (hasDisagreement(subgroup))
    return failure();
  subgroup.ownMemberRecord().ended.store(subgroup.step,
                                         std::memory_order_release);
  return llvm::Error::success();
}

/// Waits until all members are here. With `failure`, they all learn that this
/// rank's part of the step has gone wrong.
llvm::Error CpuGroup::meet(Subgroup &subgroup, llvm::StringRef failed) {
  MemberRecord &own = subgroup.ownMemberRecord();
  uint64_t point = ++subgroup.meetings;
  if (!failed.empty()) {
    auto &told = own.failed[point % 2];
    told.reason.put(failed);
    told.point.store(point, std::memory_order_release);
  }
  own.met.store(point, std::memory_order_release);
  wakeAll();
  bool all = waiter.rest(subgroup, [&] {
    for (int64_t member = 0; member < subgroup.size(); ++member)
      if (subgroup.memberRecords[member].met.load(std::memory_order_acquire) <
          point)
        return false;
    return true;
  });
  if (!all)
    return failure();
  if (hasDisagreement(subgroup))
    return failure();
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    auto &told = subgroup.memberRecords[member].failed[point % 2];
    bool isOwn = member == subgroup.own;
    if (isOwn ? !failed.empty()
              : told.point.load(std::memory_order_acquire) == point)
      return makeError(Kind::Peer,
                       "rank " + std::to_string(subgroup.members[member]) +
                           ": " + (isOwn ? failed.str() : told.reason.str()));
  }
  return llvm::Error::success();
}

/// All members are told when they have begun this step with different texts.
llvm::Error CpuGroup::agreeOnText(Subgroup &subgroup) {
  if (llvm::Error error = meet(subgroup))
    return error;
  std::string said;
  bool differ = false;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    // It is still there: a member waits for the others twice before its next
    // step, or goes on from here to where all meet.
    const Step *step = findStep(subgroup.memberRecords[member], subgroup.step);
    if (!step && member != subgroup.own) {
      endGroup(Kind::Peer,
               "rank " + std::to_string(subgroup.members[member]) + kDamaged);
      return failure();
    }
    std::string theirs =
        member == subgroup.own ? subgroup.text : step->text.raw();
    if (member != subgroup.own &&
        !isIntact(*step, subgroup.step,
                  step->digest.load(std::memory_order_relaxed), theirs)) {
      endGroup(Kind::Peer,
               "rank " + std::to_string(subgroup.members[member]) + kDamaged);
      return failure();
    }
    differ |= theirs != subgroup.text;
    said += "\n  rank " + std::to_string(subgroup.members[member]) + ": " +
            makeReadable(theirs);
  }
  if (!differ)
    return llvm::Error::success();
  if (llvm::Error error = meet(subgroup))
    return error;
  return makeError(Kind::Disagree,
                   "ranks disagree in step " +
                       std::to_string(static_cast<int64_t>(subgroup.step)) +
                       " of group '" + settings.name + "'" + said +
                       "\n  nothing was done, and the group can still be "
                       "used: make the call again, the same on all ranks");
}

llvm::Error CpuGroup::shareSegment(Subgroup &subgroup, uint64_t bytes,
                                   Segment &made) {
  MemberRecord &first = subgroup.memberRecords[0];
  std::string failed;
  auto note = [&](llvm::Expected<Segment> segment) {
    if (segment)
      made = std::move(*segment);
    else
      failed = llvm::toString(segment.takeError());
  };
  if (subgroup.own == 0) {
    note(Segment::create(bytes, token));
    SegmentName name = made.name();
    first.segmentProcess.store(name.process, std::memory_order_relaxed);
    first.segmentFile.store(name.file, std::memory_order_relaxed);
  }
  if (llvm::Error error = meet(subgroup, failed))
    return error;
  if (subgroup.own != 0) {
    note(Segment::open({first.segmentProcess.load(std::memory_order_relaxed),
                        first.segmentFile.load(std::memory_order_relaxed),
                        bytes, token}));
    if (!failed.empty())
      failed = "the memory that rank " + std::to_string(subgroup.members[0]) +
               " has made cannot be opened; unless files or memory are short, "
               "rank " +
               std::to_string(subgroup.members[0]) + kDamaged + ": " + failed;
  }
  if (llvm::Error error = meet(subgroup, failed))
    return error;
  made.seal();
  return llvm::Error::success();
}
