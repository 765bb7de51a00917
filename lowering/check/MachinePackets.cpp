//===- MachinePackets.cpp - Packets and poison ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "dialect/Packets.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

int64_t Machine::unitsOf(const Action &action, int64_t count) const {
  if (action.kind != ActionKind::PacketStore &&
      action.kind != ActionKind::PacketLoad)
    return count;
  int64_t unit = getUnitBits(action.assumes);
  count = count > 0 && count < (int64_t(1) << 40)
              ? (count * action.elementBits + unit - 1) / unit
              : 0;
  // A line is stored and looked at as a whole.
  return areLines(action.assumes)
             ? static_cast<int64_t>(llvm::alignTo(count, kLineUnits))
             : count;
}

Interval Machine::lengthOf(const Thread &thread, const Action &action) const {
  const RangePlan &range = action.ranges[0];
  if (range.count < 0)
    return Interval::of(range.fixedCount);
  Interval count = getInterval(thread, range.count);
  count.low = std::clamp<int64_t>(count.low, 0, range.fixedCount);
  count.high = std::clamp<int64_t>(count.high, 0, range.fixedCount);
  return count;
}

void Machine::compareLengths(Thread &thread, const Action &action,
                             const Action &store, int32_t storer,
                             Interval wanted, Interval stored) {
  if (wanted.high <= stored.low || terms.isAtMost(wanted.term, stored.term))
    return;
  auto most = findSum(terms, stored), least = findSum(terms, wanted);
  if (most && least && most->add(*least, -1) &&
      isNeverNegative(terms, *most, {}))
    return;
  auto number = [](Interval value) {
    return value.isKnown() ? std::to_string(value.low)
                           : std::to_string(value.low) + " to " +
                                 std::to_string(value.high);
  };
  std::string text = "expects " + number(wanted) + " elements on " +
                     when(thread) + ", but data decide how many " +
                     name(storer) + " stores: " + number(stored);
  const char *hint = "store all elements that are waited for, or send the "
                     "number first and load as many";
  // Of numbers that have to do with each other nothing more is known.
  bool isFree = wanted.isKnown() || stored.isKnown() ||
                terms.isIndependent(wanted.term, stored.term);
  if (!isFree) {
    UnprovenReason &made = noteUnproven(action.op, text, "the store", store.op);
    made.isCounted = true;
    if (made.notes.size() == 1)
      made.notes.emplace_back(nullptr, hint);
    return;
  }
  if (auto diag = report(action)) {
    *diag << text;
    diag->attachNote(store.op->getLoc()) << "the store";
    diag->attachNote() << hint;
  }
}

std::optional<Machine::Bounds> Machine::packetBounds(Thread &thread,
                                                     const Action &action) {
  const RangePlan &range = action.ranges[0];
  const MemoryPlan &memory = range.memory;
  if (memory.argument < 0) {
    fatal = true;
    if (auto diag = report(action))
      *diag << "uses memory that is not a kernel argument, whose packets "
               "comms-check-sync does not follow";
    return std::nullopt;
  }
  if (memory.kind == MemoryPlan::Peer) {
    Action at = {};
    at.op = action.op;
    at.peer = memory.peer;
    at.team = memory.team;
    if (!peerOf(thread, at))
      return std::nullopt;
  }
  auto offset = demand(thread, action, range.offset, "offset");
  if (!offset)
    return std::nullopt;
  RangePlan words = range;
  bool packets = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  int64_t count = range.fixedCount;
  if (range.count >= 0) {
    // Of a tile whose length depends on data this is the most.
    bool isTile = action.kind != ActionKind::PoisonFill;
    auto some = isTile
                    ? get(thread, range.count)
                    : demand(thread, action, range.count, "number of elements");
    if (!some && !isTile)
      return std::nullopt;
    count = some.value_or(lengthOf(thread, action).high);
    if (some && isTile && (*some < 0 || *some > range.fixedCount)) {
      (void)bounds(thread, action, range); // Says so.
      return std::nullopt;
    }
  }
  count = unitsOf(action, count);
  if (packets && areLines(action.assumes) && *offset % kLineUnits != 0) {
    fatal = true;
    if (auto diag = report(action)) {
      *diag << "begins at " << *offset << " on " << when(thread)
            << ", which is not the first of a line";
      diag->attachNote() << "use a multiple of " << kLineUnits;
    }
    return std::nullopt;
  }
  words.count = noRegister;
  words.fixedCount = count;
  auto result = bounds(thread, action, words);
  if (!result)
    fatal = true;
  return result;
}

/// Of a tile whose length data decide, the elements that are there on all data
/// are stored, and then those that may be.
void Machine::store(Thread &thread, int32_t index, int64_t rank, Bounds bounds,
                    int64_t flag) {
  const Action &action = program.actions[index];
  forgetIntegers(placeOf(action.ranges[0].memory.argument, rank));
  Interval length = lengthOf(thread, action);
  int64_t sure = action.kind == ActionKind::PoisonFill || length.isKnown()
                     ? bounds.end
                     : bounds.begin + unitsOf(action, length.low);
  Mailbox::Run made;
  storePart(thread, index, rank, {bounds.begin, sure}, flag, made);
  made.isUnsure = true;
  made.length = length;
  made.from = bounds.begin;
  storePart(thread, index, rank, {sure, bounds.end}, flag, made);
}

/// Checks that a store of packets or poison with `flag` loses nothing of what
/// `run` holds. `place` names its elements.
void Machine::checkOverwrite(Thread &thread, const Action &action,
                             const Mailbox::Run &run, int64_t flag,
                             llvm::function_ref<std::string()> place) {
  const Touch *early = nullptr;
  for (const Touch &read : run.reads)
    if (!clocks.carriedOut(thread.id, read.stamp))
      early = &read;
  bool isSame = run.flag == flag;
  if (early) {
    reportUnread(thread, action, *early, place());
  } else if (isSame && action.kind != ActionKind::PoisonFill) {
    reportSameFlag(thread, action, run, place());
  } else if (run.store.action < 0 ||
             clocks.visible(thread.id, run.store.stamp)) {
    // Nothing has been stored there, or it is ordered before.
  } else if (clocks.carriedOut(thread.id, run.store.stamp)) {
    SmallVector<Timestamp> moments = {run.store.stamp};
    for (const Touch &read : run.reads)
      moments.push_back(read.stamp);
    if (!isBehind(thread, moments))
      reportOvertaking(thread, action, run.store, "writes to " + place());
  } else if (auto diag = report(action)) {
    *diag << "writes to " << place() << " on " << when(thread)
          << " with no order between it and " << name(run.store.stamp.thread)
          << " in launch " << run.store.launch;
    diag->attachNote(program.actions[run.store.action].op->getLoc())
        << "the other store";
    diag->attachNote() << "give each writer its own part, or order them "
                          "with a signal or a barrier";
  }
}

void Machine::reportUnread(const Thread &thread, const Action &action,
                           const Touch &read, const std::string &place) {
  auto diag = report(action);
  if (!diag)
    return;
  *diag << "overwrites " << place << " on " << when(thread) << " before "
        << name(read.stamp.thread) << " has surely read it in launch "
        << read.launch;
  reported.insert(program.actions[read.action].op);
  diag->attachNote(program.actions[read.action].op->getLoc()) << "the read";
  diag->attachNote() << "alternate buffers by comms.epoch, or let the "
                        "reader answer before the next launch";
}

void Machine::reportSameFlag(const Thread &thread, const Action &action,
                             const Mailbox::Run &run,
                             const std::string &place) {
  auto diag = report(action);
  if (!diag)
    return;
  bool isPacket = action.kind == ActionKind::PacketStore;
  if (isPacket)
    *diag << "writes flag " << (run.flag & 0xffffffff) << " to " << place
          << " on " << when(thread) << ", where packets of launch "
          << run.store.launch
          << " have that flag already: a reader cannot tell them apart";
  else
    *diag << "writes to " << place << " on " << when(thread)
          << ", which still holds the tile of launch " << run.store.launch
          << ": a reader would take the old one for the new";
  for (const Touch &read : run.reads)
    reported.insert(program.actions[read.action].op);
  diag->attachNote(program.actions[run.store.action].op->getLoc())
      << "the earlier store";
  diag->attachNote() << (isPacket
                             ? "let the flag grow with comms.epoch"
                             : "let the reader clear it with comms.poison_fill "
                               "before it is used again");
}

void Machine::storePart(Thread &thread, int32_t index, int64_t rank,
                        Bounds bounds, int64_t flag, const Mailbox::Run &made) {
  if (bounds.begin >= bounds.end)
    return;
  int32_t argument = program.actions[index].ranges[0].memory.argument;
  Mailbox &box = mailboxes[placeOf(argument, rank)];
  bool near = rank == thread.rank;
  touchPackets(thread, index, rank, /*write=*/true, bounds);
  const Action &action = program.actions[index];
  Touch now{clocks.stamp(thread.id), index, thread.launch, Touch::Mail, true};
  completeFenced(thread);
  Message message = clocks.send(thread.id, /*release=*/false, near);
  bool poison = action.kind != ActionKind::PacketStore;
  box.access(bounds.begin, bounds.end, [&](int64_t begin, Mailbox::Run &run) {
    steps += 2 + run.reads.size();
    checkOverwrite(thread, action, run, flag,
                   [&] { return placeName(argument, rank, {begin, run.end}); });
    // Memory that nobody has filled with poison looks like a tile.
    bool isFirst = run.store.action < 0;
    if (isFirst && poison && !program.arguments[argument].isPoisoned)
      run.past.emplace_back(1, now.stamp);
    if (run.flag != flag && !isFirst) {
      llvm::erase_if(run.past,
                     [&](const auto &old) { return old.first == run.flag; });
      run.past.emplace_back(run.flag, now.stamp);
    }
    run.isUnsure = made.isUnsure;
    run.length = made.length;
    run.from = made.from;
    run.flag = flag;
    run.store = now;
    run.message = message;
    run.reads.clear();
  });
}

bool Machine::doPackets(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto piece = packetBounds(thread, action);
  if (!piece)
    return true;
  bool isLoad = action.kind == ActionKind::PacketLoad ||
                action.kind == ActionKind::PoisonLoad;
  bool hasFlag = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  int64_t flag = action.kind == ActionKind::PoisonFill ? -1 : 1;
  if (hasFlag) {
    auto value = demand(thread, action, action.value, "flag");
    if (!value)
      return true;
    flag = *value & 0xffffffff;
    if (isLoad && flag == 0) {
      reportEmptyFlag(thread, action);
      return true;
    }
    // A load of packets of 8 bytes finds no line, and the reverse.
    if (areLines(action.assumes))
      flag |= int64_t(1) << 32;
  }
  if (isLoad)
    return loadPackets(thread, index, *piece, flag);
  storePackets(thread, index, *piece, flag);
  return true;
}

void Machine::reportEmptyFlag(const Thread &thread, const Action &action) {
  if (auto diag = report(action)) {
    *diag << "waits for flag 0 on " << when(thread)
          << ", which memory holds before anything is stored";
    diag->attachNote() << "begin with flag 1: comms.epoch does";
  }
  fatal = true;
}

/// World rank whose memory `action` stores to or loads from.
int64_t Machine::packetRank(const Thread &thread, const Action &action) const {
  const MemoryPlan &memory = action.ranges[0].memory;
  return memory.kind == MemoryPlan::Peer
             ? view(thread, memory.team).world(*get(thread, memory.peer))
             : thread.rank;
}

void Machine::storePackets(Thread &thread, int32_t index, Bounds piece,
                           int64_t flag) {
  const Action &action = program.actions[index];
  const MemoryPlan &memory = action.ranges[0].memory;
  auto storeAt = [&](int64_t to) {
    if (folding)
      (void)agree(
          folding->touchPackets(thread.id, action, to, piece.begin, piece.end));
    store(thread, index, to, piece, flag);
    if (contents)
      packetContents(thread, action, piece.begin, to);
  };
  if (memory.kind != MemoryPlan::Multimem)
    return storeAt(packetRank(thread, action));
  const TeamView &team = view(thread, memory.team);
  for (int64_t peer = 0; peer < team.size; ++peer)
    storeAt(team.world(peer));
}

bool Machine::loadPackets(Thread &thread, int32_t index, Bounds piece,
                          int64_t flag) {
  const Action &action = program.actions[index];
  int64_t rank = packetRank(thread, action);
  Mailbox &box = mailboxes[placeOf(action.ranges[0].memory.argument, rank)];
  int64_t seen = -1;
  if (!box.holds(piece.begin, piece.end, flag, seen))
    return false;
  if (folding)
    (void)agree(
        folding->touchPackets(thread.id, action, rank, piece.begin, piece.end));
  Touch now{clocks.stamp(thread.id), index, thread.launch, Touch::Mail, false};
  touchPackets(thread, index, rank, /*write=*/false, piece);
  box.access(piece.begin, piece.end, [&](int64_t, Mailbox::Run &run) {
    checkOldPackets(thread, action, run, flag);
    if (run.isUnsure) {
      // Elements count from the tile's first one on either side.
      Interval wanted = lengthOf(thread, action);
      if (run.from != piece.begin)
        wanted.term = 0;
      compareLengths(thread, action, program.actions[run.store.action],
                     run.store.stamp.thread, wanted, run.length);
    }
    remember(run.reads, now);
    int32_t sender = run.store.stamp.thread;
    hear(thread, index, run.message, sender, /*acquire=*/false,
         /*near=*/threads[sender].rank == thread.rank);
  });
  if (contents)
    packetContents(thread, action, piece.begin, rank);
  return true;
}

/// Checks that a load is met only by the store that it waits for.
void Machine::checkOldPackets(const Thread &thread, const Action &action,
                              const Mailbox::Run &run, int64_t flag) {
  bool hasFlag = action.kind == ActionKind::PacketLoad;
  bool isOld = llvm::any_of(run.reads, [&](const Touch &read) {
    return read.launch < thread.launch;
  });
  if (isOld)
    if (auto diag = report(action)) {
      *diag << "is met at launch " << thread.launch
            << " by what was stored in launch " << run.store.launch << ", on "
            << name(thread.id);
      diag->attachNote(program.actions[run.store.action].op->getLoc())
          << "the store";
      diag->attachNote() << (hasFlag ? "let the flag grow with comms.epoch"
                                     : "clear what has been read with "
                                       "comms.poison_fill");
    }
  for (const auto &[old, overwritten] : run.past) {
    if (old != flag || isBehind(thread, overwritten))
      continue;
    auto diag = report(action);
    if (!diag)
      continue;
    *diag << "may be met on " << when(thread) << " by what was there before "
          << name(overwritten.thread) << " overwrote it";
    diag->attachNote(program.actions[run.store.action].op->getLoc())
        << "the store that it should wait for";
    diag->attachNote()
        << (hasFlag ? "let each store have a flag of its own, or let the "
                      "reader wait until the old tile is gone"
                    : "fill it with poison first, comms.poison_fill, and "
                      "let a barrier follow");
  }
}

/// Packets and plain accesses to one memory do not go together.
void Machine::touchPackets(Thread &thread, int32_t index, int64_t rank,
                           bool write, Bounds units) {
  const Action &action = program.actions[index];
  const MemoryPlan &memory = action.ranges[0].memory;
  const ArgumentPlan &argument = program.arguments[memory.argument];
  if (!argument.hasData || !isTracked(argument) || shape.isPartial())
    return;
  // The units are not those of plain accesses: as written by all blocks.
  if (folding)
    (void)agree(folding->touchMemory(thread.id, action.ranges[0], rank, 0,
                                     INT64_MAX, true, /*isExact=*/false));
  touchPart(thread, index, memory.argument, rank, write, units);
  // Lines have rests behind them.
  bool packets = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  if (packets && areLines(action.assumes) && memory.limit < argument.elements)
    touchPart(thread, index, memory.argument, rank, write,
              {memory.limit, argument.elements});
}
