//===- Machine.cpp - Follows a program on every rank and block ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::formatv;

namespace {

/// More errors than this are not shown.
constexpr unsigned maxErrors = 20;
/// An action costs about as much as this many instructions.
constexpr uint64_t actionCost = 8;
/// Slots of a channel that can be followed.
constexpr int64_t maxSlots = int64_t(1) << 22;
/// Changes of a cell that are kept.
constexpr size_t maxChanges = 64;

bool releases(MemoryOrder order) {
  return order == MemoryOrder::Release || order == MemoryOrder::AcqRel;
}
bool acquires(MemoryOrder order) {
  return order == MemoryOrder::Acquire || order == MemoryOrder::AcqRel;
}

int64_t normalise(int64_t value, unsigned width) {
  if (width >= 64)
    return value;
  if (width == 1)
    return value & 1;
  return llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

uint64_t unsignedOf(int64_t value, unsigned width) {
  return width >= 64
             ? static_cast<uint64_t>(value)
             : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

/// a op b on integers of `width` bits, or nothing where that is undefined.
std::optional<int64_t> compute(Code code, int64_t a, int64_t b,
                               unsigned width) {
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  bool overflows = a == INT64_MIN && b == -1;
  switch (code) {
  case Code::Add:
    return static_cast<int64_t>(ua + ub);
  case Code::Sub:
    return static_cast<int64_t>(ua - ub);
  case Code::Mul:
    return static_cast<int64_t>(ua * ub);
  case Code::And:
    return a & b;
  case Code::Or:
    return a | b;
  case Code::Xor:
    return a ^ b;
  case Code::MinS:
    return std::min(a, b);
  case Code::MaxS:
    return std::max(a, b);
  case Code::MinU:
    return static_cast<int64_t>(std::min(ua, ub));
  case Code::MaxU:
    return static_cast<int64_t>(std::max(ua, ub));
  case Code::Shl:
  case Code::ShrS:
  case Code::ShrU:
    if (ub >= width)
      return std::nullopt;
    if (code == Code::Shl)
      return static_cast<int64_t>(ua << ub);
    return code == Code::ShrS ? a >> ub : static_cast<int64_t>(ua >> ub);
  default:
    break;
  }
  if (b == 0 || overflows)
    return std::nullopt;
  switch (code) {
  case Code::DivS:
    return a / b;
  case Code::RemS:
    return a % b;
  case Code::DivU:
    return static_cast<int64_t>(ua / ub);
  case Code::RemU:
    return static_cast<int64_t>(ua % ub);
  case Code::CeilDivU:
    return static_cast<int64_t>(ua / ub + (ua % ub != 0));
  case Code::CeilDivS:
    return a / b + (a % b != 0 && (a < 0) == (b < 0));
  case Code::FloorDivS:
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  default:
    return std::nullopt;
  }
}

bool compare(arith::CmpIPredicate predicate, int64_t a, int64_t b,
             unsigned width) {
  // An i1 is kept as 0 or 1, but its sign bit is its only bit.
  if (width == 1 && predicate >= arith::CmpIPredicate::slt &&
      predicate <= arith::CmpIPredicate::sge)
    a = -a, b = -b;
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  return false;
}

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

} // namespace

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
  known.reserve(threads.size() * program.initialKnown.size());
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
      known.insert(known.end(), program.initialKnown.begin(),
                   program.initialKnown.end());
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
  int64_t *v = &values[thread.id * program.initialValues.size()];
  uint8_t *k = &known[thread.id * program.initialKnown.size()];
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
      if (!k[in.a])
        passUnknown(thread, program.guards[in.extra]);
      else
        thread.pc = v[in.a] ? thread.pc + 1 : in.target;
      break;
    case Code::LoopEnter:
      if (!k[in.a] || !k[in.b] || !k[in.c])
        passUnknown(thread, program.guards[in.extra]);
      else if (v[in.c] <= 0) {
        if (auto diag = report(program.guards[in.extra].op))
          *diag << "has step " << v[in.c]
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
      evaluate(in, thread, v, k);
      ++thread.pc;
      break;
    }
    progressed = true;
    if (fatal)
      return true;
  }
}

void Machine::passUnknown(Thread &thread, const Guard &guard) {
  if (!guard.sync) {
    thread.pc = guard.skip;
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

void Machine::evaluate(const Instruction &in, const Thread &thread, int64_t *v,
                       uint8_t *k) {
  std::optional<int64_t> result;
  switch (in.code) {
  case Code::Forget:
    break;
  case Code::Move:
    if (k[in.a])
      result = v[in.a];
    break;
  case Code::Compare:
    if (k[in.a] && k[in.b])
      result = compare(static_cast<arith::CmpIPredicate>(in.extra), v[in.a],
                       v[in.b], in.width);
    break;
  case Code::Select:
    if (k[in.a]) {
      Register chosen = v[in.a] ? in.b : in.c;
      if (k[chosen])
        result = v[chosen];
    }
    break;
  case Code::SignCast:
    if (k[in.a])
      result = normalise(in.extra == 1 ? -v[in.a] : v[in.a], in.width);
    break;
  case Code::ZeroCast:
    if (k[in.a])
      result = normalise(static_cast<int64_t>(unsignedOf(v[in.a], in.extra)),
                         in.width);
    break;
  case Code::Rank:
    result = view(thread, in.extra).rank;
    break;
  case Code::Size:
    result = view(thread, in.extra).size;
    break;
  case Code::Translate: {
    const TeamView &from = view(thread, in.extra),
                   &to = view(thread, in.target);
    if (!k[in.a] || v[in.a] < 0 || v[in.a] >= from.size)
      break;
    int64_t distance = from.world(v[in.a]) - to.first;
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
    int64_t step = in.width ? team.size - v[in.a] : v[in.a];
    result = (team.rank + step) % team.size;
    break;
  }
  default:
    if (k[in.a] && k[in.b])
      if (auto value = compute(in.code, v[in.a], v[in.b], in.width))
        result = normalise(*value, in.width);
    break;
  }
  k[in.dst] = result.has_value();
  v[in.dst] = result.value_or(0);
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
  clocks.join(blocks);
  for (int32_t block : blocks)
    (void)clocks.stamp(block);
}

bool Machine::act(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
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
    clocks.fence(thread.id, releases(action.order), acquires(action.order));
    return true;
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
  size_t at = thread.id * program.initialValues.size() + reg;
  if (reg < 0 || !known[at])
    return std::nullopt;
  return values[at];
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

//===----------------------------------------------------------------------===//
// Signals and counters
//===----------------------------------------------------------------------===//

void Machine::doSignal(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto peer = peerOf(thread, action);
  auto at =
      peer ? cellIndex(thread, action, program.arguments[action.object].count)
           : std::nullopt;
  if (!at)
    return;
  int64_t amount = 1;
  if (action.signal != SignalKind::Inc) {
    auto value = demand(thread, action, action.value, "value");
    if (!value)
      return;
    amount = *value;
  }
  // A narrower scope does not reach another rank.
  bool release = releases(action.order) &&
                 (action.scope == MemoryScope::Sys || *peer == thread.rank);
  change(thread, index, cell(action.object, *peer, *at),
         action.signal == SignalKind::Set, amount, release);
}

void Machine::change(Thread &thread, int32_t index, Cell &cell, bool sets,
                     int64_t amount, bool release) {
  const Action &action = program.actions[index];
  bool isReset = action.kind == ActionKind::ResetSignal;
  for (const Change &old : cell.changes) {
    bool oldIsReset =
        program.actions[old.action].kind == ActionKind::ResetSignal;
    bool conflict =
        sets ? !(old.absolute && old.amount == amount) : old.absolute;
    if (!conflict || clocks.carriedOut(thread.id, old.stamp))
      continue;
    // Name the reset, whichever of the two it is, as the culprit.
    const Action &blamed = oldIsReset ? program.actions[old.action] : action;
    const Action &other = oldIsReset ? action : program.actions[old.action];
    int32_t otherThread = oldIsReset ? thread.id : old.stamp.thread;
    if (auto diag = report(blamed)) {
      *diag << (isReset || oldIsReset ? "resets " : "sets ") << cellName(cell)
            << " with no order between it and a signal of " << name(otherThread)
            << ": the signal may be lost";
      diag->attachNote(other.op->getLoc())
          << "the signal, in launch "
          << (oldIsReset ? thread.launch : old.launch);
      diag->attachNote() << "do not reset: wait with `ge` for a value that "
                            "grows with comms.epoch; or signal only after the "
                            "reset has been heard of";
    }
    break;
  }
  for (const CellWait &wait : cell.equalWaits)
    if (!clocks.carriedOut(thread.id, wait.stamp))
      if (auto diag = report(program.actions[wait.action])) {
        *diag << "waits on " << cellName(cell) << " for one exact value, but "
              << name(thread.id) << " may signal again before "
              << name(wait.stamp.thread) << " has seen it";
        diag->attachNote(action.op->getLoc())
            << "the later signal, in launch " << thread.launch;
        diag->attachNote() << "wait with `ge`, or let the sender wait for the "
                              "receiver before it signals again";
      }
  cell.equalWaits.clear();
  if (cell.changes.size() >= maxChanges)
    trim(cell);
  cell.value = sets ? amount
                    : static_cast<int64_t>(static_cast<uint64_t>(cell.value) +
                                           static_cast<uint64_t>(amount));
  Change made;
  made.stamp = clocks.stampSignal(thread.id);
  made.deed = clocks.lastDeed(thread.id);
  made.amount = amount;
  made.after = cell.value;
  made.absolute = sets;
  made.action = index;
  made.launch = thread.launch;
  made.message = clocks.send(thread.id, release);
  checkStandIn(thread, index, cell, made);
  cell.changes.push_back(made);
}

/// Old changes become one, which nobody is taken to have waited for.
void Machine::trim(Cell &cell) {
  Change &last = cell.changes[maxChanges / 2 - 1];
  last.amount = last.after;
  last.absolute = cell.changes.front().absolute;
  for (CellWait &wait : cell.waits)
    wait.seen = SIZE_MAX;
  cell.changes.erase(cell.changes.begin(),
                     cell.changes.begin() + maxChanges / 2 - 1);
}

/// The wait has been met: `thread` comes after the changes it cannot have been
/// met without.
void Machine::observe(Thread &thread, const Action &action, Cell &cell,
                      int64_t want) {
  bool acquire = acquires(action.order);
  size_t begin = 0;
  for (size_t i = cell.changes.size(); i-- > 0;)
    if (cell.changes[i].absolute) {
      begin = i;
      break;
    }
  ArrayRef<Change> since = ArrayRef(cell.changes).drop_front(begin);
  if (!since.empty() && since.front().absolute && since.size() == 1) {
    // Set, perhaps several times: met by the first that was enough.
    for (const Change &change : cell.changes)
      if (action.wait == WaitKind::Eq ? change.after == want
                                      : change.after >= want)
        return clocks.receive(thread.id, change.message, acquire);
    return;
  }
  for (const Change &change : since)
    if (action.wait == WaitKind::Eq || isNeeded(since, change, want))
      clocks.receive(thread.id, change.message, acquire);
}

/// Whether a cell cannot have come to `want` by the changes `since` without
/// `change`: that one, and what comes after it, left out.
bool Machine::isNeeded(ArrayRef<Change> since, const Change &change,
                       int64_t want) {
  int64_t without = 0;
  for (const Change &other : since)
    if (&other != &change && !clocks.after(other.message, change.deed))
      without += other.amount;
  steps += since.size() / 4;
  return without < want;
}

/// A count may be met by a rank that runs ahead in place of one that is late:
/// then the wait does not show what it was taken to show.
void Machine::checkStandIn(Thread &thread, int32_t index, const Cell &cell,
                           const Change &next) {
  if (next.absolute)
    return;
  for (const CellWait &wait : cell.waits) {
    if (wait.launch >= thread.launch || wait.equal ||
        wait.seen > cell.changes.size() ||
        clocks.carriedOut(thread.id, wait.stamp))
      continue;
    ArrayRef<Change> before = ArrayRef(cell.changes).take_front(wait.seen);
    for (const Change &change : before) {
      if (clocks.after(next.message, change.deed) ||
          !isNeeded(before, change, wait.want))
        continue;
      int64_t without = next.amount;
      for (const Change &other : before)
        if (&other != &change && !clocks.after(other.message, change.deed))
          without += other.amount;
      if (without < wait.want)
        continue;
      if (auto diag = report(program.actions[wait.action])) {
        *diag << "counts signals on " << cellName(cell) << " up to "
              << wait.want << " in launch " << wait.launch
              << ", but a signal of launch " << thread.launch << " by "
              << name(thread.id) << " may come before that of "
              << name(change.stamp.thread) << " and be counted in its place";
        diag->attachNote(program.actions[index].op->getLoc())
            << "the signal that may run ahead";
        diag->attachNote() << "give each sender a cell of its own, or keep "
                              "senders from running ahead with a barrier";
      }
      return;
    }
  }
}

/// A wait that wants no more than it got at the launch before is met by an old
/// signal: it waits for nothing.
void Machine::checkAdvance(Thread &thread, int32_t index, const Cell &cell,
                           int64_t want) {
  const Action &action = program.actions[index];
  Progress &state =
      progress[{uint64_t(thread.id) << 32 | uint32_t(index), cell.id}];
  if (state.launch != thread.launch) {
    state.hasBefore =
        state.launch == thread.launch - 1 && state.resets == cell.resets;
    state.before = state.highest;
    state.highest = want;
    state.launch = thread.launch;
  }
  state.resets = cell.resets;
  bool stale = state.hasBefore && want > 0 &&
               (action.wait == WaitKind::Eq ? want == state.before
                                            : want <= state.before);
  state.highest = std::max(state.highest, want);
  if (!stale)
    return;
  if (auto diag = report(action)) {
    *diag << "is met at launch " << thread.launch << " by what came in launch "
          << thread.launch - 1 << ": " << name(thread.id) << " wants "
          << (action.kind == ActionKind::WaitCounter
                  ? "the counter"
                  : llvm::StringRef("the signal"))
          << " to be " << want << " again, and " << cellName(cell)
          << " keeps its value from launch to launch";
    diag->attachNote() << "let the value grow with comms.epoch, or reset the "
                          "cell where no signal can be on its way";
  }
}

/// A wait that names its peer is held to it.
void Machine::checkSender(Thread &thread, const Action &action,
                          const Cell &cell) {
  if (action.peer < 0)
    return;
  auto peer = peerOf(thread, action);
  if (!peer)
    return;
  for (const Change &change : cell.changes) {
    const Thread &sender = threads[change.stamp.thread];
    if (sender.rank == *peer ||
        program.actions[change.action].kind != ActionKind::Signal)
      continue;
    if (auto diag = report(action)) {
      *diag << "waits for a signal from rank " << *peer << ", but "
            << name(sender.id) << " signals " << cellName(cell) << " as well";
      diag->attachNote(program.actions[change.action].op->getLoc())
          << "the other signal";
      diag->attachNote() << "give each sender a cell of its own, or use "
                            "comms.wait_signal for a count";
    }
    return;
  }
}

bool Machine::doWait(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto want = demand(thread, action, action.value, "value");
  auto at =
      want ? cellIndex(thread, action, program.arguments[action.object].count)
           : std::nullopt;
  if (!at)
    return true;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  // First let all others come as far as they can: what they signal may meet
  // this wait in place of what it was meant for.
  if (!thread.yielded) {
    thread.yielded = true;
    return false;
  }
  bool met =
      action.wait == WaitKind::Eq ? cell.value == *want : cell.value >= *want;
  if (!met)
    return false;
  checkSender(thread, action, cell);
  checkAdvance(thread, index, cell, *want);
  CellWait wait;
  wait.stamp = clocks.stamp(thread.id);
  wait.action = index;
  wait.launch = thread.launch;
  wait.want = *want;
  wait.seen = cell.changes.size();
  wait.equal = action.wait == WaitKind::Eq;
  if (action.wait == WaitKind::Eq)
    remember(cell.equalWaits, wait);
  remember(cell.waits, wait);
  observe(thread, action, cell, *want);
  return true;
}

void Machine::doReset(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto at = cellIndex(thread, action, program.arguments[action.object].count);
  if (!at)
    return;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  ++cell.resets;
  if (action.kind == ActionKind::ResetCounter) {
    cell.value = 0;
    return;
  }
  for (const CellWait &wait : cell.waits)
    if (!clocks.carriedOut(thread.id, wait.stamp))
      if (auto diag = report(action)) {
        *diag << "resets " << cellName(cell) << ", which "
              << name(wait.stamp.thread)
              << " may still be waiting for: the signal may be lost";
        diag->attachNote(program.actions[wait.action].op->getLoc())
            << "the wait";
        diag->attachNote() << "let the block that waits reset the cell, or "
                              "wait for `ge` a value that grows";
      }
  cell.waits.clear();
  change(thread, index, cell, /*sets=*/true, 0, /*release=*/true);
  // What was before the reset is done with, unless it raced.
  cell.changes.erase(cell.changes.begin(), cell.changes.end() - 1);
}

bool Machine::doWaitCounter(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  auto want = demand(thread, action, action.value, "value");
  auto at =
      want ? cellIndex(thread, action, program.arguments[action.object].count)
           : std::nullopt;
  if (!at)
    return true;
  Cell &cell = this->cell(action.object, thread.rank, *at);
  if (cell.value < *want)
    return false;
  checkAdvance(thread, index, cell, *want);
  return true;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

int32_t Machine::barrier(const Thread &thread, int32_t team, bool grid,
                         int32_t channel) {
  const TeamView &view = this->view(thread, team);
  uint64_t who = uint64_t(view.first) << 42 | uint64_t(view.stride) << 21 |
                 uint64_t(view.size);
  uint64_t what = uint64_t(channel + 1) << 32 |
                  (grid ? uint64_t(1) << 31 : uint64_t(thread.block));
  auto [it, isNew] = barrierIds.try_emplace(
      {who, what}, static_cast<int32_t>(barriers.size()));
  if (isNew) {
    BarrierState &made = barriers.emplace_back();
    made.team = view;
    made.grid = grid;
    made.block = thread.block;
    made.channel = channel;
    for (int64_t rank = 0; rank < view.size; ++rank)
      if (rankIndex[view.world(rank)] >= 0)
        made.members += grid ? static_cast<int32_t>(shape.blocks) : 1;
  }
  return it->second;
}

int32_t Machine::arrive(Thread &thread, int32_t index, BarrierState &state,
                        bool release, bool ordered) {
  int32_t number = state.arrivals[thread.id]++;
  if (static_cast<size_t>(number) >= state.generations.size()) {
    Generation &made = state.generations.emplace_back();
    made.launch = thread.launch;
    made.firstThread = thread.id;
    made.action = index;
    made.message = clocks.make();
  }
  Generation &generation = state.generations[number];
  if (generation.launch != thread.launch) {
    const Action &action = program.actions[index];
    if (auto diag = report(action)) {
      *diag << "in launch " << thread.launch << " of " << name(thread.id)
            << " meets a barrier in launch " << generation.launch << " of "
            << name(generation.firstThread)
            << ": they do not reach it equally often in a launch";
      diag->attachNote(program.actions[generation.action].op->getLoc())
          << "the other barrier";
      diag->attachNote() << "every member must reach the barrier the same "
                            "number of times: move it out of the condition";
    }
    fatal = true;
  }
  ++generation.arrived;
  if (ordered)
    clocks.merge(thread.id, generation.message, release);
  return number;
}

bool Machine::leave(Thread &thread, BarrierState &state, int32_t number,
                    bool acquire, bool ordered) {
  Generation &generation = state.generations[number];
  if (generation.arrived < state.members)
    return false;
  if (ordered)
    clocks.receive(thread.id, generation.message, acquire);
  return true;
}

bool Machine::doBarrier(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  if (action.kind == ActionKind::BarrierWait) {
    auto token = demand(thread, action, action.token, "token");
    if (!token)
      return true;
    BarrierState &state = barriers[*token >> 32];
    if (!leave(thread, state, static_cast<int32_t>(*token & 0x7fffffff),
               acquires(action.order), true))
      return false;
    --thread.openArrivals;
    return true;
  }
  bool grid = action.extent == BarrierExtent::Grid;
  int32_t id = barrier(thread, action.team, grid, -1);
  BarrierState &state = barriers[id];
  if (action.kind == ActionKind::Arrive) {
    int64_t number = arrive(thread, index, state, releases(action.order), true);
    size_t at = thread.id * program.initialValues.size() + action.dst;
    values[at] = int64_t(id) << 32 | number;
    known[at] = 1;
    ++thread.openArrivals;
    thread.lastArrive = index;
    return true;
  }
  if (thread.pending < 0)
    thread.pending = arrive(thread, index, state, releases(action.order), true);
  if (!leave(thread, state, thread.pending, acquires(action.order), true))
    return false;
  thread.pending = -1;
  return true;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

std::vector<Machine::Sent> &Machine::sends(const Action &action, int64_t source,
                                           int64_t dest, bool all) {
  ChannelState &state = channels[action.object];
  return all ? state.toAll[rankIndex[source]]
             : state.toOne[pairOf(source, dest)];
}

const Machine::Received *Machine::receipt(const Action &action, int64_t source,
                                          int64_t dest, int64_t slot) const {
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
  const Received *old = receipt(action, thread.rank, dest, slot);
  int32_t launch = thread.launch - 2;
  if (!old || old->launches[launch % 3] != launch ||
      clocks.carriedOut(thread.id, {old->thread, old->times[launch % 3]}))
    return;
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
  std::vector<Sent> &list = sends(action, thread.rank, dest, all);
  if (list.size() <= static_cast<size_t>(*slot))
    list.resize(*slot + 1);
  Sent &tile = list[*slot];
  if (tile.launch == thread.launch) {
    if (auto diag = report(action)) {
      *diag << "sends through slot " << *slot << " on " << when(thread)
            << ", which already carries what " << name(tile.thread) << " sent";
      diag->attachNote(program.actions[tile.action].op->getLoc())
          << "the first send";
      diag->attachNote() << "a slot carries at most one tile a launch for each "
                            "source and destination: number slots by tile";
    }
    return;
  }
  tile = {index,         thread.id,
          thread.launch, rounds[action.object][thread.id],
          valid,         clocks.send(thread.id, /*release=*/false)};
  const TeamView &team = view(thread, action.team);
  auto sendTo = [&](int64_t to) {
    if (rankIndex[to] < 0)
      return;
    ++channels[action.object].due;
    if (thread.launch > 2 && !shape.isPartial())
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
  const std::vector<Sent> &list = sends(action, *source, thread.rank, all);
  if (list.size() <= static_cast<size_t>(*slot) ||
      list[*slot].launch != thread.launch)
    return false;
  const Sent &tile = list[*slot];
  const Action &send = program.actions[tile.action];
  if (rounds[action.object][thread.id] <= tile.round)
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
      diag->attachNote() << "block b receives from block b alone: share the "
                            "tiles among blocks in the same way on both sides";
    }
  if (valid >= 0 && tile.valid >= 0 && valid != tile.valid)
    if (auto diag = report(action)) {
      *diag << "expects " << valid << " elements in slot " << *slot << " on "
            << name(thread.id) << ", but " << name(tile.thread) << " sends "
            << tile.valid;
      diag->attachNote(send.op->getLoc()) << "the send";
      diag->attachNote() << "`valid` must be the same on both sides";
    }
  std::vector<Received> &receipts =
      channels[action.object].receipts[pairOf(*source, thread.rank)];
  if (receipts.size() <= static_cast<size_t>(*slot))
    receipts.resize(list.size());
  Received &got = receipts[*slot];
  if (got.launches[thread.launch % 3] != thread.launch &&
      !(all && *source == thread.rank))
    ++channels[action.object].taken;
  got.action = index;
  got.thread = thread.id;
  got.launches[thread.launch % 3] = thread.launch;
  got.times[thread.launch % 3] = clocks.stamp(thread.id).time;
  clocks.receive(thread.id, tile.message, /*acquire=*/false);
  return true;
}

bool Machine::doChannelBarrier(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  BarrierState &state =
      barriers[barrier(thread, action.team, false, action.object)];
  if (thread.pending < 0)
    thread.pending = arrive(thread, index, state, false, false);
  if (!leave(thread, state, thread.pending, false, false))
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
  auto check = [&](const Sent &tile, size_t slot, int64_t dest) {
    if (tile.launch == 0 || rankIndex[dest] < 0)
      return;
    const Action &action = program.actions[tile.action];
    int64_t source = threads[tile.thread].rank;
    const Received *got = receipt(action, source, dest, slot);
    // All threads have ended the launch of this tile.
    if (tile.launch != threads[tile.thread].launch ||
        (got && got->launches[tile.launch % 3] == tile.launch))
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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::optional<Machine::Bounds>
Machine::bounds(Thread &thread, const Action &action, const RangePlan &range) {
  auto offset = get(thread, range.offset);
  auto count = range.count < 0 ? std::optional(range.fixedCount)
                               : get(thread, range.count);
  if (!offset || !count)
    return std::nullopt;
  if (range.count >= 0 && range.fixedCount > 0 &&
      (*count < 0 || *count > range.fixedCount)) {
    if (auto diag = report(action)) {
      *diag << "says that " << *count << " elements are valid of a tile of "
            << range.fixedCount << ", on " << when(thread);
      diag->attachNote() << "clamp it: arith.minsi and arith.maxsi with the "
                            "tile's length and 0";
    }
    return std::nullopt;
  }
  int64_t end = 0;
  bool overflow = __builtin_add_overflow(*offset, *count, &end);
  bool outside = range.memory.limit >= 0 && end > range.memory.limit;
  // Nothing is touched, wherever that is.
  if (*count == 0 && !overflow)
    return Bounds{0, 0};
  if (overflow || *offset < 0 || *count < 0 || outside) {
    if (auto diag = report(action)) {
      *diag << (range.write ? "writes" : "reads") << " elements [" << *offset
            << ", " << (overflow ? std::string("…") : std::to_string(end))
            << ") of ";
      if (range.memory.argument >= 0)
        *diag << "'" << program.arguments[range.memory.argument].name << "'";
      else
        *diag << "memory";
      if (range.memory.limit >= 0)
        *diag << ", which has " << range.memory.limit;
      *diag << ", on " << when(thread);
      diag->attachNote() << "shorten the last tile with `valid`, or check the "
                            "loop's bounds";
    }
    return std::nullopt;
  }
  return Bounds{*offset, end};
}

void Machine::touch(Thread &thread, int32_t index, const RangePlan &range,
                    Bounds bounds) {
  const MemoryPlan &memory = range.memory;
  if (memory.argument < 0 || !program.arguments[memory.argument].shared ||
      shape.isPartial())
    return;
  if (memory.kind == MemoryPlan::Own)
    return touchPart(thread, index, memory.argument, thread.rank, range.write,
                     bounds);
  const TeamView &team = view(thread, memory.team);
  if (memory.kind == MemoryPlan::Multimem) {
    for (int64_t rank = 0; rank < team.size; ++rank)
      touchPart(thread, index, memory.argument, team.world(rank), range.write,
                bounds);
    return;
  }
  if (auto peer = get(thread, memory.peer))
    touchPart(thread, index, memory.argument, team.world(*peer), range.write,
              bounds);
}

void Machine::touchPart(Thread &thread, int32_t index, int32_t argument,
                        int64_t rank, bool write, Bounds bounds) {
  const Action &action = program.actions[index];
  Touch now{clocks.stamp(thread.id), index, thread.launch};
  auto clash = [&](const Touch &old, bool oldWrites, int64_t begin,
                   int64_t end) {
    bool reuse = old.launch != thread.launch;
    auto diag = report(action);
    if (!diag)
      return;
    *diag << (write ? "writes" : "reads") << " ["
          << std::max(begin, bounds.begin) << ", " << std::min(end, bounds.end)
          << ") of '" << program.arguments[argument].name << "' at rank "
          << rank << " on " << when(thread) << ", with no order between it and "
          << "the " << (oldWrites ? "write" : "read") << " by "
          << name(old.stamp.thread) << " in launch " << old.launch;
    reported.insert(program.actions[old.action].op);
    diag->attachNote(program.actions[old.action].op->getLoc())
        << "the " << (oldWrites ? "write" : "read");
    diag->attachNote()
        << (reuse ? "let the earlier launch end in a barrier or a signal that "
                    "orders them, or alternate two buffers by comms.epoch"
                  : "order them: a signal that releases and a wait that "
                    "acquires, or a barrier");
  };
  size_t part = size_t(argument) * shape.followed.size() + rankIndex[rank];
  shadows[part].access(bounds.begin, bounds.end,
                       [&](int64_t begin, Shadow::Piece &piece) {
                         steps += 2 + piece.reads.size();
                         if (!clocks.visible(thread.id, piece.write.stamp))
                           clash(piece.write, true, begin, piece.end);
                         if (!write)
                           return remember(piece.reads, now);
                         for (const Touch &read : piece.reads)
                           if (!clocks.carriedOut(thread.id, read.stamp))
                             clash(read, false, begin, piece.end);
                         piece.reads.clear();
                         piece.write = now;
                       });
}

void Machine::doAccess(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  if (action.peer >= 0 && action.kind == ActionKind::Access &&
      get(thread, action.peer) && !peerOf(thread, action))
    return;
  for (const RangePlan &range : action.ranges) {
    if (!range.used)
      continue;
    if (range.memory.kind == MemoryPlan::Peer)
      if (auto peer = get(thread, range.memory.peer)) {
        Action at = {};
        at.op = action.op;
        at.peer = range.memory.peer;
        at.team = range.memory.team;
        if (!peerOf(thread, at))
          return;
      }
    if (auto piece = bounds(thread, action, range))
      touch(thread, index, range, *piece);
  }
  if (action.counter >= 0) {
    Action at = {};
    at.op = action.op;
    at.index = action.counterIndex;
    at.object = action.counter;
    if (auto cellAt =
            cellIndex(thread, at, program.arguments[action.counter].count))
      ++cell(action.counter, thread.rank, *cellAt).value;
  }
}

void Machine::doBulk(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  if (action.kind == ActionKind::BulkWait) {
    for (Register token : action.tokens)
      if (auto id = get(thread, token))
        llvm::erase_if(thread.copies,
                       [&](const auto &copy) { return copy.first == *id; });
    return;
  }
  doAccess(thread, index);
  size_t at = thread.id * program.initialValues.size() + action.dst;
  values[at] = ++nextCopy;
  known[at] = 1;
  thread.copies.emplace_back(nextCopy, index);
}

//===----------------------------------------------------------------------===//
// Packets and poison
//===----------------------------------------------------------------------===//

std::optional<Machine::Bounds> Machine::mailBounds(Thread &thread,
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
    auto some = demand(thread, action, range.count, "number of elements");
    if (!some)
      return std::nullopt;
    count = *some;
    if (action.kind != ActionKind::PoisonFill &&
        !bounds(thread, action, range) && *some > range.fixedCount)
      return std::nullopt;
  }
  if (packets)
    count = count > 0 && count < (int64_t(1) << 40)
                ? (count * action.elementBits + 31) / 32
                : 0;
  words.count = noRegister;
  words.fixedCount = count;
  auto result = bounds(thread, action, words);
  if (!result)
    fatal = true;
  return result;
}

void Machine::store(Thread &thread, int32_t index, Mailbox &box, Bounds bounds,
                    int64_t flag) {
  const Action &action = program.actions[index];
  Touch now{clocks.stamp(thread.id), index, thread.launch};
  Message message = clocks.send(thread.id, /*release=*/false);
  bool poison = action.kind != ActionKind::PacketStore;
  box.access(bounds.begin, bounds.end, [&](int64_t begin, Mailbox::Run &run) {
    steps += 2 + run.reads.size();
    const Touch *early = nullptr;
    for (const Touch &read : run.reads)
      if (!clocks.carriedOut(thread.id, read.stamp))
        early = &read;
    if (early) {
      if (auto diag = report(action)) {
        *diag << "overwrites [" << begin << ", " << run.end << ") on "
              << when(thread) << " before " << name(early->stamp.thread)
              << " has surely read it in launch " << early->launch;
        reported.insert(program.actions[early->action].op);
        diag->attachNote(program.actions[early->action].op->getLoc())
            << "the read";
        diag->attachNote() << "alternate buffers by comms.epoch, or let the "
                              "reader answer before the next launch";
      }
    } else if (!poison && run.flag == flag) {
      if (auto diag = report(action)) {
        *diag << "writes flag " << flag << " to [" << begin << ", " << run.end
              << ") on " << when(thread) << ", where packets of launch "
              << run.store.launch
              << " have that flag already: a reader cannot tell them apart";
        for (const Touch &read : run.reads)
          reported.insert(program.actions[read.action].op);
        diag->attachNote(program.actions[run.store.action].op->getLoc())
            << "the earlier store";
        diag->attachNote() << "let the flag grow with comms.epoch";
      }
    } else if (action.kind == ActionKind::PoisonStore && run.flag == flag) {
      if (auto diag = report(action)) {
        *diag << "writes to [" << begin << ", " << run.end << ") on "
              << when(thread) << ", which still holds the tile of launch "
              << run.store.launch
              << ": a reader would take the old one for the new";
        for (const Touch &read : run.reads)
          reported.insert(program.actions[read.action].op);
        diag->attachNote(program.actions[run.store.action].op->getLoc())
            << "the earlier store";
        diag->attachNote() << "let the reader clear it with comms.poison_fill "
                              "before it is used again";
      }
    } else if (run.store.action >= 0 &&
               !clocks.carriedOut(thread.id, run.store.stamp)) {
      if (auto diag = report(action)) {
        *diag << "writes to [" << begin << ", " << run.end << ") on "
              << when(thread) << " with no order between it and "
              << name(run.store.stamp.thread) << " in launch "
              << run.store.launch;
        diag->attachNote(program.actions[run.store.action].op->getLoc())
            << "the other store";
        diag->attachNote() << "give each writer its own part, or order them "
                              "with a signal or a barrier";
      }
    }
    run.flag = flag;
    run.store = now;
    run.message = message;
    run.reads.clear();
  });
}

bool Machine::doMail(Thread &thread, int32_t index) {
  const Action &action = program.actions[index];
  const MemoryPlan &memory = action.ranges[0].memory;
  auto piece = mailBounds(thread, action);
  if (!piece)
    return true;
  bool packets = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  int64_t flag = 1;
  if (packets) {
    auto value = demand(thread, action, action.value, "flag");
    if (!value)
      return true;
    flag = *value & 0xffffffff;
  }
  auto boxOf = [&](int64_t rank) -> Mailbox & {
    return mailboxes[size_t(memory.argument) * shape.followed.size() +
                     rankIndex[rank]];
  };
  const TeamView *team = memory.team < 0 ? nullptr : &view(thread, memory.team);
  int64_t rank = memory.kind == MemoryPlan::Peer
                     ? team->world(*get(thread, memory.peer))
                     : thread.rank;
  if (action.kind != ActionKind::PacketLoad &&
      action.kind != ActionKind::PoisonLoad) {
    if (action.kind == ActionKind::PoisonFill)
      flag = -1;
    if (memory.kind == MemoryPlan::Multimem)
      for (int64_t peer = 0; peer < team->size; ++peer)
        store(thread, index, boxOf(team->world(peer)), *piece, flag);
    else
      store(thread, index, boxOf(rank), *piece, flag);
    return true;
  }
  if (packets && flag == 0) {
    if (auto diag = report(action)) {
      *diag << "waits for flag 0 on " << when(thread)
            << ", which memory holds before anything is stored";
      diag->attachNote() << "begin with flag 1: comms.epoch does";
    }
    fatal = true;
    return true;
  }
  Mailbox &box = boxOf(rank);
  int64_t seen = -1;
  if (!box.holds(piece->begin, piece->end, flag, seen))
    return false;
  Touch now{clocks.stamp(thread.id), index, thread.launch};
  box.access(piece->begin, piece->end, [&](int64_t begin, Mailbox::Run &run) {
    for (const Touch &read : run.reads)
      if (read.launch < thread.launch) {
        if (auto diag = report(action)) {
          *diag << "is met at launch " << thread.launch
                << " by what was stored in launch " << run.store.launch
                << ", on " << name(thread.id);
          diag->attachNote(program.actions[run.store.action].op->getLoc())
              << "the store";
          diag->attachNote()
              << (packets ? "let the flag grow with comms.epoch"
                          : "clear what has been read with comms.poison_fill");
        }
        break;
      }
    remember(run.reads, now);
    clocks.receive(thread.id, run.message, /*acquire=*/false);
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Reporting
//===----------------------------------------------------------------------===//

std::optional<InFlightDiagnostic> Machine::report(const Action &action) {
  return report(action.op);
}

/// One error for each op: a second one would most often follow from the first.
std::optional<InFlightDiagnostic> Machine::report(Operation *op) {
  if (!reported.insert(op).second || ++errors > maxErrors)
    return std::nullopt;
  return op->emitOpError();
}

std::string Machine::name(int32_t thread) const {
  return formatv("rank {0} block {1}", threads[thread].rank,
                 threads[thread].block);
}

std::string Machine::when(const Thread &thread) const {
  return formatv("{0} in launch {1}", name(thread.id), thread.launch);
}

std::string Machine::cellName(const Cell &cell) const {
  return formatv("'{0}'[{1}] of rank {2}",
                 program.arguments[cell.argument].name, cell.index, cell.rank);
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
    result.what = formatv("'{0}'[{1}] to be {2}{3}; it is {4}", argument, index,
                          equal ? "" : "at least ", want, value);
    if (equal && value > want)
      result.what += ": the value was passed and will not come back";
    if (action.kind != ActionKind::WaitSignal)
      return;
    // Who has signalled in this launch, and who has not.
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
          formatv("rank {0} should have signalled it", rank));
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
        senders.empty() ? std::string("nobody has signalled it in this launch")
                        : "signalled in this launch by " + senders);
    std::string others;
    unsigned shown = 0;
    for (const Cell &other : cells)
      if (&other != cell && other.argument == action.object &&
          other.rank == thread.rank && other.value != 0 && ++shown <= 4)
        others += formatv("{0}'{1}'[{2}] is {3}", others.empty() ? "" : ", ",
                          argument, other.index, other.value);
    if (!others.empty()) {
      result.details.push_back("other cells at this rank: " + others);
      result.mismatch = true;
    }
    result.mismatch |= equal && value > want;
  };
  auto describeBarrier = [&](const BarrierState &state, int32_t number) {
    const Generation &generation = state.generations[number];
    result.each = true;
    result.what = formatv("all {0} blocks that it joins; {1} came",
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
    const TeamView &team = view(thread, action.team);
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
  case ActionKind::Barrier:
    describeBarrier(barrierOf(-1, action.extent == BarrierExtent::Grid),
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
    result.what = formatv("{0} at '{1}'[{2}]",
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
                   : formatv("the flag there is {0}", seen).str());
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
