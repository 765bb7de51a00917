//===- MachineChannels.cpp - Sends, receives and slots --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Slots of a channel that can be followed.
static constexpr int64_t maxSlots = int64_t(1) << 22;

std::vector<Machine::LastSend> &
Machine::sends(const Action &action, int64_t source, int64_t dest, bool all) {
  ChannelState &state = channels[action.object];
  return all ? state.toAll[rankIndex[source]]
             : state.toOne[pairOf(source, dest)];
}

const Machine::LastReceive *Machine::receipt(const Action &action,
                                             int64_t source, int64_t dest,
                                             int64_t slot) const {
  const auto &list = channels[action.object].receipts[pairOf(source, dest)];
  return static_cast<size_t>(slot) < list.size() ? &list[slot] : nullptr;
}

/// The slot, and how many elements of the tile exist (-1: unknown).
std::optional<int64_t> Machine::slotOf(Thread &thread, const Action &action,
                                       int64_t &valid) {
  auto slot = demand(thread, action, action.index, "slot");
  if (!slot)
    return std::nullopt;
  const ChannelPlan &channel = program.channels[action.object];
  valid = action.valid < 0 ? action.tileSize
                           : get(thread, action.valid).value_or(-1);
  if (*slot < 0 || *slot >= channel.slots || *slot >= maxSlots) {
    fatal = true;
    if (auto diag = report(action)) {
      *diag << "uses slot " << *slot << " of a channel with " << channel.slots
            << ", on " << when(thread);
      diag->attachNote(channel.op->getLoc()) << "the channel";
      diag->attachNote() << "slots are 0 to "
                         << std::min(channel.slots, maxSlots) - 1;
    }
    return std::nullopt;
  }
  if (action.valid >= 0 && get(thread, action.valid) &&
      (valid < 0 || valid > action.tileSize)) {
    fatal = true;
    if (auto diag = report(action)) {
      *diag << "says that " << valid << " elements are valid of a tile of "
            << action.tileSize << ", on " << when(thread);
      diag->attachNote() << "clamp it: arith.minsi and arith.maxsi with the "
                            "tile's length and 0";
    }
    return std::nullopt;
  }
  return slot;
}

/// A slot's memory comes round again two launches later: by then the tile must
/// have been received.
void Machine::checkReuse(Thread &thread, int32_t index, int64_t dest,
                         int64_t slot) {
  const Action &action = program.actions[index];
  const LastReceive *old = receipt(action, thread.rank, dest, slot);
  int32_t launch = thread.launch - 2;
  if (!old || old->launches[launch % 3] != launch)
    return;
  if (clocks.carriedOut(thread.id, {old->thread, old->times[launch % 3]})) {
    if (program.channels[action.object].isCleared)
      checkCleared(thread, action, old->thread, slot);
    return;
  }
  if (auto diag = report(action)) {
    *diag << "may overwrite slot " << slot << " in launch " << thread.launch
          << " before " << name(old->thread) << " has received what "
          << name(thread.id) << " sent in launch " << launch;
    diag->attachNote(program.actions[old->action].op->getLoc())
        << "the receive";
    diag->attachNote() << "end the kernel with a comms.barrier over the team, "
                          "or let the receiver answer";
  }
}

/// By the end of the launch before last, the receiver has cleared the slot: the
/// store that comes now must be behind that.
void Machine::checkCleared(const Thread &thread, const Action &action,
                           int32_t receiver, int64_t slot) {
  int32_t launch = thread.launch - 2;
  const Thread &other = threads[receiver];
  if (other.launch > launch &&
      isBehind(thread, Timestamp{receiver, other.ends[launch % 3]}))
    return;
  if (auto diag = report(action)) {
    *diag << "may write slot " << slot << " in launch " << thread.launch
          << " before " << name(receiver) << " has surely cleared it in launch "
          << launch;
    diag->attachNote() << "let the sender receive from that rank in each "
                          "launch, or from one that has, or end the kernel "
                          "with a comms.barrier over the team";
  }
}

/// A slot of a channel that is reused takes another tile in the same launch:
/// the one before must have been received, and the sender must know.
void Machine::checkResend(Thread &thread, int32_t index, int64_t dest,
                          int64_t slot, const LastSend &before) {
  const Action &action = program.actions[index];
  const LastReceive *old = receipt(action, thread.rank, dest, slot);
  size_t now = thread.launch % 3;
  bool received =
      old && old->launches[now] == thread.launch && old->round == before.round;
  if (received && clocks.carriedOut(thread.id, {old->thread, old->times[now]}))
    return;
  if (auto diag = report(action)) {
    *diag << "may overwrite slot " << slot << " on " << when(thread)
          << " before rank " << dest << " has received what was sent in round "
          << before.round;
    diag->attachNote(program.actions[before.action].op->getLoc())
        << "the send before it";
    diag->attachNote() << "end the round with a comms.barrier over the team "
                          "behind its receives";
  }
}

/// `valid`, where it is not known by more.
Interval Machine::channelLength(const Thread &thread,
                                const Action &action) const {
  if (action.valid < 0)
    return Interval::of(action.tileSize);
  Interval length = getInterval(thread, action.valid);
  length.low = std::clamp<int64_t>(length.low, 0, action.tileSize);
  length.high = std::clamp<int64_t>(length.high, 0, action.tileSize);
  return length;
}

/// Both sides say how many elements there are, and mean the same number.
void Machine::compareChannelLengths(Thread &thread, const Action &action,
                                    const LastSend &tile) {
  const Action &send = program.actions[tile.action];
  Interval wanted = channelLength(thread, action);
  if (wanted.term != 0 && wanted.term == tile.length.term)
    return;
  if (!terms.isAtMost(tile.length.term, wanted.term))
    return compareLengths(thread, action, send, tile.thread, wanted,
                          tile.length);
  noteUnproven(action.op, "may expect more elements than there are", "the send",
               send.op);
}

void Machine::doSend(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  const ChannelPlan &channel = program.channels[action.object];
  int64_t valid = 0;
  auto slot = slotOf(thread, action, valid);
  if (!slot)
    return;
  bool all = channel.pattern == ChannelPattern::Multicast && action.peer < 0;
  int64_t dest = -1;
  if (!all) {
    auto peer = peerOf(thread, action);
    if (!peer)
      return;
    dest = *peer;
  }
  // Nobody looks at what goes to a rank that is not followed.
  if (!all && rankIndex[dest] < 0)
    return;
  if (folding)
    (void)agree(folding->touchSlot(action.object, thread.rank, *slot));
  std::vector<LastSend> &list = sends(action, thread.rank, dest, all);
  if (list.size() <= static_cast<size_t>(*slot))
    list.resize(*slot + 1);
  LastSend &tile = list[*slot];
  bool again = tile.launch == thread.launch;
  int32_t round = rounds[action.object][thread.id];
  if (again && !(channel.reused && tile.round < round)) {
    if (auto diag = report(action)) {
      *diag << "sends through slot " << *slot << " on " << when(thread)
            << ", which already carries what " << name(tile.thread) << " sent";
      diag->attachNote(program.actions[tile.action].op->getLoc())
          << "the first send";
      diag->attachNote() << "a slot carries at most one tile a "
                         << (channel.reused ? "round" : "launch")
                         << " for each source and destination: number slots "
                            "by tile";
    }
    return;
  }
  LastSend before = tile;
  tile = {index,
          thread.id,
          thread.launch,
          round,
          valid,
          clocks.send(thread.id, /*release=*/false),
          channelLength(thread, action),
          contents ? sentTile(thread, action) : 0};
  const TeamView &team = view(thread, action.team);
  auto sendTo = [&](int64_t to) {
    if (rankIndex[to] < 0)
      return;
    ++channels[action.object].due;
    if (again)
      checkResend(thread, index, to, *slot, before);
    else if (thread.launch > 2 && !shape.isPartial())
      checkReuse(thread, index, to, *slot);
  };
  if (!all)
    return sendTo(dest);
  for (int64_t rank = 0; rank < team.size; ++rank)
    if (team.world(rank) != thread.rank)
      sendTo(team.world(rank));
}

bool Machine::doRecv(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  const ChannelPlan &channel = program.channels[action.object];
  int64_t valid = 0;
  auto slot = slotOf(thread, action, valid);
  auto source = slot ? peerOf(thread, action) : std::nullopt;
  if (!source)
    return true;
  if (rankIndex[*source] < 0)
    return true;
  bool all = channel.pattern == ChannelPattern::Multicast;
  const std::vector<LastSend> &list = sends(action, *source, thread.rank, all);
  if (list.size() <= static_cast<size_t>(*slot) ||
      list[*slot].launch != thread.launch)
    return false;
  if (folding)
    (void)agree(folding->touchSlot(action.object, *source, *slot));
  const LastSend &tile = list[*slot];
  const Action &send = program.actions[tile.action];
  int32_t round = rounds[action.object][thread.id];
  if (channel.reused && round > tile.round + 1)
    if (auto diag = report(action)) {
      *diag << "receives slot " << *slot << " on " << name(thread.id)
            << " in round " << round - 1
            << ", but what is in it was sent in round " << tile.round;
      diag->attachNote(send.op->getLoc())
          << "the send, on " << name(tile.thread);
      diag->attachNote() << "a tile of a reused channel is received in the "
                            "round that it was sent in, before the next "
                            "comms.channel_barrier";
    }
  if (round <= tile.round)
    if (auto diag = report(action)) {
      *diag << "receives slot " << *slot << " on " << name(thread.id)
            << " with no comms.channel_barrier between it and the send";
      diag->attachNote(send.op->getLoc())
          << "the send, on " << name(tile.thread);
      diag->attachNote() << "every block passes comms.channel_barrier between "
                            "the sends of a round and its receives";
    }
  if (threads[tile.thread].block != thread.block)
    if (auto diag = report(action)) {
      *diag << "receives slot " << *slot << " on " << name(thread.id)
            << ", which " << name(tile.thread) << " sent";
      diag->attachNote(send.op->getLoc()) << "the send";
      diag->attachNote() << "block b receives only from block b: share the "
                            "tiles among blocks in the same way on both sides";
    }
  if (!channel.countsAgree && (valid < 0 || tile.valid < 0))
    compareChannelLengths(thread, action, tile);
  if (valid >= 0 && tile.valid >= 0 && valid != tile.valid)
    if (auto diag = report(action)) {
      *diag << "expects " << valid << " elements in slot " << *slot << " on "
            << name(thread.id) << ", but " << name(tile.thread) << " sends "
            << tile.valid;
      diag->attachNote(send.op->getLoc()) << "the send";
      diag->attachNote() << "`valid` must be the same on both sides";
    }
  std::vector<LastReceive> &receipts =
      channels[action.object].receipts[pairOf(*source, thread.rank)];
  if (receipts.size() <= static_cast<size_t>(*slot))
    receipts.resize(list.size());
  LastReceive &got = receipts[*slot];
  bool isNew = got.launches[thread.launch % 3] != thread.launch ||
               got.round != tile.round;
  if (isNew && !(all && *source == thread.rank))
    ++channels[action.object].taken;
  got.action = index;
  got.thread = thread.id;
  got.round = tile.round;
  got.launches[thread.launch % 3] = thread.launch;
  got.times[thread.launch % 3] = clocks.stamp(thread.id).time;
  hear(thread, index, tile.message, tile.thread, /*acquire=*/false,
       /*near=*/false);
  if (contents)
    set(thread, action.tile, Interval::of(tile.tile));
  return true;
}

bool Machine::doChannelBarrier(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  BarrierState &state =
      barriers[barrier(thread, action.team, false, action.object)];
  if (thread.pending < 0)
    thread.pending = arrive(thread, index, state, false, false);
  if (!leave(thread, index, state, thread.pending, false, false))
    return false;
  thread.pending = -1;
  ++rounds[action.object][thread.id];
  return true;
}

/// At the end of a launch every send has been received.
void Machine::checkAllReceipts() {
  for (ChannelState &state : channels) {
    if (state.taken != state.due)
      checkReceipts(state);
    state.taken = state.due = 0;
  }
}

void Machine::checkReceipts(const ChannelState &state) {
  auto check = [&](const LastSend &tile, size_t slot, int64_t dest) {
    if (tile.launch == 0 || rankIndex[dest] < 0)
      return;
    const Action &action = program.actions[tile.action];
    int64_t source = threads[tile.thread].rank;
    const LastReceive *got = receipt(action, source, dest, slot);
    // All threads have ended the launch of this tile.
    if (tile.launch != threads[tile.thread].launch ||
        (got && got->launches[tile.launch % 3] == tile.launch &&
         got->round == tile.round))
      return;
    if (auto diag = report(action)) {
      *diag << "sends slot " << slot << " in launch " << tile.launch
            << " from rank " << source << " to rank " << dest
            << ", which never receives it";
      diag->attachNote(program.channels[action.object].op->getLoc())
          << "the channel";
      diag->attachNote() << "every send needs a comms.recv of the same slot, "
                            "source and block at its destination";
    }
  };
  for (const auto &list : state.toAll)
    for (auto [slot, tile] : llvm::enumerate(list)) {
      if (tile.launch == 0)
        continue;
      const Thread &sender = threads[tile.thread];
      const TeamView &team = view(sender, program.actions[tile.action].team);
      for (int64_t rank = 0; rank < team.size; ++rank)
        if (team.world(rank) != sender.rank)
          check(tile, slot, team.world(rank));
    }
  for (auto [pair, list] : llvm::enumerate(state.toOne))
    for (auto [slot, tile] : llvm::enumerate(list))
      check(tile, slot, shape.followed[pair % shape.followed.size()]);
}
