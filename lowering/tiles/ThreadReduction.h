//===- ThreadReduction.h - A row combined by many threads -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tree of docs/Spec.md ("Bits"), from its leaves: a thread combines the
// neighbours that it holds, then lanes of a warp by shuffles; each warp writes
// its value to the shared memory of every CTA of the cluster, all await those
// values, and every thread finishes the last levels by itself. One value a warp
// and trip: they lie in the row's order, so the last levels are pairs of them,
// and chunks from left to right.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADREDUCTION_H
#define COMMSIR_LOWERING_TILES_THREADREDUCTION_H

#include "lowering/tiles/RowReduction.h"
#include "lowering/tiles/Threads.h"

namespace mlir::comms::tiles {

/// One row that the threads of a block combine. Before the stage: begin; in it:
/// add for each trip; after it: finish, which all threads reach.
class ThreadReduction : RowCombiner {
public:
  ThreadReduction(RowReduceOp op, Threads &threads)
      : RowCombiner(op), op(op), threads(threads),
        trips(threads.getTrips(length)), values(trips * threads.getWarps()) {}

  /// `direct`: every trip is added outside of any region, by constant number.
  void begin(OpBuilder &builder, bool direct);
  /// This thread's vector of trip `trip`. `mask` (null: all) tells which lanes
  /// are elements of the row.
  void add(OpBuilder &builder, Value vector, Value trip, Value mask);
  /// The row's combination, a scalar, on every thread.
  Value finish(OpBuilder &builder);

private:
  /// This thread's part of trip `trip`, a scalar.
  Value getPart(OpBuilder &builder, Value trip) const;
  /// Combines with the other lanes of the warp: every lane gets the result.
  Value combineWarp(OpBuilder &builder, Value value) const;
  Value shuffle(OpBuilder &builder, Value value, int64_t distance) const;
  /// Element as it lies in shared memory, an i32 or i64, and back; of vectors
  /// too.
  Value toWord(OpBuilder &builder, Value value) const;
  Value fromWord(OpBuilder &builder, Value word) const;
  Type getWordType(OpBuilder &builder) const;
  /// Writes the warp's value of trip `trip` to all CTAs.
  void publish(OpBuilder &builder, Value value, Value trip) const;
  /// Combines `count` values of shared memory from `first` on; a scalar.
  Value combineValues(OpBuilder &builder, Value first, int64_t count) const;
  Value combinePairs(OpBuilder &builder, SmallVector<Value> left) const;
  Value combineFew(OpBuilder &builder, Value first, int64_t count) const;

  RowReduceOp op;
  Threads &threads;
  /// Trips of the row; values that warps write.
  int64_t trips, values;
  /// In use: parts of the trips, in registers or in this thread's memory.
  SmallVector<Value> parts;
  Value partsBuffer;
  bool direct = false;
  /// Shared memory, and where this reduction's half begins.
  Value shared, base;
  /// Where the bytes of this reduction are counted; null: a barrier is used.
  Value arrival;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADREDUCTION_H
