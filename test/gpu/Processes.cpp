//===- Processes.cpp - Tests of groups of processes on GPUs ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// gpu-processes SCENARIO RANKS [NUMBER] forks RANKS processes, each with a GPU,
// which run the scenario. Every rank prints one line: "rank 2: ok …", or the
// failure; the exit status is the number of ranks that failed. processes.py
// runs all scenarios. COMMSIR_TEST_WINDOWS: nccl or plain;
// COMMSIR_TEST_PATIENCE: a factor for time limits; COMMSIR_TEST_PROTOCOL: the
// protocol of kernels for which any protocol is right.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/processes/Scenarios.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <csignal>
#include <sys/wait.h>

using namespace commsir::processes;

namespace {

struct Scenario {
  const char *name, *what;
  std::string (*run)(Rank &);
};

const Scenario scenarios[] = {
    {"sizes", "sizes shrink and grow; NUMBER rounds", runSizes},
    {"overhead", "a launch by the group against the driver's", runOverhead},
    {"stragglers", "ranks come up to 10 ms late; NUMBER launches",
     runStragglers},
    {"pauses", "a block is up to 10 ms late in a kernel; NUMBER launches each",
     runPauses},
    {"many", "NUMBER launches of 200 kernels", runMany},
    {"order", "two kernels in opposite order during other work", runOrder},
    {"adopted", "a communicator of the caller's", runAdopted},
    {"device-library", "kernels that call NCCL's device library",
     runDeviceLibrary},
    {"checked", "NUMBER launches, all checked on the GPU", runChecked},
    {"variety", "each protocol, collective and cluster; 1 + NUMBER times",
     runVariety},
    {"kill", "rank NUMBER is killed in launches",
     [](Rank &me) { return runKill(me, false); }},
    {"kill-replay", "rank NUMBER is killed in replays",
     [](Rank &me) { return runKill(me, true); }},
    {"mismatch", "one rank launches another kernel; NUMBER: which",
     [](Rank &me) { return runMismatch(me, false); }},
    {"mismatch-replay", "the same in replays",
     [](Rank &me) { return runMismatch(me, true); }},
    {"abort", "rank NUMBER is late, and the others abort",
     [](Rank &me) { return runAbort(me, false); }},
    {"abort-replay", "the same in replays",
     [](Rank &me) { return runAbort(me, true); }},
    {"busy", "one graph is replayed twice at once", runBusy},
    {"limit-replay", "a time limit set after the capture", runLimit},
};

int tellUsage() {
  llvm::errs() << "usage: gpu-processes SCENARIO RANKS [NUMBER]\n";
  for (const Scenario &one : scenarios)
    llvm::errs() << llvm::formatv("  {0,-16} {1}\n", one.name, one.what);
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3)
    return tellUsage();
  llvm::StringRef name = argv[1];
  const Scenario *scenario = llvm::find_if(
      scenarios, [&](const Scenario &one) { return name == one.name; });
  if (scenario == std::end(scenarios))
    return tellUsage();
  int ranks = std::atoi(argv[2]);
  int64_t number = argc > 3 ? std::atoll(argv[3]) : 0;
  llvm::SmallString<128> folder;
  if (ranks < 1 ||
      llvm::sys::fs::createUniqueDirectory("gpu-processes", folder))
    return 2;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t pid = fork();
    if (pid == 0) {
      Rank me(std::string(folder), rank, ranks, number);
      std::string text = scenario->run(me);
      me.leave("ok " + text, 0);
    }
    pids.push_back(pid);
  }
  bool kills = name.starts_with("kill");
  int failed = 0;
  for (auto [rank, pid] : llvm::enumerate(pids)) {
    int status = 0;
    waitpid(pid, &status, 0);
    bool victim = kills && int64_t(rank) == number;
    bool well = victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                       : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well && WIFSIGNALED(status))
      llvm::outs() << "rank " << rank << ": ended by signal "
                   << WTERMSIG(status) << "\n";
    failed += !well;
  }
  llvm::sys::fs::remove_directories(folder);
  return failed;
}
