//===- RankProcess.h - A process that runs one rank -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_CUDA_RANKPROCESS_H
#define COMMSIR_RUNTIME_DRIVER_CUDA_RANKPROCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <sys/types.h>

namespace commsir::driver {

/// Starts this program as `rank` on GPU `device`. `file` is the shared memory
/// of the run.
llvm::Expected<pid_t> startRank(int file, int64_t rank, int device);

/// If `arguments` were made by `startRank`, runs that rank and returns its exit
/// status. `arguments` must stay valid. Call this before `startRank`.
std::optional<int> runRankProcess(llvm::ArrayRef<const char *> arguments);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKPROCESS_H
