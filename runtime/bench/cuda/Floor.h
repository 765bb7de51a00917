//===- Floor.h - The lower bound on this host -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_CUDA_FLOOR_H
#define COMMSIR_RUNTIME_BENCH_CUDA_FLOOR_H

#include "runtime/bench/BenchReport.h"
#include "runtime/bench/cuda/GpuRanks.h"

namespace commsir::tune {

/// Measures launch, hop and bandwidth with a graph of empty kernels, a flag
/// that bounces between ranks 0 and 1, and all ranks writing to all others at
/// once. Requires at least two ranks.
llvm::Expected<Floor> measureFloor(GpuRanks &machine);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_CUDA_FLOOR_H
