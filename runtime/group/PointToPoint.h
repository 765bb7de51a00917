//===- PointToPoint.h - Sends and receives on the CPU -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between two ranks on one host, with tags, as in MPI. Nothing here is
// collective: two ranks find each other in the store when one sends and the
// other receives, independently of all other ranks.
//
// Each rank has a mailbox, which shows others whether the rank is alive. From
// its first message on it also has a ring of bytes for each rank that sends to
// it. A message is an envelope followed by data, written in pieces as they fit.
// Messages of one sender and tag are received in the order in which they were
// sent. A message that no receive matches stays in the ring; it is copied to
// the list of unexpected messages when a receive matches a later one. A send is
// done when its message has been taken.
//
// A store may still hold the entries of an earlier group with the same name, so
// that a dead process may belong to that group. A rank that was never met is
// therefore given up at once if this rank knows that all have begun
// (`confirm`), else after five seconds.
//
// Both sides describe the message ("4 x float32"). If the descriptions differ,
// nothing is copied and both sides fail, as does everything that follows
// between them, because later messages could not be matched.
//
// A thread that waits moves all messages of its rank; while no thread waits, a
// helper thread does.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_POINTTOPOINT_H
#define COMMSIR_RUNTIME_GROUP_POINTTOPOINT_H

#include "runtime/group/Group.h"
#include "runtime/group/Segment.h"
#include "runtime/group/Shared.h"
#include "runtime/support/GroupError.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

namespace commsir::group {

struct Envelope;
struct RankMailbox;
struct Ring;

/// One side of a message. The data must stay valid until the transfer is over.
struct Message {
  /// The other rank; -1 in a receive: any rank.
  int64_t peer = 0;
  int64_t tag = 0;
  void *data = nullptr;
  uint64_t bytes = 0;
  /// At most 47 bytes.
  std::string what;
};

/// The bytes of an unexpected message. Memory is allocated as bytes arrive,
/// because the size in the envelope is not trusted.
class UnexpectedBytes {
public:
  /// Makes room for `bytes` bytes after the first `used`. Returns null if
  /// memory is short.
  char *grow(uint64_t used, uint64_t bytes);
  const char *data() const { return memory.get(); }

private:
  struct FreeDeleter {
    void operator()(char *memory) const { std::free(memory); }
  };
  std::unique_ptr<char, FreeDeleter> memory;
  uint64_t size = 0;
};

/// A send or a receive in progress.
class Transfer {
public:
  /// Whether it is done or has failed. Nothing accesses its data after that.
  bool isOver() const { return state.load(std::memory_order_acquire) != Open; }
  /// The sender of a completed receive.
  int64_t source() const { return message.peer; }

private:
  friend class PointToPoint;
  enum State { Open, Done, Failed };
  Transfer(Message message, bool sends)
      : message(std::move(message)), sends(sends) {}
  Message message;
  const bool sends;
  /// Send: end of the message in the ring, once it has been written.
  uint64_t end = 0;
  std::atomic<State> state{Open};
  /// Reason of the failure; written before `state`.
  GroupError::Kind kind = GroupError::Kind::Usage;
  std::string why;
};
using TransferPtr = std::shared_ptr<Transfer>;

/// Thread-safe.
class PointToPoint {
public:
  /// Makes one rank of `ranks` ranks, which share the unique name `name`. The
  /// store is used as long as the result lives.
  static llvm::Expected<std::unique_ptr<PointToPoint>>
  create(const std::string &name, int64_t rank, int64_t ranks,
         std::unique_ptr<Store> store);
  ~PointToPoint();
  PointToPoint(const PointToPoint &) = delete;
  PointToPoint &operator=(const PointToPoint &) = delete;

  /// Whether `peer` (-1: every rank) shares memory with this rank. Waits at
  /// most `seconds` until the peer has called `create`. Both sides get the same
  /// answer.
  llvm::Expected<bool> reaches(int64_t peer, double seconds);

  /// Tells that all ranks have called `create`, so that entries in the store
  /// belong to this group.
  void confirm();

  /// Begin a transfer without waiting.
  llvm::Expected<TransferPtr> send(Message message);
  llvm::Expected<TransferPtr> receive(Message message);
  /// Waits at most `seconds`, then cancels the transfer.
  llvm::Error wait(Transfer &transfer, double seconds);
  /// Whether the transfer is over now.
  bool test(const Transfer &transfer);

  /// Ends all transfers of this rank, and those of peers with it.
  void abort(llvm::StringRef reason);
  /// Ends in an orderly way: peers still receive what was written to their
  /// rings; pending sends get at most `seconds`. Fails while the store is being
  /// queried and does not answer; the store and this object must then stay
  /// alive.
  llvm::Error leave(double seconds);

private:
  using Clock = std::chrono::steady_clock;
  using Kind = GroupError::Kind;
  /// A message that is arriving.
  struct IncomingMessage {
    std::string what;
    int64_t tag = 0;
    uint64_t bytes = 0, left = 0;
    /// The receive it belongs to; null: the message is unexpected.
    TransferPtr receive;
    UnexpectedBytes unexpected;
  };
  struct UnexpectedMessage {
    int64_t source = 0;
    IncomingMessage message;
  };
  struct Peer {
    /// Host of the peer; empty: the peer has not begun.
    std::string host;
    /// Number that identifies the peer's process group, and the number that
    /// this rank has greeted; empty: none.
    std::string number, greeted;
    /// Mailbox of the peer with that number; empty: not visible, or closed.
    Segment mailbox;
    bool isClosed = false;
    /// 0: the peer is not on this host.
    int process = 0, processFile = -1;
    /// The peer has greeted this rank. Empty rings: it has left since.
    bool hasMet = false;
    Segment rings;
    /// Foreign texts in the store in place of the peer's announcement, and of
    /// its answer to this rank, by describeForeign(); empty: none.
    std::string foreignHere, foreignAnswer;
    Clock::time_point nextLook, lastLook;
    std::chrono::microseconds pause{100};
    /// When the peer was first seen to be gone.
    std::optional<Clock::time_point> gone;
    /// Messages to write to the peer's ring, in order. The first may be written
    /// in part.
    std::deque<TransferPtr> sends;
    bool hasBegun = false;
    uint64_t sentOfFirst = 0, written = 0;
    /// Messages in the ring that the peer has not fully taken.
    std::deque<TransferPtr> untaken;
    std::optional<IncomingMessage> incoming;
    uint64_t read = 0;
    /// Reason why nothing moves between the two ranks any more; empty: it does.
    std::string broken;
    Kind kind = Kind::Usage;
  };

  PointToPoint(int64_t rank, int64_t ranks, std::unique_ptr<Store> store);
  llvm::Error announce(const std::string &name);
  llvm::Expected<TransferPtr> begin(Message message, bool sends);
  llvm::Error check(const Message &message, bool sends) const;
  bool isForked() const;

  // Called without the lock.
  void findPeers();
  llvm::Error readHere(int64_t rank, double seconds);
  llvm::Error awaitHere(int64_t rank, double seconds);
  void greet(int64_t rank);
  void flush(double seconds);

  // Called with the lock held.
  bool progress();
  bool moveAll();
  void enqueue(const TransferPtr &made);
  bool isWanted(int64_t rank) const;
  bool isNeeded(int64_t rank) const;
  bool isLookedFor(int64_t rank) const;
  bool visit(int64_t rank, llvm::StringRef here);
  void attach(int64_t rank, llvm::StringRef record);
  bool push(int64_t rank);
  bool pushFirst(int64_t rank);
  bool pull(int64_t rank);
  bool take(int64_t rank, uint64_t here);
  bool beginMessage(int64_t rank, const Envelope &envelope);
  void endMessage(int64_t rank);
  TransferPtr match(int64_t source, int64_t tag);
  bool takeUnexpected(const TransferPtr &receive);
  void deliver(int64_t source, IncomingMessage &message,
               const TransferPtr &receive);
  void refuse(int64_t rank, std::string why, Kind kind);
  void examine();
  std::string refusalReason(int64_t rank, Kind &kind) const;
  std::string foreignTextOf(int64_t rank) const;
  std::string departureReason(int64_t rank, Kind &kind) const;
  std::string leaveReason(int64_t rank) const;
  bool isCertain(const Peer &peer) const;
  void dropPeer(int64_t rank, std::string why, Kind kind);
  void end(Transfer &transfer, Transfer::State state);
  void finish(Transfer &transfer);
  void fail(const TransferPtr &transfer, Kind kind, llvm::StringRef why);
  void failReceives(Kind kind, llvm::StringRef why);
  void giveUp(Transfer &transfer);
  std::string describe(const Transfer &transfer) const;
  void stopHere(RankStatus status, llvm::StringRef toPeers,
                const std::string &reason, Kind kind);
  void stopWithoutMemory();

  llvm::Error outcome(const Transfer &transfer) const;
  std::string explain(const std::string &why) const;
  bool look(const Transfer &transfer);
  void stop(RankStatus status, const std::string &reason);
  void sleepUntilWoken(const Transfer *transfer,
                       std::chrono::microseconds most);
  void wakePeer(const Peer &peer);
  void wakeOwn();
  void attend();
  void run();

  Ring &ringOf(const Segment &segment, int64_t source) const;
  char *bytesOf(const Segment &segment, int64_t source) const;

  const int64_t rank, ranks;
  const std::unique_ptr<Store> store;
  std::string prefix, number;
  const int process;
  Segment mailbox, rings;
  /// Guards the store; locked before the other mutex.
  std::timed_mutex storeMutex;
  mutable std::mutex mutex;
  std::vector<Peer> peers;
  /// In the order in which they began.
  std::list<TransferPtr> receives;
  std::list<UnexpectedMessage> unexpected;
  /// Number of transfers that are not over.
  int64_t underWay = 0;
  bool hasFinished = false;
  bool isConfirmed = false;
  /// Reason why no transfer may begin any more; empty: it may.
  std::string stopped;
  Kind stoppedKind = Kind::Aborted;

  // Thread that moves messages while no other thread waits.
  std::atomic<int> waiting{0};
  std::thread attendant;
  std::condition_variable changed;
  bool isIdle = false;
  std::atomic<bool> over{false};
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_POINTTOPOINT_H
