//===- JobRank.h - A process's place in a job of ranks ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_JOBRANK_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_JOBRANK_H

#include "llvm/Support/Error.h"

#include <cstdint>

namespace commsir::driver {

/// Place of this process in a job that others have started, from the variables
/// that launchers set: RANK, WORLD_SIZE and LOCAL_RANK, or Open MPI's, MPICH's
/// or Slurm's. The error says which are missing or make no sense.
struct JobRank {
  int64_t rank = 0, ranks = 0;
  /// Among the ranks of this host.
  int local = 0;
  static llvm::Expected<JobRank> find();
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_JOBRANK_H
