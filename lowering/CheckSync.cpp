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

#include "lowering/Passes.h"
#include "lowering/Problem.h"
#include "lowering/check/Deadlock.h"
#include "lowering/check/Machine.h"
#include "lowering/check/Program.h"
#include "lowering/target/Attributes.h"

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
/// About 10 ms.
constexpr uint64_t defaultEvents = 2'000'000;
constexpr int64_t maxRanks = int64_t(1) << 20;
constexpr int64_t maxLaunches = 64;
/// Reuse shows at the second launch, that of two buffers at the third.
constexpr int64_t defaultLaunches = 3;
/// Clocks are quadratic in the threads: this many take 32 MiB.
constexpr int64_t maxThreads = 2048;
/// Registers of all threads: 256 MiB.
constexpr int64_t maxRegisters = int64_t(1) << 24;

using Outcome = Machine::Outcome;

struct Verdict {
  Outcome outcome = Outcome::OverBudget;
  bool refused = false;
  /// Events.
  uint64_t spent = 0;
};

/// Runs `program` in one world and reports what is wrong.
Verdict follow(const Program &program, const WorldShape &shape) {
  int64_t threads = static_cast<int64_t>(shape.followed.size()) * shape.blocks;
  auto registers = static_cast<int64_t>(program.initialValues.size());
  if (threads > maxThreads || registers > maxRegisters / threads)
    return {};
  Machine machine(program, shape);
  Verdict verdict;
  verdict.outcome = machine.run();
  verdict.spent = machine.spent();
  if (verdict.outcome == Outcome::Stuck)
    reportDeadlock(machine);
  verdict.refused = machine.foundErrors() ||
                    verdict.outcome == Outcome::Stuck ||
                    verdict.outcome == Outcome::Refused;
  return verdict;
}

/// Whether other ranks show themselves through channels and barriers alone, so
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

/// Extents of launches that are followed: the most, one element, and what lies
/// between. The tiles of a smaller extent are the first ones of a larger.
std::vector<int64_t> extentsOf(const Program &program) {
  int64_t most = program.mostExtent;
  if (program.extents.empty() || most < 2)
    return {most};
  std::vector<int64_t> extents = {most, 1};
  if (most > 2)
    extents.push_back(most / 2 + 1);
  return extents;
}

struct CheckSync : mlir::comms::impl::CheckSyncBase<CheckSync> {
  using CheckSyncBase::CheckSyncBase;

  FailureOr<WorldShape> chooseWorld(const Program &program);
  Verdict followAll(const Program &program, WorldShape shape);
  Verdict followFewerLaunches(const Program &program, WorldShape &shape);
  Verdict followFewer(const Program &program, const WorldShape &full);
  void runOnOperation() override;
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
  // What is in one of several buffers is overwritten when all have been used.
  shape.launches =
      launches ? int64_t(launches)
               : std::max({defaultLaunches, program.buffers + 1,
                           std::min(int64_t(runLaunches), maxLaunches)});
  shape.budget = maxEvents ? uint64_t(int64_t(maxEvents)) : defaultEvents;
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
      failed(bad("launches", shape.launches, maxLaunches)))
    return failure();
  if (shape.reach < 1 || shape.reach > shape.ranks)
    return kernel.emitOpError("has lsa_size ")
           << shape.reach << ", which is not between 1 and its " << shape.ranks
           << " ranks";
  if (shape.blocks < program.roleBlocks)
    return kernel.emitOpError("has a role that takes blocks up to ")
           << program.roleBlocks << ", but runs with " << shape.blocks
           << " on each rank: give it more blocks";
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
Verdict CheckSync::followFewer(const Program &program, const WorldShape &full) {
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
      Verdict verdict = follow(program, shape);
      if (verdict.outcome == Outcome::OverBudget && !verdict.refused)
        continue;
      kernel.emitRemark()
          << "comms-check-sync followed " << count << " of " << full.ranks
          << " ranks, and "
          << (shape.comparesMemory
                  ? "compared accesses to memory of these alone"
                  : "compared neither accesses to memory nor one launch with "
                    "the next")
          << ": all of them take more than " << full.budget
          << " events (option max-events; comms-run: --check-events)";
      return verdict;
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
    Verdict verdict;
    {
      // A kernel whose constants were made for its own number of ranks fails
      // in a smaller world, which says nothing.
      ScopedDiagnosticHandler silent(kernel.getContext(),
                                     [](Diagnostic &) { return success(); });
      verdict = follow(program, shape);
    }
    if (verdict.outcome != Outcome::Finished || verdict.refused)
      continue;
    kernel.emitRemark()
        << "comms-check-sync followed the kernel with " << count
        << " ranks instead of " << full.ranks << ", which take more than "
        << full.budget
        << " events (option max-events; comms-run: --check-events)";
    return verdict;
  }
  return {};
}

/// All ranks, unless that is seen to take too long.
Verdict CheckSync::followAll(const Program &program, WorldShape shape) {
  bool small = shape.ranks * shape.blocks <= maxThreads;
  // A large world is not begun in vain.
  if (small && shape.ranks > 16 && canSample(program))
    small = affordableRanks(program, shape) == shape.ranks;
  if (!small)
    return {};
  shape.followed = firstRanks(shape.ranks);
  return follow(program, shape);
}

/// All ranks say more than all launches of a run, or of buffers. Sets the
/// number in `shape` to what was followed, or may still be.
Verdict CheckSync::followFewerLaunches(const Program &program,
                                       WorldShape &shape) {
  int64_t all = shape.launches;
  shape.launches = std::max(defaultLaunches, program.buffers + 1);
  for (int64_t fewer : {shape.launches, defaultLaunches}) {
    if (fewer >= all)
      continue;
    WorldShape tried = shape;
    tried.launches = fewer;
    Verdict verdict = followAll(program, tried);
    if (verdict.outcome == Outcome::OverBudget && !verdict.refused)
      continue;
    if (!verdict.refused)
      getOperation().emitRemark()
          << "comms-check-sync followed " << fewer << " launches"
          << (fewer <= program.buffers ? ", in which what comms.epoch chooses "
                                         "between is not all used again"
                                       : "")
          << ": " << all << " take more than " << shape.budget
          << " events (option max-events; comms-run: --check-events)";
    shape = tried;
    return verdict;
  }
  return {};
}

void CheckSync::runOnOperation() {
  KernelOp kernel = getOperation();
  markAllAnalysesPreserved();
  kernel->removeAttr(target::kCheckedLaunchesAttr); // An earlier proof's.
  FailureOr<Program> program = Program::build(kernel);
  if (failed(program))
    return signalPassFailure();
  program->tellsBlocksApart = tellsBlocksApart(kernel);
  FailureOr<WorldShape> shape = chooseWorld(*program);
  if (failed(shape))
    return signalPassFailure();
  auto pass = [&] {
    kernel->setAttr(target::kCheckedLaunchesAttr,
                    Builder(kernel).getI64IntegerAttr(shape->launches));
  };
  if (program->actions.empty() && program->guards.empty())
    return pass();
  auto isTooLong = [](const Verdict &verdict) {
    return verdict.outcome == Outcome::OverBudget && !verdict.refused;
  };
  Verdict verdict;
  for (int64_t extent : extentsOf(*program)) {
    for (Register known : program->extents)
      program->initialValues[known] = Interval::of(extent);
    verdict = followAll(*program, *shape);
    if (isTooLong(verdict) && !launches)
      verdict = followFewerLaunches(*program, *shape);
    if (isTooLong(verdict))
      verdict = followFewer(*program, *shape);
    if (verdict.refused)
      return signalPassFailure();
    if (verdict.outcome == Outcome::OverBudget)
      break;
  }
  if (verdict.outcome != Outcome::OverBudget)
    return pass();
  kernel.emitWarning()
      << "comms-check-sync did not check this kernel: following it takes "
         "more "
         "than "
      << shape->budget
      << " events; raise the option max-events (comms-run: --check-events; "
         "Python: check_events=), or check it with fewer ranks";
}

} // namespace
