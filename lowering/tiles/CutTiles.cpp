//===- CutTiles.cpp - Parts of tiles pass through memory ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/CutTiles.h"

#include "dialect/TileCuts.h"
#include "lowering/tiles/Stage.h"
#include "lowering/tiles/TileMemory.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

namespace {
/// Rewrites the tile cuts of one kernel.
class TileCutter {
public:
  explicit TileCutter(KernelOp kernel) : kernel(kernel) {}

  void run();

private:
  void cut(tensor::ExtractSliceOp slice);
  void join(tensor::ConcatOp concat);
  /// Memory for a tile of that type that nothing in `block` or around it uses
  /// so far. Blocks of which none is in the other share memory.
  Value takeMemory(Location loc, RankedTensorType tile, Block *block);
  /// How many memories of a type `block` and the blocks around it use.
  unsigned &countUsed(MemRefType type, Block *block);
  /// Memory that holds all of `tile` where `slice`, in the same block, is.
  Value holdTile(tensor::ExtractSliceOp slice);
  static void store(OpBuilder &builder, Location loc, Value tile, Value memory,
                    int64_t offset);
  /// Elements of `memory` from `offset` on take the place of the op's result.
  static void load(Operation *op, Value memory, int64_t offset);

  KernelOp kernel;
  /// What holds a tile, by the block that needs parts of it.
  llvm::DenseMap<std::pair<Value, Block *>, Value> held;
  llvm::DenseMap<Type, SmallVector<Value>> memories;
  llvm::DenseMap<std::pair<Type, Block *>, unsigned> used;
};
} // namespace

unsigned &TileCutter::countUsed(MemRefType type, Block *block) {
  auto [it, isNew] = used.try_emplace({type, block}, 0);
  if (isNew) {
    unsigned around = 0;
    for (Operation *op = block->getParentOp(); op && op != kernel;
         op = op->getParentOp())
      around = std::max(around, used.lookup({type, op->getBlock()}));
    it->second = around;
  }
  return it->second;
}

Value TileCutter::takeMemory(Location loc, RankedTensorType tile,
                             Block *block) {
  auto type = MemRefType::get(tile.getShape(), tile.getElementType());
  unsigned number = countUsed(type, block)++;
  SmallVector<Value> &all = memories[type];
  if (number == all.size()) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    all.push_back(ScratchOp::create(builder, loc, type));
  }
  return all[number];
}

void TileCutter::store(OpBuilder &builder, Location loc, Value tile,
                       Value memory, int64_t offset) {
  TileStoreOp::create(builder, loc, tile, memory,
                      getIndex(builder, loc, offset), /*valid=*/Value());
}

void TileCutter::load(Operation *op, Value memory, int64_t offset) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value part = TileLoadOp::create(builder, loc, op->getResult(0).getType(),
                                  memory, getIndex(builder, loc, offset),
                                  /*valid=*/Value(), /*after=*/Value());
  op->getResult(0).replaceAllUsesWith(part);
  op->erase();
}

/// The ops of a block are visited in order: the first that needs parts of the
/// tile stores it for the others.
Value TileCutter::holdTile(tensor::ExtractSliceOp slice) {
  Value tile = slice.getSource();
  Value &memory = held[{tile, slice->getBlock()}];
  if (!memory) {
    memory =
        takeMemory(slice.getLoc(), slice.getSourceType(), slice->getBlock());
    OpBuilder builder(slice);
    store(builder, slice.getLoc(), tile, memory, 0);
  }
  return memory;
}

void TileCutter::cut(tensor::ExtractSliceOp slice) {
  if (slice.getSourceType() == slice.getType()) {
    slice.replaceAllUsesWith(slice.getSource());
    slice->erase();
    return;
  }
  load(slice, holdTile(slice), slice.getStaticOffsets()[0]);
}

void TileCutter::join(tensor::ConcatOp concat) {
  OpBuilder builder(concat);
  Location loc = concat.getLoc();
  Value memory =
      takeMemory(loc, cast<RankedTensorType>(concat.getResult().getType()),
                 concat->getBlock());
  int64_t offset = 0;
  for (Value tile : concat.getInputs()) {
    store(builder, loc, tile, memory, offset);
    offset += *getTileLength(tile.getType());
  }
  load(concat, memory, 0);
}

void TileCutter::run() {
  SmallVector<Operation *> cuts;
  kernel.walk([&](Operation *op) {
    if (isTileCut(op))
      cuts.push_back(op);
  });
  // What a cut is made of has been rewritten before it.
  for (Operation *op : cuts) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      cut(slice);
    else
      join(cast<tensor::ConcatOp>(op));
  }
}

void tiles::cutTiles(KernelOp kernel) { TileCutter(kernel).run(); }
