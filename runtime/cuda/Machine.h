//===- Machine.h - Whether GPUs can be the ranks of a run -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_MACHINE_H
#define COMMSIR_RUNTIME_CUDA_MACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace commsir::cuda {

/// Checks, before anything is compiled, that this machine can be `ranks` ranks:
/// driver, GPUs, no GPU twice. Returns the chip of the GPUs ("sm_90"), which
/// must all be of one kind. `devices` is the GPU of each rank; empty: GPU r for
/// rank r.
llvm::Expected<std::string> checkMachine(int64_t ranks,
                                         llvm::ArrayRef<int> devices);

/// From now on a GPU that `checkMachine` finds fit stays open until the process
/// ends: opening one takes tenths of a second.
void keepDevicesOpen();

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_MACHINE_H
