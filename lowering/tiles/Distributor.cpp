//===- Distributor.cpp - Blocks and stages become loops -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Distributor.h"

#include "lowering/tiles/StageEmitter.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

//===----------------------------------------------------------------------===//
// Blocks and stages
//===----------------------------------------------------------------------===//

LogicalResult Distributor::run() {
  for (Block &block : kernel.getBody())
    if (failed(emitBlock(block, {})))
      return failure();
  for (Operation *op : dead)
    op->dropAllReferences();
  for (Operation *op : dead) {
    op->dropAllUses();
    op->erase();
  }
  return success();
}

LogicalResult Distributor::emitBlock(Block &block, ArrayRef<Copy> atEnd) {
  BlockPlan plan = planBlock(block, atEnd);
  // What is there now, without what is emitted.
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  ArrayRef<Operation *> rest = ops;
  for (unsigned position = 0; position < plan.items.size(); ++position) {
    if (threads) {
      while (rest.front() != plan.items[position].op) {
        if (!plan.itemOf.contains(rest.front()))
          orderBefore(rest.front(), rest.front());
        rest = rest.drop_front();
      }
      orderItem(plan.items[position]);
    }
    LogicalResult result = plan.items[position].stage
                               ? emitStage(plan, position)
                               : emitOp(plan, position);
    if (failed(result))
      return failure();
    auto it = expiring.find({&plan, position});
    if (it == expiring.end())
      continue;
    for (Value buffer : it->second)
      memory.give(buffer);
    expiring.erase(it);
  }
  if (threads)
    for (Operation *op : rest)
      if (!plan.itemOf.contains(op))
        orderBefore(op, op);
  return success();
}

/// Whether a use by a loop's start or a yield is met by a copy of the stage.
static bool isCopiedBy(const Stage &stage, OpOperand &use) {
  return llvm::any_of(stage.copies, [&](const Copy &copy) {
    return copy.source == use.get() && copy.user == use.getOwner();
  });
}

/// Tiles that the stage makes and ops outside it read.
static SmallVector<Value> getKeptTiles(const Stage &stage) {
  SmallVector<Value> kept;
  for (Operation *op : stage.ops)
    for (Value result : op->getResults())
      if (isLongTile(result.getType()) &&
          llvm::any_of(result.getUses(), [&](OpOperand &use) {
            return !stage.members.contains(use.getOwner()) &&
                   !isCopiedBy(stage, use);
          }))
        kept.push_back(result);
  return kept;
}

LogicalResult Distributor::emitStage(const BlockPlan &plan, unsigned position) {
  const Item &item = plan.items[position];
  const Stage &stage = *item.stage;
  OpBuilder builder(item.op);
  SmallVector<std::pair<Value, Value>> kept;
  bool inRegisters = threads && staysInRegisters(stage, *threads);
  for (Value tile : getKeptTiles(stage)) {
    if (inRegisters) {
      kept.push_back({tile, Value()});
      continue;
    }
    Value buffer = reuseBuffer(plan, position, tile);
    values.setBuffer(tile, buffer);
    kept.push_back({tile, buffer});
  }
  for (const Copy &copy : stage.copies)
    getOrMakeBuffer(plan, position, copy.target);
  if (failed(StageEmitter(builder, stage, values, kept).emit()))
    return failure();
  // Only now: buffers of this stage must not be taken by its own reductions.
  for (auto [tile, buffer] : kept)
    if (buffer)
      expireAfterLastUse(plan, position, tile, buffer);
  // A reduction ends where all threads have met.
  if (llvm::any_of(stage.ops,
                   [](Operation *op) { return isa<RowReduceOp>(op); }) &&
      !(threads && threads->countsArrivals()))
    order.meet();
  dead.append(stage.ops.begin(), stage.ops.end());
  return success();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

void Distributor::expireAfterLastUse(const BlockPlan &plan, unsigned position,
                                     Value tile, Value buffer) {
  Block *block = tile.getParentBlock();
  unsigned last = position;
  for (Operation *user : tile.getUsers()) {
    Operation *inBlock = block->findAncestorOpInBlock(*user);
    auto it = inBlock ? plan.itemOf.find(inBlock) : plan.itemOf.end();
    // Read by the terminator or in another block: never free.
    if (it == plan.itemOf.end())
      return;
    last = std::max(last, it->second);
  }
  expiring[{&plan, last}].push_back(buffer);
}

Value Distributor::getOrMakeBuffer(const BlockPlan &plan, unsigned position,
                                   Value tile) {
  if (Value buffer = values.getBuffer(tile))
    return buffer;
  auto type = cast<ShapedType>(tile.getType());
  Value buffer =
      memory.take(tile.getLoc(), type.getNumElements(), type.getElementType());
  values.setBuffer(tile, buffer);
  auto owner = plan.itemOf.find(tile.getDefiningOp());
  if (owner != plan.itemOf.end())
    expireAfterLastUse(plan, std::max(position, owner->second), tile, buffer);
  return buffer;
}

/// A stage writes what it keeps after it has read the same elements: a buffer
/// that it is the last to read may hold what it keeps.
Value Distributor::reuseBuffer(const BlockPlan &plan, unsigned position,
                               Value tile) {
  auto type = cast<ShapedType>(tile.getType());
  auto bufferType =
      memory.getBufferType(type.getNumElements(), type.getElementType());
  auto it = expiring.find({&plan, position});
  if (it != expiring.end()) {
    auto *free = llvm::find_if(it->second, [&](Value buffer) {
      return buffer.getType() == bufferType;
    });
    if (free != it->second.end()) {
      Value buffer = *free;
      it->second.erase(free);
      return buffer;
    }
  }
  return memory.take(tile.getLoc(), type.getNumElements(),
                     type.getElementType());
}

//===----------------------------------------------------------------------===//
// Meetings of the threads
//===----------------------------------------------------------------------===//

void Distributor::orderBefore(Operation *place, ArrayRef<Operation *> ops) {
  if (llvm::any_of(ops, isMeeting))
    return order.meet();
  if (!order.needsBarrierBefore(ops))
    return;
  OpBuilder builder(place);
  threads->emitBarrier(builder, place->getLoc());
}

void Distributor::orderItem(const Item &item) {
  if (item.stage)
    return orderBefore(item.op, item.stage->ops);
  if (item.op->getNumRegions() == 0)
    return orderBefore(item.op, item.op);
  // Ops in regions are ordered one by one.
  if (isa<LoopLikeOpInterface, ForPeersOp>(item.op))
    orderLoop(item.op);
}

void Distributor::orderLoop(Operation *loop) {
  if (!ThreadOrder::needsBarrierInside(loop))
    return;
  for (Region &region : loop->getRegions()) {
    OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
    threads->emitBarrier(builder, loop->getLoc());
  }
}

void Distributor::emitOnce(OpBuilder &builder, Location loc,
                           llvm::function_ref<void(OpBuilder &)> body) {
  if (threads)
    threads->emitOnFirst(builder, loc, body);
  else
    body(builder);
}
