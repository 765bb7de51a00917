//===- Order.h - Happens-before, by vector clocks ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector clocks over (rank, block), and the state that is compared with them.
//
// Each thread has two clocks. The *strong* clock follows release and acquire:
// the effects of its events are visible to the thread. The *weak* clock follows
// every observation (a received packet, a relaxed signal): its events have been
// performed, so the memory they read may be overwritten, but their writes may
// not be visible yet.
//
// Where a program states the assumption packets_cumulative (Spec, M25), a third
// clock, the *chained* one, holds what was released before a message that
// reached the thread through any chain of observations.
//
// *Agents* perform asynchronous transfers: a copy, or a network adapter (one
// agent per thread, context and peer, the unit in which the adapter keeps
// order). An agent's effects are visible to a thread once the thread has
// received a message that carries the agent's timestamp.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_ORDER_H
#define COMMSIR_LOWERING_CHECK_ORDER_H

#include "lowering/check/Program.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace mlir::comms::check {

/// A point in time of a thread or an agent. Agents are numbered after threads.
struct Timestamp {
  int32_t thread = -1;
  uint32_t time = 0;
};

/// Index of a message: the clocks that a release carries. 0: none.
using Message = uint32_t;

/// The latest timestamp of each agent, sorted by agent. Copies share storage.
class AgentTimes {
public:
  bool empty() const { return !stamps; }
  size_t size() const { return stamps ? stamps->size() : 0; }
  /// `later`: one timestamp per agent, sorted by agent.
  void raise(llvm::ArrayRef<Timestamp> later);
  void raise(const AgentTimes &other);
  bool holds(Timestamp stamp) const;

private:
  /// Null: none.
  std::shared_ptr<const std::vector<Timestamp>> stamps;
};

class Clocks {
public:
  /// `followsChains`: keeps the chained clocks.
  explicit Clocks(int32_t threads, bool followsChains = false);

  /// The current timestamp of `thread`, for what it does now.
  Timestamp stamp(int32_t thread);
  /// The same for a signal, which touches no data.
  Timestamp stampSignal(int32_t thread);
  /// The current timestamp. Later events of the thread get a later one.
  Timestamp mark(int32_t thread);
  /// Creates an agent.
  int32_t makeAgent();
  bool isAgent(int32_t agent) const { return agent >= int32_t(n); }
  /// Advances an agent's time and returns the new timestamp.
  Timestamp stampAgent(int32_t agent) {
    return {agent, ++agentTimes[agent - n]};
  }
  /// An agent's current timestamp.
  Timestamp lastOf(int32_t agent) const {
    return {agent, agentTimes[agent - n]};
  }
  /// A copy of the message that also carries these timestamps of agents.
  Message add(Message message, llvm::ArrayRef<Timestamp> moments);
  /// Adds timestamps, sorted by agent, to a message that others are merged
  /// into.
  void addTo(Message into, llvm::ArrayRef<Timestamp> moments);
  /// The agents' timestamps that are visible to `thread`.
  const AgentTimes &seenOfAgents(int32_t thread) const { return heard[thread]; }
  /// The time of each thread that is visible to `thread`.
  llvm::ArrayRef<uint32_t> seen(int32_t thread) const {
    return {strong(thread), n};
  }
  /// Time of the last action of `thread` that was not a signal.
  Timestamp lastAction(int32_t thread) const { return {thread, deeds[thread]}; }
  /// Clocks sent with a signal of `thread`. `release`: includes the strong
  /// clock; else only the state of an earlier release fence. `near`: for the
  /// same rank, which fences of scope `gpu` cover.
  Message send(int32_t thread, bool release, bool near = false);
  /// `thread` has received the message. `acquire`: at once; else the strong
  /// clock becomes visible at an acquire fence, of scope `gpu` at least if it
  /// came from `near`, else `sys`.
  void receive(int32_t thread, Message message, bool acquire,
               bool near = false);
  /// `wide`: of scope `sys`; else of scope `gpu`.
  void fence(int32_t thread, bool release, bool acquire, bool wide = true);
  /// All of `threads` continue after all of them have arrived.
  void join(llvm::ArrayRef<int32_t> threads);
  /// Creates an empty message, for merging others into it.
  Message make();
  /// Adds the clocks of `thread` to `into`.
  void merge(int32_t thread, Message into, bool release, bool near = false);

  bool visible(int32_t thread, Timestamp earlier) const {
    if (isAgent(earlier.thread))
      return heard[thread].holds(earlier);
    return earlier.thread == thread || earlier.thread < 0 ||
           strong(thread)[earlier.thread] >= earlier.time;
  }
  bool carriedOut(int32_t thread, Timestamp earlier) const {
    return earlier.thread == thread || earlier.thread < 0 ||
           weak(thread)[earlier.thread] >= earlier.time;
  }
  /// Whether a release after `earlier` has reached `thread` through a chain of
  /// observations. False without chained clocks.
  bool chained(int32_t thread, Timestamp earlier) const {
    return clocksEach == 3 && earlier.thread >= 0 &&
           chain(thread)[earlier.thread] >= earlier.time;
  }
  /// Whether the sender of the message had observed `earlier`.
  bool tells(Message message, Timestamp earlier) const {
    return earlier.thread >= 0 && !isAgent(earlier.thread) &&
           after(message, earlier);
  }
  /// Whether the message passes on `earlier`, of another thread, to those who
  /// acquire it.
  bool passesOn(Message message, Timestamp earlier) const {
    return strongOf(message)[earlier.thread] >= earlier.time;
  }
  /// `thread` hears of what the message tells, and acquires nothing.
  void observe(int32_t thread, Message message) {
    raiseWeak(weak(thread), message);
    forgetClocks(thread);
  }
  /// Whether the message was sent after `earlier`.
  bool after(Message message, Timestamp earlier) const {
    const MessageClocks &one = messages[message];
    uint32_t time = weakOf(message)[earlier.thread];
    if (earlier.thread == one.thread)
      time = std::max(time, one.weakTime);
    return time >= earlier.time;
  }
  /// Words of clocks copied or merged so far: a measure of cost.
  uint64_t work() const { return workDone; }

private:
  const uint32_t *strong(int32_t t) const {
    return &own[clocksEach * size_t(t) * n];
  }
  uint32_t *strong(int32_t t) { return &own[clocksEach * size_t(t) * n]; }
  const uint32_t *weak(int32_t t) const { return strong(t) + n; }
  uint32_t *weak(int32_t t) { return strong(t) + n; }
  const uint32_t *chain(int32_t t) const { return strong(t) + 2 * n; }
  uint32_t *chain(int32_t t) { return strong(t) + 2 * n; }
  const uint32_t *strongOf(Message m) const {
    return clocksAt(messages[m].clocks);
  }
  uint32_t *strongOf(Message m) { return clocksAt(messages[m].clocks); }
  uint32_t *clocksAt(uint32_t index) const {
    return slabs[index >> slabBits].get() +
           clocksEach * n * (index & ((uint32_t(1) << slabBits) - 1));
  }
  const uint32_t *weakOf(Message m) const { return strongOf(m) + n; }
  /// Visible times: one per thread, or none, and those of agents.
  struct Taken {
    std::vector<uint32_t> times;
    AgentTimes agents;
  };
  /// The times that the last release fence of sufficient scope took; empty:
  /// there was no such fence.
  const Taken &fenceOf(int32_t thread, bool near) const {
    return near && !fencedNear[thread].times.empty() ? fencedNear[thread]
                                                     : fenced[thread];
  }
  /// A message's timestamps of agents: those its sender had received, and
  /// `more`.
  struct Carried {
    AgentTimes agents;
    llvm::SmallVector<Timestamp, 1> more;
  };
  /// Null: nothing.
  const Carried *agentsOf(Message message) const;
  void carry(Message message, const AgentTimes &agents);
  void hear(AgentTimes &into, const Carried *carried);
  void raise(uint32_t *into, const uint32_t *from);
  /// Merge the clocks of a message and its sender's time.
  void raiseStrong(uint32_t *into, Message message);
  void raiseWeak(uint32_t *into, Message message);
  void raiseChain(uint32_t *into, Message message);
  /// A message whose clocks the caller must fill in.
  Message makeRaw();
  void advance(int32_t thread);
  void forget(int32_t thread);
  void forgetClocks(int32_t thread);

  size_t n;
  /// 2, or 3 with chained clocks.
  size_t clocksEach;
  /// For each thread its strong and its weak clock, and its chained one.
  std::vector<uint32_t> own;
  /// Sent clocks: one of each kind. Messages share them if their sender
  /// received nothing between them.
  std::vector<std::unique_ptr<uint32_t[]>> slabs;
  uint32_t numClocks = 0, slabBits = 0;
  /// A message: the index of its clocks, and its sender's time. Thread -1: no
  /// sender.
  struct MessageClocks {
    uint32_t clocks = 0;
    int32_t thread = -1;
    uint32_t strongTime = 0, weakTime = 0;
  };
  std::vector<MessageClocks> messages;
  /// Strong clocks taken by release fences, and pending for acquire fences: for
  /// all ranks, and (near) for blocks of the same rank.
  std::vector<Taken> fenced, fencedNear, pending, pendingNear;
  /// The time of each agent; the agents' times that each thread has received,
  /// and that each message carries.
  std::vector<uint32_t> agentTimes;
  std::vector<AgentTimes> heard;
  llvm::DenseMap<Message, Carried> carried;
  /// The message that holds the current state, by kind of order; 0: none.
  std::vector<Message> current[3];
  /// The message whose clocks the next ones can share, likewise.
  std::vector<Message> shared[3];
  /// Set once the current time has been sent: the next stamp begins a new time.
  std::vector<uint8_t> published;
  /// The time of the last stamp that was not a signal's.
  std::vector<uint32_t> deeds;
  uint64_t workDone = 0;
};

/// An access: which thread, where and when.
struct Touch {
  Timestamp stamp;
  int32_t action = -1;
  int32_t launch = 0;
  /// Two accesses of the same class do not conflict, unless they are plain:
  /// reductions in memory, and packets and poison (`Mail`). The address of a
  /// `Scattered` write depends on data; the checker assumes that it differs
  /// from the other writes of its launch. `Alike`: identical blocks write the
  /// same values to their rank's own memory.
  enum Class : uint8_t {
    Plain,
    Reduction,
    Mail,
    Scattered,
    Alike
  } access = Plain;
  bool writes = false;
  /// It accesses only some of these elements, depending on data.
  bool somewhere = false;
  /// The checker does not know which elements.
  bool isGuess = false;
  /// The kernel computed the position by counting: see Interval.
  bool isCounted = false;
  /// Data decide whether it is made.
  bool isUnsure = false;
  /// The proxy through which memory is accessed.
  Proxy proxy = Proxy::Generic;
  /// Number of identical writes of its block to these elements in its launch.
  int32_t version = 0;
  /// The elements as sums of unknown integers, by number; 0: not known.
  int32_t sums = 0;

  bool isApartByData(const Touch &other) const {
    return writes && other.writes && action >= 0 && other.action >= 0 &&
           launch == other.launch &&
           (access == Scattered || other.access == Scattered);
  }
};

/// Replaces the entry of the same thread, or adds one.
template <typename List, typename Entry>
void remember(List &list, const Entry &entry) {
  for (auto &old : list)
    if (old.stamp.thread == entry.stamp.thread) {
      old = entry;
      return;
    }
  list.push_back(entry);
}

/// The last accesses to each element of one rank's part of a window.
class Shadow {
public:
  struct Piece {
    int64_t end = 0;
    Touch write;
    /// Reads and reductions since the last write, by thread.
    llvm::SmallVector<Touch, 4> reads;
    /// Whether some of them may write.
    bool hasWrites = false;

    /// Replaces the entry of the same thread, kind and sums, or adds one.
    void note(const Touch &now);
  };
  /// Calls `visit` for pieces that cover exactly [begin, end).
  void access(int64_t begin, int64_t end,
              llvm::function_ref<void(int64_t, Piece &)> visit);
  /// Attributes an agent's accesses to [begin, end) up to the timestamp `agent`
  /// to a thread, at `now`: they have ended.
  void settle(int64_t begin, int64_t end, Timestamp agent, Timestamp now);

private:
  std::map<int64_t, Piece> pieces;
};

/// The stores to packets or poisoned slots in one rank's part of a window.
class Mailbox {
public:
  struct Run {
    int64_t end = 0;
    /// Flag of the packets; -1: empty.
    int64_t flag = -1;
    Touch store;
    Message message = 0;
    /// Whether the elements were stored depends on data: only the first
    /// `length` elements from `from` on were, and `length` is unknown.
    bool isUnsure = false;
    Interval length;
    int64_t from = 0;
    llvm::SmallVector<Touch, 2> reads;
    /// Earlier flags, and when each was last overwritten.
    llvm::SmallVector<std::pair<int64_t, Timestamp>, 1> past;
  };
  /// Calls `visit` for runs that cover exactly [begin, end), after making them.
  void access(int64_t begin, int64_t end,
              llvm::function_ref<void(int64_t, Run &)> visit);
  /// Whether every packet of [begin, end) has `flag`. If not, `seen` is the
  /// first other flag, or -1.
  bool holds(int64_t begin, int64_t end, int64_t flag, int64_t &seen) const;

private:
  std::map<int64_t, Run> runs;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_ORDER_H
