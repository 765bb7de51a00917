//===- SessionSchedules.cpp - One kernel under many orders ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Session.h"
#include "runtime/support/HostMemory.h"
#include "runtime/support/StartThread.h"

#include "llvm/ADT/STLExtras.h"
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

using namespace commsir;
using namespace commsir::driver;

namespace {

/// The failure of one schedule.
struct Finding {
  uint64_t seed = 0;
  std::string difference;
  std::optional<cpu::RunError> runError;
  /// It could not be run at all.
  std::string otherError;

  bool isAny() const {
    return runError || !difference.empty() || !otherError.empty();
  }
};

/// Keeps the finding with the lowest seed, so that the report does not depend
/// on how the threads were scheduled.
class LowestFinding {
public:
  void add(Finding one) {
    std::lock_guard lock(mutex);
    if (!lowest || one.seed < lowest->seed)
      lowest = std::move(one);
  }
  bool isBelow(uint64_t seed) {
    std::lock_guard lock(mutex);
    return lowest && lowest->seed < seed;
  }
  /// Once all threads have ended.
  std::optional<Finding> take() { return std::move(lowest); }

private:
  std::mutex mutex;
  std::optional<Finding> lowest;
};

} // namespace

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

std::vector<const Argument *> Session::fuzzedArguments() const {
  std::vector<const Argument *> named, all;
  auto isNamed = [&](const Argument &argument) {
    auto matches = [&](const Binding &binding) {
      return binding.name == argument.name;
    };
    return llvm::any_of(options.outputs, matches) ||
           llvm::any_of(options.expects, matches);
  };
  for (const Argument &argument : arguments) {
    if (argument.kind == jit::ArgKind::Window ||
        argument.kind == jit::ArgKind::Memory)
      all.push_back(&argument);
    if (isNamed(argument))
      named.push_back(&argument);
  }
  return named.empty() ? all : named;
}

std::string
Session::firstDifference(World &left, World &right,
                         llvm::ArrayRef<const Argument *> compared) const {
  for (const Argument *argument : compared) {
    unsigned index = compiledIndex(argument->name);
    for (int64_t rank = 0; rank < report.ranks; ++rank) {
      llvm::ArrayRef<char> a = left.memory(index, rank);
      llvm::ArrayRef<char> b = right.memory(index, rank);
      if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0)
        continue;
      size_t at = llvm::mismatch(a, b).first - a.begin();
      size_t flat = at / target->args()[index].elementBytes;
      std::string text = argument->name + ", rank " + std::to_string(rank) +
                         ", element " +
                         renderIndex(unflatten(flat, argument->shape));
      if (argument->element) {
        size_t place = flat * elementBytes(*argument->element);
        text += ": " + renderElement(*argument->element, a.data() + place) +
                " in the first schedule, " +
                renderElement(*argument->element, b.data() + place) +
                " in this one";
      }
      return text;
    }
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Each worker holds a world of its own in addition to the reference.
unsigned Session::countWorkers(int64_t schedules) const {
  uint64_t workers =
      options.workers ? options.workers : std::thread::hardware_concurrency();
  workers = std::clamp<uint64_t>(workers, 1, uint64_t(schedules) - 1);
  uint64_t limit = options.memoryLimit ? options.memoryLimit : memoryLimit();
  uint64_t fitting = limit / std::max<uint64_t>(bytesPerWorld, 1);
  return unsigned(
      std::clamp<uint64_t>(workers, 1, std::max<uint64_t>(fitting, 2) - 1));
}

static std::string nameSchedule(uint64_t seed) {
  return "schedule of seed " + std::to_string(seed) + ": ";
}

/// Runs the schedule that all others are compared with.
bool Session::runFirstSchedule(const cpu::RunOptions &run) {
  auto world = makeWorld(run);
  if (!world)
    return fail(ExitUsage, world.takeError());
  auto outcome = (*world)->run();
  if (auto *error = std::get_if<cpu::RunError>(&outcome))
    return failRun(std::move(*error), nameSchedule(run.seed));
  report.stats = std::get<cpu::RunStats>(std::move(outcome));
  reference = std::move(*world);
  return true;
}

/// Runs `runOne` for every seed but the first on `workers` threads, as long as
/// no lower seed has a finding.
static std::optional<Finding>
search(const FuzzReport &fuzz, unsigned workers, Progress &progress,
       llvm::function_ref<Finding(uint64_t seed)> runOne) {
  LowestFinding findings;
  std::atomic<int64_t> next{1}, done{1};
  std::atomic<bool> isOver{false};
  auto work = [&](unsigned) {
    for (int64_t i; !isOver && (i = next++) < fuzz.schedules;) {
      uint64_t seed = fuzz.firstSeed + uint64_t(i);
      if (findings.isBelow(seed))
        return;
      if (Finding mine = runOne(seed); mine.isAny())
        findings.add(std::move(mine));
      progress.update(double(++done) / double(fuzz.schedules));
    }
  };
  runInParallel(workers, work, [&] { isOver = true; });
  return findings.take();
}

bool Session::runSchedules() {
  std::vector<const Argument *> compared = fuzzedArguments();
  FuzzReport fuzz;
  fuzz.schedules = options.fuzzSchedules;
  fuzz.firstSeed = options.seeded ? options.seed : 1;
  for (const Argument *argument : compared)
    fuzz.arguments.push_back(argument->name);
  std::string all = std::to_string(fuzz.schedules) + " schedules";

  cpu::RunOptions first = runOptions();
  first.shuffle = true;
  first.seed = fuzz.firstSeed;
  progress.begin("running the first of " + all);
  if (!runFirstSchedule(first))
    return false;

  progress.begin("running " + all);
  auto runOne = [&](uint64_t seed) {
    Finding mine{seed, "", std::nullopt, ""};
    cpu::RunOptions run = first;
    run.seed = seed;
    run.timeLimit = secondsLeft();
    auto world = makeWorld(run);
    if (!world) {
      mine.otherError = llvm::toString(world.takeError());
      return mine;
    }
    auto outcome = (*world)->run();
    if (auto *error = std::get_if<cpu::RunError>(&outcome))
      mine.runError = std::move(*error);
    else
      mine.difference = firstDifference(*reference, **world, compared);
    return mine;
  };
  std::optional<Finding> finding =
      search(fuzz, countWorkers(fuzz.schedules), progress, runOne);
  progress.end();
  if (finding && !finding->otherError.empty())
    return fail(ExitUsage, finding->otherError);
  if (finding && finding->runError)
    return failRun(std::move(*finding->runError), nameSchedule(finding->seed));
  if (finding) {
    fuzz.difference = finding->difference;
    fuzz.seed = finding->seed;
    report.exitCode = ExitWrongResult;
    report.error = "results depend on the schedule";
  }
  report.fuzz = std::move(fuzz);
  return true;
}
