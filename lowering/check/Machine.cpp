//===- Machine.cpp - Follows a program on every rank and block ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "lowering/check/Arithmetic.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// An action costs about as much as this many instructions.
static constexpr uint64_t actionCost = 8;

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

Machine::Machine(const Program &program, const WorldShape &shape)
    : program(program), shape(shape),
      clocks(static_cast<int32_t>(shape.followed.size() * shape.blocks)),
      rankIndex(shape.ranks, -1) {
  size_t followed = shape.followed.size();
  threads.resize(followed * shape.blocks);
  values.reserve(threads.size() * program.initialValues.size());
  for (size_t i = 0; i < followed; ++i) {
    rankIndex[shape.followed[i]] = static_cast<int32_t>(i);
    for (int64_t block = 0; block < shape.blocks; ++block) {
      int32_t id = static_cast<int32_t>(i * shape.blocks + block);
      threads[id].id = id;
      threads[id].rankIndex = static_cast<int32_t>(i);
      threads[id].rank = static_cast<int32_t>(shape.followed[i]);
      threads[id].block = static_cast<int32_t>(block);
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
  rounds.assign(program.channels.size(), std::vector<int32_t>(threads.size()));
  shadows.resize(program.arguments.size() * followed);
  mailboxes.resize(program.arguments.size() * followed);
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
  for (int64_t launch = 1; launch <= shape.launches; ++launch) {
    bool progressed = true, all = false;
    while (progressed && !all) {
      progressed = false;
      all = true;
      for (Thread &thread : threads) {
        if (!thread.atEnd)
          progressed |= advance(thread);
        if (fatal)
          return Outcome::Refused;
        if (spent() > shape.budget)
          return Outcome::OverBudget;
        all &= thread.atEnd;
      }
    }
    if (!all)
      return Outcome::Stuck;
    checkAllReceipts();
    for (size_t rank = 0; rank < shape.followed.size(); ++rank)
      nextLaunch(static_cast<int32_t>(rank));
  }
  return Outcome::Finished;
}

bool Machine::advance(Thread &thread) {
  Interval *v = values.data() + thread.id * program.initialValues.size();
  const Instruction *code = program.code.data();
  bool progressed = false;
  while (true) {
    const Instruction &in = code[thread.pc];
    if (++steps > shape.budget)
      return true;
    switch (in.code) {
    case Code::Jump:
      thread.pc = in.target;
      continue;
    case Code::Branch:
      if (leaveUnknown(thread, in.extra))
        break;
      if (!v[in.a].isKnown())
        passUnknown(thread, in.extra);
      else
        thread.pc = v[in.a].low ? thread.pc + 1 : in.target;
      break;
    case Code::RegionEnd:
      thread.pc = !thread.unsure.empty() && thread.unsure.back() == in.extra
                      ? in.other
                      : in.target;
      break;
    case Code::ChoiceEnd:
      if (!thread.unsure.empty() && thread.unsure.back() == in.extra) {
        thread.unsure.pop_back();
        thread.pc = program.guards[in.extra].skip;
      } else {
        ++thread.pc;
      }
      break;
    case Code::Back:
      if (!leaveUnknown(thread, in.extra))
        thread.pc = in.target;
      break;
    case Code::LoopEnter:
      if (!v[in.a].isKnown() || !v[in.b].isKnown() || !v[in.c].isKnown()) {
        passUnknown(thread, in.extra);
        if (in.dst >= 0 && v[in.a].low < v[in.b].high)
          v[in.dst] = {v[in.a].low, v[in.b].high - 1};
      } else if (v[in.c].low <= 0) {
        if (auto diag = report(program.guards[in.extra].op))
          *diag << "has step " << v[in.c].low
                << ": the step of a loop must be positive";
        fatal = true;
      } else
        ++thread.pc;
      break;
    case Code::Act: {
      bool wasBlocked = thread.blocked;
      steps += actionCost;
      thread.blocked = !act(thread, in.extra);
      if (thread.blocked)
        return progressed || !wasBlocked;
      thread.yielded = false;
      ++thread.pc;
      break;
    }
    case Code::End:
      endLaunch(thread);
      return true;
    default:
      evaluate(in, thread, v);
      ++thread.pc;
      break;
    }
    progressed = true;
    if (fatal)
      return true;
  }
}

bool Machine::leaveUnknown(Thread &thread, int32_t index) {
  const Guard &guard = program.guards[index];
  if (thread.unsure.empty() || thread.unsure.back() != index || guard.body < 0)
    return false;
  thread.unsure.pop_back();
  thread.pc = guard.skip;
  return true;
}

void Machine::passUnknown(Thread &thread, int32_t index) {
  const Guard &guard = program.guards[index];
  if (!guard.sync && !guard.touches) {
    thread.pc = guard.skip;
    return;
  }
  if (!guard.sync) {
    if (thread.unsure.empty() || thread.unsure.back() != index)
      thread.unsure.push_back(index);
    for (Register reg : guard.carried)
      set(thread, reg, Interval());
    thread.pc = guard.body >= 0 ? guard.body : thread.pc + 1;
    return;
  }
  fatal = true;
  auto diag = report(guard.op);
  if (!diag)
    return;
  bool spins = isa<ReadSignalOp, ReadCounterOp>(guard.sync);
  if (spins)
    *diag << "spins on a value that is read: comms-check-sync cannot follow it";
  else
    *diag << "decides whether a synchronisation runs by a value that is not "
             "known: it depends on data or on an argument";
  diag->attachNote(guard.sync->getLoc())
      << (spins ? "the value is read here" : "synchronisation is here");
  diag->attachNote() << (spins ? "use comms.wait_signal or comms.wait_counter"
                               : "synchronise on every path, and make only the "
                                 "data or the element count depend on data");
}

/// dst of Code::Checked. A check that fails ends the run: what is behind it
/// cannot be reached, and nothing is said of it.
static Interval checked(Interval value, Interval other, Interval limit) {
  int64_t most = limit.high;
  (void)llvm::SubOverflow(limit.high, std::max<int64_t>(other.low, 0), most);
  Interval found = {std::max<int64_t>(value.low, 0),
                    std::min(value.high, most)};
  return found.low <= found.high ? found : value;
}

void Machine::evaluate(const Instruction &in, const Thread &thread,
                       Interval *v) {
  std::optional<int64_t> result;
  auto isKnown = [&](Register reg) { return v[reg].isKnown(); };
  switch (in.code) {
  case Code::Forget:
    break;
  case Code::Move:
    v[in.dst] = v[in.a];
    return;
  case Code::Checked:
    v[in.dst] = checked(v[in.a], v[in.b], v[in.c]);
    return;
  case Code::Compare:
    if (isKnown(in.a) && isKnown(in.b))
      result = compare(static_cast<arith::CmpIPredicate>(in.extra), v[in.a].low,
                       v[in.b].low, in.width);
    break;
  case Code::Select:
    v[in.dst] = !isKnown(in.a) ? Interval{std::min(v[in.b].low, v[in.c].low),
                                          std::max(v[in.b].high, v[in.c].high)}
                : v[in.a].low  ? v[in.b]
                               : v[in.c];
    return;
  case Code::SignCast:
  case Code::ZeroCast: {
    bool isSigned = in.code == Code::SignCast;
    int64_t value = v[in.a].low;
    if (!isKnown(in.a)) {
      v[in.dst] = castSpan(v[in.a], isSigned, in.extra, in.width);
      return;
    }
    if (!isSigned)
      value = static_cast<int64_t>(unsignedOf(value, in.extra));
    else if (in.extra == 1)
      value = -value;
    result = normalise(value, in.width);
    break;
  }
  case Code::Rank:
    result = view(thread, in.extra).rank;
    break;
  case Code::Size:
    result = view(thread, in.extra).size;
    break;
  case Code::Translate: {
    const TeamView &from = view(thread, in.extra),
                   &to = view(thread, in.target);
    int64_t rank = v[in.a].low;
    if (!isKnown(in.a) || rank < 0 || rank >= from.size)
      break;
    int64_t distance = from.world(rank) - to.first;
    if (distance % to.stride == 0)
      result = distance / to.stride;
    break;
  }
  case Code::BlockId:
    result = thread.block;
    break;
  case Code::NumBlocks:
    result = shape.blocks;
    break;
  case Code::Epoch:
    result = thread.launch;
    break;
  case Code::PeerAt: {
    const TeamView &team = view(thread, in.extra);
    int64_t step = in.width ? team.size - v[in.a].low : v[in.a].low;
    result = (team.rank + step) % team.size;
    break;
  }
  default:
    if (!isKnown(in.a) || !isKnown(in.b)) {
      v[in.dst] = span(in.code, v[in.a], v[in.b], in.width);
      return;
    }
    if (auto value = compute(in.code, v[in.a].low, v[in.b].low, in.width))
      result = normalise(*value, in.width);
    break;
  }
  v[in.dst] = result ? Interval::of(*result) : Interval();
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
  for (int64_t block = 0; block < shape.blocks; ++block) {
    Thread &thread = threads[index * shape.blocks + block];
    blocks.push_back(thread.id);
    thread.pc = 0;
    ++thread.launch;
    thread.atEnd = false;
  }
  // The host's turn comes behind all blocks and before all of them.
  Stamp host = clocks.stamp(blocks.front());
  clocks.join(blocks);
  for (int32_t block : blocks)
    clocks.fence(block, /*release=*/true, /*acquire=*/true);
  for (int32_t block : blocks)
    (void)clocks.stamp(block);
  touchByHost(threads[blocks.front()], host);
}

bool Machine::act(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  // What may not happen orders nothing.
  if (!thread.unsure.empty() && action.kind != ActionKind::Access)
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
  case ActionKind::Flush:
    complete(thread, [&](const Pending &pending) {
      const Action &transfer = program.actions[pending.action];
      return transfer.gin == action.gin &&
             reaches(thread, action.team, pending) &&
             (transfer.deferral == Deferral::Get ||
              (transfer.deferral == Deferral::Put && !pending.write));
    });
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
    return doMail(thread, index);
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
}

std::optional<int64_t> Machine::demand(Thread &thread, const Action &action,
                                       Register reg, llvm::StringRef what) {
  auto value = get(thread, reg);
  if (value)
    return value;
  fatal = true;
  if (auto diag = report(action)) {
    *diag << "has a " << what
          << " that is not known: it depends on data or on an argument";
    diag->attachNote() << "compute it from ranks, blocks, comms.epoch and "
                          "constants, so that it can be checked";
  }
  return std::nullopt;
}

std::optional<int64_t> Machine::peerOf(Thread &thread, const Action &action) {
  auto peer = demand(thread, action, action.peer, "peer");
  if (!peer)
    return std::nullopt;
  const TeamView &team = view(thread, action.team);
  if (*peer >= 0 && *peer < team.size)
    return team.world(*peer);
  fatal = true;
  if (auto diag = report(action)) {
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
  if (auto diag = report(action)) {
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
  return cells[it->second];
}
