//===- PeerMeeting.cpp - How two ranks find each other --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ranks find each other by these keys of the store, below the name of the
// group, where NUMBER is one that a rank draws:
//
//   here/RANK      "NUMBER PROCESS FILE HOST", once a rank has begun; the file
//                  is its office. Another text is of a rank that shares no
//                  memory with others
//   to/RANK/PEER   what PEER says to RANK: "NUMBER NUMBER PROCESS FILE BYTES",
//                  its own number, RANK's as PEER has read it, its rings
//
// A store may hold what earlier groups of the name have left. A rank that is
// answered with its own number is answered by its peer, and not by one of
// those.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPointImpl.h"

#include "runtime/group/Process.h"
#include "runtime/support/Rendezvous.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

#include <unistd.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;
using std::chrono::microseconds;

/// The longest pause between looks into the store.
static constexpr microseconds kLongest(5000);
/// While a rank is waited for that has not begun, how long the store is asked
/// at a time; one that knows nothing after half of it does not answer.
static constexpr double kAsk = 0.02;

/// Something is under way with that rank.
bool PointToPoint::isNeeded(int64_t other) const {
  const Peer &peer = peers[other];
  return !peer.sends.empty() || !peer.untaken.empty() || peer.incoming ||
         llvm::any_of(receives, [&](const TransferPtr &one) {
           return one->message.peer == other;
         });
}

/// Whether a peer is to be found, and is not yet.
bool PointToPoint::isLookedFor(int64_t other) const {
  const Peer &peer = peers[other];
  return other != rank && !peer.hasMet && peer.broken.empty() &&
         (isNeeded(other) || isWanted(other));
}

/// Looks into the store for peers, without the lock: a store may not answer for
/// long. One thread does.
void PointToPoint::findPeers() {
  std::unique_lock<std::timed_mutex> asking(storeMutex, std::try_to_lock);
  if (!asking)
    return;
  for (int64_t other = 0; other < ranks; ++other) {
    Clock::time_point now = Clock::now();
    Peer &peer = peers[other];
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!stopped.empty() || !isLookedFor(other) || now < peer.nextLook)
        continue;
      peer.nextLook = now + peer.pause;
      peer.pause = std::min(2 * peer.pause, kLongest);
    }
    llvm::consumeError(readHere(other, 0));
    greet(other);
    auto record = store->get(
        llvm::formatv("{0}to/{1}/{2}", prefix, rank, other).str(), 0);
    std::lock_guard<std::mutex> lock(mutex);
    peer.lastLook = now;
    if (!record)
      llvm::consumeError(record.takeError());
    else if (peer.broken.empty())
      attach(other, *record);
  }
}

/// Reads who the peer is, and where.
llvm::Error PointToPoint::readHere(int64_t other, double seconds) {
  auto said = store->get(prefix + "here/" + std::to_string(other), seconds);
  if (!said)
    return said.takeError();
  std::lock_guard<std::mutex> lock(mutex);
  Peer &peer = peers[other];
  peer.foreignHere = visit(other, *said) ? "" : describeForeign(*said, other);
  return peer.foreignHere.empty() ? llvm::Error::success()
                                  : makeError(Kind::Peer, peer.foreignHere);
}

/// Opens the mailbox of the process that is the peer now, to see whether it is
/// there. Returns false if the text is no announcement.
bool PointToPoint::visit(int64_t other, llvm::StringRef here) {
  Peer &peer = peers[other];
  auto [drawn, afterNumber] = here.split(' ');
  auto [processText, afterProcess] = afterNumber.split(' ');
  auto [fileText, host] = afterProcess.split(' ');
  SegmentName name = {0, -1, kMailboxBytes, drawn.str()};
  if (drawn.empty() || drawn.size() >= kNumberBytes ||
      !llvm::all_of(drawn, llvm::isAlnum) || host.empty() ||
      processText.getAsInteger(10, name.process) || name.process < 1 ||
      name.process > INT_MAX || fileText.getAsInteger(10, name.file))
    return false;
  if (drawn == peer.number)
    return true;
  if (peer.processFile >= 0)
    ::close(std::exchange(peer.processFile, -1));
  peer.number = drawn.str();
  peer.host = host.str();
  peer.mailbox = Segment();
  peer.gone.reset();
  peer.process = 0;
  if (peer.host != peers[rank].host)
    return true;
  peer.process = static_cast<int>(name.process);
  peer.processFile = openProcess(peer.process);
  auto opened = Segment::open(name);
  bool isIts = opened && mailboxOf(*opened).magic == kMail &&
               mailboxOf(*opened).number.str() == drawn;
  peer.isClosed = opened ? !isIts : Segment::isClosed(name);
  if (isIts)
    peer.mailbox = std::move(*opened);
  else
    llvm::consumeError(opened.takeError());
  return true;
}

/// Tells the peer who this rank is, if it has not heard.
void PointToPoint::greet(int64_t other) {
  Peer &peer = peers[other];
  std::string drawn, record;
  {
    std::lock_guard<std::mutex> lock(mutex);
    drawn = peer.number;
    SegmentName name = rings.name();
    record = llvm::formatv("{0} {1} {2} {3} {4}", number, drawn, name.process,
                           name.file, name.bytes);
    if (drawn.empty() || drawn == peer.greeted)
      return;
  }
  llvm::Error error = store->set(
      llvm::formatv("{0}to/{1}/{2}", prefix, other, rank).str(), record);
  std::lock_guard<std::mutex> lock(mutex);
  // Else it is said again at the next look.
  if (!error)
    peer.greeted = drawn;
  llvm::consumeError(std::move(error));
}

/// Opens the peer's rings, if the peer has answered.
void PointToPoint::attach(int64_t other, llvm::StringRef record) {
  Peer &peer = peers[other];
  llvm::SmallVector<llvm::StringRef> parts;
  record.split(parts, ' ', 5);
  SegmentName name;
  name.token = peer.number;
  bool isForeign =
      parts.size() != 5 || parts[2].getAsInteger(10, name.process) ||
      parts[3].getAsInteger(10, name.file) ||
      parts[4].getAsInteger(10, name.bytes) || name.bytes != rings.size();
  peer.foreignAnswer = isForeign ? describeForeign(record.str(), other) : "";
  // An answer to an earlier process, or of one, stays until the peer answers.
  if (isForeign || parts[0] != peer.number || peer.greeted != peer.number ||
      parts[1] != number)
    return;
  peer.hasMet = true;
  auto opened = Segment::open(name);
  Kind kind = Kind::Peer;
  if (opened)
    peer.rings = std::move(*opened);
  // What it has sent is here, all the same.
  else if (std::string why = llvm::toString(opened.takeError());
           departureReason(other, kind).empty())
    dropPeer(other, named(other) + " is not there: " + why, Kind::Peer);
}

/// Describes what the store holds in place of a rank's words, in parentheses;
/// empty: nothing, or the rank may be any.
std::string PointToPoint::foreignTextOf(int64_t other) const {
  if (other < 0)
    return "";
  const Peer &peer = peers[other];
  const std::string &text =
      peer.foreignHere.empty() ? peer.foreignAnswer : peer.foreignHere;
  return text.empty() ? "" : " (" + text + ")";
}

/// Waits for a rank to begin.
llvm::Error PointToPoint::awaitHere(int64_t other, double seconds) {
  auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  for (double time = 0;; time = kAsk) {
    std::unique_lock<std::timed_mutex> asking(storeMutex);
    auto begun = Clock::now();
    llvm::Error error = readHere(other, time);
    std::chrono::duration<double> took = Clock::now() - begun;
    asking.unlock();
    if (!error)
      return error;
    std::string said = llvm::toString(std::move(error));
    std::unique_lock<std::mutex> lock(mutex);
    if (!stopped.empty())
      return makeError(stoppedKind, explain(stopped));
    bool isForeign = !peers[other].foreignHere.empty();
    lock.unlock();
    if (isInterrupted())
      return makeError(Kind::Aborted, "interrupted while it waited for " +
                                          named(other) + " to begin");
    if (!isForeign && took.count() < time / 2)
      return makeError(Kind::Usage, "the store does not answer a query for " +
                                        named(other) +
                                        ": has the process that keeps it, "
                                        "mostly that of rank 0, ended?");
    if (Clock::now() >= deadline)
      return makeError(Kind::Peer,
                       llvm::formatv("{0} has not begun in {1} s ({2})",
                                     named(other), seconds, said));
    // The rank may yet replace it.
    if (isForeign)
      std::this_thread::sleep_for(kLongest);
  }
}

llvm::Expected<bool> PointToPoint::reaches(int64_t peer, double seconds) {
  if (peer >= ranks || peer < -1)
    return makeError(Kind::Usage, llvm::formatv("there is no {0} among {1}",
                                                named(peer), ranks));
  auto begun = Clock::now();
  bool reached = true;
  for (int64_t one = peer < 0 ? 0 : peer; one < (peer < 0 ? ranks : peer + 1);
       ++one) {
    std::unique_lock<std::mutex> lock(mutex);
    bool isKnown = !peers[one].host.empty();
    lock.unlock();
    std::chrono::duration<double> passed = Clock::now() - begun;
    if (!isKnown)
      if (llvm::Error error =
              awaitHere(one, std::max(0.0, seconds - passed.count())))
        return std::move(error);
    lock.lock();
    reached &= peers[one].host == peers[rank].host;
  }
  return reached;
}

void PointToPoint::confirm() {
  std::lock_guard<std::mutex> lock(mutex);
  isConfirmed = true;
}
