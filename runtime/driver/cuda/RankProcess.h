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

/// Starts this program as `rank` of the run whose shared memory is `file`, on
/// GPU `device`.
llvm::Expected<pid_t> startRank(int file, int64_t rank, int device);

/// If `arguments`, which stay where they are, are those that `startRank` gives,
/// runs that rank and returns its exit status. `startRank` comes after this.
std::optional<int> runRankProcess(llvm::ArrayRef<const char *> arguments);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_CUDA_RANKPROCESS_H
