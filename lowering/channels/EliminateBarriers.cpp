//===- EliminateBarriers.cpp - Remove redundant barriers ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A barrier is redundant when an earlier one has just made everybody meet and
// nothing that a barrier orders has happened since. The second of two barriers
// is removed when all of this holds:
//   - both stand in the same block of the same region, so that whoever runs one
//     runs the other, equally often;
//   - they are of the same team and extent;
//   - no op between them, nor in a region between them, synchronizes in another
//     way, or touches memory that anyone else can see, for whom the barrier
//     orders it: parts of windows, and memory of this rank. That counts for a
//     block barrier, too, which the other blocks of this rank are not at: what
//     its peers do next may let them go on. Where a rank has one block, memory
//     of the rank is nobody else's;
//   - no op between them is unknown;
//   - all barriers of the kernel are reached alike on every rank: their control
//     flow depends on no rank and on no data. Else the barrier that one rank
//     passes here may be another op on another rank, which stays: barriers are
//     matched by how many a block has passed.
// The barrier that stays takes the order of both. The last barrier of a kernel
// stays even if the next launch begins with one: launches may differ.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "comms-eliminate-barriers"

namespace mlir::comms {
#define GEN_PASS_DEF_ELIMINATEBARRIERS
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

/// Whether two values name the same team: the same value, or teams made alike.
static bool isSameTeam(Value a, Value b) {
  if (a == b)
    return true;
  // Each step goes to the operand's op; the bound ends a cycle.
  for (int depth = 0; depth < 64; ++depth) {
    auto first = a.getDefiningOp<TeamSplitOp>(),
         second = b.getDefiningOp<TeamSplitOp>();
    if (!first || !second)
      break;
    if (first.getKind() != second.getKind() ||
        first.getFactor() != second.getFactor())
      return false;
    a = first.getTeam();
    b = second.getTeam();
    if (a == b)
      return true;
  }
  auto first = a.getDefiningOp<TeamOp>(), second = b.getDefiningOp<TeamOp>();
  return first && second && first.getKind() == second.getKind();
}

namespace {
/// Finds values that are equal on all blocks that meet at a barrier: the same
/// block of all ranks, or (`allBlocks`) all blocks of all ranks.
class BarrierUniformity {
public:
  explicit BarrierUniformity(bool allBlocks) : allBlocks(allBlocks) {}

  /// Whether control reaches `op` equally often and in the same order.
  bool reaches(Operation *op) {
    for (Operation *parent = op->getParentOp(); !isa<KernelOp>(parent);
         parent = parent->getParentOp())
      if (!isAlike(parent))
        return false;
    return true;
  }

private:
  bool isAlike(Operation *parent) {
    if (!parent->getRegion(0).hasOneBlock())
      return false;
    if (isa<RoleOp>(parent))
      return !allBlocks;
    if (isa<ForPeersOp>(parent))
      return true;
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return holds(loop.getLowerBound()) && holds(loop.getUpperBound()) &&
             holds(loop.getStep());
    auto branch = dyn_cast<scf::IfOp>(parent);
    return branch && holds(branch.getCondition());
  }

  /// Whether a number is the same, wherever control is.
  bool holds(Value value) {
    auto [it, isNew] = known.try_emplace(value, false);
    if (!isNew)
      return it->second;
    bool result = find(value);
    known[value] = result;
    return result;
  }

  bool find(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      return loop && argument == loop.getInductionVar() && isAlike(loop);
    }
    Operation *op = value.getDefiningOp();
    if (isa<BlockIdOp>(op))
      return !allBlocks;
    if (isa<SizeOp, NumBlocksOp, EpochOp, ExtentOp>(op))
      return true;
    return isa_and_nonnull<arith::ArithDialect, index::IndexDialect>(
               op->getDialect()) &&
           op->getNumRegions() == 0 &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return holds(operand); });
  }

  bool allBlocks;
  llvm::DenseMap<Value, bool> known;
};
} // namespace

/// Whether the barriers of `kernel` are the same ops on all ranks, one after
/// the other.
static bool haveSameBarriers(KernelOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return false;
  BarrierUniformity block(/*allBlocks=*/false), grid(/*allBlocks=*/true);
  WalkResult result = kernel.getBody().walk([&](Operation *op) {
    std::optional<BarrierExtent> extent;
    if (auto barrier = dyn_cast<BarrierOp>(op))
      extent = barrier.getExtent();
    if (auto arrival = dyn_cast<BarrierArriveOp>(op))
      extent = arrival.getExtent();
    if (!extent)
      return WalkResult::advance();
    BarrierUniformity &uniformity =
        extent == BarrierExtent::Grid ? grid : block;
    return uniformity.reaches(op) ? WalkResult::advance()
                                  : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// The order that gives what both give.
static MemoryOrder joinOrders(MemoryOrder a, MemoryOrder b) {
  if (a == b || b == MemoryOrder::Relaxed)
    return a;
  return a == MemoryOrder::Relaxed ? b : MemoryOrder::AcqRel;
}

/// Whether another block than that which does `access`, one of this rank or of
/// another, can see it.
static bool isVisible(const Access &access, bool hasOneBlock) {
  MemoryRoot root = access.getRoot();
  return hasOneBlock ? root.isVisibleToPeers() : root.isVisibleToBlocks();
}

/// Whether `op` alone does nothing that a barrier orders.
static bool needsNoBarrierItself(Operation *op, bool hasOneBlock) {
  if (isSynchronization(op) ||
      isa<CheckBoundsOp, RecordAccessOp, RecordSyncOp>(op))
    return false;
  SmallVector<Access, 2> accesses;
  getAccesses(op, accesses);
  if (!accesses.empty())
    return llvm::none_of(accesses, [&](const Access &access) {
      return isVisible(access, hasOneBlock);
    });
  // A new block's memory concerns nobody else; everything else has to be known
  // to touch no memory.
  if (isa<ScratchOp>(op) || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
    return true;
  return isMemoryEffectFree(op);
}

/// The same for `op` and all ops in its regions.
static bool needsNoBarrier(Operation *op, bool hasOneBlock) {
  WalkResult result = op->walk([&](Operation *nested) {
    return needsNoBarrierItself(nested, hasOneBlock) ? WalkResult::advance()
                                                     : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

namespace {
struct EliminateBarriers
    : mlir::comms::impl::EliminateBarriersBase<EliminateBarriers> {
  void runOnOperation() override {
    if (haveSameBarriers(getOperation()))
      getOperation().walk([&](Block *block) { visit(*block); });
  }

private:
  /// Removes barriers of one block, in order, against the last one that stayed.
  void visit(Block &block) {
    bool hasOneBlock = getOperation().getBlocks() == 1;
    BarrierOp last;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto barrier = dyn_cast<BarrierOp>(op);
      if (barrier && last && last.getExtent() == barrier.getExtent() &&
          isSameTeam(last.getTeam(), barrier.getTeam())) {
        last.setOrder(joinOrders(last.getOrder(), barrier.getOrder()));
        LLVM_DEBUG(llvm::dbgs() << "redundant: " << barrier << " at "
                                << barrier.getLoc() << "\n");
        barrier.erase();
        ++numRemoved;
        continue;
      }
      if (barrier)
        last = barrier;
      else if (last && !needsNoBarrier(&op, hasOneBlock))
        last = {};
    }
  }
};
} // namespace
