//===- RankProcess.cpp - A process that runs one rank ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/cuda/RankProcess.h"

#include "runtime/cuda/Seconds.h"
#include "runtime/driver/Options.h"
#include "runtime/driver/cuda/RankRun.h"
#include "runtime/driver/cuda/SharedRun.h"
#include "runtime/jit/CacheSettings.h"
#include "runtime/support/OwnCommand.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::driver;

extern char **environ;

/// First argument of a process that runs a rank.
static constexpr llvm::StringLiteral kRankProcess = "--rank-process";

/// The arguments of this program's main function.
static llvm::ArrayRef<const char *> toolArguments;

llvm::Expected<pid_t> commsir::driver::startRank(int file, int64_t rank,
                                                 int device) {
  auto words = getOwnCommand(toolArguments);
  if (!words)
    return words.takeError();
  words->insert(words->end(), {kRankProcess.str(), std::to_string(file),
                               std::to_string(rank), std::to_string(device)});
  std::vector<char *> arguments;
  for (std::string &word : *words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  // Standard output is the report's alone.
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  pid_t pid = 0;
  int failed = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                           arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    return llvm::createStringError(
        "rank " + llvm::Twine(rank) +
        " could not be started: " + std::strerror(failed));
  return pid;
}

/// Waits for the other ranks, so that times say something.
static void meet(SharedRun &shared) {
  SharedRun::State &state = shared.state();
  ++state.ready;
  auto start = std::chrono::steady_clock::now();
  while (int64_t(state.ready) < shared.ranks() && !state.ended &&
         !state.canceled && cuda::secondsSince(start) < cuda::kStartSeconds)
    std::this_thread::yield();
}

static int runRank(int file, int64_t rank, int device) {
  // Nobody would read what it computes.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  jit::leaveReportingToParent();
  SharedRun shared;
  if (!shared.open(file))
    return ExitUsage;
  RankArrays arrays;
  std::optional<RankTask> task = shared.readTask(arrays);
  if (!task || rank < 0 || rank >= shared.ranks())
    return ExitUsage;
  task->group.rank = rank;
  task->group.device = device;
  RunPeers runPeers;
  runPeers.meet = [&] { meet(shared); };
  runPeers.isCanceled = [&] { return shared.state().canceled != 0; };
  auto run = std::make_unique<RankRun>(*task);
  RankOutcome outcome = run->run(arrays.at(shared.arraysOf(rank)), runPeers);
  ++shared.state().ended;
  shared.writeOutcome(rank, outcome);
  if (outcome.error)
    _exit(1); // Cleaning up may wait for peers.
  run.reset();
  return 0;
}

std::optional<int>
commsir::driver::runRankProcess(llvm::ArrayRef<const char *> arguments) {
  toolArguments = arguments.drop_front();
  if (arguments.size() != 5 || arguments[1] != kRankProcess)
    return std::nullopt;
  int file = -1, device = -1;
  int64_t rank = -1;
  if (llvm::StringRef(arguments[2]).getAsInteger(10, file) ||
      llvm::StringRef(arguments[3]).getAsInteger(10, rank) ||
      llvm::StringRef(arguments[4]).getAsInteger(10, device))
    return ExitUsage;
  return runRank(file, rank, device);
}
