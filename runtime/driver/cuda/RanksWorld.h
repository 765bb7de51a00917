//===- RanksWorld.h - Worlds whose ranks are processes ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// comms-run starts itself once a rank, shares the arguments with those
// processes, and collects what became of them (ProcessWorld.cpp,
// RankProcess.h). As one rank of a job that others have started, it runs that
// rank itself (OneRankWorld.cpp).
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

/// What worlds of ranks in processes have in common.
class RanksWorld : public World {
public:
  RanksWorld(const RankTask &task, const jit::CudaKernel &kernel);
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank) override;
  void setScalar(unsigned arg, int64_t rank,
                 llvm::ArrayRef<char> bytes) override;
  /// How the windows were made; known after the run.
  const std::string &getWindowsNote() const { return windows; }

protected:
  /// Where a rank's arrays begin; null: in another process.
  virtual char *arraysOf(int64_t rank) = 0;

  RankTask task;
  RankArrays places;
  std::string windows;

private:
  /// By argument: its number among those that are not hidden, or -1.
  std::vector<int> numbers;
};

/// A world of processes. `kernel` is what they are going to compile; `devices`
/// names the GPU of each rank.
llvm::Expected<std::unique_ptr<RanksWorld>>
createProcessWorld(const RankTask &task, const jit::CudaKernel &kernel,
                   llvm::ArrayRef<int> devices);

/// A world of which this process is one rank, and has that rank's memory alone.
std::unique_ptr<RanksWorld> createOneRankWorld(const RankTask &task,
                                               const jit::CudaKernel &kernel,
                                               JobRank place);

/// Whether a kernel of this process does not end, so that it must leave without
/// cleaning up.
bool isRankStuck();

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKSWORLD_H
