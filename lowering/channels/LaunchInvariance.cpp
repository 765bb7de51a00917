//===- LaunchInvariance.cpp - Values that are equal in every launch -------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/channels/Protocol.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;

namespace {
/// Follows values and control flow back to what they depend on.
class Invariance {
public:
  /// Whether control reaches `op` alike in every launch.
  bool reaches(Operation *op) {
    Block *block = op->getBlock();
    Operation *parent = block ? block->getParentOp() : nullptr;
    // Branches between blocks are not followed.
    if (!parent || !block->isEntryBlock() || !block->getParent()->hasOneBlock())
      return false;
    if (isa<KernelOp>(parent))
      return true;
    if (!remember(parent))
      return holdsFor(parent);
    bool same = llvm::TypeSwitch<Operation *, bool>(parent)
                    .Case<RoleOp, ForPeersOp>([](auto) { return true; })
                    .Case<scf::ForOp>([&](scf::ForOp loop) {
                      return holds(loop.getLowerBound()) &&
                             holds(loop.getUpperBound()) &&
                             holds(loop.getStep());
                    })
                    .Case<scf::IfOp>([&](scf::IfOp branch) {
                      return holds(branch.getCondition());
                    })
                    .Default(false);
    return record(parent, same && reaches(parent));
  }

  /// Whether `value` is the same in every launch, wherever control is the same.
  bool holds(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *owner = argument.getOwner()->getParentOp();
      auto loop = dyn_cast_or_null<scf::ForOp>(owner);
      bool counts = loop && argument == loop.getInductionVar();
      return (counts && holds(loop.getLowerBound()) && holds(loop.getStep())) ||
             isa_and_nonnull<ForPeersOp>(owner);
    }
    Operation *op = value.getDefiningOp();
    if (!remember(op))
      return holdsFor(op);
    bool pure =
        isa<RankOp, SizeOp, BlockIdOp, NumBlocksOp, TranslateRankOp>(op) ||
        (isa_and_nonnull<arith::ArithDialect>(op->getDialect()) && isPure(op));
    bool same = pure && llvm::all_of(op->getOperands(), [&](Value operand) {
                  return isa<TeamType>(operand.getType()) || holds(operand);
                });
    return record(op, same);
  }

private:
  /// False when `op` has been looked at already, or is being looked at: then it
  /// counts as not the same, which also ends the search in a cycle.
  bool remember(Operation *op) { return known.try_emplace(op, false).second; }
  bool holdsFor(Operation *op) { return known.lookup(op); }
  bool record(Operation *op, bool same) {
    known[op] = same;
    return same;
  }

  llvm::DenseMap<Operation *, bool> known;
};
} // namespace

bool mlir::comms::isLaunchInvariant(Operation *op) {
  Invariance invariance;
  return invariance.reaches(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isa<ChannelType, TeamType>(operand.getType()) ||
                  invariance.holds(operand);
         });
}
