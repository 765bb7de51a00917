//===- Processes.h - One process a GPU --------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How comms-run runs ranks that are processes: it starts itself once a rank,
// shares the arguments with those processes, and collects what became of them.
// As one rank of a job that others have started, it runs that rank itself.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_PROCESSES_H
#define COMMSIR_RUNTIME_DRIVER_PROCESSES_H

#include "runtime/driver/Target.h"
#include "runtime/group/Group.h"
#include "runtime/jit/cuda/Compile.h"

namespace commsir::driver {

/// What every rank does.
struct RankTask {
  /// Rank and device are filled in for each.
  group::GroupOptions group;
  group::KernelRequest request;
  int64_t launches = 1;
  bool graph = false;
  /// Seconds that the launches may take; 0: derived from the timeout.
  double timeLimit = 0;
  /// Folder where ranks meet.
  std::string rendezvous;
};

/// Place of this process in a job that others have started, from the variables
/// that launchers set: RANK, WORLD_SIZE and LOCAL_RANK, or Open MPI's or
/// Slurm's. The error says which are missing.
struct JobPlace {
  int64_t rank = 0, ranks = 0;
  int local = 0;
  static llvm::Expected<JobPlace> find();
};

/// A world of processes. `kernel` is what they are going to compile; `devices`
/// names the GPU of each rank.
llvm::Expected<std::unique_ptr<World>>
createProcessWorld(const RankTask &task, const jit::CudaKernel &kernel,
                   llvm::ArrayRef<int> devices);

/// A world of which this process is one rank, and has that rank's memory alone.
llvm::Expected<std::unique_ptr<World>>
createRankWorld(const RankTask &task, const jit::CudaKernel &kernel,
                JobPlace place);

/// How the windows of such a world were made; known after its run.
std::string getWindowsNote(const World &world);

/// Whether a kernel of this process does not end, so that it must leave without
/// cleaning up.
bool isRankStuck();

/// If `arguments` are those of a process that a process world has started, runs
/// that rank and returns its exit status.
std::optional<int> runAsRank(llvm::ArrayRef<const char *> arguments);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_PROCESSES_H
