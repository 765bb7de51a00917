//===- ThreadReduction.h - A thread's part of a row -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The leaves of the tree of docs/Spec.md ("Bits"): a thread combines the
// neighboring elements that it holds, to one value per trip. Threads then
// exchange these values as words (RowExchange.h).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADREDUCTION_H
#define COMMSIR_LOWERING_TILES_THREADREDUCTION_H

#include "lowering/tiles/RowReduction.h"
#include "lowering/tiles/Threads.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <optional>

namespace mlir::comms::tiles {

/// A row combined by the threads of a block. Call begin before the stage and
/// add for each trip in it; after it a RowExchange reads the parts.
class ThreadReduction : public RowCombiner {
public:
  ThreadReduction(RowReduceOp op, Threads &threads)
      : RowCombiner(op), threads(threads), trips(threads.getTrips(length)) {}

  /// `direct`: every trip is added outside of any region, with a constant trip
  /// number.
  void begin(OpBuilder &builder, bool direct);
  /// Adds this thread's vector of trip `trip`. `mask` (null: all) selects lanes
  /// within the row.
  void add(OpBuilder &builder, Value vector, Value trip, Value mask);

  /// This thread's value of trip `trip`, in exchanged form.
  Value getPart(OpBuilder &builder, Value trip) const;
  /// Identity element in exchanged form.
  Value getExchangedIdentity(OpBuilder &builder) const;
  /// The value of the lane whose index differs in the bits of `distance`.
  Value shuffle(OpBuilder &builder, Value value, int64_t distance) const;
  /// Converts a value to the form in which threads exchange and combine it, and
  /// back. Floats of max and min, and integers, become i32 with the same order.
  Value toExchanged(OpBuilder &builder, Value value) const;
  Value fromExchanged(OpBuilder &builder, Value exchanged) const;
  /// Combines the values of all lanes, in every lane, by one instruction for
  /// the whole warp. Null: shuffles are needed. `lanes` (a power of two):
  /// number of lanes with distinct values, which the following lanes repeat.
  Value combineAtOnce(OpBuilder &builder, Value exchanged, int64_t lanes) const;
  bool combinesAtOnce(int64_t lanes) const {
    return getOperation(lanes).has_value();
  }
  /// Converts an exchanged value to a word of shared memory, i32 or i64, and
  /// back.
  Value toWord(OpBuilder &builder, Value value) const;
  Value fromWord(OpBuilder &builder, Value word) const;
  /// Bytes of such a word: 4 or 8.
  int64_t getWordBytes() const { return Threads::getWordBytes(elementType); }

private:
  Type getWordType(OpBuilder &builder) const;
  /// The instruction that combines that many lanes at once, if there is one.
  std::optional<gpu::AllReduceOperation> getOperation(int64_t lanes) const;
  bool isExchangedAsInteger() const;
  Value turnNegatives(OpBuilder &builder, Value bits) const;
  /// The form of NaN among exchanged values of a minimum.
  Value getLeast(OpBuilder &builder) const;

  Threads &threads;
  int64_t trips;
  /// Values of the trips, in registers or in this thread's memory.
  SmallVector<Value> parts;
  Value partsBuffer;
  bool direct = false;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADREDUCTION_H
