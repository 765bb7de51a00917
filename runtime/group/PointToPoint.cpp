//===- PointToPoint.cpp - Sends and receives on the CPU -------------------===//
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
// A store may hold what earlier groups of the name have left. Who is answered
// with its own number is answered by its peer, and not by one of those.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPoint.h"

#include "runtime/group/Process.h"
#include "runtime/group/Shared.h"
#include "runtime/support/FatalErrors.h"
#include "runtime/support/Rendezvous.h"
#include "runtime/support/StartThread.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <cinttypes>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <sched.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;
using std::chrono::microseconds;

static constexpr uint64_t kMail = 0x6C69616D736D6F63;
/// Size of a ring, and of the pieces after which the other side is notified:
/// both sides copy at the same time, in their caches.
static constexpr uint64_t kRingBytes = uint64_t(1) << 20, kPiece = uint64_t(128)
                                                                   << 10;
static constexpr uint64_t kLine = 64, kMailboxBytes = 4096;
static constexpr size_t kWhatBytes = 44;
/// Same as for waits of kernels (CpuGroup.cpp).
static constexpr unsigned kLooks = 64, kYields = 3;
/// How often a wait checks whether peers are alive, and whether to end.
static constexpr std::chrono::milliseconds kPeriod(20);
/// The longest pause between looks into the store.
static constexpr microseconds kLongest(5000);
/// How long a dead rank that was never met may belong to an earlier group whose
/// successor has yet to start. Processes of one job start within seconds of
/// each other.
static constexpr std::chrono::seconds kGrace(5);
/// While a rank is waited for that has not begun, how long the store is asked
/// at a time; one that knows nothing after half of it does not answer.
static constexpr double kAsk = 0.02;
/// How long the destructor waits for a thread that reads the store.
static constexpr std::chrono::seconds kLastAnswer(2);
/// How often the thread checks whether another one waits in its place.
static constexpr std::chrono::milliseconds kStandByPeriod(2);
/// Why all messages are given up where memory has run out: short enough for a
/// std::string that allocates nothing.
static constexpr const char *kNoMemory = "out of memory";

/// Header of a message in the ring.
struct group::Envelope {
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
struct alignas(64) group::RankMailbox {
  uint64_t magic;
  SharedText<kNumberBytes> number;
  std::atomic<RankStatus> status;
  SharedText<kReasonBytes> reason;
  /// The word that sleepers of the rank wait on, and the number of sleepers.
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
};

/// From one rank; in bytes, from the beginning.
struct alignas(64) group::Ring {
  /// By the sender.
  std::atomic<uint64_t> written;
  /// By the receiver.
  alignas(64) std::atomic<uint64_t> read;
  /// Nothing goes between the two any more, for a reason that was written
  /// before.
  std::atomic<uint32_t> refused;
  std::atomic<Kind> kind;
  SharedText<kReasonBytes> why;
};

static_assert(sizeof(group::RankMailbox) <= kMailboxBytes);

static RankMailbox &mailboxOf(const Segment &segment) {
  return *reinterpret_cast<RankMailbox *>(segment.data());
}

Ring &PointToPoint::ringOf(const Segment &segment, int64_t source) const {
  return reinterpret_cast<Ring *>(segment.data())[source];
}

static uint64_t headsOf(int64_t ranks) {
  return llvm::alignTo(ranks * sizeof(Ring), 4096);
}

char *PointToPoint::bytesOf(const Segment &segment, int64_t source) const {
  return segment.data() + headsOf(ranks) + source * kRingBytes;
}

static std::string named(int64_t rank) {
  return "rank " + std::to_string(rank);
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

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
    new (&changed) std::condition_variable();
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

//===----------------------------------------------------------------------===//
// Finding peers
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

/// Whether between what was written to a ring and what was read from it lies no
/// more than it holds; both only grow.
static bool isRight(uint64_t written, uint64_t read) {
  return written - read <= kRingBytes;
}

/// Puts as much of the first message into the ring as fits.
bool PointToPoint::pushFirst(int64_t other) {
  Peer &peer = peers[other];
  Transfer &first = *peer.sends.front();
  Ring &ring = ringOf(peer.rings, rank);
  const uint64_t before = peer.written;
  char *bytes = bytesOf(peer.rings, rank);
  auto room = [&]() -> uint64_t {
    uint64_t read = ring.read.load(std::memory_order_acquire);
    return isRight(peer.written, read) ? kRingBytes - (peer.written - read) : 0;
  };
  if (!peer.hasBegun) {
    if (room() < kLine)
      return false;
    Envelope envelope = {first.message.bytes, first.message.tag, {}, 0};
    putText(envelope.what, kWhatBytes, first.message.what);
    envelope.check = envelope.sum();
    std::memcpy(bytes + peer.written % kRingBytes, &envelope, kLine);
    peer.written += kLine;
    peer.hasBegun = true;
    peer.sentOfFirst = 0;
  }
  while (peer.sentOfFirst < first.message.bytes) {
    uint64_t left = first.message.bytes - peer.sentOfFirst,
             at = peer.written % kRingBytes,
             most = std::min({left, room(), kPiece, kRingBytes - at});
    if (!most)
      break;
    std::memcpy(
        bytes + at,
        static_cast<const char *>(first.message.data) + peer.sentOfFirst, most);
    peer.sentOfFirst += most;
    peer.written += llvm::alignTo(most, kLine);
    ring.written.store(peer.written, std::memory_order_release);
    wakePeer(peer);
  }
  if (peer.sentOfFirst < first.message.bytes)
    return peer.written != before;
  ring.written.store(peer.written, std::memory_order_release);
  wakePeer(peer);
  first.end = peer.written;
  peer.untaken.push_back(std::move(peer.sends.front()));
  peer.sends.pop_front();
  peer.hasBegun = false;
  return true;
}

bool PointToPoint::push(int64_t other) {
  Peer &peer = peers[other];
  bool moved = false;
  while (!peer.sends.empty() && pushFirst(other))
    moved = true;
  uint64_t taken =
      ringOf(peer.rings, rank).read.load(std::memory_order_acquire);
  if (!isRight(peer.written, taken)) {
    dropPeer(other, named(other) + kDamaged, Kind::Peer);
    return true;
  }
  while (!peer.untaken.empty() && peer.untaken.front()->end <= taken) {
    finish(*peer.untaken.front());
    peer.untaken.pop_front();
    moved = true;
  }
  return moved;
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

/// The first receive that a message is for; null: there is none.
TransferPtr PointToPoint::match(int64_t source, int64_t tag) {
  for (auto it = receives.begin(); it != receives.end(); ++it) {
    const Message &message = (*it)->message;
    if ((message.peer != source && message.peer != -1) || message.tag != tag)
      continue;
    TransferPtr found = std::move(*it);
    receives.erase(it);
    return found;
  }
  return nullptr;
}

/// Somebody looks for what that rank may send.
bool PointToPoint::isWanted(int64_t source) const {
  return llvm::any_of(receives, [&](const TransferPtr &receive) {
    return receive->message.peer == source || receive->message.peer == -1;
  });
}

/// Tells both sides why nothing goes between them any more.
void PointToPoint::refuse(int64_t other, std::string why, Kind kind) {
  // Nothing after a disagreement is delivered, be it here already.
  if (kind == Kind::Disagree)
    unexpected.remove_if(
        [&](const UnexpectedMessage &one) { return one.source == other; });
  Ring &ring = ringOf(rings, other);
  ring.why.put(why);
  ring.kind.store(kind, std::memory_order_relaxed);
  ring.refused.store(1, std::memory_order_release);
  wakePeer(peers[other]);
  dropPeer(other, std::move(why), kind);
}

static bool fits(const Message &receive, llvm::StringRef what, uint64_t bytes) {
  return receive.what == what && receive.bytes == bytes;
}

/// Begins to take the message whose envelope has come; false: it stays, or
/// nothing comes any more.
bool PointToPoint::beginMessage(int64_t source, const Envelope &envelope) {
  Peer &peer = peers[source];
  if (envelope.check != envelope.sum()) {
    refuse(source, named(source) + kDamaged, Kind::Peer);
    return false;
  }
  IncomingMessage made;
  made.what =
      makeReadable({envelope.what, ::strnlen(envelope.what, kWhatBytes)});
  made.tag = envelope.tag;
  made.bytes = made.left = envelope.bytes;
  made.receive = match(source, envelope.tag);
  if (!made.receive && !isWanted(source))
    return false;
  if (made.receive && !fits(made.receive->message, made.what, made.bytes)) {
    std::string why = llvm::formatv(
        "{0} sends {1} to {2}, which receives {3} (tag {4}). Send and receive "
        "tensors of one type and size",
        named(source), made.what, named(rank), made.receive->message.what,
        made.tag);
    fail(made.receive, Kind::Disagree, why);
    refuse(source, std::move(why), Kind::Disagree);
    return false;
  }
  peer.incoming = std::move(made);
  peer.read += kLine;
  return true;
}

/// A message is here whole.
void PointToPoint::endMessage(int64_t source) {
  IncomingMessage message = std::move(*peers[source].incoming);
  peers[source].incoming.reset();
  if (message.receive) {
    message.receive->message.peer = source;
    finish(*message.receive);
    return;
  }
  message.receive = match(source, message.tag);
  if (message.receive)
    deliver(source, message, message.receive);
  else
    unexpected.push_back({source, std::move(message)});
}

/// Copies what was put aside. Its sender has gone on: this side alone fails
/// where it is not what was asked for, and the sender with what follows.
void PointToPoint::deliver(int64_t source, IncomingMessage &message,
                           const TransferPtr &receive) {
  if (fits(receive->message, message.what, message.bytes)) {
    if (message.bytes)
      std::memcpy(receive->message.data, message.unexpected.data(),
                  message.bytes);
    receive->message.peer = source;
    finish(*receive);
    return;
  }
  std::string why = llvm::formatv(
      "{0} has sent {1} to {2}, which receives {3} (tag {4}). Send and receive "
      "tensors of one type and size",
      named(source), message.what, named(rank), receive->message.what,
      message.tag);
  fail(receive, Kind::Disagree, why);
  refuse(source, std::move(why), Kind::Disagree);
}

/// Whether a message that was put aside is for this receive.
bool PointToPoint::takeUnexpected(const TransferPtr &receive) {
  auto it = llvm::find_if(unexpected, [&](const UnexpectedMessage &one) {
    return one.message.tag == receive->message.tag &&
           (receive->message.peer == -1 || receive->message.peer == one.source);
  });
  if (it == unexpected.end())
    return false;
  UnexpectedMessage found = std::move(*it);
  unexpected.erase(it);
  deliver(found.source, found.message, receive);
  return true;
}

char *UnexpectedBytes::grow(uint64_t used, uint64_t bytes) {
  if (used + bytes > size) {
    uint64_t wanted = std::max(used + bytes, 2 * size);
    auto *grown = static_cast<char *>(std::realloc(memory.get(), wanted));
    if (!grown)
      return nullptr;
    (void)memory.release();
    memory.reset(grown);
    size = wanted;
  }
  return memory.get() + used;
}

/// Takes as much of the message that has begun as is here, and lies in one
/// piece; false: there is nothing, or no memory for it.
bool PointToPoint::take(int64_t source, uint64_t here) {
  Peer &peer = peers[source];
  IncomingMessage &message = *peer.incoming;
  uint64_t at = peer.read % kRingBytes, done = message.bytes - message.left,
           most = std::min({message.left, here, kPiece, kRingBytes - at});
  if (!most)
    return false;
  char *to = message.receive
                 ? static_cast<char *>(message.receive->message.data) + done
                 : message.unexpected.grow(done, most);
  if (!to) {
    std::string why = llvm::formatv(
        "{0} has no memory for a message of {1} bytes that {2} sends (tag "
        "{3}): receive it before others",
        named(rank), message.bytes, named(source), message.tag);
    refuse(source, std::move(why), Kind::Limit);
    return false;
  }
  std::memcpy(to, bytesOf(rings, source) + at, most);
  message.left -= most;
  peer.read += llvm::alignTo(most, kLine);
  return true;
}

bool PointToPoint::pull(int64_t source) {
  Peer &peer = peers[source];
  Ring &ring = ringOf(rings, source);
  const char *bytes = bytesOf(rings, source);
  bool moved = false;
  while (peer.broken.empty()) {
    uint64_t written = ring.written.load(std::memory_order_acquire);
    if (!isRight(written, peer.read)) {
      refuse(source, named(source) + kDamaged, Kind::Peer);
      return true;
    }
    uint64_t here = written - peer.read;
    if (!peer.incoming) {
      Envelope envelope;
      if (here < kLine)
        break;
      std::memcpy(&envelope, bytes + peer.read % kRingBytes, kLine);
      if (!beginMessage(source, envelope))
        break;
      here -= kLine;
    }
    if (peer.incoming->left && !take(source, here))
      break;
    moved = true;
    // The sender's end first: it may go on while this side does.
    bool isWhole = !peer.incoming->left;
    ring.read.store(peer.read, std::memory_order_release);
    wakePeer(peer);
    if (isWhole)
      endMessage(source);
  }
  return moved;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Sleeping and waking
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

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
  for (unsigned i = 0; i < kLooks + kYields; ++i) {
    if (look(transfer))
      return outcome(transfer);
    if (i < kLooks)
      __builtin_ia32_pause();
    else
      ::sched_yield();
  }
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
