//===- CpuFailure.cpp - How a group on the CPU fails ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Notices ranks that disagree, leave or die, and ends the group with the
// reason.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CpuGroup.h"

#include "runtime/group/Process.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <csignal>

#include <poll.h>
#include <sys/wait.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

bool CpuGroup::isForked() const { return forks != countForks(); }

llvm::Error CpuGroup::failure() const {
  std::lock_guard<std::mutex> guard(lock);
  return llvm::make_error<GroupError>(failureKind, failureText);
}

/// The error for later calls, which are not the cause of the failure.
llvm::Error CpuGroup::over() const {
  std::lock_guard<std::mutex> guard(lock);
  return makeError(failureKind, "group '" + settings.name +
                                    "' can no longer be used: " + failureText +
                                    "\n  make a new group of all ranks, or "
                                    "shrink this one to those that are left");
}

llvm::Error CpuGroup::check() const {
  if (isForked())
    return makeError(Kind::Usage,
                     "this process was forked after group '" + settings.name +
                         "' was made: only the parent is a member; make a "
                         "group in the child");
  if (broken.load(std::memory_order_relaxed))
    return ended() ? over() : failure();
  return llvm::Error::success();
}

llvm::Error CpuGroup::poll() {
  if (llvm::Error error = check())
    return error;
  findTrouble(world);
  return check();
}

/// Ends the group on this rank; the others hear of it when they wait.
void CpuGroup::endGroup(Kind kind, std::string message, RankStatus status,
                        uint64_t failedIn) {
  {
    std::lock_guard<std::mutex> guard(lock);
    // Who gives up does not want to go on, either.
    if (broken && !(failedStep && status == RankStatus::Aborted))
      return;
    failureKind = kind;
    failureText = message;
    failedStep = failedIn;
    mustRecover = failedIn != 0;
    broken = true;
    if (running)
      running->store(1, std::memory_order_relaxed);
    ownRecord().failedStep.store(failedIn, std::memory_order_relaxed);
    ownRecord().reason.put(message);
    ownRecord().status.store(status, std::memory_order_release);
  }
  wakeAll();
}

/// Of a step of collectives it can be repaired, if this rank has not ended it.
void CpuGroup::disagree(const Subgroup &subgroup, std::string message) {
  bool isIn = &subgroup == &world && subgroup.isCollective &&
              subgroup.ownMemberRecord().ended.load(std::memory_order_relaxed) <
                  subgroup.step;
  endGroup(Kind::Disagree, std::move(message), RankStatus::Failed,
           isIn ? subgroup.step : 0);
}

void CpuGroup::abort(llvm::StringRef reason) {
  if (isForked())
    return;
  endGroup(Kind::Aborted,
           "group '" + settings.name + "' was aborted on rank " +
               std::to_string(settings.rank) +
               (reason.empty() ? std::string() : ": " + reason.str()),
           RankStatus::Aborted);
}

void CpuGroup::endWaits() {
  Group::endWaits();
  wakeRank(settings.rank);
}

/// Whether the process of `rank` has ended.
bool CpuGroup::isGone(int64_t rank) const {
  int process = processOf(rank);
  return rank != settings.rank && process > 0 &&
         hasEnded(process, processFile(rank));
}

/// The process of `rank`; 0 or less: it has not said.
int CpuGroup::processOf(int64_t rank) const {
  return static_cast<size_t>(rank) < numbers.size()
             ? numbers[rank]
             : rankRecord(rank).process.load();
}

/// By which the process of `rank` is watched, or -1.
int CpuGroup::processFile(int64_t rank) const {
  return static_cast<size_t>(rank) < processes.size() ? processes[rank] : -1;
}

/// Describes the end of a rank's process.
std::string CpuGroup::deathReason(int64_t rank) const {
  return "rank " + std::to_string(rank) + " " +
         describeDeath(processOf(rank), processFile(rank));
}

/// That a rank has left the group, and which other one has died or given up: a
/// rank leaves once it has seen that, and is then not the one at fault.
std::string CpuGroup::leaveReason(int64_t rank) const {
  std::string text = "rank " + std::to_string(rank) + " has left the group";
  for (int64_t other = 0; other < settings.ranks; ++other) {
    if (other == rank || other == settings.rank ||
        rankStatusOf(other) == RankStatus::Left)
      continue;
    if (std::string why = departureReason(other); !why.empty())
      return text + "; " + why;
  }
  return text;
}

std::string CpuGroup::describeRank(const Subgroup &subgroup,
                                   int64_t member) const {
  const MemberRecord &place = subgroup.memberRecords[member];
  std::string text = "rank " + std::to_string(subgroup.members[member]);
  uint64_t last = 0;
  for (const Step &step : place.steps)
    last = std::max(last, step.number.load(std::memory_order_acquire));
  const Step *step = last ? findStep(place, last) : nullptr;
  if (!step)
    return text + " has not begun";
  bool ended = place.ended.load(std::memory_order_acquire) >= last;
  return text + (ended ? " has ended step " : " is in step ") +
         std::to_string(static_cast<int64_t>(last)) + " (" + step->text.str() +
         ")";
}

/// Ends the group when members take another step than this rank, with both
/// sides' texts, or when somebody has written over the step of one.
bool CpuGroup::hasDisagreement(const Subgroup &subgroup) {
  std::string text;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    const Step *step = findStep(subgroup.memberRecords[member], subgroup.step);
    if (member == subgroup.own || !step)
      continue;
    uint64_t digest = step->digest.load(std::memory_order_relaxed);
    if (digest == subgroup.digest)
      continue;
    std::string said = step->text.raw();
    bool whole = isIntact(*step, subgroup.step, digest, said);
    // A member that owes nobody anything may be far ahead, and have written its
    // next step over this one meanwhile.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (step->number.load(std::memory_order_relaxed) != subgroup.step)
      continue;
    if (!whole) {
      endGroup(Kind::Peer,
               "rank " + std::to_string(subgroup.members[member]) + kDamaged);
      return true;
    }
    text +=
        "\n  rank " + std::to_string(subgroup.members[member]) + ": " +
        makeReadable(said) +
        (said == subgroup.text ? ", with other arithmetic, source or options"
                               : "");
  }
  if (text.empty())
    return false;
  disagree(subgroup,
           "ranks disagree in step " +
               std::to_string(static_cast<int64_t>(subgroup.step)) +
               " of group '" + settings.name + "'\n  rank " +
               std::to_string(settings.rank) + ": " + subgroup.text + text +
               "\n  all ranks must make the same calls in the same order");
  return true;
}

/// Looks for a reason why this rank waits in vain. Those who have ended this
/// step owe it nothing more.
bool CpuGroup::findTrouble(const Subgroup &subgroup) {
  if (broken.load(std::memory_order_relaxed))
    return true;
  if (hasDisagreement(subgroup))
    return true;
  for (int64_t member = 0; member < subgroup.size(); ++member) {
    int64_t rank = subgroup.members[member];
    if (rank == settings.rank ||
        subgroup.memberRecords[member].ended.load(std::memory_order_acquire) >=
            subgroup.step)
      continue;
    RankStatus status = rankStatusOf(rank);
    std::string why = giveUpReason(rank, status);
    if (!why.empty()) {
      // It may be what that rank has seen, since.
      if (hasDisagreement(subgroup))
        return true;
      endGroup(status == RankStatus::Aborted ? Kind::Aborted : Kind::Peer, why);
      return true;
    }
    // A rank that goes in an orderly way may have ended the step since.
    bool left = status == RankStatus::Left;
    if (!left && !(status == RankStatus::Member && isGone(rank)))
      continue;
    if (subgroup.memberRecords[member].ended.load(std::memory_order_acquire) >=
        subgroup.step)
      continue;
    endGroup(Kind::Peer, (left ? leaveReason(rank) : deathReason(rank)) + "; " +
                             describeRank(subgroup, member));
    return true;
  }
  return false;
}
