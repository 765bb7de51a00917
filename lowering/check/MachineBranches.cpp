//===- MachineBranches.cpp - Branches that data or scalars decide ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A branch or loop whose condition is not known is entered as one that may run.
// If it decides about synchronization, the run chooses its outcome, or ends.
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Machine.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

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

/// Whether a loop in another one, whose `rounds` first iterations went from the
/// start of its span to `now`, ends soon enough to follow all of them.
static bool isShortInner(Interval span, Interval now, int32_t rounds) {
  if (rounds <= 0 || !now.isKnown() || now.low <= span.low)
    return false;
  uint64_t step = (uint64_t(now.low) - uint64_t(span.low)) / uint64_t(rounds);
  return step > 0 && span.high >= span.low &&
         (uint64_t(span.high) - uint64_t(span.low)) / step < countedRounds;
}

void Machine::nextRound(Thread &thread, UnknownBranch &loop,
                        const Instruction *branch) {
  const Guard &guard = program.guards[loop.guard];
  loop.run = ++nextRun;
  loop.condition.reset();
  loop.holds = 0;
  loop.isOver = false;
  if (branch && loop.isCounted) {
    Interval more = getInterval(thread, branch->a);
    // What elements hold is known of all iterations, if there are not too many.
    bool isShort =
        contents && loop.span.low >= 0 && loop.span.high < longestFollowed;
    bool isInner = thread.unsure.size() > 2 ||
                   (thread.unsure.size() > 1 &&
                    !isShortInner(loop.span, getInterval(thread, loop.counter),
                                  loop.rounds));
    int32_t most = isShort   ? longestFollowed
                   : isInner ? countedInner
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
    made.isOver = false;
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
