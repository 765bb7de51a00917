//===- Accesses.h - Every memory access that an op makes --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes the memory that ops read and write, for all passes that need it:
// the checker, the instrumentation for the race detector, bounds checks and the
// elimination of barriers. Each op that accesses memory is described only here.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_ACCESSES_H
#define COMMSIR_LOWERING_ANALYSIS_ACCESSES_H

#include "dialect/Comms.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mlir::comms {

/// Unit attribute of a window argument that peers write to: between two
/// launches the host reads and writes its rank's part.
inline constexpr const char kHostAttr[] = "comms.host";

/// Unit attribute of a kernel argument of type index: the root of the kernel's
/// collectives, which each launch gives, in place of the ops' own.
inline constexpr const char kRunTimeRootAttr[] = "comms.run_time_root";

/// The argument with that attribute, or null.
BlockArgument findRootArgument(KernelOp kernel);

/// Unit attribute of a channel: the caller guarantees that senders and
/// receivers count the same elements.
inline constexpr const char kCountsAgreeAttr[] = "comms.counts_agree";

/// The memory that a memref is a view of.
struct MemoryRoot {
  enum Kind {
    Window,   ///< A part of a window: peers can reach it.
    Argument, ///< A memref argument of the kernel: memory of this rank.
    Scratch,  ///< `comms.scratch`, `memref.alloca` or `memref.alloc`: this
              ///< block's.
    Unknown   ///< Anything else: to be treated like a window.
  };
  Kind kind = Unknown;
  /// The window, argument or scratch value; for Unknown, the value where the
  /// search ended.
  Value value;
  /// Rank in `team` whose part of the window it is; null: this rank's own, or
  /// (multimem) every rank's.
  Value peer;
  /// The team of `comms.peer`, `comms.multimem` and of one-sided ops; else
  /// null.
  Value team;
  /// All parts at once, by `comms.multimem`.
  bool multimem = false;

  /// Whether another rank can see this memory, or may (Unknown).
  bool isVisibleToPeers() const { return kind == Window || kind == Unknown; }
  /// Whether another block of this rank can see this memory.
  bool isVisibleToBlocks() const { return kind != Scratch; }
  /// Whether the access certainly goes to this rank's own memory.
  bool isOwn() const { return kind != Unknown && !peer && !multimem; }
};

/// Finds the memory that `memory` (a memref or window) is a view of. Follows
/// `comms.local`, `comms.peer`, `comms.multimem`, and casts, reshapes and
/// subviews of the memref dialect. The root identifies the memory, not the
/// position in it.
MemoryRoot getMemoryRoot(Value memory);

/// Part of memory that is treated as a matrix. Its rows run over all dimensions
/// except the last.
struct MatrixPart {
  /// The first row and column; null: 0.
  Value row, column;
  /// Number of rows and columns as SSA values; null: `staticRows`,
  /// `staticColumns`.
  Value rows, columns;
  /// Number of rows and columns without an SSA value; else their maximum, or -1
  /// if unbounded.
  int64_t staticRows = -1, staticColumns = -1;
};

/// A contiguous range of elements that an op reads or writes, or a part of a
/// matrix.
struct Access {
  AccessKind kind = AccessKind::Read;
  /// The accessed memref or window operand.
  Value memory;
  /// First element, in elements of `memory` in row-major order; null: 0.
  Value offset;
  /// Number of tile elements as an SSA value (`valid` or `count`); null:
  /// `staticCount`.
  Value dynamicCount;
  /// Number of tile elements if `dynamicCount` is null; else its maximum (the
  /// tile's size), or -1 if unbounded. -1 with a null `dynamicCount`: the whole
  /// memory.
  int64_t staticCount = -1;
  /// Bits per tile element and per memory element. They differ for packets,
  /// where each element of `memory` holds 32 bits of a tile, or 64 in lines.
  unsigned tileBits = 1, unitBits = 1;
  /// The memory holds lines, whose rests lie behind all elements that offsets
  /// count.
  bool inLines = false;
  /// One-sided ops on windows: rank in `team` whose memory it is. Null: see
  /// getMemoryRoot(memory).
  Value peer, team;
  /// Set if a part of a matrix rather than a range is accessed. Users that only
  /// handle ranges see the whole memory.
  std::optional<MatrixPart> matrix;
  /// The access itself synchronizes: packets and poison, which a receiver
  /// polls. Such accesses never race with each other.
  bool synchronizes = false;
  /// The access happens some time after the op (`put`, `get`, asynchronous
  /// copies).
  bool deferred = false;

  bool isRead() const { return kind == AccessKind::Read; }
  bool isWrite() const { return kind == AccessKind::Write; }
  /// The whole memory may be accessed; offset and count are unknown.
  bool isWhole() const { return !dynamicCount && staticCount < 0; }

  /// Root of the memory, with this access's own peer and team.
  MemoryRoot getRoot() const;
  /// Number of memory elements accessed, if constant.
  std::optional<int64_t> getConstantCount() const;
  /// Maximum number of memory elements accessed, if bounded.
  std::optional<int64_t> getMaximumCount() const;
  /// First element, if constant.
  std::optional<int64_t> getConstantOffset() const;
  /// Number of elements that offsets can address, if constant.
  std::optional<int64_t> getLimit() const;
  /// Memory elements for `tileElements` elements of the tile; nullopt on
  /// overflow or if negative.
  std::optional<int64_t> toUnits(int64_t tileElements) const;
  /// Emits the number of memory elements accessed, as an index.
  Value materializeCount(OpBuilder &builder, Location loc) const;
  /// Emits the first element, as an index.
  Value materializeOffset(OpBuilder &builder, Location loc) const;
};

/// Elements of a memref or window of static shape; nullopt if a dimension is
/// dynamic, the memref is unranked, or the product overflows.
std::optional<int64_t> getStaticElements(Type memoryType);

/// Columns and rows of memory of static shape that is treated as a matrix.
int64_t getMatrixColumns(Type memoryType);
int64_t getMatrixRows(Type memoryType);

/// Number of ranks of a team, if the kernel's `ranks` (and, for lsa and rail,
/// `lsa_size`, which defaults to all ranks) make it a constant and divide
/// evenly.
std::optional<int64_t> getConstantTeamSize(Value team);

/// Appends the accesses of `op`, without those of ops in its regions. Ops on
/// channels have none, because their memory does not exist yet. A collective
/// accesses all of its operands entirely.
void getAccesses(Operation *op, llvm::SmallVectorImpl<Access> &accesses);

/// Whether `op` itself orders memory between blocks or ranks: barriers, signals
/// and waits, counters, fences, flushes, packets, poison, operations on
/// channels, and collectives.
bool isSynchronization(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_ACCESSES_H
