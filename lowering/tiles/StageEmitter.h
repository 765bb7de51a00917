//===- StageEmitter.h - The loop of one stage -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Full vectors and the remainder are two loops; the first has no mask. Without
// `valid`, the remainder is one shorter vector of constant length. With
// `valid`, it is a masked loop with at most one iteration, or more if an effect
// extends beyond `valid`.
//
// With threads, a trip is one vector of each thread. Whole trips have neither
// condition nor mask; in other trips a thread processes its vector completely,
// with a mask, or not at all.
//
// A line of packets is moved by several vectors: either all exist or none does.
// Their contents beyond `valid` are masked.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_STAGEEMITTER_H
#define COMMSIR_LOWERING_TILES_STAGEEMITTER_H

#include "lowering/tiles/RowExchange.h"
#include "lowering/tiles/RowReduction.h"
#include "lowering/tiles/Stage.h"
#include "lowering/tiles/TileValues.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::comms::tiles {

/// Part of a tile, for a packet, poison or multimem op.
struct VectorPart {
  VectorType type;
  /// Value to store; null for loads.
  Value vector;
  /// Index of the first element; null: 0.
  Value index;
  /// Number of elements that exist; null: all.
  Value count;
  /// The tile is distributed over threads: several threads move a line of
  /// packets together.
  bool spread = false;
};

/// Emits `op`, a packet, poison or multimem op on a tile, for a part of the
/// tile. Returns the loaded value, or null.
Value moveVector(OpBuilder &builder, Operation *op, const VectorPart &part);

/// Whether the values of a stage can stay in registers: its trips are unrolled
/// and whole.
bool staysInRegisters(const Stage &stage, const Threads &threads);

/// Emits one stage at the builder's position.
class StageEmitter {
public:
  /// `kept` are tiles of the stage that later loops read, with their buffers.
  StageEmitter(OpBuilder &builder, const Stage &stage, TileValues &values,
               ArrayRef<std::pair<Value, Value>> kept)
      : builder(builder), stage(stage), values(values), kept(kept),
        threads(values.getMemory().getThreads()),
        lanes(threads ? threads->getLanes(stage.length)
                      : values.getMemory().getLanes()),
        together(getTogether()) {}

  /// Fails with a diagnostic on an op that cannot work on vectors.
  LogicalResult emit();

private:
  /// One iteration: elements [index, index + count).
  struct Step {
    OpBuilder &builder;
    Value index;
    int64_t count;
    /// Lanes may lie beyond `valid` or the tile's end.
    bool masked;
    /// Position in buffers. One thread: `index`.
    Value place;
    /// With threads: the trip.
    Value trip;
    llvm::DenseMap<Value, Value> vectors{};
    /// Masks and numbers of valid lanes, by `valid` (null: the tile's length).
    llvm::DenseMap<Value, Value> masks{}, counts{};
  };

  void emitUnmasked();
  void emitMasked();
  /// `trip` is null without threads.
  LogicalResult emitStep(OpBuilder &inner, Value index, int64_t count,
                         bool masked, Value trip = {});
  /// The ops of the stage in the order of a step.
  SmallVector<Operation *> getOrder() const;
  void emitThreads();
  void emitTrip(OpBuilder &inner, Value trip, bool whole);
  void keep(Step &step);
  LogicalResult emitOp(Step &step, Operation *op);
  LogicalResult emitMoved(Step &step, Operation *op);
  Value moveIfLine(Step &step, Operation *op, const VectorPart &part,
                   Value valid);
  void emitElementwise(Step &step, Operation *op);
  void emitTileLoad(Step &step, TileLoadOp op);
  void emitTileStore(Step &step, TileStoreOp op);
  void emitRowReduce(Step &step, RowReduceOp op);
  Value getVector(Step &step, Value tile, Location loc);
  /// Number of lanes that exist, in [0, count].
  Value getCount(Step &step, Value valid, Location loc);
  Value getMask(Step &step, Value valid, Location loc);
  /// `valid` clamped to [0, length].
  Value clampToTile(Value valid, Location loc);
  Value getFlat(Value memref, Location loc);
  llvm::MaybeAlign getAlignment(VectorType type, Value index) const;
  /// Whether the stage has an effect beyond every `valid`.
  bool reachesTileEnd() const;
  bool hasOpenTail() const { return stage.length % together != 0; }
  /// Granularity of a step in elements: those of a vector; with lines, those of
  /// a line, or of the warp whose threads share lines.
  int64_t getTogether() const;
  Location getLoc() const;

  OpBuilder &builder;
  const Stage &stage;
  TileValues &values;
  ArrayRef<std::pair<Value, Value>> kept;
  Threads *threads;
  int64_t lanes, together;
  llvm::MapVector<Operation *, RowReduction> reductions;
  std::optional<RowExchange> exchange;
  llvm::DenseMap<Value, Value> flat;
  bool failedStep = false;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_STAGEEMITTER_H
