//===- ProcessWorld.cpp - Every rank is a process of its own --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/RankDevices.h"
#include "runtime/cuda/Seconds.h"
#include "runtime/driver/cuda/RankProcess.h"
#include "runtime/driver/cuda/RanksWorld.h"
#include "runtime/driver/cuda/SharedRun.h"
#include "runtime/support/OwnFolder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>

using namespace commsir;
using namespace commsir::driver;
using cuda::secondsSince;
using Clock = std::chrono::steady_clock;

namespace {

/// Lets this process wait for its children, also where it was started by one
/// that ignores SIGCHLD: the system would keep nothing of those that end.
class SigchldGuard {
public:
  SigchldGuard() : former(std::signal(SIGCHLD, SIG_DFL)) {}
  ~SigchldGuard() {
    if (former != SIG_ERR)
      std::signal(SIGCHLD, former);
  }
  SigchldGuard(const SigchldGuard &) = delete;
  SigchldGuard &operator=(const SigchldGuard &) = delete;

private:
  void (*former)(int);
};

class ProcessWorld final : public RanksWorld {
public:
  ProcessWorld(const RankTask &task, const jit::CudaKernel &kernel,
               llvm::ArrayRef<int> devices)
      : RanksWorld(task, kernel), devices(devices.begin(), devices.end()) {}
  ~ProcessWorld() override;
  llvm::Error create();
  std::variant<cpu::RunStats, cpu::RunError> run() override;

private:
  struct Child {
    pid_t pid = 0;
    int status = 0;
    bool isRunning = false;

    bool hasFailed() const { return !isRunning && status != 0; }
  };
  char *arraysOf(int64_t rank) override { return shared.arraysOf(rank); }
  int64_t ranks() const { return task.group.ranks; }
  llvm::Error start();
  void await();
  void collect();
  void kill();
  RankOutcome outcomeOf(int64_t rank) const;

  std::vector<int> devices;
  SharedRun shared;
  /// The folder where the ranks meet.
  std::string folder;
  std::vector<Child> children;
};

} // namespace

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

ProcessWorld::~ProcessWorld() {
  kill();
  for (Child &child : children)
    if (child.isRunning)
      waitpid(child.pid, nullptr, 0);
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

llvm::Error ProcessWorld::create() {
  folder = makeTemporaryFolder("commsir-run");
  if (folder.empty())
    return llvm::createStringError(
        llvm::Twine(
            "cannot create a folder for the rendezvous of the ranks: ") +
        std::strerror(errno));
  task.rendezvous = folder;
  return shared.create(task, places);
}

llvm::Error ProcessWorld::start() {
  children.assign(size_t(ranks()), Child());
  for (auto [rank, child] : llvm::enumerate(children)) {
    auto pid = startRank(shared.getFile(), int64_t(rank),
                         cuda::getDeviceOf(int64_t(rank), devices));
    if (!pid)
      return pid.takeError();
    child.pid = *pid;
    child.isRunning = true;
  }
  return llvm::Error::success();
}

/// Takes note of processes that have ended.
void ProcessWorld::collect() {
  for (Child &child : children)
    if (child.isRunning &&
        waitpid(child.pid, &child.status, WNOHANG) == child.pid)
      child.isRunning = false;
}

void ProcessWorld::kill() {
  for (Child &child : children)
    if (child.isRunning)
      ::kill(child.pid, SIGKILL);
}

/// Waits for all processes; those that stay after one has failed are stopped.
void ProcessWorld::await() {
  auto start = Clock::now();
  double timeout = task.group.timeout;
  // Peers of a rank that has failed get the time to say for what they wait.
  double patience = timeout + 2;
  std::optional<Clock::time_point> failed;
  auto hasFailedFor = [&](double seconds) {
    return failed && secondsSince(*failed) > seconds;
  };
  while (llvm::any_of(children, [](Child &child) { return child.isRunning; })) {
    collect();
    if (!failed &&
        llvm::any_of(children, [](Child &child) { return child.hasFailed(); }))
      failed = Clock::now();
    if (hasFailedFor(patience))
      shared.state().canceled = 1;
    bool isLate = secondsSince(start) >
                  task.seconds() + cuda::kSetupSeconds + 2 * timeout;
    if (isLate || hasFailedFor(patience + 2 * cuda::kAbortSeconds))
      kill();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

//===----------------------------------------------------------------------===//
// What became of the ranks
//===----------------------------------------------------------------------===//

/// Text without numbers: what ranks say of the same thing differs in those.
static std::string withoutNumbers(llvm::StringRef text) {
  std::string rest;
  llvm::copy_if(text, std::back_inserter(rest),
                [](char c) { return !llvm::isDigit(c); });
  return rest;
}

/// One report of all that the ranks say; what several say is told once.
static cpu::RunError explain(llvm::ArrayRef<RankOutcome> outcomes) {
  cpu::RunError report;
  std::vector<std::string> told;
  for (auto [rank, outcome] : llvm::enumerate(outcomes)) {
    if (!outcome.error)
      continue;
    const cpu::RunError &error = *outcome.error;
    bool isWorse = report.kind == cpu::RunError::Other ||
                   error.kind == cpu::RunError::Bounds;
    if (isWorse && error.kind != cpu::RunError::Other)
      report.kind = error.kind;
    llvm::append_range(report.waiting, error.waiting);
    std::string text = error.message;
    if (!llvm::StringRef(text).starts_with("rank "))
      text = "rank " + std::to_string(rank) + ": " + text;
    std::string bare = withoutNumbers(text);
    // "rank 0: rank 2: no memory" and rank 2's own "rank 2: no memory" are one.
    bool known = llvm::any_of(told, [&](llvm::StringRef earlier) {
      return earlier.ends_with(bare) ||
             llvm::StringRef(bare).ends_with(earlier);
    });
    if (known && error.waiting.empty())
      continue;
    told.push_back(bare);
    report.message += (report.message.empty() ? "" : "\n") + text;
  }
  return report;
}

/// Returns the rank's own outcome, or how its process ended.
RankOutcome ProcessWorld::outcomeOf(int64_t rank) const {
  if (std::optional<RankOutcome> said = shared.readOutcome(rank))
    return *said;
  int status = children[rank].status;
  RankOutcome outcome;
  outcome.error.emplace().message =
      WIFSIGNALED(status)
          ? llvm::formatv("rank {0}: its process was ended by signal {1}", rank,
                          WTERMSIG(status))
                .str()
          : llvm::formatv("rank {0}: its process ended with status {1}", rank,
                          WEXITSTATUS(status))
                .str();
  return outcome;
}

std::variant<cpu::RunStats, cpu::RunError> ProcessWorld::run() {
  SigchldGuard guard;
  if (auto error = start())
    return toRunError(std::move(error));
  await();
  std::vector<RankOutcome> outcomes;
  cpu::RunStats stats;
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    outcomes.push_back(outcomeOf(rank));
    stats.rankMicroseconds.push_back(outcomes.back().microseconds);
    if (windows.empty())
      windows = outcomes.back().windows;
  }
  if (llvm::any_of(outcomes, [](const RankOutcome &o) { return o.error; }))
    return explain(outcomes);
  stats.totalMicroseconds = *llvm::max_element(stats.rankMicroseconds);
  return stats;
}

llvm::Expected<std::unique_ptr<RanksWorld>>
commsir::driver::createProcessWorld(const RankTask &task,
                                    const jit::CudaKernel &kernel,
                                    llvm::ArrayRef<int> devices) {
  auto world = std::make_unique<ProcessWorld>(task, kernel, devices);
  if (auto error = world->create())
    return std::move(error);
  return world;
}
