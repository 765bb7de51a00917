//===- RowExchange.h - Rows that threads combine together -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tree of docs/Spec.md ("Bits"), above what each thread combines alone:
// lanes of a warp, by shuffles or, where the processor has an instruction for
// the row's kind, at once; then each warp writes its value to the shared
// memory of every CTA of the cluster, all await those values, and every thread
// finishes the last levels by itself. One value a warp and trip: they lie in
// the row's order, so the last levels are pairs of them, and chunks from left
// to right.
//
// All rows of a stage share one exchange, for none depends on another: their
// shuffles alternate, their values travel as one record, and threads meet once.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_ROWEXCHANGE_H
#define COMMSIR_LOWERING_TILES_ROWEXCHANGE_H

#include "lowering/tiles/ThreadReduction.h"

namespace mlir::comms::tiles {

/// The rows of one stage, all of one length. begin and add are those of each
/// row; after the stage finish, which all threads reach.
class RowExchange {
public:
  RowExchange(SmallVector<RowReduceOp> rowOps, Threads &threads);

  void begin(OpBuilder &builder, bool direct);
  void add(OpBuilder &builder, RowReduceOp op, Value vector, Value trip,
           Value mask);
  /// Calls `result` with each row's combination, a scalar, on every thread.
  void finish(OpBuilder &builder,
              llvm::function_ref<void(RowReduceOp, Value)> result);

private:
  /// A value of each row.
  using Values = SmallVector<Value>;
  /// What one store carries: up to 16 bytes, of rows [first, last).
  struct Record {
    size_t first, last;
    /// Words of shared memory, of type `word`: 1, 2 or 4.
    int64_t words;
    Type word;
    /// Shared memory, and the word where this exchange's half begins (null: 0).
    Value shared, base;

    int64_t getBytes() const {
      return words * word.getIntOrFloatBitWidth() / 8;
    }
  };

  void makeRecords(OpBuilder &builder);
  void takeMemory(OpBuilder &builder);
  /// Combines with lanes at distances below `lanes`: each gets the result.
  void combineLanes(OpBuilder &builder, Values &values, int64_t lanes) const;
  Values combine(OpBuilder &builder, const Values &left,
                 const Values &right) const;
  Values combinePairs(OpBuilder &builder, SmallVector<Values> left) const;
  /// Writes the warp's values of trip `trip` to all CTAs.
  void publish(OpBuilder &builder, const Values &values, Value trip) const;
  void publishRecord(OpBuilder &builder, const Record &record, ValueRange words,
                     Value place) const;
  /// Words of a record, and the values of its rows in words.
  SmallVector<Value> pack(OpBuilder &builder, const Record &record,
                          const Values &values) const;
  void unpack(OpBuilder &builder, const Record &record, ValueRange words,
              Values &values) const;
  /// Reads `count` values of each row, from number `first` on: all threads the
  /// same, or each lane its own.
  SmallVector<Values> read(OpBuilder &builder, Value first, int64_t count,
                           bool byLane) const;
  void readRecords(OpBuilder &builder, const Record &record, Value first,
                   MutableArrayRef<Values> values, bool byLane) const;
  /// Of `count` values, those that one lane reads.
  int64_t getAlone(int64_t count) const;
  /// Combines `count` values from number `first` on.
  Values combineValues(OpBuilder &builder, Value first, int64_t count) const;
  /// The same for up to 32 times `alone`, which lanes share.
  Values combineShared(OpBuilder &builder, Value first, int64_t count,
                       int64_t alone) const;

  Threads &threads;
  SmallVector<RowReduceOp> ops;
  Location loc;
  /// Elements of a row; its trips; values of it that warps write.
  int64_t length, trips, values;
  SmallVector<ThreadReduction> rows;
  SmallVector<Record> records;
  /// Where the bytes of this exchange are counted; null: a barrier is used.
  Value arrival;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_ROWEXCHANGE_H
