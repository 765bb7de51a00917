//===- Postcondition.cpp - Proves the promised outputs --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Postcondition.h"

#include "lowering/analysis/Blocks.h"
#include "lowering/check/ProgramBuilder.h"
#include "lowering/check/Reference.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::formatv;

/// Notes of one difference, and pieces that are told of one array.
static constexpr size_t mostNotes = 4, mostTold = 64;

namespace {
/// What element `begin` of an argument at a rank should hold, and its
/// neighbors; `problem` is set where that cannot be said.
using Expectation =
    std::function<Expected(int32_t argument, int64_t rank, int64_t begin,
                           int64_t end, int32_t launch, std::string &problem)>;

/// Follows a kernel and compares.
class PostconditionChecker {
public:
  PostconditionChecker(KernelOp kernel, const WorldShape &shape)
      : kernel(kernel), shape(shape), contents(values) {
    this->shape.followed.resize(shape.ranks);
    std::iota(this->shape.followed.begin(), this->shape.followed.end(), 0);
    this->shape.comparesMemory = false;
  }

  /// Runs it; `inputs` have new elements before each launch, of all ranks, and
  /// so have arguments that it does not write. False: it cannot be followed.
  bool run(llvm::ArrayRef<int32_t> inputs, std::function<void(int32_t)> atEnd);
  /// Compares `argument` on all ranks after launch `launch`.
  void compare(int32_t argument, int32_t launch, const Expectation &expected);
  /// "y[0, 64) of ranks 0 to 3: x(0) + x(1)".
  std::vector<std::string> summarize(int32_t argument);

  const Program &getProgram() const { return *program; }
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
  void compareOrder(int32_t argument, int64_t rank, int32_t launch,
                    int64_t begin, int64_t end, Ref expected,
                    const Memory::StoredPiece &held);
  void reportDifference(int32_t argument, int64_t rank, int32_t launch,
                        int64_t begin, int64_t end, const Sum &expected,
                        const Memory::StoredPiece &held);
  void noteDifference(InFlightDiagnostic &diag, int32_t launch,
                      const Sum &expected, const Sum &found, Ref held);
  void noteUnproven(Operation *op, const std::string &text,
                    const std::string &note);
  std::string describe(Ref ref, int32_t launch);

  KernelOp kernel;
  WorldShape shape;
  std::optional<Program> program;
  Contents contents;
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
  auto built = Program::build(kernel, /*withValues=*/true);
  if (failed(built))
    return false;
  program = std::move(*built);
  program->isBlockDependent = isBlockDependent(kernel);
  // Registers of all threads: half a gigabyte.
  constexpr size_t mostRegisters = size_t(1) << 24;
  if (!program->extents.empty() || !program->roots.empty() ||
      program->initialValues.size() >
          mostRegisters / static_cast<size_t>(shape.ranks * shape.blocks))
    return false;
  Machine machine(*program, shape);
  machine.followValues(
      contents, [&](int32_t launch) { begin(launch, inputs); },
      [&](int32_t launch) {
        // Errors of a comparison are said.
        differs = true;
        atEnd(launch);
        differs = false;
      });
  return machine.run() == Machine::Outcome::Finished && !machine.foundErrors();
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
    if (!problem.empty()) {
      kernel.emitOpError("says what '")
          << nameOf(argument) << "' holds, but for its element " << at
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
  if (values.areEqual(wanted, found))
    return compareOrder(argument, rank, launch, begin, end, expected.ref, held);
  if (values.isUnknown(held.ref) || values.isUnknown(expected.ref)) {
    Operation *why = values.findUnknownOp(held.ref);
    if (!why)
      why = values.findUnknownOp(expected.ref);
    return noteUnproven(
        why       ? why
        : held.by ? held.by
                  : kernel,
        "decides what '" + nameOf(argument) +
            "' holds in a way that is not followed",
        "values are followed through tiles, copies, packets, channels "
        "and reductions at places and of lengths that are known");
  }
  reportDifference(argument, rank, launch, begin, end, wanted, held);
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
            verdict.refuted)
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
                                            const Memory::StoredPiece &held) {
  auto name = [&](int32_t one) { return nameOf(one); };
  Sum found = values.sumOf(held.ref);
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

ValueVerdict
mlir::comms::check::checkComputes(KernelOp kernel, const WorldShape &shape,
                                  llvm::ArrayRef<Expression> expressions) {
  PostconditionChecker follower(kernel, shape);
  SmallVector<int32_t> inputs;
  for (const Expression &one : expressions)
    llvm::append_range(inputs, one.inputs());
  bool finished = follower.run(inputs, [&](int32_t launch) {
    for (const Expression &one : expressions)
      if (!follower.verdict.refuted)
        follower.compare(one.output, launch,
                         [&](int32_t, int64_t rank, int64_t begin, int64_t end,
                             int32_t launch, std::string &problem) {
                           return one.evaluate(follower.values, rank,
                                               shape.ranks, launch, begin, end,
                                               problem);
                         });
  });
  if (!finished && !follower.verdict.refuted)
    noteAllUnproven(follower.verdict, kernel);
  return std::move(follower.verdict);
}

std::vector<std::string>
mlir::comms::check::summarizeResults(KernelOp kernel, const WorldShape &shape) {
  WorldShape first = shape;
  first.launches = 1;
  PostconditionChecker follower(kernel, first);
  std::vector<std::string> told;
  bool finished = follower.run({}, [&](int32_t) {
    for (auto [argument, plan] :
         llvm::enumerate(follower.getProgram().arguments)) {
      auto number = static_cast<int32_t>(argument);
      if (plan.written && !plan.hasMail && follower.elementsOf(number) >= 0)
        llvm::append_range(told, follower.summarize(number));
    }
  });
  return finished ? told : std::vector<std::string>();
}

ValueVerdict mlir::comms::check::checkExpansion(KernelOp kernel,
                                                KernelOp expanded,
                                                const WorldShape &shape) {
  PostconditionChecker follower(expanded, shape);
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
