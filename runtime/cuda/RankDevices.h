//===- RankDevices.h - Whether GPUs can be the ranks of a run ---*- C++ -*-===//
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

/// COMMSIR_SHARE_GPU=1: a GPU may be several ranks, which are processes and
/// take turns on it. Their results are those of GPUs of their own, their speed
/// is not: for tests. Ranks of one process may not: a launch can wait for a
/// kernel that waits for it (measured, driver 580: one in twenty).
bool mayShareGpus();

/// Why a GPU is not two ranks, for an error: with how it could be, where the
/// caller can share.
std::string explainOneGpu(bool canShare);

/// GPU of `rank`, one of a run's on this machine: the one that `devices` names
/// for it. Without names GPU r is rank r's; where GPUs may be shared, one after
/// the other until each has as many ranks.
int getDeviceOf(int64_t rank, llvm::ArrayRef<int> devices);

/// Checks, before anything is compiled, that this machine can be `ranks` ranks:
/// driver, GPUs, no GPU twice (`canShare`: but see mayShareGpus). Returns the
/// chip of the GPUs ("sm_90"), which must all be of one kind. `devices` is the
/// GPU of each rank; empty: see getDeviceOf.
llvm::Expected<std::string>
checkMachine(int64_t ranks, llvm::ArrayRef<int> devices, bool canShare = false);

/// From now on a GPU that `checkMachine` finds fit stays open until the process
/// ends: opening one takes tenths of a second.
void keepDevicesOpen();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_RANKDEVICES_H
