//===- Stage.h - Runs of tile ops that become one loop ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage is a run of tile ops of one length that one loop over vectors carries
// out: iteration i does elements [i, i + lanes) of every op of the stage. The
// planner decides which ops may share a loop without any address, any other
// rank or any block seeing a difference.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_STAGE_H
#define COMMSIR_LOWERING_TILES_STAGE_H

#include "lowering/analysis/Accesses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <utility>

namespace mlir::comms::tiles {

/// Number of elements of a tile (tensor of rank 1, static), or nullopt for
/// every other type.
std::optional<int64_t> getTileLength(Type type);

/// A tile that needs a loop: its length is not 1. Tiles of 1 are scalars.
bool isLongTile(Type type);

/// Ops whose long tile is made again wherever it is used, never stored: splat
/// constants, comms.splat, comms.broadcast_row, comms.iota.
bool isRecomputed(Operation *op);

/// Whether `op` or an op in its regions has a tile as operand, result or block
/// argument.
bool touchesTiles(Operation *op);

/// Writes a tile to the memory of a loop's or branch's tile.
struct Copy {
  /// Tile that is copied.
  Value source;
  /// Tile result of scf.for or scf.if whose memory is written.
  Value target;
  /// The op whose operand `source` is: a loop (its start) or a yield (its end).
  Operation *user;
};

/// Tile ops and copies of one length, in program order; copies come last.
struct Stage {
  int64_t length = 0;
  SmallVector<Operation *> ops;
  SmallVector<Copy> copies;
  /// Ops of the stage, for look-up.
  llvm::SmallPtrSet<Operation *, 16> members;
};

/// One step of a block: a stage, or one op that has to be rewritten by itself.
struct Item {
  /// The op, or for a stage the op before which its loop stands.
  Operation *op = nullptr;
  /// Null: the item is `op`.
  std::unique_ptr<Stage> stage;
};

/// The steps of a block, in order of execution.
struct BlockPlan {
  SmallVector<Item> items;
  /// Item of each op that is one or is in one.
  llvm::DenseMap<Operation *, unsigned> itemOf;
};

/// Copies that `user`, a loop or a yield, needs for the long tiles among
/// `sources`, its operands; targets are the results at the same positions.
SmallVector<Copy> getCopies(Operation *user, ValueRange sources,
                            ValueRange targets);

/// An access with its root, found once.
struct Touch {
  Access access;
  MemoryRoot root;

  bool isBlocking() const { return access.synchronizes && access.isRead(); }
  bool isSignaling() const { return access.synchronizes && access.isWrite(); }
};

/// The accesses of `op` alone.
SmallVector<Touch, 2> getTouches(Operation *op);
/// Whether no element is common to both.
bool areDisjoint(const Touch &a, const Touch &b);
/// Whether equal offsets of both name the same elements.
bool areAlike(const Touch &a, const Touch &b);
/// Whether element i of both lies at one address for each i.
bool isElementwise(const Touch &a, const Touch &b);

/// Plans `block`, whose last op is a terminator; `atEnd` are copies made before
/// the terminator. Stores of one element are moved behind the stage that is
/// open where they stand.
BlockPlan planBlock(Block &block, ArrayRef<Copy> atEnd);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_STAGE_H
