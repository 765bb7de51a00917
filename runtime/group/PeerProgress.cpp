//===- PeerProgress.cpp - What a thread does for all peers ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves messages, notices peers that have left or died, and sleeps until there
// is something to do.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPointImpl.h"

#include "runtime/group/Process.h"
#include "runtime/group/Waiting.h"
#include "runtime/support/FatalErrors.h"
#include "runtime/support/StartThread.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <climits>

#include <sched.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;
using std::chrono::microseconds;

/// How long a dead rank that was never met may belong to an earlier group whose
/// successor has yet to start. Processes of one job start within seconds of
/// each other.
static constexpr std::chrono::seconds kGrace(5);
/// How often the thread checks whether another one waits in its place.
static constexpr std::chrono::milliseconds kStandByPeriod(2);

/// Moves what can be moved; whether anything was. A failure stops everything.
bool PointToPoint::progress() {
  try {
    return moveAll();
  } catch (...) {
    stopWithoutMemory();
    return true;
  }
}

/// What a peer has sent before it was gone is here, whether or not this rank
/// has come to know it.
bool PointToPoint::moveAll() {
  bool moved = false;
  for (int64_t other = 0; other < ranks && underWay; ++other) {
    Peer &peer = peers[other];
    if (other == rank || !peer.broken.empty() ||
        (!peer.rings.data() && !peer.gone))
      continue;
    if (peer.rings.data()) {
      Kind kind = Kind::Peer;
      if (std::string why = refusalReason(other, kind); !why.empty()) {
        dropPeer(other, std::move(why), kind);
        moved = true;
        continue;
      }
      moved |= push(other);
    }
    moved |= pull(other);
  }
  if (std::exchange(hasFinished, false))
    wakeOwn();
  return moved;
}

void PointToPoint::end(Transfer &transfer, Transfer::State state) {
  transfer.state.store(state, std::memory_order_release);
  --underWay;
  hasFinished = true;
}

void PointToPoint::finish(Transfer &transfer) { end(transfer, Transfer::Done); }

void PointToPoint::fail(const TransferPtr &transfer, Kind kind,
                        llvm::StringRef why) {
  if (transfer->isOver())
    return;
  transfer->kind = kind;
  transfer->why = why.str();
  end(*transfer, Transfer::Failed);
}

/// Also fails receives from any rank.
void PointToPoint::failReceives(Kind kind, llvm::StringRef why) {
  for (const TransferPtr &one : receives)
    fail(one, kind, why);
  receives.clear();
}

/// Ends all that goes between the two.
void PointToPoint::dropPeer(int64_t other, std::string why, Kind kind) {
  Peer &peer = peers[other];
  if (peer.broken.empty()) {
    peer.broken = std::move(why);
    peer.kind = kind;
  }
  auto lose = [&](const TransferPtr &one) {
    fail(one, peer.kind, peer.broken);
  };
  llvm::for_each(peer.sends, lose);
  llvm::for_each(peer.untaken, lose);
  if (peer.incoming && peer.incoming->receive)
    lose(peer.incoming->receive);
  receives.remove_if([&](const TransferPtr &one) {
    if (one->message.peer != other)
      return false;
    lose(one);
    return true;
  });
  peer.sends.clear();
  peer.untaken.clear();
  peer.incoming.reset();
  peer.hasBegun = false;
  wakeOwn();
}

/// Why a peer takes nothing from this rank any more; empty: it does.
std::string PointToPoint::refusalReason(int64_t other, Kind &kind) const {
  const Ring &theirs = ringOf(peers[other].rings, rank);
  if (!theirs.refused.load(std::memory_order_acquire))
    return "";
  kind = asKind(int64_t(theirs.kind.load(std::memory_order_relaxed)));
  std::string why = theirs.why.str();
  if (why.empty())
    return named(other) + kDamaged;
  return llvm::StringRef(why).contains(named(other))
             ? why
             : named(other) + " no longer receives: " + why;
}

/// Why a peer is there no more; empty: it is, as far as can be seen.
std::string PointToPoint::departureReason(int64_t other, Kind &kind) const {
  const Peer &peer = peers[other];
  kind = Kind::Peer;
  if (peer.mailbox.data()) {
    const RankMailbox &mailbox = mailboxOf(peer.mailbox);
    RankStatus status = readRankStatus(mailbox.status);
    if (status == RankStatus::Aborted)
      kind = Kind::Aborted;
    if (status == RankStatus::Left)
      return leaveReason(other);
    if (status != RankStatus::Member) {
      std::string reason = mailbox.reason.str();
      return llvm::StringRef(reason).contains(named(other))
                 ? reason
                 : named(other) + kDamaged;
    }
  }
  if (peer.process && hasEnded(peer.process, peer.processFile))
    return named(other) + " " + describeDeath(peer.process, peer.processFile);
  return peer.process && peer.isClosed ? leaveReason(other) : "";
}

/// That a rank has left the group, and which other one has died: a rank leaves
/// once it has seen that, and is then not the one at fault.
std::string PointToPoint::leaveReason(int64_t other) const {
  std::string text = named(other) + " has left the group";
  for (int64_t third = 0; third < ranks; ++third) {
    const Peer &peer = peers[third];
    bool hasLeft =
        peer.isClosed ||
        (peer.mailbox.data() &&
         readRankStatus(mailboxOf(peer.mailbox).status) != RankStatus::Member);
    if (third != rank && third != other && !hasLeft && peer.process &&
        hasEnded(peer.process, peer.processFile))
      return text + "; " + named(third) + " " +
             describeDeath(peer.process, peer.processFile);
  }
  return text;
}

/// Whether who is gone is of this group. One that was never met may have
/// greeted this rank, or have come anew, until a look that began later.
bool PointToPoint::isCertain(const Peer &peer) const {
  if (peer.hasMet)
    return true;
  return peer.lastLook > *peer.gone &&
         (isConfirmed || Clock::now() - *peer.gone > kGrace);
}

/// Whether peers are there: what has come from those that are not is taken
/// before.
void PointToPoint::examine() {
  int64_t gone = 0;
  std::string last;
  for (int64_t other = 0; other < ranks; ++other) {
    Peer &peer = peers[other];
    if (other == rank)
      continue;
    if (!peer.broken.empty()) {
      ++gone;
      last = peer.broken;
      continue;
    }
    Kind kind = Kind::Peer;
    std::string why = departureReason(other, kind);
    if (why.empty())
      continue;
    if (!peer.gone)
      peer.gone = Clock::now();
    progress();
    if (!isCertain(peer))
      continue;
    if (kind == Kind::Aborted || isNeeded(other))
      dropPeer(other, why, kind);
    ++gone;
    last = why;
  }
  // Nobody is left for those of any rank.
  if (gone + 1 < ranks)
    return;
  failReceives(Kind::Peer, last);
}

static void ring(RankMailbox &mailbox) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (mailbox.sleepers.load(std::memory_order_relaxed) == 0)
    return;
  mailbox.bell.fetch_add(1, std::memory_order_release);
  wakeAt(mailbox.bell, 1);
}

void PointToPoint::wakePeer(const Peer &peer) {
  if (peer.mailbox.data())
    ring(mailboxOf(peer.mailbox));
}

void PointToPoint::wakeOwn() {
  if (mailbox.data())
    ring(mailboxOf(mailbox));
}

bool PointToPoint::look(const Transfer &transfer) {
  if (transfer.isOver())
    return true;
  std::lock_guard<std::mutex> lock(mutex);
  progress();
  return transfer.isOver();
}

/// Sleeps until somebody wakes this rank, unless there is something to move or
/// `transfer` is over.
void PointToPoint::sleepUntilWoken(const Transfer *transfer,
                                   microseconds most) {
  RankMailbox &own = mailboxOf(mailbox);
  own.sleepers.fetch_add(1, std::memory_order_seq_cst);
  uint32_t seen = own.bell.load(std::memory_order_acquire);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool awake = over;
  {
    std::lock_guard<std::mutex> lock(mutex);
    awake |= progress() || (transfer ? transfer->isOver() : !underWay);
    // Peers that are not found yet wake nobody.
    for (int64_t other = 0; other < ranks; ++other)
      if (isLookedFor(other))
        most = std::min(most, peers[other].pause);
  }
  if (!awake)
    sleepAt(own.bell, seen, 1, most.count());
  own.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

/// Somebody else moves messages from now on, as long as nobody waits. It is not
/// told of each one: mostly it is awake.
void PointToPoint::attend() {
  if (!attendant.joinable())
    // Without a thread, calls that wait or test move the messages.
    attendant = startThread([this] {
      if (!catchFailure([this] { run(); }))
        return;
      std::lock_guard<std::mutex> lock(mutex);
      stopWithoutMemory();
    });
  else if (isIdle)
    changed.notify_all();
}

void PointToPoint::run() {
  std::unique_lock<std::mutex> lock(mutex);
  Clock::time_point examined = Clock::now();
  while (!over) {
    isIdle = !underWay;
    if (isIdle)
      changed.wait(lock, [&] { return over || underWay; });
    isIdle = false;
    // Whoever has begun a transfer mostly waits for it next.
    changed.wait_for(lock, kStandByPeriod, [&] { return over.load(); });
    while (underWay && !waiting && !over) {
      lock.unlock();
      findPeers();
      sleepUntilWoken(nullptr, kPeriod);
      lock.lock();
      if (Clock::now() - examined < kPeriod)
        continue;
      examined = Clock::now();
      examine();
    }
  }
}
