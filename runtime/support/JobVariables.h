//===- JobVariables.h - A process's rank, set by its launcher ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The environment variables that hold a process's rank in a job: those of
// torchrun, Open MPI, MPICH and Slurm, in this order.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_JOBVARIABLES_H
#define COMMSIR_RUNTIME_SUPPORT_JOBVARIABLES_H

namespace commsir {

inline constexpr const char *kRankVariables[] = {"RANK", "OMPI_COMM_WORLD_RANK",
                                                 "PMI_RANK", "SLURM_PROCID"};
inline constexpr const char *kRanksVariables[] = {
    "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
inline constexpr const char *kLocalRankVariables[] = {
    "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
    "SLURM_LOCALID"};

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_JOBVARIABLES_H
