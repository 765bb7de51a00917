//===- Bench.cpp - The program comms-bench --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Bench.h"

#include "runtime/bench/BenchCompiler.h"
#include "runtime/bench/Compare.h"
#include "runtime/bench/Tune.h"
#include "runtime/choose/ChannelMemory.h"
#include "runtime/choose/Choose.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/HostMemory.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Progress.h"
#include "runtime/support/Size.h"
#include "runtime/support/StandardError.h"
#include "runtime/support/StandardOutput.h"
#include "runtime/support/Version.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <ctime>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <unistd.h>

using namespace commsir;
using namespace commsir::tune;

namespace {

enum ExitCode : int {
  ExitOk = 0,
  ExitWrong = 1,
  ExitUsage = 2,
  ExitNothingRan = 3
};

/// Suffix of an operation's name where both modes are measured.
static constexpr llvm::StringLiteral kEager = " (eager)";

//===----------------------------------------------------------------------===//
// One problem
//===----------------------------------------------------------------------===//

/// A contender and what has been found of it.
struct Runner {
  Entry entry;
  std::unique_ptr<Contender> contender;

  void fail(Status status, std::string message) {
    entry.status = status;
    entry.message = std::move(message);
    entry.samples.clear();
    contender.reset();
  }
};

} // namespace

/// Reads and checks the outputs of all ranks, several at a time. Of several
/// faults the lowest rank's is told.
static llvm::Error checkOutputs(Runner &runner, const BenchCase &problem,
                                const Reference &reference) {
  std::vector<CheckResult> results(problem.ranks);
  std::vector<std::string> failures(problem.ranks);
  std::atomic<int64_t> next{0};
  auto work = [&] {
    std::vector<char> output(problem.outputBytes());
    for (int64_t rank; (rank = next++) < problem.ranks;) {
      if (llvm::Error error = runner.contender->read(rank, output))
        failures[rank] = llvm::toString(std::move(error));
      else
        results[rank] = reference.check(rank, output);
    }
  };
  // One thread is enough for what is copied faster than a thread starts.
  bool small = problem.outputBytes() < (1 << 20);
  int64_t most = small ? 1 : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min(most, problem.ranks); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  for (int64_t rank = 0; rank < problem.ranks; ++rank) {
    if (!failures[rank].empty())
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     failures[rank]);
    runner.entry.exact &= results[rank].exact;
  }
  for (const CheckResult &result : results)
    if (!result.right) {
      runner.fail(Status::Wrong, result.message);
      break;
    }
  return llvm::Error::success();
}

/// One turn: poison, a replay that is not timed, timed replays, check.
static llvm::Error takeTurn(Runner &runner, const Plan &plan,
                            const BenchCase &problem,
                            const Reference &reference) {
  if (llvm::Error error = runner.contender->poison())
    return error;
  std::vector<double> times;
  for (int64_t replay = -1; replay < plan.replays; ++replay) {
    llvm::Expected<double> time = runner.contender->replay();
    if (!time)
      return time.takeError();
    if (replay >= 0)
      times.push_back(*time);
  }
  runner.entry.samples.push_back(std::move(times));
  return checkOutputs(runner, problem, reference);
}

static std::vector<Candidate> listCandidates(const Plan &plan,
                                             BenchTarget &target,
                                             const BenchCase &problem) {
  std::vector<Candidate> both;
  if (plan.baselines)
    both = target.baselines(problem);
  for (bool registered : {true, false})
    for (KernelChoice &choice : plan.choices()) {
      Candidate ours;
      ours.choice = std::move(choice);
      ours.name = renderChoice(ours.choice, {});
      ours.registered = registered;
      if (registered ? plan.windows : plan.plain)
        both.push_back(std::move(ours));
    }
  std::vector<Candidate> all;
  for (bool eager : {false, true})
    if (eager ? plan.eager : plan.graph)
      for (Candidate &candidate : both) {
        all.push_back(candidate);
        all.back().eager = eager;
      }
  return all;
}

static Runner makeRunner(Candidate candidate, const Plan &plan,
                         BenchTarget &target, const BenchCase &problem,
                         const Reference &inputs) {
  Runner runner;
  auto contender = target.make(candidate, problem, inputs);
  Entry &entry = runner.entry;
  entry.op = problem.label();
  // Graphs are compared with graphs.
  if (plan.graph && candidate.eager)
    entry.op += kEager;
  entry.type = driver::elementName(problem.element);
  entry.bytes = problem.bytes;
  entry.contender = candidate.name;
  entry.baseline = candidate.baseline;
  entry.registered = candidate.registered;
  entry.exact = true;
  if (contender)
    runner.contender = std::move(*contender);
  else
    runner.fail(Status::Failed, llvm::toString(contender.takeError()));
  return runner;
}

std::vector<Entry>
commsir::tune::measureProblem(const Plan &plan, BenchTarget &target,
                              const BenchCase &problem,
                              const std::function<void(double)> &progress) {
  Reference reference(problem, plan.seed);
  std::vector<Runner> runners;
  std::vector<Candidate> candidates = listCandidates(plan, target, problem);
  // Making contenders (compiling) counts as one turn of each.
  double steps = double(candidates.size()) * double(plan.repetitions + 1),
         done = 0;
  std::set<std::tuple<std::string, std::string, bool>> names;
  for (Candidate &candidate : candidates) {
    bool baseline = candidate.baseline;
    Runner runner =
        makeRunner(std::move(candidate), plan, target, problem, reference);
    // The compiler's own choice may be one that was named as well.
    if (baseline || runner.entry.status != Status::Ok ||
        names
            .insert({runner.entry.op, runner.entry.contender,
                     runner.entry.registered})
            .second)
      runners.push_back(std::move(runner));
    progress(++done / steps);
  }
  for (int64_t turn = 0; turn < plan.repetitions; ++turn)
    for (size_t i = 0; i < runners.size(); ++i) {
      Runner &runner = runners[(i + size_t(turn)) % runners.size()];
      if (runner.contender)
        if (llvm::Error error = takeTurn(runner, plan, problem, reference))
          runner.fail(Status::Failed, llvm::toString(std::move(error)));
      progress(std::min(1.0, ++done / steps));
    }
  std::vector<Entry> entries;
  for (Runner &runner : runners)
    entries.push_back(std::move(runner.entry));
  return entries;
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

static int fail(const llvm::Twine &message, int code = ExitUsage) {
  llvm::outs().flush();
  printErrorLine("comms-bench: error: " + message);
  return code;
}

static std::string nowText() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

namespace commsir::tune {
#define COMMSIR_BENCH(name) const BenchKind &get##name();
#include "runtime/bench/Benches.inc"
#undef COMMSIR_BENCH
} // namespace commsir::tune

static llvm::Expected<std::unique_ptr<BenchTarget>>
createTarget(const Plan &plan) {
#define COMMSIR_BENCH(name) &get##name(),
  static const BenchKind *const all[] = {
#include "runtime/bench/Benches.inc"
  };
#undef COMMSIR_BENCH
  for (const BenchKind *kind : all)
    if (kind->name == plan.target)
      return kind->create(plan);
  return llvm::createStringError(
      "this comms-bench was built without CUDA; build with the headers of CUDA "
      "and NCCL, or use --target cpu");
}

/// Fails when the run cannot end well: before anything takes long.
static llvm::Error checkPlan(const Plan &plan) {
  // Inputs, sums with their tolerances, an output that is being checked, and on
  // the CPU every contender's own memory.
  double contenders =
      plan.target == "cpu" ? double(plan.choices().size()) + 1 : 0;
  for (const BenchCase &problem : plan.problems()) {
    if (llvm::Error error = problem.check())
      return error;
    double bytes = double(problem.bytes) * double(problem.ranks) +
                   double(problem.bytes) * 3 +
                   double(problem.outputBytes()) *
                       double(std::min<int64_t>(problem.ranks, 16)) +
                   contenders * 4 * double(problem.ranks) *
                       double(problem.bytes + problem.outputBytes());
    if (bytes > double(driver::memoryLimit()))
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          problem.describe() + " on " + std::to_string(problem.ranks) +
              " ranks needs " + driver::renderBytes(uint64_t(bytes)) +
              " of this machine's memory; it has " +
              driver::renderBytes(driver::memoryLimit()) +
              " to give: choose smaller sizes or fewer ranks");
  }
  for (const std::string *path : {&plan.json, &plan.svg})
    if (!path->empty())
      if (llvm::Error error = driver::OutputFiles::checkFolder(*path))
        return error;
  return llvm::Error::success();
}

/// Writes the files that were asked for, and the table.
static llvm::Error tell(const Report &report, const Plan &plan) {
  driver::OutputFiles files;
  if (!plan.json.empty()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printJson(report, os);
    if (llvm::Error error = files.write(plan.json, {text}))
      return error;
  }
  if (!plan.svg.empty()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printSvg(report, os);
    if (llvm::Error error = files.write(plan.svg, {text}))
      return error;
  }
  if (llvm::Error error = files.commit())
    return error;
  printTable(report, llvm::outs(), plan.full ? 0 : 1);
  for (const std::string *path : {&plan.json, &plan.svg})
    if (!path->empty())
      llvm::outs() << "wrote " << *path << "\n";
  return llvm::Error::success();
}

static Header makeHeader(const Plan &plan) {
  Header header;
  header.target = plan.target;
  header.date = nowText();
  header.commsir = getVersion();
  header.ranks = plan.ranks;
  header.mode = !plan.graph  ? "eager"
                : plan.eager ? "graph and eager"
                             : "graph";
  header.calls = plan.calls;
  header.replays = plan.replays;
  header.repetitions = plan.repetitions;
  header.command = plan.command;
  return header;
}

static void measureAll(const Plan &plan, BenchTarget &target, Report &report) {
  driver::Progress progress(!plan.quiet);
  std::vector<BenchCase> problems = plan.problems();
  for (size_t i = 0; i < problems.size(); ++i) {
    progress.begin(llvm::formatv("measuring {0} ({1} of {2})",
                                 problems[i].describe(), i + 1, problems.size())
                       .str());
    std::vector<Entry> entries =
        measureProblem(plan, target, problems[i],
                       [&](double share) { progress.update(share); });
    for (Entry &entry : entries) {
      if (report.header.floor)
        entry.floor =
            floorTime(*report.header.floor, entry.op, plan.ranks, entry.bytes);
      report.entries.push_back(std::move(entry));
    }
  }
  progress.end();
}

/// Problems of which nothing of ours (or, when only baselines were asked for,
/// nothing at all) gave a figure or a wrong result.
static std::vector<std::string> findEmpty(const Plan &plan,
                                          const Report &report) {
  std::vector<std::string> empty;
  for (const BenchCase &problem : plan.problems()) {
    bool ran = llvm::any_of(report.entries, [&](const Entry &entry) {
      return (entry.op == problem.label() ||
              entry.op == problem.label() + kEager.str()) &&
             entry.type == driver::elementName(problem.element) &&
             entry.bytes == problem.bytes && (!plan.ours || !entry.baseline) &&
             entry.status != Status::Failed;
    });
    if (!ran)
      empty.push_back(problem.describe());
  }
  return empty;
}

/// Operations, types and sizes at which the best of ours is too slow, a line
/// each.
static std::vector<std::string> findSlow(const Plan &plan,
                                         const Report &report) {
  using Key = std::tuple<std::string, std::string, int64_t, bool>;
  std::map<Key, const Entry *> best;
  for (const Entry &entry : report.entries) {
    if (entry.baseline || !entry.isMeasured() || entry.against.empty())
      continue;
    const Entry *&kept =
        best[{entry.op, entry.type, entry.bytes, entry.registered}];
    if (!kept || entry.medianTime() < kept->medianTime())
      kept = &entry;
  }
  std::vector<std::string> slow;
  for (const auto &[key, entry] : best)
    if (!(entry->speedup.low >= plan.least))
      slow.push_back(
          llvm::formatv("below {0}: {1}, {2}, {3}, {4}: {5:f2} [{6:f2} {7:f2}]",
                        plan.least, entry->op, renderSize(entry->bytes),
                        entry->type, entry->registered ? "windows" : "plain",
                        entry->speedup.value, entry->speedup.low,
                        entry->speedup.high)
              .str());
  return slow;
}

/// Measures and tells; the exit status.
static int runOn(const Plan &plan, BenchTarget &target) {
  if (llvm::Error error = checkPlan(plan))
    return fail(llvm::toString(std::move(error)));
  Report report;
  report.header = makeHeader(plan);
  if (llvm::Error error = target.describe(report.header))
    return fail(llvm::toString(std::move(error)));
  measureAll(plan, target, report);
  report.compareWithBaselines();
  if (llvm::Error error = tell(report, plan))
    return fail(llvm::toString(std::move(error)));
  if (report.hasWrong())
    return fail("a result is wrong: see WRONG above", ExitWrong);
  std::vector<std::string> empty = findEmpty(plan, report);
  if (!empty.empty())
    return fail(llvm::Twine(empty.size()) +
                    " of the problems could not be run, first " +
                    empty.front() + ": the reasons are in the table above",
                ExitNothingRan);
  if (plan.least <= 0)
    return ExitOk;
  std::vector<std::string> slow = findSlow(plan, report);
  for (const std::string &line : slow)
    llvm::outs() << line << "\n";
  if (!slow.empty())
    return fail(
        llvm::Twine(slow.size()) +
            " of the problems do not reach the speed that --least requires",
        ExitWrong);
  return ExitOk;
}

static int runExplain(const Plan &plan) {
  auto limit = getChannelLimit();
  if (!limit)
    return fail(llvm::toString(limit.takeError()));
  for (const BenchCase &problem : plan.problems()) {
    if (llvm::Error error = problem.check())
      return fail(llvm::toString(std::move(error)));
    for (const KernelChoice &choice : plan.choices()) {
      ConfigQuery query = makeQuery(problem);
      query.chip = plan.target == "cpu" ? "cpu"
                   : plan.chip.empty()  ? "sm_90"
                                        : plan.chip;
      query.device = plan.device;
      query.windows = !plan.plain && !problem.columns;
      query.memory = query.chip == "cpu" ? 0 : *limit;
      query.algorithm = choice.algorithm;
      query.protocol = choice.protocol;
      query.blocks = choice.blocks;
      query.threads = choice.threads;
      query.cluster = choice.cluster;
      llvm::outs() << explain(query, choose(query), plan.full ? 0 : 8);
    }
  }
  return ExitOk;
}

static int runBench(Plan &plan) {
  // Baselines must not use multicast, and NCCL reads this once, early.
  setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  auto target = createTarget(plan);
  if (!target)
    return fail(llvm::toString(target.takeError()));
  plan.ranks = (*target)->ranks();
  int code =
      plan.tune.empty() ? runOn(plan, **target) : runTuneWorker(plan, **target);
  if ((*target)->isStuck()) {
    // Threads and kernels that do not return still use what would be freed.
    _exit(driver::flushOutput("comms-bench", code ? code : ExitNothingRan));
  }
  return code;
}

//===----------------------------------------------------------------------===//
// Reports that exist
//===----------------------------------------------------------------------===//

static llvm::Expected<Report> readReport(llvm::StringRef path) {
  auto buffer = driver::readFile(path);
  if (!buffer)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "cannot read the report '" + path + "': " +
                                       llvm::toString(buffer.takeError()));
  return parseJson((*buffer)->getBuffer(), path);
}

static int runCompare(const Plan &plan) {
  auto before = readReport(plan.compareOld);
  if (!before)
    return fail(llvm::toString(before.takeError()));
  auto after = readReport(plan.compareNew);
  if (!after)
    return fail(llvm::toString(after.takeError()));
  auto comparison = compareReports(*before, *after, plan.threshold);
  if (!comparison)
    return fail(llvm::toString(comparison.takeError()));
  printComparison(*comparison, llvm::outs());
  return comparison->isWorse() ? ExitWrong : ExitOk;
}

/// Adds the figures of `other`, which must be of the same kind of run.
static llvm::Error merge(Report &report, Report other, llvm::StringRef path) {
  Header &header = report.header;
  const Header &added = other.header;
  if (header.target != added.target || header.ranks != added.ranks ||
      header.mode != added.mode || header.device != added.device)
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "'" + path +
            "' has another target, device, number of ranks or mode than "
            "the reports before it; show them one by one");
  auto add = [](std::string &text, const std::string &more) {
    if (!more.empty() && text.find(more) == std::string::npos)
      text += (text.empty() ? "" : "; ") + more;
  };
  add(header.torch, added.torch);
  add(header.nccl, added.nccl);
  add(header.commsir, added.commsir);
  add(header.date, added.date);
  if (!header.floor)
    header.floor = added.floor;
  for (int64_t Header::*number :
       {&Header::calls, &Header::replays, &Header::repetitions})
    if (header.*number != added.*number)
      header.*number = 0; // Shown as differing.
  for (Entry &entry : other.entries)
    report.entries.push_back(std::move(entry));
  return llvm::Error::success();
}

static int runShow(const Plan &plan) {
  Report all;
  for (const std::string &path : plan.show) {
    auto report = readReport(path);
    if (!report)
      return fail(llvm::toString(report.takeError()));
    auto isSame = [&](const std::string &before) {
      return llvm::sys::fs::equivalent(before, path);
    };
    if (std::any_of(plan.show.data(), &path, isSame))
      return fail("--show: '" + path + "' is named twice");
    if (&path == &plan.show.front())
      all = std::move(*report);
    else if (llvm::Error error = merge(all, std::move(*report), path))
      return fail(llvm::toString(std::move(error)));
  }
  if (all.header.floor)
    for (Entry &entry : all.entries)
      entry.floor =
          floorTime(*all.header.floor, entry.op, all.header.ranks, entry.bytes);
  all.compareWithBaselines();
  if (llvm::Error error = tell(all, plan))
    return fail(llvm::toString(std::move(error)));
  return all.hasWrong() ? ExitWrong : ExitOk;
}

static int run(llvm::ArrayRef<const char *> arguments) {
  llvm::Expected<Plan> plan = parsePlan(arguments);
  if (!plan)
    return fail(llvm::toString(plan.takeError()));
  if (plan->help || plan->version) {
    llvm::outs() << (plan->help
                         ? planHelp()
                         : "comms-bench " + std::string(getVersion()) + "\n");
    return ExitOk;
  }
  if (!plan->compareNew.empty())
    return runCompare(*plan);
  if (!plan->show.empty())
    return runShow(*plan);
  if (plan->explain) {
    if (!plan->ranks)
      return fail("--explain: --ranks is missing");
    return runExplain(*plan);
  }
  if (!plan->tune.empty() && !isTuneWorker())
    return runTune(*plan, arguments);
  return runBench(*plan);
}

int commsir::tune::benchMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  int code = run(llvm::ArrayRef<const char *>(argv, argc).drop_front());
  return driver::flushOutput("comms-bench", code);
}
