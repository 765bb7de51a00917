//===- PointToPoint.cpp - Sends and receives on the CPU -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The beginning and end of a rank, and its transfers.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPointImpl.h"

#include "runtime/group/Process.h"
#include "runtime/group/Waiting.h"
#include "runtime/support/Rendezvous.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>

#include <unistd.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;
using std::chrono::microseconds;

/// How long the destructor waits for a thread that reads the store.
static constexpr std::chrono::seconds kLastAnswer(2);
/// Why all messages are given up where memory has run out: short enough for a
/// std::string that allocates nothing.
static constexpr const char *kNoMemory = "out of memory";

Ring &PointToPoint::ringOf(const Segment &segment, int64_t source) const {
  return reinterpret_cast<Ring *>(segment.data())[source];
}

char *PointToPoint::bytesOf(const Segment &segment, int64_t source) const {
  return segment.data() + headsOf(ranks) + source * kRingBytes;
}

PointToPoint::PointToPoint(int64_t rank, int64_t ranks,
                           std::unique_ptr<Store> store)
    : rank(rank), ranks(ranks), store(std::move(store)), process(::getpid()),
      peers(ranks) {}

llvm::Expected<std::unique_ptr<PointToPoint>>
PointToPoint::create(const std::string &name, int64_t rank, int64_t ranks,
                     std::unique_ptr<Store> store) {
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return makeError(Kind::Usage, llvm::formatv("{0} is not one of {1} ranks",
                                                named(rank), ranks));
  std::unique_ptr<PointToPoint> made(
      new PointToPoint(rank, ranks, std::move(store)));
  if (llvm::Error error = made->announce(name))
    return std::move(error);
  return std::move(made);
}

llvm::Error PointToPoint::announce(const std::string &name) {
  prefix = "commsir/" + name + "/sends/";
  number = Rendezvous::draw();
  peers[rank].host = describeHost();
  auto made = Segment::create(kMailboxBytes, number);
  if (!made)
    return made.takeError();
  mailbox = std::move(*made);
  mailboxOf(mailbox).magic = kMail;
  mailboxOf(mailbox).number.put(number);
  mailboxOf(mailbox).status.store(RankStatus::Member,
                                  std::memory_order_release);
  return store->set(prefix + "here/" + std::to_string(rank),
                    llvm::formatv("{0} {1} {2} {3}", number, process,
                                  mailbox.name().file, peers[rank].host)
                        .str());
}

bool PointToPoint::isForked() const { return ::getpid() != process; }

PointToPoint::~PointToPoint() {
  if (isForked()) {
    // The parent's thread is not there to be joined, or to leave its wait.
    new (&attendant) std::thread();
    forgetWaiters(changed);
    for (Peer &peer : peers)
      if (peer.processFile >= 0)
        ::close(peer.processFile);
    return;
  }
  llvm::consumeError(leave(0));
  {
    std::lock_guard<std::mutex> lock(mutex);
    over = true;
    changed.notify_all();
  }
  wakeOwn();
  if (attendant.joinable())
    attendant.join();
  for (Peer &peer : peers)
    if (peer.processFile >= 0)
      ::close(peer.processFile);
}

void PointToPoint::stop(RankStatus status, const std::string &reason) {
  if (isForked())
    return;
  std::lock_guard<std::mutex> lock(mutex);
  stopHere(status, reason, reason, Kind::Aborted);
}

/// Ends all transfers. Only the first reason counts.
void PointToPoint::stopHere(RankStatus status, llvm::StringRef toPeers,
                            const std::string &reason, Kind kind) {
  if (!stopped.empty())
    return;
  stopped = reason;
  stoppedKind = kind;
  if (mailbox.data()) {
    mailboxOf(mailbox).reason.put(toPeers);
    mailboxOf(mailbox).status.store(status, std::memory_order_release);
  }
  for (int64_t peer = 0; peer < ranks; ++peer)
    if (peer != rank)
      dropPeer(peer, stopped, kind);
  failReceives(kind, stopped);
  for (const Peer &peer : peers)
    wakePeer(peer);
  wakeOwn();
}

/// What was begun may be half done, and its memory is the caller's: nothing
/// goes on. Allocates nothing itself.
void PointToPoint::stopWithoutMemory() {
  char text[80];
  (void)std::snprintf(text, sizeof text, "rank %" PRId64 " has given up: %s",
                      rank, kNoMemory);
  stopHere(RankStatus::Aborted, text, kNoMemory, Kind::Limit);
}

void PointToPoint::abort(llvm::StringRef reason) {
  stop(RankStatus::Aborted,
       named(rank) + " has given up: " +
           (reason.empty() ? "it was aborted" : reason.str()));
}

llvm::Error PointToPoint::leave(double seconds) {
  flush(seconds);
  stop(RankStatus::Left, named(rank) + " has left the group");
  if (isForked())
    return llvm::Error::success();
  // Nobody asks it any more who has not begun to.
  std::unique_lock<std::timed_mutex> asking(storeMutex, kLastAnswer);
  if (asking)
    return llvm::Error::success();
  return makeError(Kind::Peer, "the store does not answer");
}

llvm::Error PointToPoint::check(const Message &message, bool sends) const {
  if (isForked())
    return makeError(Kind::Usage, "this process was forked after the group was "
                                  "made: only the parent is a member");
  if (message.peer == rank)
    return makeError(Kind::Usage, named(rank) + " is this one: copy the data");
  if (message.peer >= ranks || message.peer < (sends ? 0 : -1))
    return makeError(Kind::Usage, llvm::formatv("there is no {0} among {1}",
                                                named(message.peer), ranks));
  if (message.what.size() >= kWhatBytes)
    return makeError(Kind::Usage, "'" + message.what + "' is too long");
  return llvm::Error::success();
}

llvm::Expected<TransferPtr> PointToPoint::begin(Message message, bool sends) {
  if (llvm::Error error = check(message, sends))
    return std::move(error);
  TransferPtr made(new Transfer(std::move(message), sends));
  std::lock_guard<std::mutex> lock(mutex);
  if (!stopped.empty())
    return makeError(stoppedKind, explain(stopped));
  if (!rings.data()) {
    auto segment = Segment::create(headsOf(ranks) + ranks * kRingBytes, number);
    if (!segment)
      return segment.takeError();
    rings = std::move(*segment);
  }
  ++underWay;
  try {
    enqueue(made);
  } catch (...) {
    stopWithoutMemory();
    fail(made, Kind::Limit, kNoMemory);
  }
  if (!made->isOver()) {
    progress();
    attend();
  }
  return made;
}

void PointToPoint::enqueue(const TransferPtr &made) {
  int64_t peer = made->message.peer;
  if (!made->sends && takeUnexpected(made))
    return;
  if (peer >= 0 && !peers[peer].broken.empty())
    fail(made, peers[peer].kind, peers[peer].broken);
  else if (made->sends)
    peers[peer].sends.push_back(made);
  else
    receives.push_back(made);
}

llvm::Expected<TransferPtr> PointToPoint::send(Message message) {
  return begin(std::move(message), /*sends=*/true);
}

llvm::Expected<TransferPtr> PointToPoint::receive(Message message) {
  return begin(std::move(message), /*sends=*/false);
}

llvm::Error PointToPoint::outcome(const Transfer &transfer) const {
  if (transfer.state.load(std::memory_order_acquire) == Transfer::Failed)
    return makeError(transfer.kind, explain(transfer.why));
  return llvm::Error::success();
}

/// The text of a reason, which is short where memory has run out.
std::string PointToPoint::explain(const std::string &why) const {
  return why != kNoMemory
             ? why
             : named(rank) + " ran out of memory while it moved messages, "
                             "and has given them up: send and receive less "
                             "at once, and make the group anew";
}

bool PointToPoint::test(const Transfer &transfer) {
  return isForked() || look(transfer);
}

std::string PointToPoint::describe(const Transfer &transfer) const {
  const Message &message = transfer.message;
  return llvm::formatv(
      "{0} of {1} {2} {3} (tag {4})", transfer.sends ? "send" : "receive",
      message.what, transfer.sends ? "to" : "from",
      message.peer < 0 ? std::string("any rank") : named(message.peer),
      message.tag);
}

/// Takes a transfer back. In the middle of a message its other side is told.
void PointToPoint::giveUp(Transfer &transfer) {
  auto isIt = [&](const TransferPtr &one) { return one.get() == &transfer; };
  TransferPtr kept;
  auto take = [&](auto &list) {
    if (auto it = llvm::find_if(list, isIt); it != list.end()) {
      kept = *it;
      list.erase(it);
    }
  };
  take(receives);
  for (int64_t other = 0; other < ranks && !kept; ++other) {
    Peer &peer = peers[other];
    bool isHalf =
        (peer.incoming && isIt(peer.incoming->receive)) ||
        (peer.hasBegun && !peer.sends.empty() && isIt(peer.sends.front()));
    if (isHalf)
      return refuse(other,
                    named(rank) + " gave up in the middle of a " +
                        describe(transfer),
                    Kind::Peer);
    take(peer.sends);
    take(peer.untaken);
  }
  if (kept)
    fail(kept, Kind::Peer, "it was given up");
}

llvm::Error PointToPoint::wait(Transfer &transfer, double seconds) {
  if (isForked())
    return makeError(Kind::Usage, "this process was forked after the group was "
                                  "made: only the parent is a member");
  struct Waiting {
    explicit Waiting(std::atomic<int> &count) : count(count) { ++count; }
    ~Waiting() { --count; }
    std::atomic<int> &count;
  } scope(waiting);
  if (spin([&] { return look(transfer); }))
    return outcome(transfer);
  Clock::time_point begun = Clock::now(), asked = begun;
  while (!look(transfer)) {
    Clock::time_point now = Clock::now();
    double left = seconds - std::chrono::duration<double>(now - begun).count();
    bool isInterruption = false;
    if (now - asked >= kPeriod || left <= 0) {
      asked = now;
      isInterruption = isInterrupted();
      std::lock_guard<std::mutex> lock(mutex);
      examine();
      if (transfer.isOver())
        break;
      std::string what = describe(transfer);
      if (isInterruption || left <= 0)
        giveUp(transfer);
      if (isInterruption)
        return makeError(Kind::Aborted, "interrupted in a " + what);
      if (left <= 0)
        return makeError(Kind::Peer,
                         llvm::formatv("Timed out waiting {0:f1} s for a {1}: "
                                       "the other side has not come{2}",
                                       seconds, what,
                                       foreignTextOf(transfer.message.peer)));
    }
    findPeers();
    auto most = std::chrono::duration_cast<microseconds>(kPeriod);
    sleepUntilWoken(
        &transfer,
        std::min(most, microseconds(static_cast<int64_t>(left * 1e6) + 1)));
  }
  return outcome(transfer);
}

/// Waits until what is sent is in the rings of those who receive it.
void PointToPoint::flush(double seconds) {
  auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  for (Clock::time_point examined; !isForked() && Clock::now() < deadline;) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (Clock::now() - examined >= kPeriod) {
        examined = Clock::now();
        examine();
      }
      if (llvm::all_of(peers,
                       [](const Peer &peer) { return peer.sends.empty(); }))
        return;
    }
    if (isInterrupted())
      return;
    findPeers();
    sleepUntilWoken(nullptr, kPeriod);
  }
}
