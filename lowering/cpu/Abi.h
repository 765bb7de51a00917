//===- Abi.h - The ABI of kernels in the CPU world --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is compiled once for all ranks, to `void kernel(Context *)`. It
// reads everything unknown at compile time from the context, and calls the
// runtime where it may have to wait. The functions below are resolved by name
// when the code is loaded. None of them unwinds: a block that must end is not
// resumed.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CPU_ABI_H
#define COMMSIR_LOWERING_CPU_ABI_H

#include "lowering/analysis/Attributes.h"

#include <cstddef>
#include <cstdint>

namespace mlir::comms::cpu {

/// Addresses of the parts of an argument: rank r's part is at base + r *
/// stride. Used for every kind of argument: windows, memories, cells and
/// scalars.
struct ArgTable {
  char *base;
  int64_t stride;
};

/// One block's view of the world. All fields have 8 bytes.
struct Context {
  int64_t rank;
  int64_t ranks;
  int64_t lsaSize;
  int64_t block;
  int64_t blocks;
  /// 1 at the first launch.
  int64_t epoch;
  const ArgTable *args;
  /// Memory of this block for comms.scratch.
  char *arena;
  /// Nonzero: loops must call commsir_cpu_interrupt.
  const volatile uint32_t *stop;
  /// Used by the scheduler.
  void *fiber;
};

/// Indices of the fields of Context.
enum class Field : int64_t {
  Rank,
  Ranks,
  LsaSize,
  Block,
  Blocks,
  Epoch,
  Args,
  Arena,
  Stop,
  Fiber
};

/// Alignment of every argument's part and of scratch memory, in bytes.
inline constexpr int64_t kAlignment = 64;

using target::kPoison16;
using target::kPoison32;

/// Bytes of a line of packets, and of its rest, which lies behind all lines.
inline constexpr int64_t kLineBytes = 128, kRestBytes = 16;

/// Attributes that convert-comms-to-cpu leaves on the function, for the JIT.
using target::kArgsAttr;
using target::kBlocksAttr;
using target::kChoicesAttr;
using target::kLsaSizeAttr;
using target::kProofAttr;
using target::kRanksAttr;
using target::kSitesAttr;
inline constexpr const char kArenaAttr[] = "comms.arena_bytes";

/// X(name, parameters in C). Sites index the kernel's table of source
/// locations; `arg` is an argument index; ranks are world ranks. Teams are
/// (first, stride, size). Kinds are values of the dialect's enums.
#define COMMSIR_CPU_RUNTIME(X)                                                 \
  X(signal, void,                                                              \
    (Context *, int32_t site, int64_t arg, int64_t index, int64_t kind,        \
     int64_t value, int64_t rank))                                             \
  X(wait_cell, void,                                                           \
    (Context *, int32_t site, int64_t arg, int64_t index, int64_t kind,        \
     int64_t value, int64_t from))                                             \
  X(read_cell, int64_t, (Context *, int32_t site, int64_t arg, int64_t index)) \
  X(reset_cell, void, (Context *, int32_t site, int64_t arg, int64_t index))   \
  X(count, void, (Context *, int32_t site, int64_t arg, int64_t index))        \
  X(copy, void,                                                                \
    (Context *, int32_t site, char *source, char *dest, int64_t bytes))        \
  X(fence, void, (Context *, int32_t site))                                    \
  X(arrive, int64_t,                                                           \
    (Context *, int32_t site, int64_t first, int64_t stride, int64_t size,     \
     int64_t grid))                                                            \
  X(barrier_wait, void, (Context *, int32_t site, int64_t handle))             \
  X(stored, void, (Context *, char *address, int64_t bytes))                   \
  X(wait_packets, void,                                                        \
    (Context *, int32_t site, char *address, int64_t packets, int32_t flag))   \
  X(wait_line, void,                                                           \
    (Context *, int32_t site, char *flagAddress, int32_t flag))                \
  X(wait_poison, void,                                                         \
    (Context *, int32_t site, char *address, int64_t elements,                 \
     int64_t elementBytes))                                                    \
  X(fill_poison, void, (Context *, char *address, int64_t bytes))              \
  X(lock, void, (Context *))                                                   \
  X(unlock, void, (Context *))                                                 \
  X(record_access, void,                                                       \
    (Context *, int32_t site, int64_t kind, char *address, int64_t bytes))     \
  X(record_sync, void, (Context *, int32_t site))                              \
  X(out_of_bounds, void,                                                       \
    (Context *, int32_t site, int64_t offset, int64_t count, int64_t limit))   \
  X(interrupt, void, (Context *, int32_t site))

} // namespace mlir::comms::cpu

#endif // COMMSIR_LOWERING_CPU_ABI_H
