//===- Machine.cpp - Follows a program on every rank and block ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "lowering/analysis/Accesses.h"
#include "lowering/check/Arithmetic.h"
#include "lowering/check/ProgramBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

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

/// Iterations of a loop with an unknown end that are followed one by one, and
/// then those in which what it carries may be anything: in two of them shows
/// what one leaves behind for the next.
static constexpr int32_t countedRounds = 16, countedInner = 2, anyRounds = 2;
/// Iterations that are followed one by one where values are.
static constexpr int32_t longestFollowed = 1024;

void Machine::enterUnknownLoop(Thread &thread, const Instruction &in) {
  Interval first = getInterval(thread, in.a), end = getInterval(thread, in.b);
  Interval step = getInterval(thread, in.c);
  bool isCounted = first.isKnown() && step.isKnown() && step.low > 0;
  int32_t next = thread.pc + 1;
  passUnknown(thread, in.extra, end.isKnown() ? first : end);
  UnknownBranch *loop = unknownBranchOf(thread, in.extra);
  if (fatal || !loop)
    return;
  loop->counter = in.dst;
  loop->bound = end;
  if (first.low < end.high)
    loop->span = {first.low, end.high - 1};
  loop->isCounted = isCounted;
  if (isCounted) {
    loop->rounds = 0;
    thread.pc = next;
    return;
  }
  forgetCarried(thread, *loop);
}

void Machine::nextRound(Thread &thread, UnknownBranch &loop,
                        const Instruction *branch) {
  const Guard &guard = program.guards[loop.guard];
  loop.run = ++nextRun;
  loop.condition.reset();
  loop.holds = 0;
  if (branch && loop.isCounted) {
    Interval more = getInterval(thread, branch->a);
    // What elements hold is known of all iterations, if there are not too many.
    bool isShort =
        contents && loop.span.low >= 0 && loop.span.high < longestFollowed;
    int32_t most = isShort                    ? longestFollowed
                   : thread.unsure.size() > 1 ? countedInner
                                              : countedRounds;
    if (more.isKnown() && !more.low) {
      loop.rounds = INT32_MAX;
    } else if (loop.rounds++ < most) {
      loop.holds = more.term;
      if (contents)
        enterIf(loop, more, /*holds=*/true);
      thread.pc = guard.body;
      return;
    } else {
      // The rest, by the interval in which its iterations lie.
      loop.isCounted = false;
      loop.rounds = 1;
      if (Interval now = getInterval(thread, loop.counter); now.isKnown())
        loop.span.low = now.low;
      forgetCarried(thread, loop);
      thread.pc = guard.body;
      return;
    }
  } else if (loop.rounds++ < anyRounds) {
    forgetCarried(thread, loop);
    thread.pc = guard.body;
    return;
  }
  thread.unsure.pop_back();
  thread.pc = guard.skip;
}

//===----------------------------------------------------------------------===//
// What scalars choose
//===----------------------------------------------------------------------===//

/// Iterations that are chosen of a loop, at most.
static constexpr int32_t chosenRounds = 3;

bool Machine::canChoose(int32_t guard, Interval value) const {
  return shape.choosesScalars && !value.isKnown() &&
         program.guards[guard].sync &&
         (terms.isUniform(value.term) ||
          (shape.choosesData && isFree(value.term)));
}

bool Machine::isFree(int32_t term) const {
  return term != 0 && llvm::all_of(terms.leavesOf(term), [&](int32_t leaf) {
           int32_t argument = terms.sourceOf(leaf).argument;
           return argument >= 0 && (!program.arguments[argument].written ||
                                    program.arguments[argument].host);
         });
}

std::optional<bool> Machine::choose(const Thread &thread, int32_t index,
                                    Interval condition) {
  if (!shape.choosesScalars || !thread.unsure.empty())
    return std::nullopt;
  if (auto it = chosen.find(condition.term); it != chosen.end())
    return it->second;
  if (!canChoose(index, condition))
    return std::nullopt;
  const Guard &guard = program.guards[index];
  // All ranks count the iterations that a scalar decides.
  int32_t whose = terms.isUniform(condition.term) ? -1 : thread.id;
  int32_t *rounds =
      guard.body >= 0 ? &roundsChosen[{index, thread.launch, whose}] : nullptr;
  int32_t most = std::max(chosenRounds, guard.repeatsAfter);
  if (rounds && *rounds >= most) {
    // Iterations that synchronize alike need not compute alike.
    if (!guard.repeatsAfter || contents)
      noteUnproven(guard.op,
                   "is followed for at most " + llvm::Twine(most) +
                       (whose < 0
                            ? " iterations: a scalar says how many there are"
                            : " iterations: data say how many there are"),
                   "let iterations order by barriers alone, and name the same "
                   "places again after at most 4; or let there be at most 3");
    return chosen[condition.term] = false;
  }
  bool holds = madeChoices.size() < shape.choices.size() &&
               shape.choices[madeChoices.size()];
  madeChoices.push_back(holds);
  if (rounds && holds)
    ++*rounds;
  return chosen[condition.term] = holds;
}

/// Whether every condition of nothing but `leaves` comes out as chosen.
bool Machine::choosesSo(llvm::ArrayRef<int32_t> leaves,
                        const std::map<int32_t, int64_t> &scalars) const {
  return llvm::all_of(chosen, [&](const auto &condition) {
    bool isGiven =
        llvm::all_of(terms.leavesOf(condition.first), [&](int32_t leaf) {
          return llvm::is_contained(leaves, leaf);
        });
    if (!isGiven)
      return true;
    auto value = terms.evaluate(condition.first,
                                [&](int32_t leaf) { return scalars.at(leaf); });
    return value && (*value != 0) == condition.second;
  });
}

std::optional<std::string> Machine::findScalarsThatChoose() const {
  SmallVector<int32_t> leaves;
  for (const auto &[term, holds] : chosen)
    for (int32_t leaf : terms.leavesOf(term))
      if (!llvm::is_contained(leaves, leaf))
        leaves.push_back(leaf);
  constexpr int64_t tried[] = {1, 0, 2, 3, 4, -1, 5, 8, 16, 64, 100, 1000};
  std::map<int32_t, int64_t> scalars;
  int64_t most = 100'000 / (1 + int64_t(chosen.size()));
  // Depth first: each leaf is given the first value that contradicts nothing.
  std::function<bool(size_t)> give = [&](size_t count) {
    if (count == leaves.size())
      return true;
    return llvm::any_of(tried, [&](int64_t value) {
      scalars[leaves[count]] = value;
      return most-- > 0 &&
             choosesSo(llvm::ArrayRef(leaves).take_front(count + 1), scalars) &&
             give(count + 1);
    });
  };
  if (!give(0))
    return std::nullopt;
  std::string text;
  for (int32_t leaf : leaves) {
    const auto &[argument, rank, offset, version, launch] =
        terms.sourceOf(leaf);
    text += (text.empty() ? "" : ", ") + program.arguments[argument].name;
    if (rank >= 0)
      text +=
          "[" + std::to_string(offset) + "] of rank " + std::to_string(rank);
    text += " = " + std::to_string(scalars[leaf]) + " in launch " +
            std::to_string(launch);
  }
  return text;
}

void Machine::forgetCarried(Thread &thread, UnknownBranch &unsure) {
  for (Register reg : program.guards[unsure.guard].carried)
    set(thread, reg, Interval());
  if (unsure.counter < 0)
    return;
  // Any iteration, which is below the upper bound.
  Interval counter = unsure.span;
  if (!contents)
    counter.term = terms.fresh(unsure.span);
  set(thread, unsure.counter, counter);
  Instruction below{Code::Compare};
  below.a = below.b = 0;
  below.extra = static_cast<int32_t>(arith::CmpIPredicate::slt);
  unsure.holds = terms.node(below, counter, unsure.bound, {});
}

UnprovenReason &Machine::noteUnproven(Operation *op, const llvm::Twine &text,
                                      llvm::StringRef note, Operation *other) {
  std::string said = text.str();
  for (UnprovenReason &old : unproven)
    if (old.op == op && old.text == said)
      return old;
  UnprovenReason &made = unproven.emplace_back();
  made.op = op;
  made.text = std::move(said);
  if (!note.empty())
    made.notes.emplace_back(other, note.str());
  return made;
}

std::string Machine::arraysOf(Interval value) const {
  std::set<int32_t> arguments;
  for (int32_t leaf : terms.leavesOf(value.term))
    if (int32_t argument = terms.sourceOf(leaf).argument; argument >= 0)
      arguments.insert(argument);
  std::string names;
  for (int32_t argument : arguments)
    if (!program.arguments[argument].written &&
        !program.arguments[argument].shared)
      names += (names.empty() ? "'" : ", '") +
               program.arguments[argument].name + "'";
  return names;
}

void Machine::passUnknown(Thread &thread, int32_t index, Interval decides) {
  const Guard &guard = program.guards[index];
  if (!guard.sync && !guard.touches) {
    thread.pc = guard.skip;
    return;
  }
  if (!guard.sync) {
    // A switch asks for one of its cases after the other.
    UnknownBranch *old = unknownBranchOf(thread, index);
    UnknownBranch &made = old ? *old : thread.unsure.emplace_back();
    made.guard = index;
    made.run = made.firstRun = ++nextRun;
    made.rounds = 1;
    if (!isa<scf::ForOp>(guard.op))
      forgetCarried(thread, made);
    thread.pc = guard.body >= 0 ? guard.body : thread.pc + 1;
    return;
  }
  fatal = open = true;
  bool spins = isa<ReadSignalOp, ReadCounterOp>(guard.sync);
  if (spins)
    noteUnproven(guard.op,
                 "spins on a value that is read, which comms-check-sync "
                 "does not follow");
  else
    noteUnproven(guard.op,
                 "decides whether a synchronization runs by a value that is "
                 "not known: it depends on data or on an argument");
  unproven.back().notes = {
      {guard.sync,
       spins ? "the value is read here" : "synchronization is here"},
      {nullptr, spins ? "use comms.wait_signal or comms.wait_counter"
                      : "synchronize on every path, and make only the data or "
                        "the element count depend on data"}};
  if (std::string names = spins ? "" : arraysOf(decides); !names.empty())
    unproven.back().notes.emplace_back(
        nullptr, "it depends on " + names +
                     ": if its integers are the same on all ranks, state "
                     "same_on_ranks(…) in comms.assumes (Python: assumes=)");
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

/// dst of Code::Assume. Where nothing is left, it is not reached.
static Interval assumed(Interval value, arith::CmpIPredicate predicate,
                        Interval other) {
  using Predicate = arith::CmpIPredicate;
  if (value.isKnown())
    return value;
  Interval found = value;
  int64_t below = other.high == INT64_MIN ? INT64_MIN : other.high - 1;
  int64_t above = other.low == INT64_MAX ? INT64_MAX : other.low + 1;
  bool isUnsigned = predicate == Predicate::ult || predicate == Predicate::ule;
  if (isUnsigned && other.low < 0)
    return value;
  switch (predicate) {
  case Predicate::eq:
    found.low = std::max(value.low, other.low);
    found.high = std::min(value.high, other.high);
    break;
  case Predicate::ult:
  case Predicate::slt:
    found.high = std::min(value.high, below);
    break;
  case Predicate::ule:
  case Predicate::sle:
    found.high = std::min(value.high, other.high);
    break;
  case Predicate::sgt:
    found.low = std::max(value.low, above);
    break;
  case Predicate::sge:
    found.low = std::max(value.low, other.low);
    break;
  default:
    break;
  }
  if (isUnsigned)
    found.low = std::max<int64_t>(found.low, 0);
  return found.low <= found.high ? found : value;
}

void Machine::evaluateChecked(const Instruction &in, Interval *v) {
  v[in.dst] = checked(v[in.a], v[in.b], v[in.c]);
  v[in.dst].term = v[in.a].term;
  v[in.dst].isCounted = v[in.a].isCounted;
  // What the check does not let pass are no data of this program.
  if (shape.model && v[in.a].isKnown() && v[in.b].isKnown() &&
      v[in.c].isKnown() &&
      (v[in.a].low < 0 || v[in.a].low > v[in.c].low ||
       v[in.b].low > v[in.c].low - v[in.a].low))
    fatal = open = true;
}

Interval Machine::evaluateCast(const Instruction &in, Interval value) {
  bool isSigned = in.code == Code::SignCast;
  if (!value.isKnown()) {
    int32_t term = terms.node(in, value, {}, {});
    Interval cut = castSpan(value, isSigned, in.extra, in.width);
    // What keeps its value keeps its name.
    bool isSame = value.low == cut.low && value.high == cut.high;
    return {cut.low, cut.high, isSame ? value.term : term, value.isCounted};
  }
  int64_t known = value.low;
  if (!isSigned)
    known = static_cast<int64_t>(unsignedOf(known, in.extra));
  else if (in.extra == 1)
    known = -known;
  return Interval::of(normalize(known, in.width));
}

Interval Machine::evaluateUnknown(const Instruction &in, Interval a,
                                  Interval b) {
  int32_t term = terms.node(in, a, b, {});
  // What keeps its value keeps its name.
  auto isOf = [&](const Interval &one, const Interval &other) {
    return (in.code == Code::MinS && one.high <= other.low) ||
           (in.code == Code::MaxS && one.low >= other.high);
  };
  if (isOf(a, b))
    return a;
  if (isOf(b, a))
    return b;
  Interval result = span(in.code, a, b, in.width);
  result.term = term;
  result.isCounted = a.isCounted || b.isCounted;
  return result;
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
    evaluateChecked(in, v);
    return;
  case Code::Assume:
    v[in.dst] =
        assumed(v[in.a], static_cast<arith::CmpIPredicate>(in.extra), v[in.b]);
    return;
  case Code::Opaque:
    v[in.dst] = findOpaque(thread, in);
    return;
  case Code::Compare:
    if (isKnown(in.a) && isKnown(in.b))
      result = compare(static_cast<arith::CmpIPredicate>(in.extra), v[in.a].low,
                       v[in.b].low, in.width);
    else if (auto known = compareSpans(
                 static_cast<arith::CmpIPredicate>(in.extra), v[in.a], v[in.b]);
             known && in.width > 1)
      result = *known;
    if (!result) {
      v[in.dst] = {0, 1, terms.node(in, v[in.a], v[in.b], {})};
      return;
    }
    break;
  case Code::Select:
    v[in.dst] = !isKnown(in.a)
                    ? Interval{std::min(v[in.b].low, v[in.c].low),
                               std::max(v[in.b].high, v[in.c].high),
                               terms.node(in, v[in.a], v[in.b], v[in.c]),
                               v[in.b].isCounted || v[in.c].isCounted}
                : v[in.a].low ? v[in.b]
                              : v[in.c];
    return;
  case Code::SignCast:
  case Code::ZeroCast:
    v[in.dst] = evaluateCast(in, v[in.a]);
    return;
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
      v[in.dst] = evaluateUnknown(in, v[in.a], v[in.b]);
      return;
    }
    if (auto value = compute(in.code, v[in.a].low, v[in.b].low, in.width))
      result = normalize(*value, in.width);
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

/// The host may pass other arrays to each launch, and writes its windows. Data
/// of a model stay.
void Machine::forgetArrays(const Thread &thread) {
  if (shape.model)
    return;
  for (auto [argument, plan] : llvm::enumerate(program.arguments))
    if (plan.isRead && (!plan.shared || plan.host))
      stored[placeOf(static_cast<int32_t>(argument), thread.rank)].clear();
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

//===----------------------------------------------------------------------===//
// Flushes
//===----------------------------------------------------------------------===//

bool Machine::flushes(const Thread &thread, const Action &action,
                      const Pending &pending) const {
  const Action &transfer = program.actions[pending.action];
  return transfer.gin == action.gin &&
         (!action.gin || transfer.context == action.context) &&
         reaches(thread, action.team, pending) &&
         (transfer.deferral == Deferral::Get ||
          (transfer.deferral == Deferral::Put && !pending.write));
}

void Machine::flush(Thread &thread, const Action &action,
                    llvm::ArrayRef<int64_t> path) {
  complete(thread, [&](const Pending &pending) {
    return llvm::ArrayRef(pending.path).take_front(path.size()) == path &&
           flushes(thread, action, pending);
  });
}

/// What stands before it in the same region has been done if the flush is. Of
/// what stands before the region, that is known within it.
void Machine::flushUnknown(Thread &thread, const Action &action) {
  Path path = pathOf(thread);
  flush(thread, action, path);
  for (Pending &pending : thread.underway)
    if (!isFlushed(thread, pending) && flushes(thread, action, pending))
      pending.flushedIn = path;
}

Machine::Path Machine::pathOf(const Thread &thread) {
  Path path;
  for (const UnknownBranch &unsure : thread.unsure)
    path.push_back(unsure.run);
  return path;
}

bool Machine::hasRun(const Thread &thread, const Path &path) {
  if (path.size() > thread.unsure.size())
    return false;
  return llvm::all_of(llvm::zip(path, thread.unsure), [](const auto &pair) {
    const auto &[run, unsure] = pair;
    // An iteration runs after all earlier ones.
    return unsure.firstRun <= run && run <= unsure.run;
  });
}

bool Machine::isFlushed(const Thread &thread, const Pending &pending) {
  return !pending.flushedIn.empty() && hasRun(thread, pending.flushedIn);
}

//===----------------------------------------------------------------------===//
// Integers of data
//===----------------------------------------------------------------------===//

Interval Machine::find(Leaf leaf, int64_t rank, unsigned width) {
  if (shape.model)
    return Interval::of(normalize(shape.model->of(rank, shape.ranks), width));
  if (leaf.argument < 0)
    return {};
  Interval any;
  if (width < 64)
    any = width == 1 ? Interval{0, 1}
                     : Interval{llvm::minIntN(width), llvm::maxIntN(width)};
  any.term = terms.leaf(leaf);
  return any;
}

/// The host gives the same scalars to all ranks, in each launch others.
void Machine::findScalars(Thread &thread) {
  for (Register root : program.roots)
    set(thread, root,
        Interval::of(shape.roots.of(thread.launch) % shape.ranks));
  for (auto [at, scalar] : llvm::enumerate(program.scalars)) {
    auto [reg, argument] = scalar;
    if (!shape.scalars.empty()) {
      size_t turn = (thread.launch - 1) % shape.scalars.size();
      set(thread, reg, Interval::of(shape.scalars[turn][at]));
      continue;
    }
    Leaf leaf;
    leaf.argument = argument;
    leaf.launch = thread.launch;
    KernelOp kernel = program.kernel;
    Type type = kernel.getBody().front().getArgument(argument).getType();
    set(thread, reg,
        find(leaf, 0, type.isIndex() ? 64 : type.getIntOrFloatBitWidth()));
  }
}

/// Whether `op` uses what other ranks send, which is not as any data may be.
static bool usesReceived(Operation *op, const Program &program,
                         llvm::SmallPtrSetImpl<Operation *> &visited) {
  if (!visited.insert(op).second)
    return false;
  if (isa<PacketLoadOp, PoisonLoadOp, RecvOp>(op))
    return true;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    if (isa<MemRefType, WindowType>(operand.getType())) {
      auto root = dyn_cast_or_null<BlockArgument>(getMemoryRoot(operand).value);
      return root && isa<WindowType>(root.getType()) &&
             program.arguments[root.getArgNumber()].written;
    }
    Operation *made = operand.getDefiningOp();
    return made && usesReceived(made, program, visited);
  });
}

/// What is computed from data that are not followed, by an op that touches
/// nothing.
Interval Machine::findOpaque(const Thread &thread, const Instruction &in) {
  Operation *op = program.opaque[in.extra];
  llvm::SmallPtrSet<Operation *, 8> visited;
  if (!shape.model || !isMemoryEffectFree(op))
    return {};
  if (usesReceived(op, program, visited)) {
    leavesRange = true;
    return {};
  }
  return find({}, thread.rank, in.width);
}

void Machine::loadInteger(Thread &thread, const Action &action, Bounds bounds) {
  if (action.loads < 0)
    return;
  set(thread, action.loads, Interval());
  const MemoryPlan &memory = action.ranges[0].memory;
  auto peer =
      memory.kind == MemoryPlan::Peer ? get(thread, memory.peer) : std::nullopt;
  bool isOne = memory.argument >= 0 && !bounds.isGuess &&
               (memory.kind == MemoryPlan::Own || peer);
  if (!isOne)
    return;
  int64_t rank = peer ? view(thread, memory.team).world(*peer) : thread.rank;
  if (rank < 0 || rank >= shape.ranks || rankIndex[rank] < 0)
    return;
  size_t part = placeOf(memory.argument, rank);
  if (auto found = joinStored(part, bounds))
    return set(thread, action.loads, *found);
  if (bounds.anywhere || bounds.end != bounds.begin + 1)
    return;
  // Nobody knows what another way of writing has left there.
  if (shape.model && overwritten[part])
    return;
  Leaf leaf;
  leaf.argument = memory.argument;
  bool isSame = program.arguments[memory.argument].isSame;
  leaf.rank = isSame ? -1 : rank;
  leaf.offset = bounds.begin;
  leaf.version = overwritten[part];
  leaf.launch = thread.launch;
  unsigned width = widthOf(getElementTypeOrSelf(action.op->getResult(0)));
  set(thread, action.loads, find(leaf, isSame ? 0 : rank, width));
  if (contents)
    noteInteger(thread, action, bounds);
}

/// Elements among which data choose one, or that one op stores, at most.
static constexpr int64_t mostChoices = 1024;

void Machine::storeInteger(Thread &thread, const Action &action,
                           const RangePlan &range, Bounds bounds) {
  if (!range.write || range.memory.argument < 0 ||
      !program.arguments[range.memory.argument].isRead)
    return;
  forParts(thread, range.memory, [&](int64_t rank) {
    size_t part = placeOf(range.memory.argument, rank);
    bool isKnown = action.stores >= 0 && !bounds.anywhere && !bounds.isGuess &&
                   thread.unsure.empty() && range.rows == 1 &&
                   bounds.end - bounds.begin <= mostChoices &&
                   (range.count < 0 || get(thread, range.count));
    if (isKnown) {
      for (int64_t at = bounds.begin; at < bounds.end; ++at)
        stored[part][at] = getInterval(thread, action.stores);
      steps += bounds.end - bounds.begin;
      return;
    }
    if (action.stores >= 0 && !bounds.isGuess)
      return mayStore(thread, part, bounds, getInterval(thread, action.stores));
    forgetIntegers(part);
  });
}

void Machine::forgetIntegers(size_t part) {
  stored[part].clear();
  ++overwritten[part];
}

std::optional<Interval> Machine::joinStored(size_t part, Bounds bounds) const {
  const std::map<int64_t, Interval> &known = stored[part];
  auto it = known.find(bounds.begin);
  if (it == known.end() || bounds.end - bounds.begin > mostChoices)
    return std::nullopt;
  Interval found = it->second;
  if (bounds.end == bounds.begin + 1)
    return found;
  for (int64_t at = bounds.begin; at < bounds.end; ++at, ++it) {
    if (it == known.end() || it->first != at)
      return std::nullopt;
    found.low = std::min(found.low, it->second.low);
    found.high = std::max(found.high, it->second.high);
  }
  found.term = 0;
  found.isCounted = true;
  return found;
}

void Machine::mayStore(const Thread &thread, size_t part, Bounds bounds,
                       Interval value) {
  // Of a loop that is not followed to its end, later iterations go on.
  bool goesOn = llvm::any_of(thread.unsure, [&](const UnknownBranch &unsure) {
    return program.guards[unsure.guard].body >= 0 && !unsure.isCounted;
  });
  auto first = stored[part].lower_bound(bounds.begin);
  for (auto it = first; it != stored[part].end() && it->first < bounds.end;
       ++it) {
    Interval &old = it->second;
    ++steps;
    if (value.low < old.low)
      old.low = goesOn ? INT64_MIN : value.low;
    if (value.high > old.high)
      old.high = goesOn ? INT64_MAX : value.high;
    old.term = 0;
    old.isCounted = true;
  }
  ++overwritten[part];
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
