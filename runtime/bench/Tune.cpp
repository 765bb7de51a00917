//===- Tune.cpp - comms-bench --tune --------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Tune.h"

#include "runtime/bench/BenchCompiler.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/Json.h"
#include "runtime/support/OwnCommand.h"
#include "runtime/support/Progress.h"
#include "runtime/support/StandardError.h"
#include "runtime/support/Version.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <set>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace commsir;
using namespace commsir::tune;
namespace json = llvm::json;
using Clock = std::chrono::system_clock;

/// Holds the second at which a worker has to end, since 1970.
static constexpr const char *kWorker = "COMMSIR_TUNE_UNTIL";
/// A worker whose journal has not grown for this long will not get on.
static constexpr double kPatience = 120;
/// Share of the budget that is reserved for measuring again. Without it, a
/// table would hold the luckiest of many samples, up to 10 % from the true
/// time.
static constexpr double kConfirmShare = 0.4;

/// Larger arrays take long to check, and only the links limit their speed.
/// Beyond this size, times are extrapolated.
static constexpr int64_t kMostOutput = 128 << 20;

static int fail(const llvm::Twine &message, int code = 2) {
  llvm::outs().flush();
  printErrorLine("comms-bench: error: " + message);
  return code;
}

static double now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

//===----------------------------------------------------------------------===//
// Journal
//===----------------------------------------------------------------------===//

void Journal::read(llvm::StringRef text) {
  // A run that somebody stopped was at a way too, so one chance more is given.
  std::map<std::string, int> begun;
  for (llvm::StringRef line : llvm::split(text, '\n')) {
    llvm::Expected<json::Value> value = readJson(line);
    if (!value) { // The last line of a process that was killed.
      llvm::consumeError(value.takeError());
      continue;
    }
    const json::Object *object = value->getAsObject();
    if (!object)
      continue;
    if (auto key = object->getString("begin"))
      ++begun[key->str()];
    auto key = object->getString("end");
    if (!key)
      continue;
    begun.erase(key->str());
    Outcome outcome;
    outcome.time = object->getNumber("us");
    outcome.failure = object->getString("failure").value_or("").str();
    known[key->str()] = std::move(outcome);
  }
  for (const auto &[key, times] : begun)
    if (times >= 2)
      end(key, {std::nullopt, "it did not return, twice"});
}

/// Hours of measuring may be in it, or somebody's notes.
static llvm::Error refuseJournal(const std::string &path, llvm::StringRef first,
                                 const std::string &identity) {
  llvm::Expected<json::Value> other = readJson(first);
  std::string what = "no journal of --tune";
  if (other && other->getAsObject())
    what = llvm::formatv("the journal of another run, {0}; this one is {1}",
                         *other, identity);
  llvm::consumeError(other.takeError());
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "'" + path + "' is " + what +
                                     ": name another file with --tune, or "
                                     "remove this one");
}

llvm::Expected<std::unique_ptr<Journal>>
Journal::open(const std::string &path, const std::string &identity) {
  std::unique_ptr<Journal> journal(new Journal);
  std::string text;
  auto buffer = driver::readFile(path);
  if (buffer) {
    text = (*buffer)->getBuffer().str();
  } else {
    std::string why = llvm::toString(buffer.takeError());
    // It is not replaced unseen.
    llvm::sys::fs::file_status status;
    if (llvm::sys::fs::status(path, status, /*follow=*/false) !=
        std::errc::no_such_file_or_directory)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "cannot read the journal '" + path +
                                         "': " + why);
  }
  llvm::StringRef first = llvm::StringRef(text).split('\n').first;
  bool same = first == identity;
  // What a killed process left of the first line is not worth keeping.
  if (!same && !llvm::StringRef(identity).starts_with(text))
    return refuseJournal(path, first, identity);
  journal->file = ::open(
      path.c_str(),
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (same ? 0 : O_TRUNC), 0644);
  if (journal->file < 0)
    return llvm::createStringError(
        std::error_code(errno, std::generic_category()),
        "cannot write the journal '" + path + "'");
  if (same) {
    // What a killed process left of a line must not join the next one.
    if (!llvm::StringRef(text).ends_with("\n"))
      (void)!::write(journal->file, "\n", 1);
    journal->read(text);
  } else {
    std::string line = identity + "\n";
    (void)!::write(journal->file, line.data(), line.size());
  }
  return journal;
}

Journal::~Journal() {
  if (file >= 0)
    ::close(file);
}

void Journal::write(json::Object object) {
  std::string line =
      llvm::formatv("{0}", json::Value(std::move(object))).str() + "\n";
  // One write: what others see of it is whole. A full disk costs the journal,
  // not the run.
  (void)!::write(file, line.data(), line.size());
}

const Journal::Outcome *Journal::find(const std::string &key) const {
  auto found = known.find(key);
  return found == known.end() ? nullptr : &found->second;
}

void Journal::begin(const std::string &key) {
  write(json::Object{{"begin", key}});
}

void Journal::end(const std::string &key, Outcome outcome) {
  json::Object line{{"end", key}};
  if (outcome.time)
    line["us"] = *outcome.time;
  else
    line["failure"] = json::fixUTF8(outcome.failure);
  write(std::move(line));
  known[key] = std::move(outcome);
}

//===----------------------------------------------------------------------===//
// What is measured
//===----------------------------------------------------------------------===//

TuneRanges commsir::tune::listRanges(const Plan &plan,
                                     const BenchTarget &target) {
  TuneRanges all;
  std::map<std::string, size_t> places;
  for (const BenchCase &problem : plan.problems()) {
    if (problem.outputBytes() > kMostOutput)
      continue;
    ConfigQuery query = makeQuery(problem);
    target.describeMachine(query);
    query.windows = problem.columns == 0; // As they are measured.
    std::string label = problem.label() + " " + query.elementType;
    auto [place, fresh] = places.try_emplace(label, all.ranges.size());
    if (fresh) {
      Range range;
      range.base = query;
      range.base.bytes = range.base.rows = 0;
      if (problem.columns)
        range.rowBytes = problem.bytes / problem.rows();
      all.ranges.push_back(std::move(range));
      all.problems.emplace_back();
    }
    int64_t size = problem.columns ? problem.rows() : query.bytes;
    all.problems[place->second].insert_or_assign(size, problem);
  }
  for (auto [range, problems] : llvm::zip(all.ranges, all.problems))
    for (const auto &[size, problem] : problems)
      range.sizes.push_back(size);
  return all;
}

namespace {
/// Answers the search from the journal or by measuring.
class Measurer {
public:
  Measurer(Plan &plan, BenchTarget &target, const TuneRanges &all,
           Journal &journal)
      : plan(plan), target(target), all(all), journal(journal) {}

  /// Measures what the journal does not contain, until `end` on the clock
  /// `now()`.
  std::vector<std::optional<double>> measure(size_t range, int64_t size,
                                             const std::vector<Recipe> &recipes,
                                             std::optional<double> end);

  /// Like `measure`, with the candidates side by side and more repetitions.
  std::vector<std::optional<double>> confirm(size_t range, int64_t size,
                                             const std::vector<Recipe> &recipes,
                                             bool recall);

  /// A worker cannot go on: its GPUs do not answer any more.
  bool isBroken() const { return broken; }
  /// Whether something was asked for that the journal does not have.
  bool hasRejected() const { return leftOut; }
  /// Whether nothing was tried at a size before the time was up.
  bool hasNotReached(size_t range, int64_t size) const {
    return leftOut && !tried.contains({range, size});
  }

private:
  std::string keyOf(const BenchCase &problem, const Config &config) const;
  void setProblem(const BenchCase &problem);
  Journal::Outcome measure(Candidate candidate, const BenchCase &problem);
  llvm::Expected<double> run(Candidate &candidate, const BenchCase &problem);
  Candidate makeCandidate(const Config &config) const;

  Plan &plan;
  BenchTarget &target;
  const TuneRanges &all;
  Journal &journal;
  std::optional<BenchCase> current;
  std::unique_ptr<Reference> reference;
  bool broken = false, leftOut = false;
  /// Ranges and sizes where a way was tried, whatever became of it.
  std::set<std::pair<size_t, int64_t>> tried;
};
} // namespace

std::string Measurer::keyOf(const BenchCase &problem,
                            const Config &config) const {
  return llvm::formatv("{0}, {1}/{2} b{3} t{4} c{5}", problem.describe(),
                       config.algorithm, config.protocol, config.blocks,
                       config.threads, config.cluster)
      .str();
}

void Measurer::setProblem(const BenchCase &problem) {
  if (current == problem)
    return;
  current = problem;
  reference = std::make_unique<Reference>(problem, plan.seed);
  // Enough to time, little enough to be quick.
  if (plan.target == "cuda")
    plan.calls = problem.bytes > (4 << 20) ? 8 : 40;
}

/// Poison, a replay that is not timed, timed ones, check; the median.
llvm::Expected<double> Measurer::run(Candidate &candidate,
                                     const BenchCase &problem) {
  auto contender = target.make(candidate, problem, *reference);
  if (!contender)
    return contender.takeError();
  if (llvm::Error error = (*contender)->poison())
    return error;
  std::vector<double> times;
  for (int64_t replay = -1; replay < plan.replays; ++replay) {
    llvm::Expected<double> time = (*contender)->replay();
    if (!time)
      return time.takeError();
    if (replay >= 0)
      times.push_back(*time);
  }
  std::vector<char> output(problem.outputBytes());
  for (int64_t rank = 0; rank < problem.ranks; ++rank) {
    if (llvm::Error error = (*contender)->read(rank, output))
      return error;
    CheckResult result = reference->check(rank, output);
    if (!result.right)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "wrong: " + result.message);
  }
  return median(times);
}

Journal::Outcome Measurer::measure(Candidate candidate,
                                   const BenchCase &problem) {
  llvm::Expected<double> time = run(candidate, problem);
  if (time && *time > 0)
    return {*time, ""};
  std::string failure =
      time ? "its time is 0" : llvm::toString(time.takeError());
  broken |= target.isBroken();
  return {std::nullopt, failure};
}

Candidate Measurer::makeCandidate(const Config &config) const {
  Candidate candidate;
  candidate.registered = true;
  candidate.eager = plan.eager;
  candidate.choice = {config.algorithm, config.protocol, config.blocks,
                      config.threads,   config.cluster,  KernelNumbers{}};
  return candidate;
}

std::vector<std::optional<double>>
Measurer::confirm(size_t range, int64_t size,
                  const std::vector<Recipe> &recipes, bool recall) {
  const BenchCase &problem = all.problems[range].at(size);
  ConfigQuery query = all.ranges[range].at(size);
  std::vector<std::optional<double>> times(recipes.size());
  std::vector<std::string> keys;
  std::vector<std::unique_ptr<Contender>> contenders(recipes.size());
  for (const Recipe &recipe : recipes)
    keys.push_back("again: " + keyOf(problem, applyRecipe(recipe, query)));
  if (llvm::all_of(keys, [&](auto &key) { return journal.find(key); })) {
    for (auto [time, key] : llvm::zip(times, keys))
      time = journal.find(key)->time;
    return times;
  }
  if (recall) {
    leftOut = true;
    return {};
  }
  setProblem(problem);
  std::vector<std::vector<double>> samples(recipes.size());
  auto drop = [&](size_t i, llvm::Error error) {
    std::string failure = llvm::toString(std::move(error));
    broken |= target.isBroken();
    journal.end(keys[i], {std::nullopt, failure});
    contenders[i].reset();
    samples[i].clear();
  };
  for (size_t i = 0; i < recipes.size() && !broken; ++i) {
    const Journal::Outcome *known = journal.find(keys[i]);
    if (known && !known->time)
      continue; // It did not return before.
    journal.begin(keys[i]);
    Candidate candidate = makeCandidate(applyRecipe(recipes[i], query));
    auto made = target.make(candidate, problem, *reference);
    if (made)
      contenders[i] = std::move(*made);
    else
      drop(i, made.takeError());
  }
  constexpr int kTurns = 5;
  for (int turn = 0; turn < kTurns; ++turn)
    for (size_t i = 0; i < recipes.size() && !broken; ++i)
      for (int64_t replay = -1; contenders[i] && replay < plan.replays;
           ++replay) {
        llvm::Expected<double> time = contenders[i]->replay();
        if (!time)
          drop(i, time.takeError());
        else if (replay >= 0)
          samples[i].push_back(*time);
      }
  for (size_t i = 0; i < recipes.size() && !broken; ++i)
    if (!samples[i].empty()) {
      times[i] = median(samples[i]);
      journal.end(keys[i], {times[i], ""});
    }
  return times;
}

std::vector<std::optional<double>>
Measurer::measure(size_t range, int64_t size,
                  const std::vector<Recipe> &recipes,
                  std::optional<double> end) {
  const BenchCase &problem = all.problems[range].at(size);
  ConfigQuery query = all.ranges[range].at(size);
  auto isOver = [&] { return end && now() > *end; };
  std::vector<std::string> keys;
  std::vector<Candidate> fresh;
  std::vector<std::string> freshKeys;
  for (const Recipe &recipe : recipes) {
    Config config = applyRecipe(recipe, query);
    keys.push_back(keyOf(problem, config));
    if (journal.find(keys.back()))
      continue;
    fresh.push_back(makeCandidate(config));
    freshKeys.push_back(keys.back());
  }
  if (!fresh.empty() && !isOver()) {
    setProblem(problem);
    target.prepare(fresh, problem);
  }
  for (size_t i = 0; i < fresh.size() && !broken; ++i) {
    if (isOver()) {
      leftOut = true;
      break;
    }
    journal.begin(freshKeys[i]);
    journal.end(freshKeys[i], measure(fresh[i], problem));
  }
  std::vector<std::optional<double>> times;
  for (const std::string &key : keys) {
    const Journal::Outcome *outcome = journal.find(key);
    if (outcome)
      tried.insert({range, size});
    times.push_back(outcome ? outcome->time : std::nullopt);
  }
  return times;
}

//===----------------------------------------------------------------------===//
// What comes out
//===----------------------------------------------------------------------===//

static std::string today() {
  std::time_t time = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[16];
  std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

static Table makeTable(const Search &search, const Plan &plan,
                       const BenchTarget &target) {
  ConfigQuery machine;
  target.describeMachine(machine);
  Table table;
  table.device = machine.device;
  table.chip = machine.chip;
  table.ranks = plan.ranks;
  table.date = today();
  table.note =
      llvm::formatv("comms-bench {0}, {1}", getVersion(),
                    plan.graph ? "CUDA graph, multicast off" : "call by call")
          .str();
  table.sections = search.sections();
  prune(table);
  return table;
}

static llvm::Error writeTable(const Table &table, const std::string &path) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTable(table, os);
  driver::OutputFiles files;
  if (llvm::Error error = files.write(path, {text}))
    return error;
  return files.commit();
}

static void reportBest(const Search &search, const TuneRanges &all,
                       const Measurer &measurer) {
  for (size_t range = 0; range < all.ranges.size(); ++range)
    for (const auto &[size, problem] : all.problems[range]) {
      auto best = search.best(range, size);
      llvm::outs() << llvm::formatv(
          "{0}: {1}\n", problem.describe(),
          best ? llvm::formatv("{0:f2} us, {1}", best->second,
                               renderRecipe(best->first))
                     .str()
               : std::string(measurer.hasNotReached(range, size)
                                 ? "not reached"
                                 : "nothing ran"));
    }
}

static void reportFailures(const Journal &journal) {
  size_t shown = 0;
  for (const auto &[key, outcome] : journal.outcomes()) {
    // That a pair does not carry something out is no failure.
    if (outcome.time ||
        llvm::StringRef(outcome.failure).contains("cannot be used:"))
      continue;
    if (++shown <= 20)
      llvm::outs() << "not run: " << key << ": " << outcome.failure << "\n";
  }
  if (shown > 20)
    llvm::outs() << "and " << shown - 20 << " more that could not be run\n";
}

//===----------------------------------------------------------------------===//
// Worker
//===----------------------------------------------------------------------===//

bool commsir::tune::isTuneWorker() { return std::getenv(kWorker); }

/// The best two ways that are known from tables before, or from the model.
static std::vector<Recipe> seedRecipes(const ConfigQuery &query) {
  std::vector<Recipe> recipes;
  for (const Config &config : choose(query).considered) {
    if (recipes.size() == 2)
      break;
    int64_t cluster = std::max<int64_t>(config.cluster, 1);
    recipes.push_back({config.algorithm, config.protocol, config.threads,
                       cluster, 1,
                       std::max<int64_t>(config.blocks, 1) * cluster});
  }
  return recipes;
}

static std::string makeIdentity(const Plan &plan, const BenchTarget &target) {
  ConfigQuery machine;
  target.describeMachine(machine);
  return llvm::formatv("{0}", json::Value(json::Object{
                                  {"journal", 1},
                                  {"commsir", getVersion()},
                                  {"chip", machine.chip},
                                  {"device", machine.device},
                                  {"ranks", plan.ranks},
                                  {"mode", plan.graph ? "graph" : "eager"}}))
      .str();
}

/// Refuses to replace a file that is no table, or one of another machine: what
/// it holds would be lost.
static llvm::Error checkReplaced(const Plan &plan, const BenchTarget &target) {
  if (!llvm::sys::fs::is_regular_file(plan.tune))
    return llvm::Error::success();
  auto refuse = [&](const llvm::Twine &why) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "--tune would replace '" + plan.tune +
                                       "', " + why +
                                       ": name another file, or remove it");
  };
  auto buffer = driver::readFile(plan.tune);
  if (!buffer)
    return refuse("which cannot be read (" +
                  llvm::toString(buffer.takeError()) + ")");
  if ((*buffer)->getBuffer().empty())
    return llvm::Error::success();
  llvm::Expected<Table> table = parseTable((*buffer)->getBuffer(), plan.tune);
  if (!table) {
    llvm::consumeError(table.takeError());
    return refuse("which is not a table of its own");
  }
  ConfigQuery machine;
  target.describeMachine(machine);
  if (table->chip == machine.chip && table->device == machine.device &&
      table->ranks == plan.ranks)
    return llvm::Error::success();
  return refuse("a table of " + llvm::Twine(table->ranks) + " ranks on " +
                (table->device.empty() ? table->chip : table->device));
}

int commsir::tune::runTuneWorker(Plan &plan, BenchTarget &target) {
  if (llvm::Error error = checkReplaced(plan, target))
    return fail(llvm::toString(std::move(error)));
  for (const BenchCase &problem : plan.problems())
    if (llvm::Error error = problem.check())
      return fail(llvm::toString(std::move(error)));
  double until = 0;
  if (const char *text = std::getenv(kWorker))
    until = std::atof(text);
  std::string journalPath = plan.tune + ".journal";
  auto journal = Journal::open(journalPath, makeIdentity(plan, target));
  if (!journal)
    return fail(llvm::toString(journal.takeError()));
  TuneRanges all = listRanges(plan, target);
  Measurer measurer(plan, target, all, **journal);
  driver::Progress progress(!plan.quiet);
  progress.begin(llvm::formatv("tuning {0} ranks", plan.ranks).str());
  double started = now();
  Search::Hooks hooks;
  hooks.measure = [&](size_t range, int64_t size,
                      const std::vector<Recipe> &recipes) {
    std::optional<double> end;
    if (until > 0)
      end = until - kConfirmShare * double(plan.budget);
    return measurer.measure(range, size, recipes, end);
  };
  hooks.confirm = [&](size_t range, int64_t size,
                      const std::vector<Recipe> &recipes) {
    return measurer.confirm(range, size, recipes, until > 0 && now() > until);
  };
  hooks.starts = seedRecipes;
  // When time is over, the journal still answers.
  hooks.isOver = [&] { return measurer.isBroken(); };
  hooks.step = [&](size_t, int64_t, double share) {
    // Done when all is measured or time is up, whichever comes first.
    double spent = until > started ? (now() - started) / (until - started) : 0;
    progress.update(std::min(1.0, std::max(share, spent)));
  };
  Search search(all.ranges, hooks);
  search.run();
  progress.end();
  if (measurer.isBroken())
    return kRestart;
  reportBest(search, all, measurer);
  reportFailures(**journal);
  Table table = makeTable(search, plan, target);
  if (table.sections.empty())
    return fail(measurer.hasRejected()
                    ? "--budget ran out before anything was measured: give it "
                      "more seconds"
                    : "nothing could be run: the reasons are above",
                3);
  if (llvm::Error error = writeTable(table, plan.tune))
    return fail(llvm::toString(std::move(error)));
  llvm::outs() << "wrote " << plan.tune << ", of "
               << (*journal)->outcomes().size() << " configs in "
               << llvm::formatv("{0:f0} s", now() - started) << "\n";
  if (measurer.hasRejected())
    llvm::outs() << "--budget ran out before everything was measured; "
                    "the same command resumes from "
                 << journalPath << "\n";
  else
    ::unlink(journalPath.c_str());
  return 0;
}

//===----------------------------------------------------------------------===//
// Supervisor
//===----------------------------------------------------------------------===//

static volatile sig_atomic_t workerToEnd = 0;
static constexpr int kEndings[] = {SIGINT, SIGTERM, SIGHUP};

static void passOn(int signal) {
  if (workerToEnd > 0)
    kill(workerToEnd, signal);
}

static pid_t startWorker(const std::vector<char *> &command, double until) {
  pid_t parent = getpid();
  pid_t child = fork();
  if (child != 0)
    return child;
  // Nobody would wait for it, and its journal would grow forever.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(127);
  setenv(kWorker, llvm::formatv("{0:f3}", until).str().c_str(), 1);
  execv("/proc/self/exe", command.data());
  _exit(127);
}

static int64_t sizeOf(const std::string &path) {
  struct stat found;
  return stat(path.c_str(), &found) ? 0 : int64_t(found.st_size);
}

/// Waits for a worker; ends it when its journal does not grow.
static int waitFor(pid_t worker, const std::string &journal) {
  int64_t size = sizeOf(journal);
  double since = now();
  for (int status;;) {
    pid_t ended = waitpid(worker, &status, WNOHANG);
    if (ended == worker)
      return status;
    if (ended < 0 && errno != EINTR)
      return -1;
    if (int64_t found = sizeOf(journal); found != size) {
      size = found;
      since = now();
    }
    if (now() - since > kPatience)
      kill(worker, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

int commsir::tune::runTune(const Plan &plan,
                           llvm::ArrayRef<const char *> arguments) {
  if (llvm::Error error = driver::OutputFiles::checkFolder(plan.tune))
    return fail(llvm::toString(std::move(error)));
  std::string journal = plan.tune + ".journal";
  double until = now() + double(plan.budget);
  // In a program that calls this with arguments of its own, what is started
  // again would be that program, and no worker.
  auto words = getOwnCommand(arguments);
  if (!words)
    return fail(llvm::toString(words.takeError()));
  words->insert(words->end(), arguments.begin(), arguments.end());
  std::vector<char *> command;
  for (std::string &word : *words)
    command.push_back(word.data());
  command.push_back(nullptr);
  for (int signal : kEndings)
    std::signal(signal, passOn);
  for (int fruitless = 0; fruitless < 3;) {
    int64_t before = sizeOf(journal);
    pid_t worker = startWorker(command, until);
    if (worker < 0)
      return fail("cannot start the measuring process");
    workerToEnd = worker;
    int status = waitFor(worker, journal);
    workerToEnd = 0;
    if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) != kRestart)
      return WEXITSTATUS(status);
    int signal = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (llvm::is_contained(kEndings, signal))
      return fail("stopped; the same command resumes from " + journal,
                  128 + signal);
    llvm::errs() << "comms-bench: note: the measuring process has "
                 << (signal ? "died" : "given up")
                 << "; its config is skipped, and a new process "
                    "continues\n";
    fruitless = sizeOf(journal) > before ? 0 : fruitless + 1;
  }
  return fail(
      "the measuring process keeps dying; " + journal + " has the configs", 3);
}
