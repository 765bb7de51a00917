//===- Abi.h - What a GPU kernel and the CUDA runtime share -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel compiles once for all ranks to one PTX entry that takes one struct
// by value, `.entry kernel(.param .align 8 .b8 kernel_param_0[size])`:
//
//   0   u32 rank, ranks, lsaSize, blocks        Launch
//   16  u64 state                               pointer to State
//   24  u64 record, digest, extent
//   48  for each argument of `comms.args`, hidden ones included, in order:
//         window   u64 part[ranks]   base of each world rank's part as this
//         rank
//                                    reaches it; 0: out of reach
//         memory   u64 base
//         signal   u64 cells[ranks]  as a window's; cells are u64
//         counter  u64 cells         cells are u64
//         scalar   8 bytes, low bytes first
//         A window with `slots` (shared channel memory) has two words more:
//         u64 bytes from one buffer to the next; u64 bytes from its first line
//         to the rest of that line (0: its slots are no lines)
//       then, for each window that has the unit attribute `multimem`, in order:
//         u64 multicast address of the window's parts
//
// `paramBytes` of the function's `comms.params` is the struct's size. Every
// base is aligned to kAlignment. All pointers are to global memory.
//
// The grid is blocks * cluster CTAs of `threads` threads in one dimension; CTA
// c belongs to block c / cluster. All CTAs must be resident together.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_ABI_H
#define COMMSIR_LOWERING_NVVM_ABI_H

#include "lowering/analysis/Attributes.h"

#include <cstddef>
#include <cstdint>

namespace mlir::comms::nvvm {

/// Start of the parameter struct.
struct Launch {
  uint32_t rank;
  uint32_t ranks;
  uint32_t lsaSize;
  /// Shared channel memory: the number of BlockStates; else 0.
  uint32_t blocks;
  uint64_t state;
  /// Shared channel memory: the ErrorRecord of this kernel, in place of that of
  /// the State, and what it writes as the State's digest; else 0.
  uint64_t record;
  uint64_t digest;
  /// What comms.extent gives; 0: its `most`.
  uint64_t extent;
};
static_assert(sizeof(Launch) == 48);

/// Bytes before the first argument.
inline constexpr int64_t kArgumentsOffset = sizeof(Launch);

/// What a poll was for that gave up.
enum class PollKind : uint32_t {
  /// A cell of a signal: `seen` and `wanted` are its values.
  Signal = 1,
  /// A counter.
  Counter = 2,
  /// A barrier across ranks: `seen` and `wanted` are generations (32 bits).
  Barrier = 3,
  /// Packets: `seen` is a flag that was found, `wanted` the flag of the launch.
  Packet = 4,
  /// Poison that stays: `seen` is 0, `wanted` the epoch.
  Poison = 5,
  /// No poll: a check of bounds failed. `seen` is the offset or rank, `wanted`
  /// the limit.
  Bounds = 6,
  /// No poll: two launches ran at once on the same channels. What they computed
  /// is not to be used.
  Busy = 7,
};

/// One failure, the first of a launch. In memory that the host reads while the
/// kernel runs; `valid` is written last.
struct ErrorRecord {
  uint32_t valid;
  /// A PollKind.
  uint32_t kind;
  /// Index into `comms.sites`.
  uint32_t site;
  uint32_t rank;
  uint32_t block;
  /// World rank that is waited for; kNoPeer: not one alone, or not known.
  uint32_t peer;
  uint64_t seen;
  uint64_t wanted;
  /// %globaltimer when it gave up.
  uint64_t clock;
};
static_assert(sizeof(ErrorRecord) == 48);
inline constexpr uint32_t kNoPeer = 0xFFFFFFFF;

/// Device memory of one rank, one for each set of channels of a loaded kernel;
/// zeros at first but for timeout, spin, record, digest and grid. A BlockState
/// of each block follows. Where it lies in memory that peers reach, it tells
/// them what this rank runs: digest, grid, and by epoch and busy which launch.
struct State {
  /// Not 0: every poll returns at once, so that the kernel ends. Set by the
  /// kernel on its first failure, or by the host.
  uint64_t abort;
  /// Nanoseconds that a poll may take; 0: no limit.
  uint64_t timeout;
  /// Times that a poll looks before it reads clock and abort word. Below 2^31.
  uint64_t spin;
  /// Of what all ranks must agree on: source, algorithm, protocol, shapes,
  /// grid. Not read by the kernel; 0: not known.
  uint64_t digest;
  /// Device address of an ErrorRecord.
  uint64_t record;
  /// Blocks, threads of a CTA, CTAs of a block; not read by the kernel.
  uint32_t grid[3];
  uint32_t pad;
  /// Shared channel memory: the extent of the last launch.
  uint64_t extent;
};
static_assert(sizeof(State) == 64);

/// What a block keeps from one launch to the next: a sector, which is read
/// once.
struct BlockState {
  /// Launches that have finished; the running one is one more. 64 bits: 2^32
  /// launches of 2 us are done in three hours. In shared channel memory a
  /// launch also advances the states of blocks that it does not have, so that
  /// all states count the launches of all kernels.
  uint64_t epoch;
  /// Which of three buffers the next launch uses, without a division that all
  /// its sends would wait for: (epoch + 1) mod 3 with the lowest bit flipped,
  /// which is 0 at first. Kept by kernels that use it. In shared channel memory
  /// it counts the launches of such kernels alone.
  uint32_t third;
  /// Shared channel memory: 16 bytes of poison that the last launch of such a
  /// kernel used up in its buffer, and that the next one fills in again.
  uint32_t stale;
  /// Barriers of extent `block` and of the kernel's first team that the block
  /// has passed; wraps.
  uint32_t generation;
  /// 1 while a launch runs the block. A second one that finds it so reports
  /// PollKind::Busy.
  uint32_t busy;
  uint32_t pad[2];
};
static_assert(sizeof(BlockState) == 32 && sizeof(State) % 32 == 0);

/// Fields of State, in bytes.
inline constexpr int64_t kAbortOffset = offsetof(State, abort);
inline constexpr int64_t kTimeoutOffset = offsetof(State, timeout);
inline constexpr int64_t kSpinOffset = offsetof(State, spin);
inline constexpr int64_t kRecordOffset = offsetof(State, record);
/// Where the BlockState of a block begins, from the State.
constexpr int64_t getBlockOffset(int64_t block) {
  return int64_t(sizeof(State)) + block * int64_t(sizeof(BlockState));
}
/// Size of a State with what follows it.
constexpr int64_t getStateBytes(int64_t blocks) {
  return getBlockOffset(blocks);
}

/// BlockStates that shared channel memory has at the most: no launch of more
/// blocks shares it.
inline constexpr int64_t kMostSharedBlocks = 4096;
/// Windows of one region lie one after the other, each at a multiple of so many
/// bytes (see kAlignment): an eighth of it is the alignment of rests of lines.
inline constexpr int64_t kSharedAlignment = 2048;
/// Buffers that launches take in turn in shared channel memory.
inline constexpr int64_t kSharedTurns = 2, kSharedPoisonTurns = 3;

/// Barriers across ranks use one hidden window of u32, zero at first, named
/// kBarrierName, of shape [teams][2 + blocks][ranks]: cell [t][2 + b][r] is the
/// generation that block b of rank r has reached, cell [t][0][r] that of all
/// blocks of rank r, cell [t][1][0] counts the blocks of this rank that have
/// come. Each team has generations of its own, for not all ranks need
/// meet others equally often; teams of one size and distance are one, for they
/// cut the world alike.
inline constexpr const char kBarrierName[] = "barrier";
/// Rows of cells before those of the blocks.
inline constexpr int64_t kBarrierRows = 2;

/// Names of the hidden scalars that kernels which call NCCL take, each i64: the
/// address of the device communicator in device memory; for a window NCCL's
/// handle, and where in NCCL's window the argument begins, in bytes; for a
/// signal or counter the number of its first cell.
inline constexpr const char kNcclComm[] = "nccl.comm";
inline constexpr const char kNcclWindow[] = "nccl.window.";
inline constexpr const char kNcclOffset[] = "nccl.offset.";
inline constexpr const char kNcclFirst[] = "nccl.first.";

/// Of a cast to a memref whose address is not of the parameters: its alignment
/// in bytes, i64.
inline constexpr const char kAlignmentAttr[] = "comms.alignment";

/// Alignment of every argument's part, in bytes.
inline constexpr int64_t kAlignment = 256;

using target::kPoison32;

/// Shared memory that a kernel may declare; above it, the launch must ask for
/// it (`shared` of `comms.launch`, dynamic).
inline constexpr int64_t kStaticShared = 48 << 10;
/// Shared memory of a CTA on sm_90 and sm_100.
inline constexpr int64_t kMaxShared = 227 << 10;

/// Attributes that convert-comms-to-nvvm leaves on the kernel's function. In
/// args, windows reached by multimem have `multimem`.
using target::kArgsAttr;
using target::kBlocksAttr;
using target::kChoicesAttr;
using target::kLsaSizeAttr;
using target::kProofAttr;
using target::kRanksAttr;
using target::kSharedChannelsAttr;
using target::kSharedSlotsAttr;
using target::kSitesAttr;
/// {blocks, threads, cluster, dynamic_shared} as i64: the shape of the launch;
/// bytes of dynamic shared memory (0: none). With the unit attribute `overlap`
/// a launch may begin while the one before it in its stream ends (programmatic
/// dependent launch); with `shared` its channels lie in shared channel memory.
inline constexpr const char kLaunchAttr[] = "comms.launch";
/// Of kernels that call NCCL's device library: what their device communicator
/// must have, {lsa_barriers, rail_barriers, contexts, signals, counters} as
/// i64, how many ranks its team of load/store reach must be where the kernel
/// asks it (`reach`), and the unit attribute `multimem`. Also, as a unit
/// attribute, of the kernel's arguments that kNcclComm and so on name.
inline constexpr const char kNcclAttr[] = "comms.nccl";
/// Size of the parameter struct in bytes, i64.
inline constexpr const char kParamsAttr[] = "comms.param_bytes";

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_ABI_H
