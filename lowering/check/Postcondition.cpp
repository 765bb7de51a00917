//===- Postcondition.cpp - Proves the promised outputs --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Postcondition.h"

#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/Blocks.h"
#include "lowering/check/Arithmetic.h"
#include "lowering/check/Launches.h"
#include "lowering/check/ProgramBuilder.h"
#include "lowering/check/Reference.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::formatv;

/// Notes of one difference, and pieces that are told of one array.
static constexpr size_t mostNotes = 4, mostTold = 64;

/// Elements of a piece that are compared one by one.
static constexpr int64_t mostElements = 4096;

namespace {
/// What element `begin` of an argument at a rank should hold, and its
/// neighbors; `problem` is set where that cannot be said.
using Expectation =
    std::function<Expected(int32_t argument, int64_t rank, int64_t begin,
                           int64_t end, int32_t launch, std::string &problem)>;

/// Follows a kernel and compares.
class PostconditionChecker {
public:
  /// `program` is the kernel's, with values; null: it could not be built.
  PostconditionChecker(KernelOp kernel, const Program *program,
                       const WorldShape &shape)
      : kernel(kernel), shape(shape), program(program), contents(values) {
    if (program)
      for (auto [at, plan] : llvm::enumerate(program->arguments))
        if (plan.isSame)
          values.sameOnRanks.insert(static_cast<int32_t>(at));
    this->shape.followed.resize(shape.ranks);
    std::iota(this->shape.followed.begin(), this->shape.followed.end(), 0);
    this->shape.comparesMemory = false;
  }

  /// Runs it; `inputs` have new elements before each launch, of all ranks, and
  /// so have arguments that it does not write. False: it cannot be followed.
  bool run(llvm::ArrayRef<int32_t> inputs, std::function<void(int32_t)> atEnd);
  /// What is known of launch `launch`.
  GivenNumbers givenTo(int32_t launch) const;
  /// Compares `argument` on all ranks after launch `launch`.
  void compare(int32_t argument, int32_t launch, const Expectation &expected);
  /// "y[0, 64) of ranks 0 to 3: x(0) + x(1)".
  std::vector<std::string> summarize(int32_t argument);

  const Program &getProgram() const { return *program; }
  /// The choices of the run that has ended.
  const std::vector<bool> &choicesMade() const { return made; }
  /// ", where 0 < go": what holds in the launches of the run that has ended.
  std::string describeChoices(int32_t launch);
  int64_t elementsOf(int32_t argument) {
    return check::elementsOf(
        kernel.getBody().front().getArgument(argument).getType());
  }
  std::string nameOf(int32_t argument) {
    return kernel.getArgumentName(argument);
  }

  Values values;
  ValueVerdict verdict;

private:
  struct ArraySummary {
    int64_t begin = 0, end = 0;
    std::string text;
    bool operator==(const ArraySummary &other) const = default;
  };
  std::vector<ArraySummary> summarize(int32_t argument, int64_t rank);
  void begin(int32_t launch, llvm::ArrayRef<int32_t> inputs);
  void compareRank(int32_t argument, int64_t rank, int32_t launch,
                   const Expectation &expected);
  void comparePiece(int32_t argument, int64_t rank, int32_t launch,
                    int64_t begin, int64_t end, const Expected &expected,
                    const Memory::StoredPiece &held);
  enum class Likeness : uint8_t { Equal, Different, Unknown };
  Likeness compareElements(int64_t begin, int64_t end, const Expected &expected,
                           const Memory::StoredPiece &held);
  /// Whether elements of two references have the same bits.
  bool haveSameBits(int64_t begin, int64_t end, Ref a, Ref b);
  void compareOrder(int32_t argument, int64_t rank, int32_t launch,
                    int64_t begin, int64_t end, Ref expected,
                    const Memory::StoredPiece &held);
  void reportDifference(int32_t argument, int64_t rank, int32_t launch,
                        int64_t begin, int64_t end, const Sum &expected,
                        const Sum &found, const Memory::StoredPiece &held);
  void noteDifference(InFlightDiagnostic &diag, int32_t launch,
                      const Sum &expected, const Sum &found, Ref held);
  void noteUnproven(Operation *op, const std::string &text,
                    const std::string &note);
  std::string describe(Ref ref, int32_t launch);

  KernelOp kernel;
  WorldShape shape;
  const Program *program;
  Contents contents;
  std::vector<bool> made;
  /// Conditions of the host's scalars that were chosen so far.
  std::vector<std::pair<Ref, bool>> chosen;
  /// Elements that should be the same on several ranks: what the first of them
  /// holds, by what they should be.
  struct ReplicatedElement {
    Memory memory;
    std::map<int64_t, int64_t> ranks;
  };
  std::map<std::pair<int32_t, Ref>, ReplicatedElement> agreed;
  bool differs = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Following
//===----------------------------------------------------------------------===//

/// Whether the program does nothing to a window but add to it.
static bool isAccumulator(const Program &program, int32_t argument) {
  bool adds = false;
  for (const Action &action : program.actions)
    for (const RangePlan &range : action.ranges) {
      if (!range.used || !range.write || range.memory.argument != argument)
        continue;
      auto reduce = dyn_cast<MultimemReduceOp>(action.op);
      if (!reduce || reduce.getKind() != ReductionKind::Sum)
        return false;
      adds = true;
    }
  return adds;
}

void PostconditionChecker::begin(int32_t launch,
                                 llvm::ArrayRef<int32_t> inputs) {
  auto arguments = kernel.getBody().front().getArguments();
  for (auto [argument, plan] : llvm::enumerate(program->arguments)) {
    auto number = static_cast<int32_t>(argument);
    if (!isa<WindowType, MemRefType>(arguments[argument].getType()))
      continue;
    bool isNew = llvm::is_contained(inputs, number) || !plan.written;
    bool isZero = !isNew && isAccumulator(*program, number);
    verdict.assumesZeros |= isZero;
    if (isNew || isZero)
      for (int64_t rank = 0; rank < shape.ranks; ++rank)
        contents.part(number, rank)
            .fill(isZero ? values.constant(0)
                         : values.input(number, rank, launch));
  }
}

bool PostconditionChecker::run(llvm::ArrayRef<int32_t> inputs,
                               std::function<void(int32_t)> atEnd) {
  // What is wrong otherwise has been said.
  ScopedDiagnosticHandler silent(
      kernel.getContext(), [&](Diagnostic &diag) { return success(!differs); });
  // Registers of all threads: half a gigabyte.
  constexpr size_t mostRegisters = size_t(1) << 24;
  if (!program ||
      program->initialValues.size() >
          mostRegisters / static_cast<size_t>(shape.ranks * shape.blocks))
    return false;
  Machine machine(*program, shape);
  bool isNamed = true;
  machine.followValues(
      contents, [&](int32_t launch) { begin(launch, inputs); },
      [&](int32_t launch) {
        auto conditions = machine.chosenConditions();
        isNamed &= conditions.has_value();
        if (!isNamed)
          return;
        chosen = std::move(*conditions);
        // Errors of a comparison are said.
        differs = true;
        atEnd(launch);
        differs = false;
      });
  bool isFinished =
      machine.run() == Machine::Outcome::Finished && !machine.foundErrors();
  made = machine.choicesMade();
  if (shape.choosesScalars)
    for (const UnprovenReason &reason : machine.getUnprovenReasons())
      verdict.unproven.push_back(reason);
  return isFinished && isNamed;
}

GivenNumbers PostconditionChecker::givenTo(int32_t launch) const {
  GivenNumbers given;
  if (!program->extents.empty())
    given.extent = program->initialValues[program->extents.front()].low;
  if (BlockArgument root = findRootArgument(kernel))
    given.arguments[static_cast<int32_t>(root.getArgNumber())] =
        shape.roots.of(launch) % shape.ranks;
  if (shape.scalars.empty())
    return given;
  const auto &now = shape.scalars[(launch - 1) % shape.scalars.size()];
  for (auto [scalar, value] : llvm::zip(program->scalars, now))
    given.arguments[scalar.second] = value;
  return given;
}

std::string PostconditionChecker::describeChoices(int32_t launch) {
  std::string text;
  for (auto [condition, holds] : chosen)
    text += std::string(text.empty() ? ", where " : " and ") +
            (holds ? "" : "not ") +
            values.print(condition, launch,
                         [&](int32_t one) { return nameOf(one); });
  return text;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

void PostconditionChecker::noteUnproven(Operation *op, const std::string &text,
                                        const std::string &note) {
  for (const UnprovenReason &old : verdict.unproven)
    if (old.op == op && old.text == text)
      return;
  UnprovenReason &made = verdict.unproven.emplace_back();
  made.op = op;
  made.text = text;
  if (!note.empty())
    made.notes.emplace_back(nullptr, note);
}

void PostconditionChecker::compare(int32_t argument, int32_t launch,
                                   const Expectation &expected) {
  agreed.clear();
  for (int64_t rank = 0; rank < shape.ranks && !verdict.refuted; ++rank)
    compareRank(argument, rank, launch, expected);
}

void PostconditionChecker::compareRank(int32_t argument, int64_t rank,
                                       int32_t launch,
                                       const Expectation &expected) {
  int64_t count = elementsOf(argument);
  for (int64_t at = 0; at < count && !verdict.refuted;) {
    std::string problem;
    Expected wanted = expected(argument, rank, at, count, launch, problem);
    for (auto [condition, holds] : chosen)
      wanted.ref = values.assume(wanted.ref, condition, holds);
    // With other numbers for scalars it may be said.
    if (!problem.empty() && !program->scalars.empty() && shape.scalars.empty())
      return noteUnproven(kernel,
                          "says what '" + nameOf(argument) +
                              "' holds, which cannot be said of scalars that "
                              "are not known: " +
                              problem,
                          "");
    if (!problem.empty()) {
      kernel.emitOpError("says what '")
          << nameOf(argument) << "' holds, except for its element " << at
          << " at rank " << rank << " this cannot be determined: " << problem;
      verdict.refuted = true;
      return;
    }
    contents.part(argument, rank)
        .visit(
            at, wanted.end,
            [&](int64_t begin, int64_t end, const Memory::StoredPiece &held) {
              if (!verdict.refuted)
                comparePiece(argument, rank, launch, begin, end, wanted, held);
            });
    at = wanted.end;
  }
}

void PostconditionChecker::comparePiece(int32_t argument, int64_t rank,
                                        int32_t launch, int64_t begin,
                                        int64_t end, const Expected &expected,
                                        const Memory::StoredPiece &held) {
  Sum wanted = values.sumOf(expected.ref), found = values.sumOf(held.ref);
  bool isUnknown = values.isUnknown(held.ref) || values.isUnknown(expected.ref);
  Likeness likeness = values.areEqual(wanted, found) ? Likeness::Equal
                      : isUnknown ? Likeness::Unknown
                                  : compareElements(begin, end, expected, held);
  if (likeness == Likeness::Equal)
    return compareOrder(argument, rank, launch, begin, end, expected.ref, held);
  if (likeness == Likeness::Different)
    return reportDifference(argument, rank, launch, begin, end, wanted, found,
                            held);
  Operation *why = values.findUnknownOp(held.ref);
  if (!why)
    why = values.findUnknownOp(expected.ref);
  if (!why)
    why = held.by ? held.by : kernel.getOperation();
  if (isUnknown)
    return noteUnproven(
        why,
        "decides what '" + nameOf(argument) +
            "' holds in a way that is not followed",
        "values are followed through tiles, copies, packets, channels "
        "and reductions at places and of lengths that are known");
  noteUnproven(why,
               "writes a value to '" + nameOf(argument) +
                   "' that is written in another way than the promised one",
               "they agree on sample data: promise it with the same functions, "
               "in the same order of operations");
}

/// Compares the elements of a piece one by one: an op that computed one
/// element, and a row of which the elements were named, are alike only then.
PostconditionChecker::Likeness
PostconditionChecker::compareElements(int64_t begin, int64_t end,
                                      const Expected &expected,
                                      const Memory::StoredPiece &held) {
  constexpr uint64_t seeds = 32;
  int64_t last = std::min(end, begin + mostElements);
  Likeness likeness = last == end ? Likeness::Equal : Likeness::Unknown;
  for (int64_t at = begin; at < last; ++at) {
    Ref wanted = values.atElement(expected.ref, at);
    Ref found = values.atElement(held.ref, at);
    Sum sums[] = {values.sumOf(wanted), values.sumOf(found)};
    if (values.areEqual(sums[0], sums[1]) ||
        values.areEqualExpanded(sums[0], sums[1]))
      continue;
    std::vector<double> special = values.constantsIn({wanted, found});
    bool differs = llvm::any_of(llvm::seq(seeds), [&](uint64_t seed) {
      std::map<Ref, double> done;
      double a = values.sample(wanted, seed, special, done);
      double b = values.sample(found, seed, special, done);
      // A NaN shows nothing.
      return std::abs(a - b) >
             1e-6 * std::max({std::abs(a), std::abs(b), 1e-3});
    });
    if (differs)
      return Likeness::Different;
    likeness = Likeness::Unknown;
  }
  return likeness;
}

bool PostconditionChecker::haveSameBits(int64_t begin, int64_t end, Ref a,
                                        Ref b) {
  for (int64_t at = begin; at < std::min(end, begin + mostElements); ++at) {
    Ref first = values.canonical(values.atElement(a, at));
    Ref second = values.canonical(values.atElement(b, at));
    if (!(first == second) && !values.isUnordered(first) &&
        !values.isUnordered(second))
      return false;
  }
  return true;
}

/// Ranks that should hold the same have added in one order.
void PostconditionChecker::compareOrder(int32_t argument, int64_t rank,
                                        int32_t launch, int64_t begin,
                                        int64_t end, Ref expected,
                                        const Memory::StoredPiece &held) {
  Type type = kernel.getBody().front().getArgument(argument).getType();
  Type element = isa<WindowType>(type) ? cast<WindowType>(type).getElementType()
                                       : getElementTypeOrSelf(type);
  if (!isa<FloatType>(element) || values.isUnordered(held.ref))
    return;
  Ref bits = values.canonical(held.ref);
  ReplicatedElement &same = agreed[{argument, expected}];
  constexpr int32_t nobody = -1;
  if (same.memory.isEmpty())
    same.memory.fill({nobody});
  // Changing what is visited is put off.
  SmallVector<std::pair<int64_t, int64_t>> fresh;
  same.memory.visit(
      begin, end,
      [&](int64_t from, int64_t until, const Memory::StoredPiece &other) {
        if (other.ref.node == nobody) {
          fresh.emplace_back(from, until);
          return;
        }
        if (other.ref == bits || values.isUnordered(other.ref) ||
            verdict.refuted || haveSameBits(from, until, other.ref, bits))
          return;
        Operation *at = held.by ? held.by : kernel.getOperation();
        int64_t first = std::prev(same.ranks.upper_bound(from))->second;
        at->emitOpError("gives ranks ")
            << first << " and " << rank << " other bits of '"
            << nameOf(argument) << "'[" << from << ", " << until
            << "): both hold "
            << values.print(values.sumOf(held.ref), launch,
                            [&](int32_t one) { return nameOf(one); })
            << ", but add in different orders";
        verdict.refuted = true;
      });
  for (auto [from, until] : fresh) {
    same.memory.write(values, from,
                      makeTile(until - from, values.moved(bits, from)),
                      nullptr);
    same.ranks[from] = rank;
  }
}

/// "x of rank 2".
std::string PostconditionChecker::describe(Ref ref, int32_t launch) {
  int32_t argument = 0, from = 0;
  int64_t rank = 0;
  if (!values.isInput(ref, argument, rank, from))
    return values.print(ref, launch, [&](int32_t one) { return nameOf(one); });
  std::string text = formatv("'{0}' of rank {1}", nameOf(argument), rank);
  if (from == 0)
    return text + ", as it was before the first launch,";
  return from == launch ? text : text + " of launch " + std::to_string(from);
}

void PostconditionChecker::noteDifference(InFlightDiagnostic &diag,
                                          int32_t launch, const Sum &expected,
                                          const Sum &found, Ref held) {
  auto factorOf = [](const Sum &sum, Ref ref) {
    for (auto [part, factor] : sum.parts)
      if (part == ref)
        return factor;
    return 0.0;
  };
  // One factor too many for all of them.
  if (!expected.parts.empty() && expected.parts.size() == found.parts.size()) {
    double ratio =
        factorOf(found, expected.parts[0].first) / expected.parts[0].second;
    Sum scaled = expected;
    scaled.constant *= ratio;
    for (auto &part : scaled.parts)
      part.second *= ratio;
    if (ratio != 0 && values.areEqual(scaled, found)) {
      diag.attachNote() << "all of it is " << printNumber(ratio)
                        << " times what it should be";
      return;
    }
  }
  size_t notes = 0;
  auto note = [&](const std::string &text) {
    if (++notes <= mostNotes)
      diag.attachNote() << text;
  };
  for (auto [ref, factor] : expected.parts) {
    double has = factorOf(found, ref);
    std::string name = describe(ref, launch);
    if (has == 0)
      note(name + " is missing");
    else if (has == 2 * factor)
      note(name + " is counted twice");
    else if (has != factor)
      note(formatv("{0} has the factor {1}, not {2}", name, printNumber(has),
                   printNumber(factor)));
  }
  for (auto [ref, factor] : found.parts)
    if (factorOf(expected, ref) == 0)
      note(describe(ref, launch) + " should not be in it");
  if (Operation *by = values.origin(held); by && found.parts.size() > 1)
    diag.attachNote(by->getLoc()) << "the last of it came in here";
}

void PostconditionChecker::reportDifference(int32_t argument, int64_t rank,
                                            int32_t launch, int64_t begin,
                                            int64_t end, const Sum &expected,
                                            const Sum &found,
                                            const Memory::StoredPiece &held) {
  auto name = [&](int32_t one) { return nameOf(one); };
  verdict.refuted = true;
  Operation *at = held.by ? held.by : kernel.getOperation();
  InFlightDiagnostic diag = at->emitOpError();
  if (held.by)
    diag << "writes " << values.print(found, launch, name) << " to ";
  else
    diag << "does not write ";
  diag << "'" << nameOf(argument) << "'[" << begin << ", " << end
       << ") of rank " << rank << " in launch " << launch << "; expected is "
       << values.print(expected, launch, name);
  if (held.by)
    noteDifference(diag, launch, expected, found, held.ref);
}

std::vector<PostconditionChecker::ArraySummary>
PostconditionChecker::summarize(int32_t argument, int64_t rank) {
  std::vector<ArraySummary> told;
  Sum last;
  contents.part(argument, rank)
      .visit(0, elementsOf(argument),
             [&](int64_t begin, int64_t end, const Memory::StoredPiece &held) {
               Sum now = values.sumOf(held.ref);
               if (begin > 0 && values.areEqual(now, last)) {
                 told.back().end = end;
                 return;
               }
               std::string text = values.isUnknown(held.ref)
                                      ? "not followed"
                                      : values.print(now, 1, [&](int32_t one) {
                                          return nameOf(one);
                                        });
               told.push_back({begin, end, std::move(text)});
               last = std::move(now);
             });
  return told;
}

std::vector<std::string> PostconditionChecker::summarize(int32_t argument) {
  // Ranks that hold the same are told of together.
  std::vector<std::pair<std::vector<ArraySummary>, std::vector<int64_t>>>
      groups;
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    std::vector<ArraySummary> now = summarize(argument, rank);
    auto same = llvm::find_if(
        groups, [&](const auto &group) { return group.first == now; });
    if (same == groups.end())
      groups.push_back({std::move(now), {rank}});
    else
      same->second.push_back(rank);
  }
  std::vector<std::string> lines;
  for (const auto &[told, ranks] : groups) {
    std::string who = ranks.size() > 1 ? "ranks" : "rank";
    bool isRange =
        static_cast<int64_t>(ranks.size()) == ranks.back() - ranks.front() + 1;
    for (auto [at, rank] : llvm::enumerate(ranks))
      if (!isRange || at == 0)
        who += (at ? ", " : " ") + std::to_string(rank);
    if (isRange && ranks.size() > 1)
      who += " to " + std::to_string(ranks.back());
    for (const ArraySummary &piece : told)
      if (lines.size() < mostTold)
        lines.push_back(formatv("{0}[{1}, {2}) of {3}: {4}", nameOf(argument),
                                piece.begin, piece.end, who, piece.text));
  }
  return lines;
}

//===----------------------------------------------------------------------===//
// What is asked for
//===----------------------------------------------------------------------===//

static void noteAllUnproven(ValueVerdict &verdict, KernelOp kernel) {
  UnprovenReason &made = verdict.unproven.emplace_back();
  made.op = kernel;
  made.text =
      "could not be followed with what its elements hold, on all of its "
      "ranks";
}

/// The program with values; absent: what is wrong with it has been said.
static std::optional<Program> buildWithValues(KernelOp kernel) {
  ScopedDiagnosticHandler silent(kernel.getContext(),
                                 [](Diagnostic &) { return success(); });
  auto built = Program::build(kernel, /*withValues=*/true);
  if (failed(built))
    return std::nullopt;
  built->isBlockDependent = isBlockDependent(kernel);
  return std::move(*built);
}

namespace {
/// Checks what a kernel says that it computes, with all that its launches may
/// be given: extents, roots and scalars.
class ComputesChecker {
public:
  ComputesChecker(KernelOp kernel, const WorldShape &shape,
                  llvm::ArrayRef<Expression> expressions)
      : kernel(kernel), shape(shape), expressions(expressions),
        program(buildWithValues(kernel)) {}

  ValueVerdict check();

private:
  ValueVerdict followOnce(const WorldShape &given, std::vector<bool> *choices);
  ValueVerdict followAllChoices();
  void followScalars(ValueVerdict &verdict);
  bool followNumbers(const std::vector<std::vector<int64_t>> &numbers,
                     ValueVerdict &verdict);

  KernelOp kernel;
  WorldShape shape;
  llvm::ArrayRef<Expression> expressions;
  std::optional<Program> program;
};

/// Integers that are tried of a scalar.
struct Candidates {
  std::vector<int64_t> values;
  /// The kernel takes no others.
  bool isAll = false;
};
} // namespace

/// Runs that scalars choose between, at most; numbers of scalars that are
/// tried, and of which all pairs are.
static constexpr size_t mostPaths = 256, mostTried = 64, mostPaired = 12;

ValueVerdict ComputesChecker::followOnce(const WorldShape &given,
                                         std::vector<bool> *choices) {
  PostconditionChecker follower(kernel, program ? &*program : nullptr, given);
  SmallVector<int32_t> inputs;
  for (const Expression &one : expressions)
    llvm::append_range(inputs, one.inputs());
  bool isFinished = follower.run(inputs, [&](int32_t launch) {
    GivenNumbers known = follower.givenTo(launch);
    for (const Expression &one : expressions)
      if (!follower.verdict.refuted)
        follower.compare(one.output, launch,
                         [&](int32_t, int64_t rank, int64_t begin, int64_t end,
                             int32_t launch, std::string &problem) {
                           return one.evaluate(follower.values, rank,
                                               given.ranks, launch, known,
                                               begin, end, problem);
                         });
  });
  if (!isFinished && !follower.verdict.refuted)
    noteAllUnproven(follower.verdict, kernel);
  if (choices)
    *choices = follower.choicesMade();
  return std::move(follower.verdict);
}

static void merge(ValueVerdict &into, ValueVerdict from) {
  into.refuted |= from.refuted;
  into.assumesZeros |= from.assumesZeros;
  for (UnprovenReason &reason : from.unproven)
    if (llvm::none_of(into.unproven, [&](const UnprovenReason &old) {
          return old.op == reason.op && old.text == reason.text;
        }))
      into.unproven.push_back(std::move(reason));
}

/// What scalars of the host decide about synchronization comes out in every
/// way.
ValueVerdict ComputesChecker::followAllChoices() {
  WorldShape given = shape;
  given.choosesScalars = program && program->hasSameIntegers() &&
                         llvm::any_of(program->guards, [](const Guard &guard) {
                           return guard.sync;
                         });
  ValueVerdict all;
  for (size_t path = 0; path < mostPaths; ++path) {
    merge(all, followOnce(given, &given.choices));
    while (!given.choices.empty() && given.choices.back())
      given.choices.pop_back();
    if (all.refuted || given.choices.empty())
      return all;
    given.choices.back() = true;
  }
  noteAllUnproven(all, kernel);
  return all;
}

/// Integers that scalars have, by argument.
using Numbers = llvm::DenseMap<Value, int64_t>;

/// An integer that follows from scalars; absent: it does not.
static std::optional<int64_t> evaluate(Value value, const Numbers &scalars) {
  if (auto it = scalars.find(value); it != scalars.end())
    return it->second;
  IntegerAttr constant;
  unsigned width = widthOf(value.getType());
  if (matchPattern(value, m_Constant(&constant)))
    return width == 1 ? static_cast<int64_t>(constant.getValue().getZExtValue())
                      : constant.getInt();
  Operation *op = value.getDefiningOp();
  if (!op || width == 0)
    return std::nullopt;
  SmallVector<int64_t> of;
  for (Value operand : op->getOperands()) {
    auto found = evaluate(operand, scalars);
    if (!found)
      return std::nullopt;
    of.push_back(*found);
  }
  if (auto code = binaryCode(op)) {
    auto made = compute(*code, of[0], of[1], width);
    return made ? std::optional(normalize(*made, width)) : std::nullopt;
  }
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return compare(comparison.getPredicate(), of[0], of[1],
                   widthOf(comparison.getLhs().getType()));
  if (isa<arith::SelectOp>(op))
    return of[0] != 0 ? of[1] : of[2];
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return normalize(of[0], width);
  return std::nullopt;
}

/// Whether the checks that every launch makes let these numbers pass.
static bool pass(KernelOp kernel, const Numbers &scalars) {
  return llvm::all_of(kernel.getBody().front().getOps<CheckBoundsOp>(),
                      [&](CheckBoundsOp check) {
                        auto offset = evaluate(check.getOffset(), scalars);
                        auto count = evaluate(check.getCount(), scalars);
                        auto limit = evaluate(check.getLimit(), scalars);
                        return !offset || !count || !limit ||
                               (*offset >= 0 && *count >= 0 &&
                                *offset <= *limit - *count);
                      });
}

/// The numbers of a scalar, if checks let few pass; else some that pass. What
/// they let pass is taken for one range that holds a number up to 4096.
static Candidates candidatesOf(KernelOp kernel, Value scalar) {
  constexpr int64_t most = 4096;
  auto passes = [&](int64_t value) {
    return pass(kernel, Numbers{{scalar, value}});
  };
  if (scalar.getType().isInteger(1))
    return {{0, 1}, /*isAll=*/true};
  Candidates found;
  for (int64_t value = -1; value <= most + 1; ++value)
    if (passes(value))
      found.values.push_back(value);
  found.isAll = !found.values.empty() && found.values.front() >= 0 &&
                found.values.back() <= most && !passes(INT64_MIN) &&
                !passes(INT64_MAX) && !passes(int64_t(1) << 31) &&
                found.values.size() <= mostPaired;
  if (found.isAll || found.values.size() <= 4)
    return found;
  const std::vector<int64_t> all = std::move(found.values);
  // Far ones only where the kernel bounds them.
  size_t last = all.back() > most ? 6 : all.size() - 1;
  found.values = {all[last], all[0], all[1], all[last / 2 + 1], all[last - 1]};
  return found;
}

/// Follows launches that are given `numbers` in turn, and says so of an error.
bool ComputesChecker::followNumbers(
    const std::vector<std::vector<int64_t>> &numbers, ValueVerdict &verdict) {
  WorldShape given = shape;
  given.scalars = numbers;
  std::string text;
  for (auto [launch, now] : llvm::enumerate(numbers))
    for (auto [scalar, value] : llvm::zip(program->scalars, now))
      text += (text.empty() ? "seen with " : ", ") +
              kernel.getArgumentName(scalar.second) + " = " +
              std::to_string(value) +
              (numbers.size() > 1 ? " in launch " + std::to_string(launch + 1)
                                  : std::string());
  ScopedDiagnosticHandler saying(kernel.getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error)
      diag.attachNote(kernel.getLoc()) << text;
    return failure();
  });
  ValueVerdict found = followOnce(given, nullptr);
  verdict.refuted |= found.refuted;
  verdict.assumesZeros |= found.assumesZeros;
  return found.unproven.empty() && !found.refuted;
}

/// Follows numbers that scalars may have: all of them, if those are few, each
/// before each other; else some, which prove nothing.
void ComputesChecker::followScalars(ValueVerdict &verdict) {
  std::vector<std::vector<int64_t>> tuples = {{}};
  bool isAll = true;
  auto arguments = kernel.getBody().front().getArguments();
  for (auto [reg, argument] : program->scalars) {
    Candidates candidates = candidatesOf(kernel, arguments[argument]);
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t> &tuple : tuples)
      for (int64_t value : candidates.values)
        if (longer.size() < mostTried) {
          longer.push_back(tuple);
          longer.back().push_back(value);
        }
    isAll &= candidates.isAll &&
             longer.size() == tuples.size() * candidates.values.size();
    tuples = std::move(longer);
  }
  isAll &= tuples.size() <= mostPaired;
  llvm::erase_if(tuples, [&](const std::vector<int64_t> &tuple) {
    Numbers numbers;
    for (auto [scalar, value] : llvm::zip(program->scalars, tuple))
      numbers[arguments[scalar.second]] = value;
    return !pass(kernel, numbers);
  });
  bool isClean = true;
  for (size_t at = 0; at < tuples.size() && !verdict.refuted; ++at) {
    isClean &= followNumbers({tuples[at]}, verdict);
    for (size_t next = 0; next < tuples.size() && !verdict.refuted; ++next)
      if (next != at && (isAll || next == (at + 1) % tuples.size())) {
        // In turn, and one launch before all others.
        isClean &= followNumbers({tuples[at], tuples[next]}, verdict);
        std::vector<std::vector<int64_t>> once(shape.launches, tuples[next]);
        once.front() = tuples[at];
        if (!verdict.refuted)
          isClean &= followNumbers(once, verdict);
      }
  }
  if (isAll && isClean)
    verdict.unproven.clear();
  else if (isClean)
    for (UnprovenReason &reason : verdict.unproven)
      reason.notes.emplace_back(nullptr,
                                "no difference was found with " +
                                    std::to_string(tuples.size()) +
                                    " numbers for the scalars of the host");
}

ValueVerdict ComputesChecker::check() {
  ValueVerdict all;
  if (!program) {
    noteAllUnproven(all, kernel);
    return all;
  }
  for (int64_t extent : extentsOf(*program))
    for (Roots roots : rootsOf(*program, shape.ranks)) {
      for (Register known : program->extents)
        program->initialValues[known] = Interval::of(extent);
      shape.roots = roots;
      ValueVerdict found = followAllChoices();
      if (!found.refuted && !found.unproven.empty() &&
          !program->scalars.empty())
        followScalars(found);
      merge(all, std::move(found));
      if (all.refuted)
        return all;
    }
  return all;
}

ValueVerdict
mlir::comms::check::checkComputes(KernelOp kernel, const WorldShape &shape,
                                  llvm::ArrayRef<Expression> expressions) {
  return ComputesChecker(kernel, shape, expressions).check();
}

std::vector<std::string>
mlir::comms::check::summarizeResults(KernelOp kernel, const WorldShape &shape) {
  WorldShape first = shape;
  first.launches = 1;
  std::optional<Program> program = buildWithValues(kernel);
  if (!program)
    return {};
  for (Register known : program->extents)
    program->initialValues[known] = Interval::of(program->mostExtent);
  // What scalars decide comes out as true.
  first.choosesScalars = program->hasSameIntegers();
  first.choices.assign(mostPaths, true);
  PostconditionChecker follower(kernel, &*program, first);
  std::vector<std::string> told;
  bool finished = follower.run({}, [&](int32_t launch) {
    for (auto [argument, plan] :
         llvm::enumerate(follower.getProgram().arguments)) {
      auto number = static_cast<int32_t>(argument);
      if (plan.written && !plan.hasMail && follower.elementsOf(number) >= 0)
        for (const std::string &line : follower.summarize(number))
          told.push_back(line + follower.describeChoices(launch));
    }
  });
  return finished ? told : std::vector<std::string>();
}

ValueVerdict mlir::comms::check::checkExpansion(KernelOp kernel,
                                                KernelOp expanded,
                                                const WorldShape &shape) {
  std::optional<Program> program = buildWithValues(expanded);
  PostconditionChecker follower(expanded, program ? &*program : nullptr, shape);
  Reference reference(kernel, follower.values, shape.ranks);
  SmallVector<int32_t> inputs;
  std::string problem;
  if (!reference.prepare(problem)) {
    UnprovenReason &made = follower.verdict.unproven.emplace_back();
    made.op = kernel;
    made.text = problem;
    return std::move(follower.verdict);
  }
  llvm::append_range(inputs, reference.inputs());
  bool finished = follower.run(inputs, [&](int32_t launch) {
    reference.run(launch);
    for (int32_t output : reference.outputs())
      if (!follower.verdict.refuted)
        follower.compare(output, launch,
                         [&](int32_t argument, int64_t rank, int64_t begin,
                             int64_t end, int32_t, std::string &) {
                           return reference.expected(argument, rank, begin,
                                                     end);
                         });
  });
  if (!finished && !follower.verdict.refuted)
    noteAllUnproven(follower.verdict, kernel);
  return std::move(follower.verdict);
}
