//===- RankDevices.h - Assigns GPUs to ranks --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_RANKDEVICES_H
#define COMMSIR_RUNTIME_CUDA_RANKDEVICES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace commsir::cuda {

/// COMMSIR_SHARE_GPU=1: several rank processes may share a GPU and take turns
/// on it. For tests: results equal those on separate GPUs, speed does not.
/// Ranks within one process cannot share, because a launch can wait for a
/// kernel that waits for that launch (measured with driver 580: one run in
/// twenty).
bool mayShareGpus();

/// Text for the error that two ranks use one GPU. `canShare`: tells how the
/// caller could allow it.
std::string explainOneGpu(bool canShare);

/// GPU of `rank`, one of a run's ranks on this machine: the one that `devices`
/// names. Without `devices`, GPU r serves rank r; if GPUs may be shared, ranks
/// are spread evenly.
int getDeviceOf(int64_t rank, llvm::ArrayRef<int> devices);

/// Checks, before anything is compiled, that this machine can run `ranks`
/// ranks: driver, GPUs, no GPU used twice (`canShare`: see mayShareGpus).
/// Returns the chip of the GPUs ("sm_90"), which must all be equal. `devices`
/// lists the GPU of each rank; empty: see getDeviceOf.
llvm::Expected<std::string>
checkMachine(int64_t ranks, llvm::ArrayRef<int> devices, bool canShare = false);

/// From now on GPUs that `checkMachine` accepts stay open until the process
/// ends. Opening one takes tenths of a second.
void keepDevicesOpen();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_RANKDEVICES_H
