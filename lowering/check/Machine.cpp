//===- Machine.cpp - Follows a program on every rank and block ------------===//
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

/// An action costs about as much as this many instructions.
static constexpr uint64_t actionCost = 8;
/// Events in which further errors are looked for behind the first.
static constexpr uint64_t moreErrorsEvents = 32'000'000;

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

Machine::Machine(const Program &program, const WorldShape &shape,
                 Footprints *footprints)
    : program(program), shape(shape),
      clocks(
          static_cast<int32_t>(shape.followed.size() * shape.followedBlocks()),
          program.followsChains),
      rankIndex(shape.ranks, -1) {
  size_t followed = shape.followed.size();
  int64_t blocks = shape.followedBlocks();
  threads.resize(followed * blocks);
  values.reserve(threads.size() * program.initialValues.size());
  for (size_t i = 0; i < followed; ++i) {
    rankIndex[shape.followed[i]] = static_cast<int32_t>(i);
    for (int64_t block = 0; block < blocks; ++block) {
      int32_t id = static_cast<int32_t>(i * blocks + block);
      threads[id].id = id;
      threads[id].rankIndex = static_cast<int32_t>(i);
      threads[id].rank = static_cast<int32_t>(shape.followed[i]);
      threads[id].block =
          static_cast<int32_t>(block + (shape.lanes ? shape.lanes->first : 0));
      values.insert(values.end(), program.initialValues.begin(),
                    program.initialValues.end());
    }
  }
  channels.resize(program.channels.size());
  for (auto [state, plan] : llvm::zip(channels, program.channels)) {
    state.receipts.resize(followed * followed);
    if (plan.pattern == ChannelPattern::Multicast)
      state.toAll.resize(followed);
    else
      state.toOne.resize(followed * followed);
  }
  // What the host gives differs between launches.
  if (!shape.scalars.empty() || shape.roots.step != 0)
    this->shape.period = 0;
  heard.resize(threads.size());
  rounds.assign(program.channels.size(), std::vector<int32_t>(threads.size()));
  shadows.resize(program.arguments.size() * followed);
  mailboxes.resize(program.arguments.size() * followed);
  stored.resize(program.arguments.size() * followed);
  overwritten.resize(program.arguments.size() * followed);
  if (shape.lanes)
    folding = std::make_unique<Folding>(program, *shape.lanes, threads.size(),
                                        *footprints);
  for (Thread &thread : threads)
    findScalars(thread);
}

std::optional<Machine::TeamView> Machine::makeView(const TeamPlan &plan,
                                                   int64_t rank) const {
  TeamView view{0, 1, shape.ranks, rank};
  if (plan.kind != TeamKind::World && shape.ranks % shape.reach)
    return std::nullopt;
  if (plan.kind == TeamKind::Lsa)
    view = {rank / shape.reach * shape.reach, 1, shape.reach,
            rank % shape.reach};
  else if (plan.kind == TeamKind::Rail)
    view = {rank % shape.reach, shape.reach, shape.ranks / shape.reach,
            rank / shape.reach};
  for (auto [kind, factor] : plan.splits) {
    if (factor <= 0 || view.size % factor)
      return std::nullopt;
    if (kind == SplitKind::Inner)
      view = {view.first + view.rank / factor * factor * view.stride,
              view.stride, factor, view.rank % factor};
    else
      view = {view.first + view.rank % factor * view.stride,
              view.stride * factor, view.size / factor, view.rank / factor};
  }
  return view;
}

//===----------------------------------------------------------------------===//
// Following
//===----------------------------------------------------------------------===//

Machine::Outcome Machine::run() {
  for (int64_t rank : shape.followed)
    for (const TeamPlan &plan : program.teams) {
      auto view = makeView(plan, rank);
      if (!view) {
        KernelOp kernel = program.kernel;
        kernel.emitOpError()
            << "splits a team of " << shape.ranks << " ranks (lsa_size "
            << shape.reach << ") by a factor that does not divide it";
        ++errors;
        return Outcome::Refused;
      }
      views.push_back(*view);
    }
  // A launch has to end by itself: one that needs the next launch of another
  // rank would hang at the last. What may happen when ranks run ahead is seen
  // by comparing clocks.
  uint64_t patience = 0;
  for (int64_t launch = 1; launch <= shape.launches; ++launch) {
    bool progressed = true, all = false;
    if (contents)
      beginValues(static_cast<int32_t>(launch));
    while (progressed && !all) {
      progressed = false;
      all = true;
      for (Thread &thread : threads) {
        if (!thread.atEnd)
          progressed |= advance(thread);
        if (fatal)
          return diverged ? Outcome::Diverged
                 : open   ? Outcome::Open
                          : Outcome::Refused;
        if (spent() > shape.budget)
          return Outcome::OverBudget;
        // Further errors are looked for, but not for long.
        if (errors > 0 && patience == 0)
          patience = spent() + moreErrorsEvents;
        if (patience > 0 && spent() > patience)
          return Outcome::Refused;
        all &= thread.atEnd;
      }
    }
    if (!all)
      return Outcome::Stuck;
    checkAllReceipts();
    noteCells(launch);
    if (contents)
      endValues(static_cast<int32_t>(launch));
    for (size_t rank = 0; rank < shape.followed.size(); ++rank)
      nextLaunch(static_cast<int32_t>(rank));
  }
  return Outcome::Finished;
}

void Machine::branch(Thread &thread, const Instruction &in,
                     Interval condition) {
  if (UnknownBranch *loop = unknownBranchOf(thread, in.extra);
      loop && program.guards[in.extra].body >= 0)
    return nextRound(thread, *loop, &in);
  std::optional<bool> holds;
  if (condition.isKnown())
    holds = condition.low != 0;
  else
    holds = choose(thread, in.extra, condition);
  if (holds) {
    thread.pc = *holds ? thread.pc + 1 : in.target;
    return;
  }
  passUnknown(thread, in.extra, condition);
  if (UnknownBranch *choice = unknownBranchOf(thread, in.extra)) {
    choice->holds = condition.term;
    if (contents)
      enterIf(*choice, condition, /*holds=*/true);
  }
}

void Machine::enterLoop(Thread &thread, const Instruction &in,
                        const Interval *v) {
  const Interval &first = v[in.a], &end = v[in.b], &step = v[in.c];
  // If the end is chosen: how often is chosen at its head.
  bool isChosen = first.isKnown() && step.isKnown() && step.low > 0 &&
                  canChoose(in.extra, end);
  if (isChosen) {
    ++thread.pc;
  } else if (!first.isKnown() || !end.isKnown() || !step.isKnown()) {
    enterUnknownLoop(thread, in);
  } else if (step.low <= 0) {
    if (auto diag = report(program.guards[in.extra].op))
      *diag << "has step " << step.low
            << ": the step of a loop must be positive";
    fatal = true;
  } else {
    ++thread.pc;
  }
}

bool Machine::advance(Thread &thread) {
  Interval *v = values.data() + thread.id * program.initialValues.size();
  const Instruction *code = program.code.data();
  bool progressed = false;
  while (true) {
    const Instruction &in = code[thread.pc];
    if (++steps > shape.budget)
      return true;
    if (folding && !agree(folding->step(in, thread.id, v)))
      return true;
    switch (in.code) {
    case Code::Jump:
      thread.pc = in.target;
      continue;
    case Code::Branch:
      branch(thread, in, v[in.a]);
      break;
    case Code::RegionEnd:
      if (UnknownBranch *choice = unknownBranchOf(thread, in.extra)) {
        choice->run = choice->firstRun = ++nextRun;
        choice->holds = 0;
        choice->isOver = false;
        if (contents)
          enterOtherRegion(*choice);
        thread.pc = in.other;
      } else {
        thread.pc = in.target;
      }
      break;
    case Code::ChoiceEnd:
      if (unknownBranchOf(thread, in.extra)) {
        thread.unsure.pop_back();
        thread.pc = program.guards[in.extra].skip;
      } else {
        ++thread.pc;
      }
      break;
    case Code::Back:
      if (UnknownBranch *loop = unknownBranchOf(thread, in.extra);
          loop && !loop->isCounted)
        nextRound(thread, *loop, nullptr);
      else
        thread.pc = in.target;
      break;
    case Code::LoopEnter:
      enterLoop(thread, in, v);
      break;
    case Code::Act: {
      bool wasBlocked = thread.blocked;
      steps += actionCost;
      if (folding &&
          !agree(folding->admit(program.actions[in.extra], thread.id)))
        return true;
      thread.blocked = !act(thread, in.extra);
      if (thread.blocked)
        return progressed || !wasBlocked;
      thread.yielded = false;
      if (shape.hasMovingPlaces && shape.period > 0)
        notePlaces(thread, in.extra);
      ++thread.pc;
      break;
    }
    case Code::Compute:
      computeTile(thread, in);
      ++thread.pc;
      break;
    case Code::End:
      endLaunch(thread);
      return true;
    default:
      evaluate(in, thread, v);
      if (folding)
        folding->unname(in, thread.id, v);
      ++thread.pc;
      break;
    }
    progressed = true;
    if (fatal)
      return true;
  }
}

void Machine::endLaunch(Thread &thread) {
  if (thread.openArrivals > 0)
    if (auto diag = report(program.actions[thread.lastArrive])) {
      *diag << "is not followed by a comms.barrier_wait on " << name(thread.id)
            << " in launch " << thread.launch;
      diag->attachNote() << "wait on the token that it returns, on every path";
    }
  for (auto [id, action] : thread.copies)
    if (auto diag = report(program.actions[action])) {
      *diag << "starts a copy that " << name(thread.id)
            << " never waits for in launch " << thread.launch;
      diag->attachNote() << "pass its token to comms.bulk_wait, on every path";
    }
  thread.copies.clear();
  // What goes through an adapter is not over without a flush.
  complete(thread, [&](const Pending &pending) {
    return !program.actions[pending.action].gin;
  });
  thread.openArrivals = 0;
  thread.atEnd = true;
}

/// Launches of one rank follow one another.
void Machine::nextLaunch(int32_t index) {
  SmallVector<int32_t> blocks;
  int64_t followed = shape.followedBlocks();
  for (int64_t block = 0; block < followed; ++block) {
    Thread &thread = threads[index * followed + block];
    blocks.push_back(thread.id);
    thread.pc = 0;
    thread.ends[thread.launch % 3] = clocks.stamp(thread.id).time;
    ++thread.launch;
    llvm::erase_if(heard[thread.id], [&](const Heard &one) {
      return one.launch < thread.launch - 2;
    });
    thread.atEnd = false;
    thread.scratchWrites.clear();
    findScalars(thread);
  }
  for (auto *fences : {&aliasFences, &asyncFences})
    llvm::erase_if(*fences, [&](const ProxyFence &fence) {
      return threads[fence.stamp.thread].rankIndex == index;
    });
  // The host's turn comes behind all blocks and before all of them.
  Timestamp host = clocks.stamp(blocks.front());
  clocks.join(blocks);
  for (int32_t block : blocks)
    clocks.fence(block, /*release=*/true, /*acquire=*/true);
  for (int32_t block : blocks)
    (void)clocks.stamp(block);
  touchByHost(threads[blocks.front()], host);
  forgetArrays(threads[blocks.front()]);
}

//===----------------------------------------------------------------------===//
// Order of writes
//===----------------------------------------------------------------------===//

void Machine::hear(Thread &thread, int32_t index, Message message,
                   int32_t sender, bool acquire, bool near) {
  heard[thread.id].push_back(
      {message, sender, clocks.stampSignal(thread.id), index, thread.launch});
  clocks.receive(thread.id, message, acquire, near);
}

bool Machine::isBehind(const Thread &thread, ArrayRef<Timestamp> moments) {
  if (llvm::any_of(moments, [&](Timestamp moment) {
        return clocks.visible(thread.id, moment);
      }))
    return true;
  bool isChained = llvm::any_of(moments, [&](Timestamp moment) {
    return clocks.chained(thread.id, moment);
  });
  reliesOnChains |= isChained;
  return isChained;
}

bool Machine::act(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  // What may not happen orders nothing.
  if (contents && !thread.unsure.empty() && action.kind != ActionKind::Access)
    markUncertain(thread, action);
  if (!thread.unsure.empty() && action.kind == ActionKind::Flush) {
    flushUnknown(thread, action);
    return true;
  }
  if (!thread.unsure.empty() && action.kind == ActionKind::Fence) {
    if (program.usesProxies)
      fenceProxy(thread, action.proxy);
    return true;
  }
  if (!thread.unsure.empty() && action.kind != ActionKind::Access &&
      action.kind != ActionKind::ReadSignal)
    return true;
  switch (action.kind) {
  case ActionKind::Access:
    doAccess(thread, index);
    return true;
  case ActionKind::Signal:
    doAccess(thread, index);
    if (!fatal)
      doSignal(thread, index);
    return true;
  case ActionKind::WaitSignal:
    return doWait(thread, index);
  case ActionKind::ResetSignal:
  case ActionKind::ResetCounter:
    doReset(thread, index);
    return true;
  case ActionKind::WaitCounter:
    return doWaitCounter(thread, index);
  case ActionKind::Fence:
    doFence(thread, action);
    return true;
  case ActionKind::ReadSignal:
    return doRead(thread, index);
  case ActionKind::Flush:
    flush(thread, action, {});
    return true;
  case ActionKind::EngineCopy:
    return doEngineCopy(thread, index);
  case ActionKind::Barrier:
  case ActionKind::Arrive:
  case ActionKind::BarrierWait:
    return doBarrier(thread, index);
  case ActionKind::PacketStore:
  case ActionKind::PacketLoad:
  case ActionKind::PoisonStore:
  case ActionKind::PoisonLoad:
  case ActionKind::PoisonFill:
    return doPackets(thread, index);
  case ActionKind::BulkCopy:
  case ActionKind::BulkWait:
    doBulk(thread, index);
    return true;
  case ActionKind::Send:
    doSend(thread, index);
    return true;
  case ActionKind::Recv:
    return doRecv(thread, index);
  case ActionKind::ChannelBarrier:
    return doChannelBarrier(thread, index);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

std::optional<int64_t> Machine::get(const Thread &thread, Register reg) const {
  Interval value = getInterval(thread, reg);
  return value.isKnown() ? std::optional(value.low) : std::nullopt;
}

Interval Machine::getInterval(const Thread &thread, Register reg) const {
  return reg < 0 ? Interval()
                 : values[thread.id * program.initialValues.size() + reg];
}

void Machine::set(const Thread &thread, Register reg, Interval value) {
  values[thread.id * program.initialValues.size() + reg] = value;
  if (folding)
    folding->clear(thread.id, reg);
}

std::optional<int64_t> Machine::demand(Thread &thread, const Action &action,
                                       Register reg, llvm::StringRef what) {
  auto value = get(thread, reg);
  if (value)
    return value;
  leaveOpen(action, what);
  return std::nullopt;
}

void Machine::leaveOpen(const Action &action, llvm::StringRef what) {
  fatal = open = true;
  noteUnproven(
      action.op,
      "has a " + what +
          " that is not known: it depends on data or on an argument",
      "compute it from ranks, blocks, comms.epoch and constants, so that it "
      "can be checked");
  unproven.back().isPlace =
      what == "peer" || what == "cell" || what == "slot" || what == "offset";
}

std::optional<int64_t> Machine::peerOf(Thread &thread, const Action &action) {
  auto peer = demand(thread, action, action.peer, "peer");
  if (!peer)
    return std::nullopt;
  const TeamView &team = view(thread, action.team);
  if (*peer >= 0 && *peer < team.size)
    return team.world(*peer);
  fatal = true;
  if (auto diag = reportRange(action)) {
    *diag << "addresses rank " << *peer << " of a team of " << team.size
          << ", on " << when(thread);
    diag->attachNote() << "ranks of the team are 0 to " << team.size - 1
                       << ": wrap around with arith.remui, or guard the op";
  }
  return std::nullopt;
}

std::optional<int64_t> Machine::cellIndex(Thread &thread, const Action &action,
                                          int64_t count) {
  auto index = demand(thread, action, action.index, "cell");
  if (!index)
    return std::nullopt;
  if (*index >= 0 && *index < count)
    return index;
  fatal = true;
  if (auto diag = reportRange(action)) {
    *diag << "uses cell " << *index << " of '"
          << program.arguments[action.object].name << "', which has " << count
          << ", on " << when(thread);
    diag->attachNote() << "make the array larger or the index smaller";
  }
  return std::nullopt;
}

Machine::Cell &Machine::cell(int32_t argument, int64_t rank, int64_t index) {
  auto [it, isNew] = cellIds.try_emplace(
      {uint64_t(argument) << 32 | uint64_t(rank), uint64_t(index)},
      static_cast<uint32_t>(cells.size()));
  if (isNew) {
    cells.emplace_back();
    Cell &made = cells.back();
    made.id = it->second;
    made.argument = argument;
    made.rank = rank;
    made.index = index;
  }
  if (folding)
    (void)agree(folding->touchCell(argument, rank, index));
  return cells[it->second];
}
