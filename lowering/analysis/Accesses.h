//===- Accesses.h - Every memory access that an op makes --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One description of the memory that ops read and write, for all passes that
// ask: the checker, the race detector's instrumentation, bounds checks and the
// elimination of barriers. An op that touches memory is described here once.
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

/// Unit attribute of a window argument that peers write into: the host reads
/// and writes the part of its rank between two launches.
inline constexpr const char kHostAttr[] = "comms.host";

/// Unit attribute of a channel: the caller answers for it that its senders and
/// receivers count the same elements.
inline constexpr const char kCountsAgreeAttr[] = "comms.counts_agree";

/// Where memory lies, found by following a memref to what it is a view of.
struct MemoryRoot {
  enum Kind {
    Window,   ///< A part of a window: peers can reach it.
    Argument, ///< A memref argument of the kernel: memory of this rank.
    Scratch,  ///< `comms.scratch`, `memref.alloca` or `memref.alloc`: this
              ///< block's.
    Unknown   ///< Anything else: to be treated like a window.
  };
  Kind kind = Unknown;
  /// The window, argument or scratch value; for Unknown, where the search
  /// ended.
  Value value;
  /// Rank within `team` whose part of the window it is; null: this rank's own,
  /// or (multimem) every rank's.
  Value peer;
  /// The team of `comms.peer`, `comms.multimem` and of one-sided ops; else
  /// null.
  Value team;
  /// All parts at once, through `comms.multimem`.
  bool multimem = false;

  /// Whether another rank can see this memory (or might: Unknown).
  bool isVisibleToPeers() const { return kind == Window || kind == Unknown; }
  /// Whether another block of this rank can see this memory.
  bool isVisibleToBlocks() const { return kind != Scratch; }
  /// Whether the access goes to this rank's own memory for certain.
  bool isOwn() const { return kind != Unknown && !peer && !multimem; }
};

/// Finds what `memory` (a memref or a window) is a view of. Views through
/// `comms.local`, `comms.peer`, `comms.multimem` and the memref dialect's casts
/// and reshapes are followed; subviews are followed too, so that the root says
/// which memory it is, not where in it.
MemoryRoot getMemoryRoot(Value memory);

/// Part of memory that counts as a matrix: rows of all its dimensions but the
/// last, one behind the other.
struct MatrixPart {
  /// The first row and column.
  Value row, column;
  /// How many of each, as SSA values; null: `staticRows`, `staticColumns`.
  Value rows, columns;
  /// How many of each without a value, else the most that they can be, or -1
  /// when nothing bounds them.
  int64_t staticRows = -1, staticColumns = -1;
};

/// A contiguous range of elements that an op reads or writes, or a part of a
/// matrix.
struct Access {
  AccessKind kind = AccessKind::Read;
  /// The memref or window operand that is accessed.
  Value memory;
  /// First element, in elements of `memory` in row-major order; null: 0.
  Value offset;
  /// Number of tile elements as an SSA value (`valid` or `count`); null when
  /// the number is `staticCount`.
  Value dynamicCount;
  /// Number of tile elements when `dynamicCount` is null, else the most that
  /// they can be (a tile's size) or -1 when nothing bounds them. -1 with a null
  /// `dynamicCount`: all of the memory.
  int64_t staticCount = -1;
  /// Bits of one tile element and of one memory element: they differ for
  /// packets, where `memory` holds 32 bits of tile in each of its elements, or
  /// (lines) 64.
  unsigned tileBits = 1, unitBits = 1;
  /// The memory holds lines: behind those that offsets count lie their rests.
  bool inLines = false;
  /// Rank in `team` whose memory it is, for one-sided ops on windows; null:
  /// what getMemoryRoot(memory) says.
  Value peer, team;
  /// A part of a matrix rather than a range. Whoever knows ranges alone sees
  /// all of the memory.
  std::optional<MatrixPart> matrix;
  /// The access is itself a synchronization: packets and poison, which a
  /// receiver polls. Such accesses never race with each other.
  bool synchronizes = false;
  /// Happens at some time after the op (`put`, `get`, asynchronous copies)
  /// rather than at it.
  bool deferred = false;

  bool isRead() const { return kind == AccessKind::Read; }
  bool isWrite() const { return kind == AccessKind::Write; }
  /// All of the memory may be touched: offset and count are not known.
  bool isWhole() const { return !dynamicCount && staticCount < 0; }

  /// What the memory is a part of, with this access's own peer and team.
  MemoryRoot getRoot() const;
  /// The number of memory elements accessed, when it is a constant.
  std::optional<int64_t> getConstantCount() const;
  /// The largest number of memory elements accessed, when it is bounded.
  std::optional<int64_t> getMaximumCount() const;
  /// The first element, when it is a constant.
  std::optional<int64_t> getConstantOffset() const;
  /// The number of elements that offsets may name, when it is a constant.
  std::optional<int64_t> getLimit() const;
  /// Memory elements for `tileElements` elements of the tile; nullopt when that
  /// overflows or is negative.
  std::optional<int64_t> toUnits(int64_t tileElements) const;
  /// Emits the number of memory elements accessed, as an index.
  Value materializeCount(OpBuilder &builder, Location loc) const;
  /// Emits the first element, as an index.
  Value materializeOffset(OpBuilder &builder, Location loc) const;
};

/// Elements of a memref or window with a static shape; nullopt when a dimension
/// is dynamic, the memref is unranked, or the product overflows.
std::optional<int64_t> getStaticElements(Type memoryType);

/// Columns and rows of memory of static shape that counts as a matrix.
int64_t getMatrixColumns(Type memoryType);
int64_t getMatrixRows(Type memoryType);

/// Number of ranks of a team, when the kernel's `ranks` (and, for lsa and rail,
/// `lsa_size`, by default all ranks) make it a constant that divides evenly.
std::optional<int64_t> getConstantTeamSize(Value team);

/// Appends the accesses of `op` alone, not of ops in its regions. Ops over
/// channels make none: their memory does not exist yet. Whole collectives are
/// described as touching all of their operands.
void getAccesses(Operation *op, llvm::SmallVectorImpl<Access> &accesses);

/// Whether `op` alone orders memory between blocks or ranks: barriers, signals
/// and waits, counters, fences, flushes, packets, poison, operations over
/// channels and whole collectives.
bool isSynchronization(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_ACCESSES_H
