//===- RanksWorld.h - Worlds whose ranks are processes ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// comms-run starts itself once per rank, shares the arguments with these
// processes, and collects their outcomes (ProcessWorld.cpp, RankProcess.h). As
// one rank of an existing job, it runs that rank itself (OneRankWorld.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_RANKSWORLD_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_RANKSWORLD_H

#include "runtime/driver/Target.h"
#include "runtime/driver/cuda/JobRank.h"
#include "runtime/driver/cuda/RankArrays.h"
#include "runtime/driver/cuda/RankTask.h"
#include "runtime/jit/cuda/CudaKernel.h"

namespace commsir::driver {

/// Base class of worlds whose ranks are processes.
class RanksWorld : public World {
public:
  RanksWorld(const RankTask &task, const jit::CudaKernel &kernel);
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank) override;
  void setScalar(unsigned arg, int64_t rank,
                 llvm::ArrayRef<char> bytes) override;
  /// Description of how the windows were made; set after the run.
  const std::string &getWindowsNote() const { return windows; }

protected:
  /// Address of a rank's arrays; null: in another process.
  virtual char *arraysOf(int64_t rank) = 0;

  RankTask task;
  RankArrays places;
  std::string windows;

private:
  /// By argument: its index among those that are not hidden, or -1.
  std::vector<int> numbers;
};

/// Makes a world of processes. `kernel` is the kernel that they will compile;
/// `devices` holds the GPU of each rank.
llvm::Expected<std::unique_ptr<RanksWorld>>
createProcessWorld(const RankTask &task, const jit::CudaKernel &kernel,
                   llvm::ArrayRef<int> devices);

/// Makes a world in which this process is one rank and holds only that rank's
/// memory.
std::unique_ptr<RanksWorld> createOneRankWorld(const RankTask &task,
                                               const jit::CudaKernel &kernel,
                                               JobRank place);

/// Whether a kernel of this process does not end, so that the process must exit
/// without cleaning up.
bool isRankStuck();

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKSWORLD_H
