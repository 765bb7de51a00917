//===- RingMessages.cpp - Messages in rings -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message goes through a ring in pieces: out of the sender's memory, and into
// the receive that matches it.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/PointToPointImpl.h"

#include "llvm/ADT/STLExtras.h"

#include <climits>
#include <cstring>

using namespace commsir;
using namespace commsir::group;
using Kind = GroupError::Kind;

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
