//===- CheckSync.cpp - comms-check-sync -----------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows a kernel on every rank and block for some launches and reports what
// cannot go well. docs/Checker.md says what that proves.
//
//===----------------------------------------------------------------------===//

#include "dialect/Assumptions.h"
#include "lowering/Passes.h"
#include "lowering/analysis/Attributes.h"
#include "lowering/analysis/Blocks.h"
#include "lowering/check/Deadlock.h"
#include "lowering/check/Launches.h"
#include "lowering/check/Machine.h"
#include "lowering/check/Postcondition.h"
#include "lowering/check/Program.h"
#include "lowering/check/Sequence.h"
#include "lowering/check/Verdict.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace mlir::comms {
#define GEN_PASS_DEF_CHECKSYNC
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

namespace {

/// Ranks when neither the kernel nor the option says how many.
constexpr int64_t defaultRanks = 4;
/// About a third of a second; most kernels take a hundredth of it. Kernels of
/// collectives are compiled in passing; of others a proof may take seconds.
constexpr uint64_t defaultEvents = 32'000'000, patientEvents = 320'000'000;
constexpr int64_t maxRanks = int64_t(1) << 20;
constexpr int64_t maxLaunches = 64;
/// Reuse shows at the second launch, that of two buffers at the third.
constexpr int64_t defaultLaunches = 3;
/// Clocks are quadratic in the threads: this many take 32 MiB.
constexpr int64_t maxThreads = 2048;
/// Registers of all threads: 256 MiB.
constexpr int64_t maxRegisters = int64_t(1) << 24;
/// Runs that scalars choose between, at most.
constexpr int64_t maxPaths = 256;
/// Of fewer blocks all are followed at once.
constexpr int64_t fewBlocks = 4;

using Outcome = Machine::Outcome;

/// What came of following a program in one world.
struct FollowResult {
  Outcome outcome = Outcome::OverBudget;
  bool refused = false;
  /// Events.
  uint64_t spent = 0;
  std::vector<UnprovenReason> unproven;
  /// Order rests on packets_cumulative (M25).
  bool assumesChains = false;

  bool isTooLong() const { return outcome == Outcome::OverBudget && !refused; }
};

/// Runs the machine, and says what is wrong.
FollowResult runMachine(Machine &machine) {
  FollowResult verdict;
  verdict.outcome = machine.run();
  verdict.spent = machine.spent();
  verdict.unproven = machine.getUnprovenReasons().vec();
  verdict.assumesChains = machine.assumesChains();
  if (verdict.outcome == Outcome::Stuck)
    reportDeadlock(machine);
  verdict.refused =
      !machine.modelLeavesRange() &&
      (machine.foundErrors() || verdict.outcome == Outcome::Stuck ||
       verdict.outcome == Outcome::Refused);
  return verdict;
}

/// Waits whose values grow otherwise than their cells: in later launches some
/// are never met, and others met by what came before, so that they order
/// nothing.
void followDrifts(const Program &program, Machine &machine,
                  FollowResult &found) {
  std::vector<Drift> drifts = machine.findDrifts();
  for (const Drift &drift : drifts)
    if (drift.wanted > drift.grown) {
      machine.reportNeverMet(drift);
      found.refused = true;
      return;
    }
  if (drifts.empty())
    return;
  WorldShape later = machine.world();
  // Blocks that are followed as one have been compared in this run.
  if (later.lanes) {
    found.outcome = Outcome::OverBudget;
    return;
  }
  later.choices = machine.choicesMade();
  later.period = 0;
  for (const Drift &drift : drifts)
    later.idle.insert(drift.wait);
  const Drift &first =
      *llvm::min_element(drifts, [](const Drift &a, const Drift &b) {
        return a.launch < b.launch;
      });
  Operation *wait = program.actions[first.wait[1]].op;
  std::string text =
      machine.describe(first) + ": from launch " +
      std::to_string(first.launch) +
      " on, signals of earlier launches meet this wait, and it "
      "orders nothing. It was followed so, from launch 1 on: let "
      "both grow by the same amount";
  ScopedDiagnosticHandler saying(wait->getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error)
      diag.attachNote(wait->getLoc()) << text;
    return failure();
  });
  Machine second(program, later);
  FollowResult more = runMachine(second);
  found.refused = more.refused;
  found.spent += more.spent;
}

FollowResult conclude(const Program &program, Machine &machine,
                      int64_t *splitsAt) {
  FollowResult verdict = runMachine(machine);
  if (verdict.outcome == Outcome::Diverged)
    *splitsAt = machine.splitsAt();
  // Launches in which scalars choose otherwise are not compared.
  if (verdict.outcome == Outcome::Finished && !verdict.refused &&
      llvm::all_equal(machine.choicesMade())) {
    machine.checkPlaces();
    verdict.refused = !machine.modelLeavesRange() && machine.foundErrors();
    verdict.unproven = machine.getUnprovenReasons().vec();
    if (!verdict.refused)
      followDrifts(program, machine, verdict);
  }
  return verdict;
}

/// Says with which scalars a run chooses as it does, and what is wrong there.
FollowResult replayChoices(const Program &program, const WorldShape &shape,
                           const std::string &scalars) {
  KernelOp kernel = program.kernel;
  ScopedDiagnosticHandler saying(kernel->getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error)
      diag.attachNote(kernel.getLoc()) << "seen with " << scalars;
    return failure();
  });
  Machine machine(program, shape);
  return conclude(program, machine, nullptr);
}

/// Follows all that scalars of the host may choose, or data if the world says
/// so, one choice after the other.
/// Absent: there are too many choices, or too little is known of them.
std::optional<FollowResult> followChoices(const Program &program,
                                          WorldShape shape) {
  FollowResult all;
  all.outcome = Outcome::Finished;
  uint64_t budget = shape.budget;
  bool isOpen = false;
  shape.choosesScalars = true;
  for (int64_t path = 0; path < maxPaths; ++path) {
    shape.budget = budget - std::min(budget, all.spent);
    Machine machine(program, shape);
    FollowResult one;
    {
      ScopedDiagnosticHandler silent(program.kernel->getContext(),
                                     [](Diagnostic &) { return success(); });
      one = conclude(program, machine, nullptr);
    }
    all.spent += one.spent;
    shape.choices = machine.choicesMade();
    if (one.outcome != Outcome::Finished || one.refused) {
      auto scalars = machine.findScalarsThatChoose();
      if (shape.choices.empty() || !one.refused)
        return std::nullopt;
      shape.budget = budget;
      if (scalars)
        return replayChoices(program, shape, *scalars);
      isOpen = true; // Perhaps nothing chooses so.
    }
    all.assumesChains |= one.assumesChains;
    for (const UnprovenReason &reason : one.unproven)
      all.unproven.push_back(reason);
    while (!shape.choices.empty() && shape.choices.back())
      shape.choices.pop_back();
    if (shape.choices.empty())
      return isOpen ? std::nullopt : std::optional(all);
    shape.choices.back() = true;
  }
  return std::nullopt;
}

/// Whether scalars of the host may decide what is synchronized.
bool mayChoose(const Program &program, const WorldShape &shape) {
  return !shape.lanes && !shape.model && program.hasSameIntegers() &&
         llvm::any_of(program.guards,
                      [](const Guard &guard) { return guard.sync; });
}

/// Runs `program` in one world and reports what is wrong. `splitsAt` says where
/// a class of blocks is to be split.
FollowResult follow(const Program &program, const WorldShape &shape,
                    Footprints *footprints = nullptr,
                    int64_t *splitsAt = nullptr) {
  int64_t threads =
      static_cast<int64_t>(shape.followed.size()) * shape.followedBlocks();
  auto registers = static_cast<int64_t>(program.initialValues.size());
  if (threads > maxThreads || registers > maxRegisters / threads)
    return {};
  if (mayChoose(program, shape))
    if (auto found = followChoices(program, shape))
      return *found;
  Machine machine(program, shape, footprints);
  return conclude(program, machine, splitsAt);
}

/// Whether what ranks receive from all others takes more than the budget.
bool exceedsReceiveBudget(const Program &program, const WorldShape &shape) {
  bool receives = llvm::any_of(program.actions, [](const Action &action) {
    return action.kind == ActionKind::Recv;
  });
  auto ranks = static_cast<uint64_t>(shape.ranks);
  // A clock of all ranks is an eighth of an event for each of them.
  return receives && ranks > 64 &&
         ranks * ranks * ranks / 8 * shape.launches > shape.budget;
}

/// What came of following blocks apart from one another.
struct SeparateRun {
  FollowResult found;
  /// It says all of the world.
  bool decides = false;
  /// Blocks in which it is wrong.
  bool isWrong = false;
  Lanes lanes;
  /// Blocks of a rank that did not do the same.
  int64_t classes = 0;
  /// What two blocks touch, so that they have to be followed together.
  std::string meeting;
};

/// Follows blocks of a rank that do the same as one, and others apart.
SeparateRun followSeparately(const Program &program, WorldShape shape) {
  SeparateRun separate;
  separate.found.outcome = Outcome::Finished;
  uint64_t budget = shape.budget;
  Footprints footprints(program, shape.ranks);
  SmallVector<Lanes> todo = {{0, shape.blocks}};
  ScopedDiagnosticHandler silent(program.kernel->getContext(),
                                 [](Diagnostic &) { return success(); });
  while (!todo.empty()) {
    Lanes lanes = todo.pop_back_val();
    shape.lanes = lanes;
    shape.budget = budget - std::min(budget, separate.found.spent);
    int64_t split = 0;
    FollowResult one = follow(program, shape, &footprints, &split);
    separate.found.spent += one.spent;
    one.assumesChains |= separate.found.assumesChains;
    separate.found.assumesChains = one.assumesChains;
    if (one.outcome == Outcome::Diverged) {
      footprints.drop();
      todo.push_back({split, lanes.first + lanes.count - split});
      todo.push_back({lanes.first, split - lanes.first});
      continue;
    }
    ++separate.classes;
    bool isClean = one.outcome == Outcome::Finished && !one.refused &&
                   one.unproven.empty();
    if (one.isTooLong() || !footprints.close(lanes)) {
      if (!one.isTooLong())
        separate.meeting = footprints.describeConflict();
      return separate;
    }
    // A class that deadlocks does so whatever the others do; other errors may
    // be none, where these add to the order.
    bool isSure = lanes.count == shape.blocks || one.outcome == Outcome::Stuck;
    if (!isClean && !isSure)
      return separate;
    if (isClean && separate.isWrong)
      continue;
    separate.isWrong = one.refused;
    separate.lanes = lanes;
    one.spent = separate.found.spent;
    separate.found = one;
  }
  separate.decides = !footprints.classesOverlap();
  if (!separate.decides)
    separate.meeting = footprints.describeConflict();
  return separate;
}

/// Whether other ranks show themselves only through channels and barriers, so
/// that some of them may be left out.
bool canSample(const Program &program) {
  return llvm::all_of(program.actions, [](const Action &action) {
    switch (action.kind) {
    case ActionKind::Access:
    case ActionKind::Fence:
    case ActionKind::Barrier:
    case ActionKind::Arrive:
    case ActionKind::BarrierWait:
    case ActionKind::BulkCopy:
    case ActionKind::BulkWait:
    case ActionKind::Send:
    case ActionKind::Recv:
    case ActionKind::ChannelBarrier:
      return true;
    default:
      return false;
    }
  });
}

std::vector<int64_t> firstRanks(int64_t count) {
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

struct CheckSync : mlir::comms::impl::CheckSyncBase<CheckSync> {
  using CheckSyncBase::CheckSyncBase;

  FailureOr<WorldShape> chooseWorld(const Program &program);
  FollowResult followAll(const Program &program, WorldShape shape);
  FollowResult followFewerLaunches(const Program &program, WorldShape &shape);
  FollowResult followFewer(const Program &program, const WorldShape &full);
  FollowResult followExtent(const Program &program, WorldShape &shape);
  FollowResult followRoots(const Program &program, WorldShape &shape);
  void followChoicesOfData(const Program &program, WorldShape shape,
                           FollowResult &found);
  LogicalResult followAsGiven(const Program &program, WorldShape &shape,
                              bool &isOver);
  bool tryModels(const Program &program, const WorldShape &shape,
                 UnprovenReason &open);
  bool followsAll(const WorldShape &shape) const;
  bool followedSeparately(const Program &program, WorldShape shape,
                          FollowResult &found);
  bool checkValues(WorldShape shape, llvm::ArrayRef<Expression> computes);
  void conclude(const Program &program, const WorldShape &shape);
  void runOnOperation() override;

  LaunchPattern pattern;
  Verdict verdict;
  /// Why blocks are not followed apart; empty: they are.
  std::string together;
};

/// The world that the kernel and the options ask for.
FailureOr<WorldShape> CheckSync::chooseWorld(const Program &program) {
  KernelOp kernel = getOperation();
  WorldShape shape;
  auto kernelRanks = static_cast<int64_t>(kernel.getRanks().value_or(0));
  shape.ranks = ranks         ? int64_t(ranks)
                : kernelRanks ? kernelRanks
                              : defaultRanks;
  shape.reach = static_cast<int64_t>(
      kernel.getLsaSize().value_or(static_cast<uint64_t>(shape.ranks)));
  shape.blocks = blocks ? int64_t(blocks) : chooseBlocks(kernel, defaultBlocks);
  bool isExpanded = kernel->hasAttr(target::kChoicesAttr);
  shape.budget = maxEvents    ? uint64_t(int64_t(maxEvents))
                 : isExpanded ? defaultEvents
                              : patientEvents;
  auto bad = [&](llvm::StringRef what, int64_t value,
                 int64_t most) -> LogicalResult {
    if (value >= 1 && value <= most)
      return success();
    return kernel.emitOpError("comms-check-sync cannot follow ")
           << value << " " << what << ": it takes 1 to " << most
           << "; give it so many, or run the kernel unproven (check=false; "
              "comms-run, comms-bench: --no-check)";
  };
  if (failed(bad("ranks", shape.ranks, maxRanks)) ||
      failed(bad("blocks a rank", shape.blocks, maxThreads)) ||
      failed(bad("launches", launches ? int64_t(launches) : 1, maxLaunches)))
    return failure();
  if (shape.reach < 1 || shape.reach > shape.ranks)
    return kernel.emitOpError("has lsa_size ")
           << shape.reach << ", which is not between 1 and its " << shape.ranks
           << " ranks";
  if (shape.blocks < program.roleBlocks)
    return kernel.emitOpError("has a role that takes blocks up to ")
           << program.roleBlocks << ", but runs with " << shape.blocks
           << " on each rank: give it more blocks";
  // What is in one of several buffers is overwritten when all have been used.
  if (!kernel->hasAttr(kOneRoundAttr))
    pattern = findLaunchPattern(program, shape.ranks, shape.blocks);
  shape.hasMovingPlaces = pattern.hasMovingPlaces;
  // What moves on leaves the range in a launch that is perhaps followed.
  if (shape.hasMovingPlaces)
    pattern.start = std::max(pattern.start, maxLaunches - pattern.period);
  shape.launches =
      launches ? int64_t(launches)
               : std::max({defaultLaunches,
                           std::min(pattern.launches(), maxLaunches),
                           std::min(int64_t(runLaunches), maxLaunches)});
  if (!pattern.irregular && shape.launches >= pattern.launches())
    shape.period = pattern.period;
  return shape;
}

/// How many ranks of a channel program the budget allows, judged by one rank.
int64_t affordableRanks(const Program &program, const WorldShape &full) {
  WorldShape shape = full;
  shape.followed = {0};
  ScopedDiagnosticHandler silent(program.kernel->getContext(),
                                 [](Diagnostic &) { return success(); });
  uint64_t one = std::max<uint64_t>(follow(program, shape).spent, 1);
  return static_cast<int64_t>(
      std::min<uint64_t>(full.budget / one, static_cast<uint64_t>(full.ranks)));
}

/// The whole world is too large. Channel programs are followed on some of the
/// ranks; others, silently at first, in a smaller world.
FollowResult CheckSync::followFewer(const Program &program,
                                    const WorldShape &full) {
  KernelOp kernel = getOperation();
  if (canSample(program)) {
    int64_t affordable = affordableRanks(program, full);
    for (int64_t count : {16, 8, 4, 2}) {
      if (count >= full.ranks || (count > affordable && count > 2))
        continue;
      WorldShape shape = full;
      shape.followed = firstRanks(count - 1);
      shape.followed.push_back(full.ranks - 1);
      shape.comparesMemory = program.meetsInWorldOnly();
      FollowResult found = follow(program, shape);
      if (found.isTooLong())
        continue;
      verdict.followedRanks = count;
      verdict.leaveOpen(
          kernel, "comms-check-sync followed " + llvm::Twine(count) + " of " +
                      llvm::Twine(full.ranks) + " ranks, and " +
                      (shape.comparesMemory
                           ? "compared accesses to memory of these alone"
                           : "compared neither accesses to memory nor one "
                             "launch with the next") +
                      ": all of them take more than " +
                      llvm::Twine(full.budget) +
                      " events (option max-events; comms-run: "
                      "--check-events)");
      return found;
    }
    return {};
  }
  for (int64_t count : {16, 8, 4, 2}) {
    if (count >= full.ranks || full.ranks % count)
      continue;
    WorldShape shape = full;
    shape.ranks = count;
    shape.reach = std::min(full.reach, count);
    shape.followed = firstRanks(count);
    FollowResult found;
    {
      // A kernel whose constants were made for its own number of ranks fails
      // in a smaller world, which says nothing.
      ScopedDiagnosticHandler silent(kernel.getContext(),
                                     [](Diagnostic &) { return success(); });
      found = follow(program, shape);
    }
    if (found.outcome != Outcome::Finished || found.refused)
      continue;
    verdict.ranks = verdict.followedRanks = count;
    verdict.leaveOpen(
        kernel, "comms-check-sync followed the kernel with " +
                    llvm::Twine(count) + " ranks instead of " +
                    llvm::Twine(full.ranks) + ", which take more than " +
                    llvm::Twine(full.budget) +
                    " events (option max-events; comms-run: --check-events)");
    return found;
  }
  return {};
}

/// All ranks, unless that is seen to take too long.
FollowResult CheckSync::followAll(const Program &program, WorldShape shape) {
  if (FollowResult found; followedSeparately(program, shape, found))
    return found;
  bool small = shape.ranks * shape.blocks <= maxThreads;
  // A large world is not begun in vain.
  if (small && shape.ranks > 16 && canSample(program))
    small = affordableRanks(program, shape) == shape.ranks;
  if (!small)
    return {};
  shape.followed = firstRanks(shape.ranks);
  return follow(program, shape);
}

/// Whether following blocks apart decides it. Errors of a world that can be
/// followed whole are told of that.
bool CheckSync::followedSeparately(const Program &program, WorldShape shape,
                                   FollowResult &found) {
  if (shape.blocks < fewBlocks)
    return false;
  if (!Folding::isPossible(program)) {
    together = "an op joins all blocks of a rank";
    return false;
  }
  shape.followed = firstRanks(shape.ranks);
  if (exceedsReceiveBudget(program, shape))
    return false;
  SeparateRun separate = followSeparately(program, shape);
  together = separate.meeting.empty()
                 ? ""
                 : "several blocks touch " + separate.meeting;
  bool isSmall = shape.ranks * shape.blocks <= maxThreads;
  bool isClean = separate.found.outcome == Outcome::Finished &&
                 !separate.found.refused && separate.found.unproven.empty();
  if (!separate.decides || (isSmall && !isClean))
    return false;
  found = std::move(separate.found);
  verdict.blockClasses = std::max(verdict.blockClasses, separate.classes);
  if (found.refused) { // Says so.
    Footprints footprints(program, shape.ranks);
    shape.lanes = separate.lanes;
    found = follow(program, shape, &footprints);
  }
  return true;
}

/// All ranks say more than all launches of a run, or of buffers. Sets the
/// number in `shape` to what was followed, or may still be.
FollowResult CheckSync::followFewerLaunches(const Program &program,
                                            WorldShape &shape) {
  int64_t all = shape.launches;
  int64_t repeating = std::min(pattern.launches(), maxLaunches);
  shape.launches = std::max(defaultLaunches, repeating);
  for (int64_t fewer : {shape.launches, defaultLaunches}) {
    if (fewer >= all)
      continue;
    WorldShape tried = shape;
    tried.launches = fewer;
    if (fewer < pattern.launches())
      tried.period = 0;
    FollowResult found = followAll(program, tried);
    if (found.isTooLong())
      continue;
    shape = tried;
    return found;
  }
  return {};
}

/// With the launch's extent as it has been set.
FollowResult CheckSync::followExtent(const Program &program,
                                     WorldShape &shape) {
  KernelOp kernel = getOperation();
  int64_t wanted = shape.launches;
  FollowResult found = followAll(program, shape);
  if (found.isTooLong() && !launches)
    found = followFewerLaunches(program, shape);
  if (found.isTooLong()) {
    if (!together.empty())
      verdict.leaveOpen(kernel, "comms-check-sync follows all blocks of a rank "
                                "together: " +
                                    together);
    found = followFewer(program, shape);
  }
  if (found.refused || found.isTooLong())
    return found;
  verdict.launches = std::min(verdict.launches, shape.launches);
  // What was followed is short of what repeats.
  if (shape.launches < std::min(wanted, pattern.launches()) && !launches)
    verdict.leaveOpen(
        kernel,
        "comms-check-sync followed " + llvm::Twine(shape.launches) +
            " launches, in which what comms.epoch chooses between is not all "
            "used again: " +
            llvm::Twine(wanted) + " take more than " +
            llvm::Twine(shape.budget) +
            " events (option max-events; comms-run: --check-events)");
  else if (shape.launches < pattern.launches())
    verdict.leaveOpen(kernel, "comms-check-sync followed launches 1 to " +
                                  llvm::Twine(shape.launches) +
                                  ": what comms.epoch decides repeats only "
                                  "after " +
                                  llvm::Twine(pattern.launches()));
  return found;
}

/// With the roots of launches as they have been set, which an error names.
FollowResult CheckSync::followRoots(const Program &program, WorldShape &shape) {
  if (program.roots.empty())
    return followExtent(program, shape);
  std::string text;
  for (int64_t launch = 1; launch <= defaultLaunches; ++launch)
    text += (text.empty() ? "seen with root " : ", ") +
            std::to_string(shape.roots.of(launch) % shape.ranks) +
            " in launch " + std::to_string(launch);
  KernelOp kernel = getOperation();
  ScopedDiagnosticHandler saying(&getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error)
      diag.attachNote(kernel->getLoc()) << text;
    return failure();
  });
  return followExtent(program, shape);
}

/// Says what was wrong with a program on given data.
static std::string describe(const Model &model) {
  if (!model.byRank)
    return "seen with " + std::to_string(model.value) +
           " for every integer of data and every scalar";
  return "seen with the rank" +
         (model.value ? ", moved on by " + std::to_string(model.value) + ","
                      : std::string()) +
         " for every integer of data";
}

/// Data decide what is synchronized: the program is followed with some. True:
/// that shows an error, which has been said.
bool CheckSync::tryModels(const Program &program, const WorldShape &shape,
                          UnprovenReason &open) {
  SmallVector<Model> models;
  // Ranks, cells and places are named by data as permutations do; all else has
  // to go well whatever it is, if it is the same on all ranks. So have places
  // that the kernel counts.
  if (open.isPlace)
    models = {{true, 1}, {true, shape.ranks - 1}};
  else
    models = {{false, 1}, {false, 2}, {false, 3}, {false, 0}};
  if (open.isCounted) // Numbers that differ by rank as well.
    models.append({{true, 0}, {true, 1}, {true, shape.ranks - 1}});
  WorldShape tried = shape;
  tried.followed = firstRanks(shape.ranks);
  tried.period = 0;
  std::optional<Model> bad;
  for (const Model &model : models) {
    ScopedDiagnosticHandler silent(&getContext(),
                                   [](Diagnostic &) { return success(); });
    tried.model = model;
    bool refused = follow(program, tried).refused;
    if (refused && !bad)
      bad = model;
    if (open.isPlace && !refused)
      return false;
    if (!open.isPlace && refused)
      break;
  }
  if (!bad && open.isCounted)
    return false;
  if (!bad) {
    open.notes.emplace_back(nullptr,
                            "nothing was found with 0, 1, 2 or 3 for every "
                            "integer of data and every scalar");
    return false;
  }
  tried.model = bad;
  ScopedDiagnosticHandler saying(&getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error)
      diag.attachNote(open.op->getLoc()) << describe(*bad);
    return failure();
  });
  return follow(program, tried).refused;
}

/// Whether all ranks of the kernel were followed, with all that they touch.
bool CheckSync::followsAll(const WorldShape &shape) const {
  return verdict.ranks == shape.ranks && verdict.followedRanks == shape.ranks &&
         verdict.launches > 0;
}

/// Whether outputs hold what the kernel says of them, unless that is left open.
bool CheckSync::checkValues(WorldShape shape,
                            llvm::ArrayRef<Expression> computes) {
  KernelOp kernel = getOperation();
  if (computes.empty())
    return true;
  if (!followsAll(shape)) {
    verdict.leaveOpen(kernel, "what the kernel computes is followed on all of "
                              "its ranks or not at all: give it fewer");
    return true;
  }
  shape.launches = verdict.launches;
  shape.period = 0;
  ValueVerdict found = checkComputes(kernel, shape, computes);
  if (found.refuted)
    return false;
  for (const UnprovenReason &reason : found.unproven)
    verdict.leaveOpen(reason);
  if (found.unproven.empty())
    for (const Expression &one : computes)
      verdict.computes.push_back(kernel.getArgumentName(one.output));
  verdict.assumesZeros = found.assumesZeros;
  return true;
}

/// Writes down the verdict; what is not proven is refused where that is asked
/// for.
void CheckSync::conclude(const Program &program, const WorldShape &shape) {
  KernelOp kernel = getOperation();
  if (pattern.irregular && !launches)
    verdict.leaveOpen({pattern.irregular,
                       "uses the number of the launch in a way that is not "
                       "known to repeat: launches 1 to " +
                           std::to_string(verdict.launches) + " were followed",
                       {},
                       false});
  for (const UnprovenReason &reason : findUnfencedProxies(program))
    verdict.leaveOpen(reason);
  auto computes = readComputes(program);
  if (failed(computes) || !checkValues(shape, *computes))
    return signalPassFailure();
  verdict.assumptions = findAssumptions(program, shape);
  if (tell && followsAll(shape))
    verdict.computed = summarizeResults(kernel, shape);
  if (verdict.assumesChains)
    verdict.assumptions.push_back(kPacketsCumulative.str());
  if (verdict.assumesZeros)
    verdict.assumptions.emplace_back("sums_begin_at_zero");
  kernel->setAttr(target::kProofAttr, verdict.toAttribute(&getContext()));
  if (!requireProof || verdict.isProven())
    return;
  InFlightDiagnostic diag =
      kernel.emitOpError("is not proven, and a proof is required "
                         "(COMMSIR_REQUIRE_PROOF; comms-run: --require-proof)");
  for (const std::string &reason : verdict.reasons)
    diag.attachNote() << reason;
  signalPassFailure();
}

/// Data decide what is synchronized: every choice of theirs is followed, if
/// there are few. One that fails may need data that differ by rank where the
/// program gives all ranks the same: that is left open.
void CheckSync::followChoicesOfData(const Program &program, WorldShape shape,
                                    FollowResult &found) {
  if (shape.ranks * shape.blocks > maxThreads)
    return;
  shape.followed = firstRanks(shape.ranks);
  shape.choosesData = true;
  ScopedDiagnosticHandler silent(&getContext(),
                                 [](Diagnostic &) { return success(); });
  if (auto all = followChoices(program, shape); all && !all->refused)
    found = std::move(*all);
}

/// Follows the program with the extent and the roots that have been set.
/// `isOver`: what remains open ends the check.
LogicalResult CheckSync::followAsGiven(const Program &program,
                                       WorldShape &shape, bool &isOver) {
  FollowResult found = followRoots(program, shape);
  if (found.outcome == Outcome::Open && !found.unproven.back().isPlace)
    followChoicesOfData(program, shape, found);
  if (found.refused)
    return failure();
  verdict.assumesChains |= found.assumesChains;
  bool isOpen = found.outcome == Outcome::Open;
  if (isOpen && tryModels(program, shape, found.unproven.back()))
    return failure();
  for (UnprovenReason &reason : found.unproven)
    if (reason.isCounted && tryModels(program, shape, reason))
      return failure();
  for (const UnprovenReason &reason : found.unproven)
    verdict.leaveOpen(reason, isOpen && &reason == &found.unproven.back());
  isOver = isOpen || found.isTooLong();
  if (isOpen || !found.isTooLong())
    return success();
  verdict.launches = 0;
  verdict.leaveOpen(
      getOperation(),
      "comms-check-sync did not check this kernel: following it takes more "
      "than " +
          llvm::Twine(shape.budget) +
          " events; raise the option max-events (comms-run: "
          "--check-events; Python: check_events=), or check it with fewer "
          "ranks",
      /*isWarning=*/true);
  return success();
}

void CheckSync::runOnOperation() {
  KernelOp kernel = getOperation();
  markAllAnalysesPreserved();
  kernel->removeAttr(target::kProofAttr); // An earlier one's.
  FailureOr<Program> program = Program::build(kernel);
  if (failed(program))
    return signalPassFailure();
  program->isBlockDependent = mlir::comms::isBlockDependent(kernel);
  FailureOr<WorldShape> shape = chooseWorld(*program);
  if (failed(shape))
    return signalPassFailure();
  verdict = {};
  together.clear();
  verdict.ranks = verdict.followedRanks = shape->ranks;
  verdict.blocks = shape->blocks;
  verdict.launches = shape->launches;
  if (program->actions.empty() && program->guards.empty())
    return conclude(*program, *shape);
  std::vector<Roots> roots = rootsOf(*program, shape->ranks);
  bool isOver = false;
  for (int64_t extent : extentsOf(*program))
    for (Roots given : roots) {
      if (isOver)
        break;
      for (Register known : program->extents)
        program->initialValues[known] = Interval::of(extent);
      shape->roots = given;
      if (failed(followAsGiven(*program, *shape, isOver)))
        return signalPassFailure();
    }
  if (!program->roots.empty() && shape->ranks > mostRoots)
    verdict.leaveOpen(kernel,
                      "comms-check-sync followed the roots 0, 1 and " +
                          llvm::Twine(shape->ranks - 1) +
                          " of a kernel that takes its root at run time");
  conclude(*program, *shape);
}

} // namespace
