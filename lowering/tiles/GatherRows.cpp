//===- GatherRows.cpp - Row reductions that may share an exchange ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/GatherRows.h"

#include "lowering/tiles/Stage.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

namespace {
/// The rows of one block.
class Gatherer {
public:
  explicit Gatherer(Block &block) : block(block) {}

  void run();

private:
  /// Exchanges that have to come before `op`, one after the other.
  unsigned findDepth(Operation *op) const;
  /// Ops after `place` that `row` needs, in their order; nullopt when one of
  /// them has to stay where it is.
  std::optional<SmallVector<Operation *>> findNeeded(Operation *row,
                                                     Operation *place) const;

  Block &block;
  llvm::DenseMap<Operation *, unsigned> depths;
};
} // namespace

/// Calls `use` for each op of `block` whose result `op`, or an op in its
/// regions, uses.
static void forEachUsed(Operation *op, Block &block,
                        llvm::function_ref<void(Operation *)> use) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *source = operand.getDefiningOp())
        if (source->getBlock() == &block)
          use(source);
  });
}

static bool isLongRow(Operation *op) {
  return isa<RowReduceOp>(op) && isLongTile(op->getOperand(0).getType());
}

unsigned Gatherer::findDepth(Operation *op) const {
  unsigned depth = 0;
  forEachUsed(op, block, [&](Operation *source) {
    depth = std::max(depth, depths.lookup(source) + isLongRow(source));
  });
  return depth;
}

std::optional<SmallVector<Operation *>>
Gatherer::findNeeded(Operation *row, Operation *place) const {
  llvm::SmallPtrSet<Operation *, 16> found;
  SmallVector<Operation *> needed = {row};
  for (size_t i = 0; i < needed.size(); ++i) {
    Operation *op = needed[i];
    if (op != row &&
        (op->getNumRegions() || !isMemoryEffectFree(op) || isLongRow(op)))
      return std::nullopt;
    forEachUsed(op, block, [&](Operation *source) {
      if (place->isBeforeInBlock(source) && found.insert(source).second)
        needed.push_back(source);
    });
  }
  llvm::sort(needed,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return needed;
}

void Gatherer::run() {
  SmallVector<Operation *> rows;
  for (Operation &op : block) {
    depths[&op] = findDepth(&op);
    if (isLongRow(&op))
      rows.push_back(&op);
  }
  // Where the next row of a length and a depth goes: after the last one there.
  llvm::DenseMap<std::pair<int64_t, unsigned>, Operation *> places;
  for (Operation *row : rows) {
    int64_t length = *getTileLength(row->getOperand(0).getType());
    Operation *&place = places[{length, depths[row]}];
    std::optional<SmallVector<Operation *>> needed;
    if (place)
      needed = findNeeded(row, place);
    if (!needed) {
      if (!place)
        place = row;
      continue;
    }
    for (Operation *op : *needed) {
      op->moveAfter(place);
      place = op;
    }
  }
}

void tiles::gatherRows(KernelOp kernel) {
  llvm::SmallSetVector<Block *, 4> blocks;
  kernel.walk([&](RowReduceOp op) { blocks.insert(op->getBlock()); });
  for (Block *block : blocks)
    Gatherer(*block).run();
}
