//===- HoistPolls.cpp - Loads of several polls in flight together ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A poll may move up to the poll before it, across computation, plain loads,
// and plain stores to memory that it does not read: nothing that a peer could
// wait for lies between. It may not move across what peers see (stores to them,
// signals, barriers), for the peer might wait for that before it sends.
// Clearing of slots that nobody waits for in this launch (`comms.stale`) moves
// down behind the polls.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

static bool isPoll(Operation *op) {
  return isa<PacketLoadOp, PoisonLoadOp>(op);
}

/// Clears slots that nobody waits for in this launch.
static bool isStaleFill(Operation *op) {
  return isa<PoisonFillOp>(op) && op->hasAttr("comms.stale");
}

static bool isQuiet(Operation *op) {
  return op->getNumRegions() == 0 && isMemoryEffectFree(op);
}

/// The argument, allocation or window that a memref is a part of; null: not
/// known, or a peer's.
static Value getRoot(Value memref) {
  for (int depth = 0; depth < 64; ++depth) {
    Operation *op = memref.getDefiningOp();
    if (!op)
      return memref;
    if (isa<memref::ReinterpretCastOp, memref::SubViewOp, memref::CastOp,
            memref::CollapseShapeOp, memref::ExpandShapeOp, LocalOp>(op))
      memref = op->getOperand(0);
    else
      return isa<ScratchOp, memref::AllocaOp>(op) ? memref : Value();
  }
  return {};
}

static Value getPolled(Operation *poll) {
  if (auto packet = dyn_cast<PacketLoadOp>(poll))
    return packet.getMemref();
  return cast<PoisonLoadOp>(poll).getMemref();
}

/// Memory that a plain store writes; null: not a plain store.
static Value getStored(Operation *op) {
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return store.getBase();
  if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
    return store.getBase();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getMemRef();
  if (auto store = dyn_cast<TileStoreOp>(op))
    return store.getMemref();
  return {};
}

static bool isPlainLoad(Operation *op) {
  return isa<vector::LoadOp, vector::MaskedLoadOp, memref::LoadOp, TileLoadOp>(
      op);
}

namespace {
/// Polls of one block that are next to each other.
struct Group {
  Operation *first = nullptr, *last = nullptr;
  SmallVector<Value> stored; // Memory that was written since `last`.
};
} // namespace

/// Moves `poll` and what it needs up to the group; false: it cannot.
static bool join(Group &group, Operation *poll) {
  Value root = getRoot(getPolled(poll));
  for (Value stored : group.stored)
    if (!root || stored == root)
      return false;
  // What it needs, users before what they use.
  llvm::SetVector<Operation *> needed;
  SmallVector<Operation *> work{poll};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (!definition || definition->getBlock() != poll->getBlock() ||
          definition->isBeforeInBlock(group.first))
        continue;
      if (!isQuiet(definition))
        return false;
      if (needed.insert(definition))
        work.push_back(definition);
    }
  }
  SmallVector<Operation *> order(needed.begin(), needed.end());
  llvm::sort(order,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  for (Operation *op : order)
    op->moveBefore(group.first);
  poll->moveAfter(group.last);
  group.last = poll;
  return true;
}

static void hoistIn(Block &block) {
  Group group;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isPoll(&op)) {
      if (!group.first || !join(group, &op)) {
        group = Group();
        group.first = group.last = &op;
      }
      continue;
    }
    if (isQuiet(&op) || isPlainLoad(&op) || isStaleFill(&op))
      continue;
    Value stored = getStored(&op);
    Value root = stored ? getRoot(stored) : Value();
    if (root)
      group.stored.push_back(root);
    else
      group = Group();
  }
}

/// Fills move down to the next op that synchronises or holds other ops, or to
/// the block's end.
static void sinkFillsIn(Block &block) {
  SmallVector<Operation *> fills;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isStaleFill(&op)) {
      fills.push_back(&op);
      continue;
    }
    if (isQuiet(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (isPoll(&op) || isPlainLoad(&op) || getStored(&op) ||
        isa<PoisonStoreOp, PacketStoreOp>(op))
      continue;
    for (Operation *fill : fills)
      fill->moveBefore(&op);
    fills.clear();
  }
}

static SmallVector<Block *> getBlocks(KernelOp kernel) {
  SmallVector<Block *> blocks;
  kernel.getBody().walk([&](Block *block) { blocks.push_back(block); });
  return blocks;
}

void nvvm::sinkFills(KernelOp kernel) {
  for (Block *block : getBlocks(kernel))
    sinkFillsIn(*block);
}

void nvvm::hoistPolls(KernelOp kernel) {
  sinkFills(kernel);
  for (Block *block : getBlocks(kernel))
    hoistIn(*block);
}
