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

/// Site of a slice in which the block ran.
inline constexpr int32_t kRuns = -1;
/// Site of an instant at which the running block woke this one, which then
/// checks its condition.
inline constexpr int32_t kWoken = -2;

/// An interval in which one block ran or waited.
struct TraceSlice {
  int32_t rank, block;
  /// The site it waited at, kRuns or kWoken.
  int32_t site;
  int64_t launch;
  /// Nanoseconds since the start of the run.
  int64_t begin, end;
};

/// Maximum number of slices; later ones are dropped and counted.
inline constexpr size_t kMaxSlices = 2000000;

/// Renders Chrome's trace format, which Perfetto opens: one process per rank,
/// one thread per block.
std::string renderTrace(const jit::Kernel &kernel, int64_t ranks,
                        llvm::ArrayRef<TraceSlice> slices, size_t dropped);

} // namespace commsir::cpu

#endif // COMMSIR_RUNTIME_CPU_TRACE_H
