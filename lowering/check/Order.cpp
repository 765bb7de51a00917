//===- Order.cpp - Happens-before, by vector clocks -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Order.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir::comms::check;

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

Clocks::Clocks(int32_t threads, bool followsChains)
    : n(threads), clocksEach(followsChains ? 3 : 2), own(clocksEach * n * n),
      fenced(n), fencedNear(n), pending(n), pendingNear(n), heard(n),
      current{std::vector<Message>(n), std::vector<Message>(n),
              std::vector<Message>(n)},
      shared{std::vector<Message>(n), std::vector<Message>(n),
             std::vector<Message>(n)},
      published(n), deeds(n, 1) {
  // About a megabyte each.
  while (slabBits < 16 && (4 * clocksEach * n << slabBits) < (size_t(1) << 20))
    ++slabBits;
  (void)make(); // Message 0 is none.
  workDone = 0;
  for (int32_t t = 0; t < threads; ++t)
    strong(t)[t] = weak(t)[t] = 1;
}

void Clocks::raise(uint32_t *into, const uint32_t *from) {
  for (size_t i = 0; i < n; ++i)
    into[i] = std::max(into[i], from[i]);
  workDone += n;
}

void Clocks::advance(int32_t thread) {
  ++strong(thread)[thread];
  ++weak(thread)[thread];
  forget(thread);
  published[thread] = 0;
}

/// What `thread` sends next is a new message.
void Clocks::forget(int32_t thread) {
  for (std::vector<Message> &messages : current)
    messages[thread] = 0;
}

/// Nor can it share clocks.
void Clocks::forgetClocks(int32_t thread) {
  forget(thread);
  for (std::vector<Message> &messages : shared)
    messages[thread] = 0;
}

Timestamp Clocks::stampSignal(int32_t thread) {
  if (published[thread])
    advance(thread);
  return {thread, weak(thread)[thread]};
}

Timestamp Clocks::stamp(int32_t thread) {
  Timestamp result = stampSignal(thread);
  deeds[thread] = result.time;
  return result;
}

Timestamp Clocks::mark(int32_t thread) {
  Timestamp result = stamp(thread);
  published[thread] = 1;
  return result;
}

Message Clocks::makeRaw() {
  if (numClocks >> slabBits == slabs.size())
    slabs.emplace_back(new uint32_t[clocksEach * n << slabBits]);
  messages.emplace_back();
  messages.back().clocks = numClocks++;
  workDone += clocksEach * n;
  return static_cast<Message>(messages.size()) - 1;
}

Message Clocks::make() {
  Message made = makeRaw();
  std::fill_n(strongOf(made), clocksEach * n, 0);
  return made;
}

void Clocks::raiseStrong(uint32_t *into, Message message) {
  raise(into, strongOf(message));
  const MessageClocks &one = messages[message];
  if (one.thread >= 0)
    into[one.thread] = std::max(into[one.thread], one.strongTime);
}

void Clocks::raiseWeak(uint32_t *into, Message message) {
  raise(into, strongOf(message) + n);
  const MessageClocks &one = messages[message];
  if (one.thread >= 0)
    into[one.thread] = std::max(into[one.thread], one.weakTime);
}

void Clocks::raiseChain(uint32_t *into, Message message) {
  raise(into, strongOf(message) + 2 * n);
  const MessageClocks &one = messages[message];
  if (one.thread >= 0)
    into[one.thread] = std::max(into[one.thread], one.strongTime);
}

void Clocks::merge(int32_t thread, Message into, bool release, bool near) {
  const Taken &fence = fenceOf(thread, near);
  if (release)
    raise(strongOf(into), strong(thread));
  else if (!fence.times.empty())
    raise(strongOf(into), fence.times.data());
  carry(into, release ? heard[thread] : fence.agents);
  raise(strongOf(into) + n, weak(thread));
  if (clocksEach == 3) {
    raise(strongOf(into) + 2 * n, chain(thread));
    raise(strongOf(into) + 2 * n, strongOf(into));
  }
  published[thread] = 1;
}

Message Clocks::send(int32_t thread, bool release, bool near) {
  size_t kind = release ? 1 : near ? 2 : 0;
  Message &message = current[kind][thread], &base = shared[kind][thread];
  if (!message && base) {
    // It has gone on, but heard nothing.
    MessageClocks next = messages[base];
    next.thread = thread;
    next.strongTime = release ? strong(thread)[thread] : 0;
    next.weakTime = weak(thread)[thread];
    message = static_cast<Message>(messages.size());
    messages.push_back(next);
    if (const Carried *agents = agentsOf(base))
      carry(message, AgentTimes(agents->agents));
  } else if (!message) {
    const Taken &fence = fenceOf(thread, near);
    message = base = makeRaw();
    uint32_t *clocks = strongOf(message);
    if (release)
      std::copy_n(strong(thread), n, clocks);
    else if (!fence.times.empty())
      std::copy_n(fence.times.data(), n, clocks);
    else
      std::fill_n(clocks, n, 0);
    std::copy_n(weak(thread), n, clocks + n);
    if (clocksEach == 3) {
      std::copy_n(clocks, n, clocks + 2 * n);
      raise(clocks + 2 * n, chain(thread));
    }
    carry(message, release ? heard[thread] : fence.agents);
  }
  published[thread] = 1;
  return message;
}

void Clocks::receive(int32_t thread, Message message, bool acquire, bool near) {
  if (!message)
    return;
  raiseWeak(weak(thread), message);
  if (clocksEach == 3)
    raiseChain(chain(thread), message);
  if (acquire) {
    raiseStrong(strong(thread), message);
    hear(heard[thread], agentsOf(message));
  } else {
    Taken &later = near ? pendingNear[thread] : pending[thread];
    later.times.resize(n);
    raiseStrong(later.times.data(), message);
    hear(later.agents, agentsOf(message));
  }
  forgetClocks(thread);
}

void Clocks::fence(int32_t thread, bool release, bool acquire, bool wide) {
  for (const auto *later : {&pendingNear[thread], &pending[thread]}) {
    if (!acquire || later->times.empty() ||
        (!wide && later == &pending[thread]))
      continue;
    raise(strong(thread), later->times.data());
    heard[thread].raise(later->agents);
    forgetClocks(thread);
  }
  if (!release)
    return;
  fencedNear[thread].times.assign(strong(thread), strong(thread) + n);
  fencedNear[thread].agents = heard[thread];
  if (wide)
    fenced[thread] = fencedNear[thread];
  forgetClocks(thread);
  published[thread] = 1;
}

void Clocks::join(llvm::ArrayRef<int32_t> threads) {
  Message all = make();
  for (int32_t thread : threads)
    merge(thread, all, /*release=*/true);
  for (int32_t thread : threads)
    receive(thread, all, /*acquire=*/true);
}

//===----------------------------------------------------------------------===//
// Agents
//===----------------------------------------------------------------------===//

static bool isBefore(Timestamp a, Timestamp b) { return a.thread < b.thread; }

/// Whether `old` has every agent of `later`, at the same time or a later one.
static bool covers(llvm::ArrayRef<Timestamp> old,
                   llvm::ArrayRef<Timestamp> later) {
  for (Timestamp stamp : later) {
    while (!old.empty() && isBefore(old.front(), stamp))
      old = old.drop_front();
    if (old.empty() || old.front().thread != stamp.thread ||
        old.front().time < stamp.time)
      return false;
  }
  return true;
}

void AgentTimes::raise(llvm::ArrayRef<Timestamp> later) {
  if (stamps ? covers(*stamps, later) : later.empty())
    return;
  auto made = std::make_shared<std::vector<Timestamp>>();
  made->reserve(size() + later.size());
  llvm::ArrayRef<Timestamp> old;
  if (stamps)
    old = *stamps;
  while (!old.empty() || !later.empty()) {
    bool isOld = later.empty() ||
                 (!old.empty() && !isBefore(later.front(), old.front()));
    bool isBoth =
        isOld && !later.empty() && later.front().thread == old.front().thread;
    made->push_back(isOld ? old.front() : later.front());
    if (isBoth)
      made->back().time = std::max(made->back().time, later.front().time);
    if (isOld)
      old = old.drop_front();
    if (!isOld || isBoth)
      later = later.drop_front();
  }
  stamps = std::move(made);
}

void AgentTimes::raise(const AgentTimes &other) {
  if (stamps == other.stamps || !other.stamps)
    return;
  if (!stamps || covers(*other.stamps, *stamps))
    stamps = other.stamps; // Shared, so that equal times are known at once.
  else
    raise(llvm::ArrayRef(*other.stamps));
}

bool AgentTimes::holds(Timestamp stamp) const {
  if (!stamps)
    return false;
  auto it = llvm::lower_bound(*stamps, stamp, isBefore);
  return it != stamps->end() && it->thread == stamp.thread &&
         it->time >= stamp.time;
}

int32_t Clocks::makeAgent() {
  agentTimes.push_back(0);
  return static_cast<int32_t>(n + agentTimes.size()) - 1;
}

const Clocks::Carried *Clocks::agentsOf(Message message) const {
  if (carried.empty())
    return nullptr;
  auto it = carried.find(message);
  return it == carried.end() ? nullptr : &it->second;
}

void Clocks::carry(Message message, const AgentTimes &agents) {
  if (agents.empty())
    return;
  workDone += 2 * agents.size();
  carried[message].agents.raise(agents);
}

void Clocks::hear(AgentTimes &into, const Carried *carried) {
  if (!carried)
    return;
  workDone += 2 * carried->agents.size();
  into.raise(carried->agents);
  into.raise(carried->more);
}

Message Clocks::add(Message message, llvm::ArrayRef<Timestamp> moments) {
  auto made = static_cast<Message>(messages.size());
  messages.push_back(MessageClocks(messages[message]));
  if (const Carried *agents = agentsOf(message))
    carry(made, AgentTimes(agents->agents));
  llvm::append_range(carried[made].more, moments);
  return made;
}

void Clocks::addTo(Message into, llvm::ArrayRef<Timestamp> moments) {
  if (!moments.empty())
    carried[into].agents.raise(moments);
}

//===----------------------------------------------------------------------===//
// Pieces of memory
//===----------------------------------------------------------------------===//

namespace {

/// Cuts the piece of `map` that holds `at` in two, so that one begins there.
template <typename Map>
void splitAt(Map &map, int64_t at) {
  auto it = map.upper_bound(at);
  if (it == map.begin())
    return;
  --it;
  if (it->first == at || it->second.end <= at)
    return;
  auto tail = it->second;
  it->second.end = at;
  map.emplace_hint(std::next(it), at, std::move(tail));
}

/// Visits pieces that cover [begin, end) exactly; makes those that are missing.
template <typename Map, typename Visit>
void cover(Map &map, int64_t begin, int64_t end, Visit visit) {
  if (begin >= end)
    return;
  // The common case: the same piece as last time.
  auto exact = map.find(begin);
  if (exact != map.end() && exact->second.end == end)
    return visit(begin, exact->second);
  splitAt(map, begin);
  splitAt(map, end);
  auto it = map.lower_bound(begin);
  for (int64_t at = begin; at < end;) {
    if (it == map.end() || it->first > at) {
      int64_t stop = it == map.end() ? end : std::min(end, it->first);
      it = map.emplace_hint(it, at, typename Map::mapped_type());
      it->second.end = stop;
    }
    visit(it->first, it->second);
    at = it->second.end;
    ++it;
  }
}

} // namespace

void Shadow::Piece::note(const Touch &now) {
  hasWrites |= now.writes;
  // Many are kept in order of threads, so that one's own are found soon.
  constexpr size_t many = 32;
  auto isBefore = [](const Touch &a, const Touch &b) {
    return a.stamp.thread < b.stamp.thread;
  };
  auto *begin = reads.begin();
  if (reads.size() > many)
    begin = llvm::lower_bound(reads, now, isBefore);
  for (auto *it = begin; it != reads.end(); ++it) {
    if (reads.size() > many && it->stamp.thread != now.stamp.thread)
      break;
    if (it->stamp.thread == now.stamp.thread && it->access == now.access &&
        it->writes == now.writes && it->sums == now.sums) {
      *it = now;
      return;
    }
  }
  if (reads.size() > many) {
    reads.insert(begin, now);
    return;
  }
  reads.push_back(now);
  if (reads.size() > many)
    llvm::sort(reads, isBefore);
}

void Shadow::access(int64_t begin, int64_t end,
                    llvm::function_ref<void(int64_t, Piece &)> visit) {
  cover(pieces, begin, end, visit);
}

void Shadow::settle(int64_t begin, int64_t end, Timestamp agent,
                    Timestamp now) {
  auto isDone = [&](const Touch &touch) {
    return touch.stamp.thread == agent.thread && touch.stamp.time <= agent.time;
  };
  access(begin, end, [&](int64_t, Piece &piece) {
    if (isDone(piece.write))
      piece.write.stamp = now;
    for (auto *it = llvm::find_if(piece.reads, isDone); it != piece.reads.end();
         it = llvm::find_if(piece.reads, isDone)) {
      Touch done = *it;
      done.stamp = now;
      piece.reads.erase(it);
      piece.note(done);
    }
  });
}

void Mailbox::access(int64_t begin, int64_t end,
                     llvm::function_ref<void(int64_t, Run &)> visit) {
  cover(runs, begin, end, visit);
}

bool Mailbox::holds(int64_t begin, int64_t end, int64_t flag,
                    int64_t &seen) const {
  seen = -1;
  auto it = runs.upper_bound(begin);
  if (it != runs.begin())
    --it;
  for (int64_t at = begin; at < end; ++it) {
    while (it != runs.end() && it->second.end <= at)
      ++it;
    if (it == runs.end() || it->first > at)
      return false;
    if (it->second.flag != flag) {
      seen = it->second.flag;
      return false;
    }
    at = it->second.end;
  }
  return true;
}
