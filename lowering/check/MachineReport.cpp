//===- MachineReport.cpp - Texts about waiting threads --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::formatv;

/// More errors than this are not shown.
static constexpr unsigned maxErrors = 20;

std::optional<InFlightDiagnostic> Machine::report(const Action &action) {
  return report(action.op);
}

/// One error for each op: a second one would most often follow from the first.
std::optional<InFlightDiagnostic> Machine::report(Operation *op) {
  if (!reported.insert(op).second || ++errors > maxErrors)
    return std::nullopt;
  return op->emitOpError();
}

std::optional<InFlightDiagnostic> Machine::reportRange(const Action &action) {
  if (!shape.model)
    return report(action);
  leavesRange = true;
  return std::nullopt;
}

void Machine::reportOvertaking(const Thread &thread, const Action &action,
                               const Touch &write, llvm::StringRef what) {
  auto diag = report(action);
  if (!diag)
    return;
  *diag << what << " on " << when(thread)
        << ", which has observed the write by " << name(write.stamp.thread)
        << " in launch " << write.launch
        << " through relaxed ops only: that write may come last";
  diag->attachNote(program.actions[write.action].op->getLoc())
      << "the earlier write";
  noteChain(*diag, thread, write.stamp);
}

void Machine::noteChain(InFlightDiagnostic &diag, const Thread &thread,
                        Timestamp write) const {
  SmallVector<std::pair<int32_t, const Heard *>> chain;
  int32_t at = thread.id;
  // What was heard long ago has been forgotten: there the chain begins.
  while (at >= 0 && at != write.thread) {
    auto first = llvm::find_if(heard[at], [&](const Heard &one) {
      bool isBefore = chain.empty() ||
                      clocks.tells(chain.back().second->message, one.moment);
      return isBefore && clocks.tells(one.message, write);
    });
    if (first == heard[at].end())
      break;
    chain.emplace_back(at, &*first);
    at = first->sender;
  }
  for (auto [listener, one] : llvm::reverse(chain))
    diag.attachNote(program.actions[one->action].op->getLoc())
        << name(listener) << " observes it here in launch " << one->launch
        << (one->sender < 0 ? "" : ", from " + name(one->sender));
  diag.attachNote()
      << "put comms.fence acq_rel sys before each signal, packet or poison of "
         "the chain and before the last write, or use signals and waits of "
         "order release and acquire; or state the assumption "
         "packets_cumulative on the kernel (comms.assumes) if a fence follows "
         "the earlier write";
}

std::string Machine::name(int32_t thread) const {
  const Thread &one = threads[ownerOf(thread)];
  return formatv("rank {0} block {1}", one.rank, one.block);
}

std::string Machine::when(const Thread &thread) const {
  return formatv("{0} in launch {1}", name(thread.id), thread.launch);
}

std::string Machine::cellName(const Cell &cell) const {
  const ArgumentPlan &argument = program.arguments[cell.argument];
  return formatv("{0} {1}[{2}] of rank {3}",
                 argument.isCounter ? "counter" : "signal", argument.name,
                 cell.index, cell.rank);
}

std::string Machine::placeName(int32_t argument, int64_t rank,
                               Bounds bounds) const {
  return formatv("[{0}, {1}) of '{2}' at rank {3}", bounds.begin, bounds.end,
                 program.arguments[argument].name, rank);
}

const Action &Machine::waitsAt(int32_t thread) const {
  return program.actions[program.code[threads[thread].pc].extra];
}

Waiting Machine::describe(int32_t id) const {
  const Thread &thread = threads[id];
  const Action &action = waitsAt(id);
  Waiting result;
  auto await = [&](int64_t rank, int64_t block) {
    if (int32_t other = threadOf(rank, block); other >= 0 && other != id)
      result.awaited.push_back(other);
  };
  auto describeCell = [&] {
    int64_t index = get(thread, action.index).value_or(-1);
    int64_t want = get(thread, action.value).value_or(0);
    auto it =
        cellIds.find({uint64_t(action.object) << 32 | uint64_t(thread.rank),
                      uint64_t(index)});
    const Cell *cell = it == cellIds.end() ? nullptr : &cells[it->second];
    int64_t value = cell ? cell->value : 0;
    bool equal =
        action.kind == ActionKind::WaitSignal && action.wait == WaitKind::Eq;
    const std::string &argument = program.arguments[action.object].name;
    result.what =
        formatv("{0} {1}[{2}] {3} {4}; observed {5}",
                action.kind == ActionKind::WaitCounter ? "counter" : "signal",
                argument, index, equal ? "==" : ">=", want, value);
    if (equal && value > want)
      result.what += ": it has passed that value and will not return to it";
    if (action.kind != ActionKind::WaitSignal)
      return;
    // Who has signaled in this launch, and who has not.
    std::vector<bool> has(shape.ranks);
    std::string senders;
    if (cell)
      for (const Change &change : cell->changes) {
        int32_t rank = threads[change.stamp.thread].rank;
        if (change.launch != thread.launch || has[rank] ||
            program.actions[change.action].kind != ActionKind::Signal)
          continue;
        has[rank] = true;
        senders += (senders.empty() ? "rank " : ", ") + std::to_string(rank);
      }
    auto peer = action.peer < 0 ? std::nullopt : get(thread, action.peer);
    if (peer) {
      result.each = true;
      int64_t rank = view(thread, action.team).world(*peer);
      if (!has[rank])
        for (int64_t block = 0; block < shape.blocks; ++block)
          await(rank, block);
      result.details.push_back(
          formatv("rank {0} should have signaled it", rank));
    } else {
      // Whoever signals the same cell of the other ranks, seen from there.
      std::vector<bool> expected(shape.ranks);
      bool pattern = false;
      for (const Cell &other : cells)
        if (other.argument == action.object && other.index == index &&
            other.rank != thread.rank)
          for (const Change &change : other.changes)
            if (change.launch == thread.launch) {
              int64_t distance = threads[change.stamp.thread].rank - other.rank;
              expected[(thread.rank + distance + shape.ranks) % shape.ranks] =
                  pattern = true;
            }
      for (int64_t rank = 0; rank < shape.ranks; ++rank)
        if (!has[rank] && rank != thread.rank && (!pattern || expected[rank]))
          await(rank, thread.block);
    }
    result.details.push_back(
        senders.empty() ? std::string("no rank has signaled it in this launch")
                        : "signaled in this launch by " + senders);
    std::string others;
    unsigned shown = 0;
    for (const Cell &other : cells)
      if (&other != cell && other.argument == action.object &&
          other.rank == thread.rank && other.value != 0 && ++shown <= 4)
        others += formatv("{0}{1}[{2}] is {3}", others.empty() ? "" : ", ",
                          argument, other.index, other.value);
    if (!others.empty()) {
      result.details.push_back("other cells of this rank: " + others);
      result.mismatch = true;
    }
    result.mismatch |= equal && value > want;
  };
  auto describeBarrier = [&](const BarrierState &state, int32_t number) {
    const Generation &generation = state.generations[number];
    result.each = true;
    result.what = formatv("all {0} blocks of the barrier; {1} arrived",
                          state.members, generation.arrived);
    for (int64_t rank = 0; rank < state.team.size; ++rank)
      for (int64_t block = 0; block < shape.blocks; ++block) {
        if (!state.grid && block != state.block)
          continue;
        int32_t other = threadOf(state.team.world(rank), block);
        if (other < 0)
          continue;
        auto it = state.arrivals.find(other);
        if (it == state.arrivals.end() || it->second <= number)
          result.awaited.push_back(other);
      }
  };
  auto barrierOf = [&](int32_t channel, bool grid) -> const BarrierState & {
    const TeamView team = action.kind == ActionKind::EngineCopy
                              ? TeamView{thread.rank, 1, 1, 0}
                              : view(thread, action.team);
    uint64_t who = uint64_t(team.first) << 42 | uint64_t(team.stride) << 21 |
                   uint64_t(team.size);
    uint64_t what = uint64_t(channel + 1) << 32 |
                    (grid ? uint64_t(1) << 31 : uint64_t(thread.block));
    return barriers[barrierIds.find({who, what})->second];
  };
  switch (action.kind) {
  case ActionKind::WaitSignal:
  case ActionKind::WaitCounter:
    describeCell();
    break;
  case ActionKind::ReadSignal: {
    int64_t index = get(thread, action.index).value_or(0);
    result.what = formatv("signal {0}[{1}] to change",
                          program.arguments[action.object].name, index);
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      await(rank, thread.block);
    break;
  }
  case ActionKind::Barrier:
    describeBarrier(barrierOf(-1, action.extent == BarrierExtent::Grid),
                    thread.pending);
    break;
  case ActionKind::EngineCopy:
    describeBarrier(
        barrierOf(-2 - program.code[thread.pc].extra, /*grid=*/true),
        thread.pending);
    break;
  case ActionKind::ChannelBarrier:
    describeBarrier(barrierOf(action.object, false), thread.pending);
    break;
  case ActionKind::BarrierWait: {
    int64_t token = get(thread, action.token).value_or(0);
    describeBarrier(barriers[token >> 32],
                    static_cast<int32_t>(token & 0x7fffffff));
    break;
  }
  case ActionKind::Recv: {
    int64_t peer = get(thread, action.peer).value_or(0);
    int64_t source = view(thread, action.team).world(peer);
    result.each = true;
    result.what = formatv("rank {0} to send slot {1}", source,
                          get(thread, action.index).value_or(0));
    if (source != thread.rank)
      await(source, thread.block);
    bool all =
        program.channels[action.object].pattern == ChannelPattern::Multicast;
    std::string slots;
    unsigned shown = 0;
    const ChannelState &state = channels[action.object];
    const auto &list = all ? state.toAll[rankIndex[source]]
                           : state.toOne[pairOf(source, thread.rank)];
    for (auto [slot, tile] : llvm::enumerate(list))
      if (tile.launch == thread.launch && shown++ < 4)
        slots += (slots.empty() ? "" : ", ") + std::to_string(slot);
    result.mismatch = !slots.empty();
    if (result.mismatch)
      result.details.push_back(
          formatv("rank {0} has sent slot {1} of this channel in this launch",
                  source, slots));
    break;
  }
  case ActionKind::PacketLoad:
  case ActionKind::PoisonLoad: {
    int64_t offset = get(thread, action.ranges[0].offset).value_or(0);
    int32_t argument = action.ranges[0].memory.argument;
    result.what = formatv("{0} at {1}[{2}]",
                          action.kind == ActionKind::PacketLoad
                              ? formatv("packets with flag {0}",
                                        get(thread, action.value).value_or(0))
                                    .str()
                              : std::string("a tile"),
                          program.arguments[argument].name, offset);
    int64_t seen = -1, last = offset + 1;
    const Mailbox &box =
        mailboxes[size_t(argument) * shape.followed.size() + thread.rankIndex];
    if (action.kind == ActionKind::PacketLoad &&
        action.ranges[0].memory.kind == MemoryPlan::Own) {
      (void)box.holds(offset, last, INT64_MIN, seen);
      result.mismatch = seen >= 0;
      result.details.push_back(
          seen < 0 ? std::string("nothing has been stored there")
                   : formatv("the flag there is {0}", seen & 0xffffffff).str());
    }
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      await(rank, thread.block);
    break;
  }
  default:
    break;
  }
  return result;
}
