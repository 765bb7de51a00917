//===- ThreadReduction.h - A thread's part of a row -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The leaves of the tree of docs/Spec.md ("Bits"): a thread combines the
// neighbors that it holds, one value of each trip. What threads then exchange
// (RowExchange.h) are words.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_THREADREDUCTION_H
#define COMMSIR_LOWERING_TILES_THREADREDUCTION_H

#include "lowering/tiles/RowReduction.h"
#include "lowering/tiles/Threads.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <optional>

namespace mlir::comms::tiles {

/// One row that the threads of a block combine. Before the stage: begin; in it:
/// add for each trip; after it a RowExchange asks for the parts.
class ThreadReduction : public RowCombiner {
public:
  ThreadReduction(RowReduceOp op, Threads &threads)
      : RowCombiner(op), threads(threads), trips(threads.getTrips(length)) {}

  /// `direct`: every trip is added outside of any region, by constant number.
  void begin(OpBuilder &builder, bool direct);
  /// This thread's vector of trip `trip`. `mask` (null: all) tells which lanes
  /// are elements of the row.
  void add(OpBuilder &builder, Value vector, Value trip, Value mask);

  /// This thread's part of trip `trip`, as it is exchanged.
  Value getPart(OpBuilder &builder, Value trip) const;
  /// What is exchanged where there is nothing, and changes nothing.
  Value getExchangedIdentity(OpBuilder &builder) const;
  /// The value of the lane whose number differs in the bits of `distance`.
  Value shuffle(OpBuilder &builder, Value value, int64_t distance) const;
  /// A value as threads exchange and combine it, and back. Floats of which one
  /// is sought (max, min), and integers, are i32 in the same order.
  Value toExchanged(OpBuilder &builder, Value value) const;
  Value fromExchanged(OpBuilder &builder, Value exchanged) const;
  /// The values of all lanes combined, in every lane, by one instruction for
  /// the whole warp; null: that takes shuffles. `lanes` (a power of two): so
  /// many lanes have values of their own, those after them the same again.
  Value combineAtOnce(OpBuilder &builder, Value exchanged, int64_t lanes) const;
  bool combinesAtOnce(int64_t lanes) const {
    return getOperation(lanes).has_value();
  }
  /// What is exchanged as it lies in shared memory, an i32 or i64, and back.
  Value toWord(OpBuilder &builder, Value value) const;
  Value fromWord(OpBuilder &builder, Value word) const;
  /// Bytes of such a word: 4 or 8.
  int64_t getWordBytes() const { return Threads::getWordBytes(elementType); }

private:
  Type getWordType(OpBuilder &builder) const;
  /// The instruction that combines so many lanes at once, if there is one.
  std::optional<gpu::AllReduceOperation> getOperation(int64_t lanes) const;
  bool isExchangedAsInteger() const;
  Value turnNegatives(OpBuilder &builder, Value bits) const;
  /// A NaN among exchanged values of which the least is sought.
  Value getLeast(OpBuilder &builder) const;

  Threads &threads;
  int64_t trips;
  /// In use: parts of the trips, in registers or in this thread's memory.
  SmallVector<Value> parts;
  Value partsBuffer;
  bool direct = false;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_THREADREDUCTION_H
