//===- Trace.h - A run as a Chrome trace ------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CPU_TRACE_H
#define COMMSIR_RUNTIME_CPU_TRACE_H

#include "runtime/jit/Compile.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace commsir::cpu {

/// The site of a slice in which the block ran.
inline constexpr int32_t kRuns = -1;
/// That of a slice without a length: the block that runs then has woken this
/// one, which looks whether what it waits for has come.
inline constexpr int32_t kWoken = -2;

/// A time in which one block ran or waited.
struct TraceSlice {
  int32_t rank, block;
  /// Site that it waited at, kRuns or kWoken.
  int32_t site;
  int64_t launch;
  /// Nanoseconds since the run's start.
  int64_t begin, end;
};

/// Slices that are kept; later ones are dropped and counted.
inline constexpr size_t kMaxSlices = 2000000;

/// Chrome's trace format, which Perfetto opens: a process for each rank, a
/// thread for each block.
std::string renderTrace(const jit::Kernel &kernel, int64_t ranks,
                        llvm::ArrayRef<TraceSlice> slices, size_t dropped);

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_TRACE_H
