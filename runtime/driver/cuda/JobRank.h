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

/// Rank of this process in an existing job, read from the variables of
/// launchers: RANK, WORLD_SIZE and LOCAL_RANK, or those of Open MPI, MPICH or
/// Slurm. The error names missing and invalid variables.
struct JobRank {
  int64_t rank = 0, ranks = 0;
  /// Index among the ranks of this host.
  int local = 0;
  static llvm::Expected<JobRank> find();
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_JOBRANK_H
