//===- Stage.h - Runs of tile ops that become one loop ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage is a run of tile ops of equal length that share one loop over
// vectors: iteration i computes elements [i, i + lanes) of every op. The
// planner decides which ops can share a loop without a visible difference at
// any address, rank or block.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_STAGE_H
#define COMMSIR_LOWERING_TILES_STAGE_H

#include "lowering/analysis/Accesses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <utility>

namespace mlir::comms::tiles {

/// Number of elements of a tile (static tensor of rank 1), or nullopt for other
/// types.
std::optional<int64_t> getTileLength(Type type);

/// Whether a tile needs a loop: its length is not 1. Tiles of length 1 are
/// scalars.
bool isLongTile(Type type);

/// Ops whose long tile is recomputed at each use and never stored: splat
/// constants, comms.splat, comms.broadcast_row, comms.iota.
bool isRecomputed(Operation *op);

/// Whether `op` or an op in its regions has a tile as operand, result or block
/// argument.
bool touchesTiles(Operation *op);

/// A copy of a tile to the memory of a loop's or branch's tile.
struct Copy {
  /// Tile to copy.
  Value source;
  /// Result of scf.for or scf.if whose memory is written.
  Value target;
  /// The op that has `source` as an operand: a loop (at its start) or a yield
  /// (at its end).
  Operation *user;
};

/// Tile ops and copies of equal length, in program order; copies are last.
struct Stage {
  int64_t length = 0;
  SmallVector<Operation *> ops;
  SmallVector<Copy> copies;
  /// The stage's ops, for lookup.
  llvm::SmallPtrSet<Operation *, 16> members;
};

/// A step of a block: a stage, or one op that is rewritten by itself.
struct Item {
  /// The op; for a stage, the op before which its loop is inserted.
  Operation *op = nullptr;
  /// Null: the item is `op`.
  std::unique_ptr<Stage> stage;
};

/// The steps of a block, in execution order.
struct BlockPlan {
  SmallVector<Item> items;
  /// Item that contains each op.
  llvm::DenseMap<Operation *, unsigned> itemOf;
};

/// Copies that `user`, a loop or yield, needs for the long tiles among
/// `sources`, its operands. Targets are the results at the same positions.
SmallVector<Copy> getCopies(Operation *user, ValueRange sources,
                            ValueRange targets);

/// An access with its cached root.
struct Touch {
  Access access;
  MemoryRoot root;

  bool isBlocking() const { return access.synchronizes && access.isRead(); }
  bool isSignaling() const { return access.synchronizes && access.isWrite(); }
};

/// The accesses of `op`, without its regions.
SmallVector<Touch, 2> getTouches(Operation *op);
/// Whether the accesses have no common element.
bool areDisjoint(const Touch &a, const Touch &b);
/// Whether equal offsets of both refer to the same elements.
bool areAlike(const Touch &a, const Touch &b);
/// Whether element i of both has the same address for each i.
bool isElementwise(const Touch &a, const Touch &b);

/// Plans `block`, whose last op is a terminator. `atEnd` are copies before the
/// terminator. Stores of one element are moved behind the current stage.
BlockPlan planBlock(Block &block, ArrayRef<Copy> atEnd);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_STAGE_H
