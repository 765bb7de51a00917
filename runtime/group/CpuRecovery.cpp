//===- CpuRecovery.cpp - Ranks that disagreed go on -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of a collective in which ranks disagree fails on all of them, and has
// touched nothing that outlasts it but memory of the collectives' own kernels.
// So they can go on, where each has failed in that very step: a rank that has
// ended it in peace would be one call ahead of the others.
//
//   1. A rank that makes its next step says in its seat that it has returned
//      from the failed one, and waits until all have. From then on nobody runs
//      a kernel: no rank reads or writes an array of another, or a channel.
//   2. It makes its own part new: where it met others, collectives' kernels.
//      Then it says so, and waits until all have. From then on all is as after
//      the step before, and steps are counted on.
//
// A rank that cannot go on says why there (it has failed otherwise, has left or
// died, or does not come in time), and so do all that wait for it.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CpuGroup.h"
#include "runtime/group/CpuKernel.h"
#include "runtime/group/Waiting.h"

#include "llvm/Support/FormatVariadic.h"

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;
using Clock = std::chrono::steady_clock;

std::optional<std::string> CpuGroup::ended() const {
  std::lock_guard<std::mutex> guard(lock);
  if (!broken || failedStep)
    return std::nullopt;
  return failureText;
}

/// Before a new step.
llvm::Error CpuGroup::ready() {
  if (isForked() || !broken.load(std::memory_order_relaxed))
    return check();
  return recover();
}

llvm::Error CpuGroup::recover() {
  if (isForked())
    return check();
  uint64_t step = 0;
  {
    std::lock_guard<std::mutex> guard(lock);
    if (!broken)
      return llvm::Error::success();
    step = failedStep;
    // From here on `abort` is heard, and sleepers sleep.
    if (step)
      broken = false;
  }
  if (!step)
    return over();
  std::string why = rendezvousAgain(step);
  std::lock_guard<std::mutex> guard(lock);
  if (broken) // By `abort`.
    return llvm::make_error<GroupError>(failureKind, failureText);
  failedStep = 0;
  mustRecover = false;
  if (why.empty()) {
    ++recoveries;
    return llvm::Error::success();
  }
  broken = true;
  failureKind = Kind::Peer;
  failureText += "\n  the ranks could not recover: " + why;
  ownRecord().failedStep.store(0, std::memory_order_release);
  // Those who have met again already wait for this rank in their next step.
  ownRecord().reason.put(failureText);
  ownRecord().status.store(RankStatus::Failed, std::memory_order_release);
  wakeAll();
  return llvm::make_error<GroupError>(failureKind, failureText);
}

/// Returns why ranks cannot go on; "": they do.
std::string CpuGroup::rendezvousAgain(uint64_t step) {
  ownRecord().readyStep.store(step, std::memory_order_release);
  std::string why = awaitRecords(&RankRecord::readyStep, step);
  if (!why.empty() || broken)
    return why;
  startAnew(step);
  return awaitRecords(&RankRecord::recoveredStep, step);
}

/// Waits until all ranks have come so far; returns why they will not.
std::string CpuGroup::awaitRecords(RecordWord word, uint64_t step) {
  wakeAll();
  auto isLate = [&](int64_t rank) {
    return (rankRecord(rank).*word).load(std::memory_order_acquire) < step;
  };
  auto ready = [&] {
    for (int64_t rank = 0; rank < settings.ranks; ++rank)
      if (isLate(rank))
        return false;
    return true;
  };
  if (spin(ready))
    return "";
  Clock::time_point begun = Clock::now();
  while (!ready() && !broken.load(std::memory_order_relaxed)) {
    std::chrono::duration<double> waited = Clock::now() - begun;
    for (int64_t rank = 0; rank < settings.ranks; ++rank) {
      std::string why =
          isLate(rank) ? recoveryFailureReason(rank, step, word) : "";
      if (why.empty() && waited.count() > timeout() && isLate(rank))
        why = llvm::formatv("rank {0} has not made its next call for {1:f1} s",
                            rank, timeout());
      // It may have come since.
      if (!why.empty() && isLate(rank))
        return why;
    }
    if (isInterrupted())
      abort("interrupted while it waited");
    sleepUntilWoken(ready, kPeriod);
  }
  return "";
}

/// Why a rank does not come so far; "": it may.
std::string CpuGroup::recoveryFailureReason(int64_t rank, uint64_t step,
                                            RecordWord word) const {
  const RankRecord &peer = rankRecord(rank);
  RankStatus status = readRankStatus(peer.status);
  bool hasFailedToo = status == RankStatus::Failed &&
                      peer.failedStep.load(std::memory_order_relaxed) == step;
  if (status != RankStatus::Member && !hasFailedToo)
    return departureReason(rank);
  if (isGone(rank))
    return deathReason(rank);
  uint64_t ended =
      world.memberRecords[rank].ended.load(std::memory_order_acquire);
  if (status == RankStatus::Member && word == &RankRecord::readyStep &&
      ended >= step)
    return "rank " + std::to_string(rank) +
           " had ended that step before the others began it, and is a call "
           "ahead of them";
  return "";
}

/// What this rank has of the world, as after a step that all have ended.
void CpuGroup::startAnew(uint64_t step) {
  MemberRecord &own = world.ownMemberRecord();
  world.meetings = 0;
  own.met.store(0, std::memory_order_relaxed);
  for (auto &told : own.failed)
    told.point.store(0, std::memory_order_relaxed);
  own.ended.store(step, std::memory_order_relaxed);
  for (auto it = kernels.begin(); it != kernels.end();) {
    CpuKernel &kernel = *it->second;
    if (&kernel.getSubgroup() != &world || !kernel.isOfCollectives()) {
      ++it;
      continue;
    }
    kernel.releaseMemory();
    it = kernels.erase(it);
  }
  // Other ranks' kernels may have been anywhere.
  world.touched = world.arenaBytes;
  waiter.reset();
  // Who held it has left its kernel without giving it back.
  if (settings.rank == 0)
    board().lock.store(0, std::memory_order_relaxed);
  RankStatus failed = RankStatus::Failed;
  ownRecord().status.compare_exchange_strong(failed, RankStatus::Member);
  ownRecord().recoveredStep.store(step, std::memory_order_release);
}
