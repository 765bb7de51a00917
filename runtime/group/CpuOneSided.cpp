//===- CpuOneSided.cpp - One-sided access between processes ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Peers' windows are mapped here: data moves by plain stores and loads, cells
// are atomics, and who sleeps is woken as by a kernel's signals.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CpuGroup.h"
#include "runtime/group/Waiting.h"

#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;
using Clock = std::chrono::steady_clock;

static_assert(sizeof(std::atomic<int64_t>) == sizeof(int64_t) &&
              std::atomic<int64_t>::is_always_lock_free);

static std::atomic<int64_t> &cellAt(const int64_t *cell) {
  return *reinterpret_cast<std::atomic<int64_t> *>(const_cast<int64_t *>(cell));
}

/// Returns the reason of a rank that has given up; empty if it has not.
std::string CpuGroup::giveUpReason(int64_t rank, RankStatus status) const {
  std::string who = "rank " + std::to_string(rank);
  if (status == RankStatus::Damaged)
    return who + kDamaged;
  if (status != RankStatus::Aborted && status != RankStatus::Failed)
    return "";
  return who + " has given up: " + rankRecord(rank).reason.str();
}

/// Why nothing more comes from a rank, and nobody there reads; empty: it may.
std::string CpuGroup::departureReason(int64_t rank) const {
  RankStatus status = rankStatusOf(rank);
  if (status == RankStatus::Left)
    return leaveReason(rank);
  std::string why = giveUpReason(rank, status);
  return why.empty() && isGone(rank) ? deathReason(rank) : why;
}

llvm::Error CpuGroup::checkPeer(int64_t peer) {
  if (llvm::Error error = check())
    return error;
  if (peer == settings.rank)
    return llvm::Error::success();
  // A look at the process costs a system call; one at its seat does not.
  Clock::time_point now = Clock::now();
  if (rankStatusOf(peer) == RankStatus::Member &&
      now - looked[peer].load(std::memory_order_relaxed) < kPeriod)
    return llvm::Error::success();
  looked[peer].store(now, std::memory_order_relaxed);
  std::string why = departureReason(peer);
  if (why.empty())
    return llvm::Error::success();
  // It stays so: the next call says it, too.
  looked[peer].store({}, std::memory_order_relaxed);
  return makeError(Kind::Peer, why);
}

llvm::Error CpuGroup::move(void *to, const void *from, size_t bytes, void *) {
  std::memmove(to, from, bytes);
  return llvm::Error::success();
}

llvm::Error CpuGroup::signalCell(const CellSignal &signal, void *) {
  std::atomic<int64_t> &cell = cellAt(signal.cell);
  if (signal.kind == SignalKind::Set)
    cell.store(signal.value, std::memory_order_release);
  else
    cell.fetch_add(signal.value, std::memory_order_release);
  wakeRank(signal.peer);
  return llvm::Error::success();
}

llvm::Expected<int64_t> CpuGroup::readCell(const int64_t *own) {
  if (llvm::Error error = check())
    return std::move(error);
  return cellAt(own).load(std::memory_order_acquire);
}

/// Why the signal that a wait needs will not come; empty: it may.
std::string CpuGroup::missingSignalReason(int64_t source) const {
  if (source == settings.rank)
    return "";
  if (source >= 0)
    return departureReason(source);
  // Of any rank: who leaves in an orderly way has signaled what it had to,
  // but another may still come.
  int64_t left = 0;
  std::string last;
  for (int64_t rank = 0; rank < settings.ranks; ++rank) {
    if (rank == settings.rank)
      continue;
    std::string why = departureReason(rank);
    if (why.empty())
      continue;
    if (rankStatusOf(rank) != RankStatus::Left)
      return why;
    ++left;
    last = why;
  }
  if (left == 0 || left + 1 < settings.ranks)
    return "";
  return left == 1 ? last : "all other ranks have left the group";
}

llvm::Error CpuGroup::noSignal(const CellWait &wait,
                               llvm::StringRef why) const {
  std::string whose = wait.source < 0 ? std::string("any rank")
                                      : "rank " + std::to_string(wait.source);
  const char *kind = wait.kind == WaitKind::Equal ? "==" : ">=";
  return makeError(
      Kind::Peer,
      llvm::formatv(
          "rank {0} of group '{1}' got no signal from "
          "{2}: {3}\n  cell {4} of the group: observed {5}, expected {6} {7}",
          settings.rank, settings.name, whose, why, wait.number,
          cellAt(wait.cell).load(std::memory_order_relaxed), kind, wait.value)
          .str());
}

llvm::Error CpuGroup::waitCell(const CellWait &wait, void *) {
  if (llvm::Error error = check())
    return error;
  std::atomic<int64_t> &cell = cellAt(wait.cell);
  auto holds = [&](int64_t now) {
    return wait.kind == WaitKind::Equal ? now == wait.value : now >= wait.value;
  };
  // Takes, and so is right once: who only asks whether to sleep uses `holds`.
  auto ready = [&] {
    int64_t now = cell.load(std::memory_order_acquire);
    if (wait.takes)
      while (now >= wait.value &&
             !cell.compare_exchange_weak(now, now - wait.value,
                                         std::memory_order_acq_rel))
        ;
    return holds(now);
  };
  if (spin(ready))
    return llvm::Error::success();
  double patience = wait.timeout > 0 ? wait.timeout : timeout();
  Clock::time_point begun = Clock::now(), asked = begun, lookedAt = {};
  while (!ready()) {
    if (broken.load(std::memory_order_relaxed))
      return failure();
    if (llvm::Error error = checkWait(wait))
      return error;
    Clock::time_point now = Clock::now();
    if (now - lookedAt >= kPeriod) {
      lookedAt = now;
      std::string why = missingSignalReason(wait.source);
      // It may have signaled before it went.
      if (!why.empty())
        return ready() ? llvm::Error::success() : noSignal(wait, why);
    }
    if (now - asked >= kPeriod) {
      asked = now;
      if (isInterrupted())
        return makeError(Kind::Aborted, "interrupted while it waited");
    }
    double left = patience - std::chrono::duration<double>(now - begun).count();
    if (left <= 0)
      return noSignal(
          wait,
          llvm::formatv("the timeout of {0:f1} s has passed", patience).str());
    auto most = std::chrono::duration<double>(kPeriod).count();
    sleepUntilWoken(
        [&] {
          return holds(cell.load(std::memory_order_acquire)) ||
                 wait.window->isReleased || isEnding;
        },
        std::chrono::microseconds(int64_t(std::min(left, most) * 1e6) + 1));
  }
  return llvm::Error::success();
}
