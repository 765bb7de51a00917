//===- Abi.h - The ABI of kernels on NVIDIA GPUs ----------------*- C++ -*-===//
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
//         window   u64 part[ranks]   address of each world rank's part on
//                                    this rank; 0: out of reach
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
  /// Shared channel memory: number of BlockStates; else 0.
  uint32_t blocks;
  uint64_t state;
  /// Shared channel memory: this kernel's ErrorRecord, used in place of the one
  /// in State, and the digest to write to State; else 0.
  uint64_t record;
  uint64_t digest;
  /// Value of comms.extent; 0: its `most`.
  uint64_t extent;
};
static_assert(sizeof(Launch) == 48);

/// Bytes before the first argument.
inline constexpr int64_t kArgumentsOffset = sizeof(Launch);

/// The condition that a timed-out poll waited for.
enum class PollKind : uint32_t {
  /// Signal cell: `seen` and `wanted` are its values.
  Signal = 1,
  /// Counter.
  Counter = 2,
  /// Barrier across ranks: `seen` and `wanted` are generations (32 bits).
  Barrier = 3,
  /// Packets: `seen` is the flag that was found, `wanted` the launch's flag.
  Packet = 4,
  /// Poison that was not overwritten: `seen` is 0, `wanted` the epoch.
  Poison = 5,
  /// Not a poll: a bounds check failed. `seen` is the offset or rank, `wanted`
  /// the limit.
  Bounds = 6,
  /// Not a poll: two launches ran at the same time on the same channels. Their
  /// results are invalid.
  Busy = 7,
};

/// The first failure of a launch, in memory that the host reads while the
/// kernel runs. `valid` is written last.
struct ErrorRecord {
  uint32_t valid;
  /// A PollKind.
  uint32_t kind;
  /// Index into `comms.sites`.
  uint32_t site;
  uint32_t rank;
  uint32_t block;
  /// World rank that was awaited; kNoPeer: several, or unknown.
  uint32_t peer;
  uint64_t seen;
  uint64_t wanted;
  /// %globaltimer at the failure.
  uint64_t clock;
};
static_assert(sizeof(ErrorRecord) == 48);
inline constexpr uint32_t kNoPeer = 0xFFFFFFFF;

/// Device memory of one rank, one for each channel set of a loaded kernel.
/// Initially zero except timeout, spin, record, digest and grid. Followed by
/// one BlockState per block. If it is in memory that peers reach, it tells them
/// what this rank runs: kernel by digest and grid, launch by epoch and busy.
struct State {
  /// Nonzero: every poll returns at once, so that the kernel ends. Set by the
  /// kernel on its first failure, or by the host.
  uint64_t abort;
  /// Timeout of a poll in nanoseconds; 0: no limit.
  uint64_t timeout;
  /// Number of polls before the kernel reads the clock and the abort word.
  /// Below 2^31.
  uint64_t spin;
  /// Digest of everything that ranks must agree on: source, algorithm,
  /// protocol, shapes, grid. Not read by the kernel; 0: unknown.
  uint64_t digest;
  /// Device address of an ErrorRecord.
  uint64_t record;
  /// Blocks, threads per CTA, CTAs per block; not read by the kernel.
  uint32_t grid[3];
  uint32_t pad;
  /// Shared channel memory: the last launch's extent.
  uint64_t extent;
};
static_assert(sizeof(State) == 64);

/// State of a block that persists between launches: one sector, read once.
struct BlockState {
  /// Number of finished launches; the running launch has this number plus 1. 64
  /// bits, because 2^32 launches of 2 us take only three hours. In shared
  /// channel memory a launch also advances the states of blocks that it does
  /// not have, so that all states count the launches of all kernels.
  uint64_t epoch;
  /// Index of the buffer, of three, that the next launch uses: (epoch + 1) mod
  /// 3 with the lowest bit flipped, initially 0. Stored because a division
  /// would delay all sends. Maintained by kernels that use it. In shared
  /// channel memory it counts only launches of such kernels.
  uint32_t third;
  /// Shared channel memory: the number of 16-byte units of poison that the last
  /// launch of such a kernel consumed in its buffer and that the next launch
  /// restores.
  uint32_t stale;
  /// Number of barriers of extent `block` and of the kernel's first team that
  /// the block has passed; wraps around.
  uint32_t generation;
  /// 1 while a launch runs the block. A second launch that finds 1 reports
  /// PollKind::Busy.
  uint32_t busy;
  uint32_t pad[2];
};
static_assert(sizeof(BlockState) == 32 && sizeof(State) % 32 == 0);

/// Byte offsets of fields in State.
inline constexpr int64_t kAbortOffset = offsetof(State, abort);
inline constexpr int64_t kTimeoutOffset = offsetof(State, timeout);
inline constexpr int64_t kSpinOffset = offsetof(State, spin);
inline constexpr int64_t kRecordOffset = offsetof(State, record);
/// Byte offset of a block's BlockState from the State.
constexpr int64_t getBlockOffset(int64_t block) {
  return int64_t(sizeof(State)) + block * int64_t(sizeof(BlockState));
}
/// Bytes of a State with its BlockStates.
constexpr int64_t getStateBytes(int64_t blocks) {
  return getBlockOffset(blocks);
}

/// Maximum number of BlockStates in shared channel memory. Launches with more
/// blocks cannot share it.
inline constexpr int64_t kMostSharedBlocks = 4096;
/// Windows of one region are stored one after the other, each at a multiple of
/// this number of bytes (see kAlignment). An eighth of it is the alignment of
/// the rests of lines.
inline constexpr int64_t kSharedAlignment = 2048;
/// Number of buffers that launches use in turn in shared channel memory.
inline constexpr int64_t kSharedTurns = 2, kSharedPoisonTurns = 3;

/// Barriers across ranks use one hidden window of u32, initially zero, named
/// kBarrierName, of shape [teams][2 + blocks][ranks]. Cell [t][2 + b][r] is the
/// generation that block b of rank r has reached, cell [t][0][r] that of all
/// blocks of rank r, and cell [t][1][0] counts the blocks of this rank that
/// have arrived. Each team has its own generations, because ranks may take part
/// in different numbers of barriers. Teams with equal size and stride share
/// them, because they partition the world in the same way.
inline constexpr const char kBarrierName[] = "barrier";
/// Rows of cells before those of the blocks.
inline constexpr int64_t kBarrierRows = 2;

/// Names of hidden scalars of kernels that call NCCL, each an i64: the device
/// address of the device communicator; for a window NCCL's handle, and the
/// argument's byte offset in NCCL's window; for a signal or counter the index
/// of its first cell.
inline constexpr const char kNcclComm[] = "nccl.comm";
inline constexpr const char kNcclWindow[] = "nccl.window.";
inline constexpr const char kNcclOffset[] = "nccl.offset.";
inline constexpr const char kNcclFirst[] = "nccl.first.";

/// On a cast to a memref whose address does not come from the parameters: its
/// alignment in bytes, i64.
inline constexpr const char kAlignmentAttr[] = "comms.alignment";

/// Alignment of every argument's part, in bytes.
inline constexpr int64_t kAlignment = 256;

using target::kPoison32;

/// Maximum shared memory that a kernel declares statically. Larger amounts must
/// be requested by the launch (`shared` of `comms.launch`, dynamic).
inline constexpr int64_t kStaticShared = 48 << 10;
/// Shared memory per CTA on sm_90 and sm_100, the most of all chips.
inline constexpr int64_t kMaxShared = 227 << 10;

/// Shared memory per CTA, in bytes, on a chip of compute capability `sm`, times
/// ten.
constexpr int64_t getMaxShared(unsigned sm) {
  if (sm >= 90 && sm < 120)
    return kMaxShared;
  return int64_t(sm == 80 || sm == 87 ? 163 : 99) << 10;
}

/// Attributes that convert-comms-to-nvvm leaves on the kernel's function. In
/// args, windows accessed by multimem have `multimem`.
using target::kArgsAttr;
using target::kBlocksAttr;
using target::kChoicesAttr;
using target::kLsaSizeAttr;
using target::kProofAttr;
using target::kRanksAttr;
using target::kSharedChannelsAttr;
using target::kSharedSlotsAttr;
using target::kSitesAttr;
/// The launch's shape, {blocks, threads, cluster, dynamic_shared} as i64, with
/// dynamic shared memory in bytes (0: none). Unit attribute `overlap`: a launch
/// may begin while the previous one in its stream ends (programmatic dependent
/// launch). Unit attribute `shared`: channels lie in shared channel memory.
inline constexpr const char kLaunchAttr[] = "comms.launch";
/// For kernels that call NCCL's device library: the resources that their device
/// communicator must have, {lsa_barriers, rail_barriers, contexts, signals,
/// counters} as i64; the required size of its team of load/store reach, if the
/// kernel reads it (`reach`); and the unit attribute `multimem`. Also a unit
/// attribute of the kernel's arguments that are named by kNcclComm and the
/// like.
inline constexpr const char kNcclAttr[] = "comms.nccl";
/// Size of the parameter struct in bytes, i64.
inline constexpr const char kParamsAttr[] = "comms.param_bytes";

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_ABI_H
