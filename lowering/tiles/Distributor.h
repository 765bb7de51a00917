//===- Distributor.h - A kernel on tiles becomes one on vectors -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each block of a kernel is planned (Stage.h: which ops share a loop) and then
// rewritten from its first op to its last. Tiles that control flow carries live
// in scratch memory; tiles of one element are scalars.
//
//   Distributor.cpp         blocks, stages, their buffers, and the threads'
//                           meetings
//   DistributorFlow.cpp     loops and branches, and the tiles that they carry
//   DistributorScalars.cpp  constants, and tiles of one element
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_DISTRIBUTOR_H
#define COMMSIR_LOWERING_TILES_DISTRIBUTOR_H

#include "lowering/tiles/Stage.h"
#include "lowering/tiles/ThreadOrder.h"
#include "lowering/tiles/Threads.h"
#include "lowering/tiles/TileMemory.h"
#include "lowering/tiles/TileValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::comms::tiles {

/// Rewrites one kernel.
class Distributor {
public:
  /// `threads` is null if a block is one thread.
  Distributor(KernelOp kernel, int64_t lanes, Threads *threads)
      : kernel(kernel), threads(threads), memory(kernel, lanes, threads),
        values(memory) {}

  LogicalResult run();

private:
  /// `atEnd`: copies to emit at the block's end on behalf of an enclosing op.
  LogicalResult emitBlock(Block &block, ArrayRef<Copy> atEnd);
  LogicalResult emitStage(const BlockPlan &plan, unsigned position);
  LogicalResult emitOp(const BlockPlan &plan, unsigned position);

  LogicalResult emitFor(const BlockPlan &plan, unsigned position,
                        scf::ForOp loop);
  LogicalResult emitIf(const BlockPlan &plan, unsigned position,
                       scf::IfOp branch);
  /// Emits each region of `op`, tracking what the threads have accessed on the
  /// way to it, and merges the paths.
  LogicalResult emitPaths(Operation *op,
                          llvm::function_ref<LogicalResult(Region &)> emit);
  LogicalResult emitRegions(Operation *op);
  /// Rewrites the block of a region whose yield carries tiles: long tiles are
  /// written to the buffers of `targets`, others become operands of a new
  /// yield.
  LogicalResult emitYieldingBlock(Block &block, ValueRange targets);

  LogicalResult emitConstant(arith::ConstantOp op);
  LogicalResult emitScalarOp(Operation *op);
  void emitScalarElementwise(Operation *op);
  void emitScalarLoad(TileLoadOp op);
  void emitScalarStore(TileStoreOp op);
  void emitVectorOfOne(Operation *op);

  Value reuseBuffer(const BlockPlan &plan, unsigned position, Value tile);
  /// Buffer of a result of scf.for or scf.if, made at its first use.
  Value getOrMakeBuffer(const BlockPlan &plan, unsigned position, Value tile);
  /// Frees the buffer after the last item of `plan` that reads `tile`.
  void expireAfterLastUse(const BlockPlan &plan, unsigned position, Value tile,
                          Value buffer);

  /// Emits a barrier of the threads before `place` if the ops of an item, or an
  /// op between two items, need one.
  void orderBefore(Operation *place, ArrayRef<Operation *> ops);
  void orderItem(const Item &item);
  void orderLoop(Operation *loop);
  /// Emits `body` on one thread of the block.
  void emitOnce(OpBuilder &builder, Location loc,
                llvm::function_ref<void(OpBuilder &)> body);

  KernelOp kernel;
  Threads *threads;
  TileMemory memory;
  TileValues values;
  ThreadOrder order;
  /// Replaced ops, erased when nothing refers to them.
  SmallVector<Operation *> dead;
  /// Buffers to free, by plan and position in it.
  llvm::DenseMap<std::pair<const BlockPlan *, unsigned>, SmallVector<Value>>
      expiring;
};

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_DISTRIBUTOR_H
