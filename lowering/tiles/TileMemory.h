//===- TileMemory.h - Buffers for tiles between loops -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile that outlives the loop that computes it is stored in a buffer of
// comms.scratch. Buffers are reused after the last use of their tile. Elements
// of i1 take a byte each.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_TILEMEMORY_H
#define COMMSIR_LOWERING_TILES_TILEMEMORY_H

#include "dialect/Comms.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::comms::tiles {

class Threads;

/// Scratch buffers of one kernel.
class TileMemory {
public:
  /// Buffers are created at the start of `kernel`'s body and hold whole vectors
  /// of `lanes` elements. With `threads`, a buffer holds the vectors of one
  /// thread, in memory private to it.
  TileMemory(KernelOp kernel, int64_t lanes, Threads *threads = nullptr)
      : kernel(kernel), lanes(lanes), threads(threads) {}

  /// Returns a buffer for `length` elements of `elementType`, rounded up to
  /// whole vectors.
  Value take(Location loc, int64_t length, Type elementType);
  /// Returns a buffer that is never reused.
  Value takeNew(Location loc, int64_t length, Type elementType);
  /// Type of a buffer for `length` elements.
  MemRefType getBufferType(int64_t length, Type elementType) const;
  /// Frees `buffer` for reuse.
  void give(Value buffer);
  /// Reads `count` (at most `lanes`) elements at `index` as a vector of
  /// `elementType`.
  static Value read(OpBuilder &builder, Location loc, Value buffer, Value index,
                    int64_t count, Type elementType);
  /// Writes `vector` at `index`.
  static void write(OpBuilder &builder, Location loc, Value vector,
                    Value buffer, Value index);

  int64_t getLanes() const { return lanes; }
  KernelOp getKernel() const { return kernel; }
  /// Null: a block is one thread.
  Threads *getThreads() const { return threads; }

private:
  KernelOp kernel;
  int64_t lanes;
  Threads *threads;
  /// Free buffers, by type.
  llvm::DenseMap<Type, SmallVector<Value>> unused;
};

/// `memref` as a memref of rank 1, made right after its definition. Its layout
/// is the identity.
Value getFlatView(OpBuilder &builder, Location loc, Value memref);

/// A constant index.
inline Value getIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_TILEMEMORY_H
