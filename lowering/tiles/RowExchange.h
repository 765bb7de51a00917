//===- RowExchange.h - Rows that threads combine together -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The upper levels of the tree of docs/Spec.md ("Bits"), above what each thread
// combines by itself. Lanes of a warp combine by shuffles or, if the processor
// has an instruction for the reduction, by that. Then each warp writes its
// value to the shared memory of every CTA of the cluster, all wait for those
// values, and every thread computes the last levels. There is one value per
// warp and trip, in the row's order, so that the last levels are pairs of
// values, and chunks from left to right.
//
// All rows of a stage share one exchange, because they are independent: their
// shuffles alternate, their values form one record, and threads synchronize
// once.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_ROWEXCHANGE_H
#define COMMSIR_LOWERING_TILES_ROWEXCHANGE_H

#include "lowering/tiles/ThreadReduction.h"

namespace mlir::comms::tiles {

/// The rows of one stage, all of equal length. Call begin and add of each row,
/// then, after the stage, finish, which all threads must reach.
class RowExchange {
public:
  RowExchange(SmallVector<RowReduceOp> rowOps, Threads &threads);

  void begin(OpBuilder &builder, bool direct);
  void add(OpBuilder &builder, RowReduceOp op, Value vector, Value trip,
           Value mask);
  /// Calls `result` with each row's combined value, a scalar, on every thread.
  void finish(OpBuilder &builder,
              llvm::function_ref<void(RowReduceOp, Value)> result);

private:
  /// One value per row.
  using Values = SmallVector<Value>;
  /// Contents of one store: up to 16 bytes, for rows [first, last).
  struct Record {
    size_t first, last;
    /// Number of words in shared memory, of type `word`: 1, 2 or 4.
    int64_t words;
    Type word;
    /// Shared memory, and the word at which this exchange's half begins (null:
    /// 0).
    Value shared, base;

    int64_t getBytes() const {
      return words * word.getIntOrFloatBitWidth() / 8;
    }
  };

  void makeRecords(OpBuilder &builder);
  void takeMemory(OpBuilder &builder);
  /// Combines lanes at distances below `lanes`; each gets the result.
  void combineLanes(OpBuilder &builder, Values &values, int64_t lanes) const;
  Values combine(OpBuilder &builder, const Values &left,
                 const Values &right) const;
  Values combinePairs(OpBuilder &builder, SmallVector<Values> left) const;
  /// Writes the warp's values of trip `trip` to all CTAs.
  void publish(OpBuilder &builder, const Values &values, Value trip) const;
  void publishRecord(OpBuilder &builder, const Record &record, ValueRange words,
                     Value place) const;
  /// Converts rows' values to the words of a record, and back.
  SmallVector<Value> pack(OpBuilder &builder, const Record &record,
                          const Values &values) const;
  void unpack(OpBuilder &builder, const Record &record, ValueRange words,
              Values &values) const;
  /// Reads `count` values of each row, from index `first` on; all threads the
  /// same, or each lane its own.
  SmallVector<Values> read(OpBuilder &builder, Value first, int64_t count,
                           bool byLane) const;
  void readRecords(OpBuilder &builder, const Record &record, Value first,
                   MutableArrayRef<Values> values, bool byLane) const;
  /// Of `count` values, the number that one lane reads.
  int64_t getAlone(int64_t count) const;
  /// Combines `count` values from index `first` on.
  Values combineValues(OpBuilder &builder, Value first, int64_t count) const;
  /// Same, for up to 32 times `alone` values, distributed over lanes.
  Values combineShared(OpBuilder &builder, Value first, int64_t count,
                       int64_t alone) const;

  Threads &threads;
  SmallVector<RowReduceOp> ops;
  Location loc;
  /// Elements per row; trips per row; values per row that warps write.
  int64_t length, trips, values;
  SmallVector<ThreadReduction> rows;
  SmallVector<Record> records;
  /// Cell that counts this exchange's bytes; null: a barrier is used.
  Value arrival;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_ROWEXCHANGE_H
