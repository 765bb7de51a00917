//===- TeamLowering.cpp - Teams as three numbers --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "mlir/IR/Matchers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

LogicalResult KernelLowering::lowerTeamOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  ThisRank me = {rank, constIndex(ranks, b), constIndex(lsaSize, b)};
  auto constant = [&](int64_t value) { return constIndex(value, b); };
  return teams.lower(op, me, constant, rewriter, b);
}

/// Whether `rank` is certainly a member's number: its range ends below a
/// constant size, or a loop over this team's ranks counts through it.
static bool isMemberOf(Value rank, int64_t size) {
  APInt number;
  if (matchPattern(rank, m_ConstantInt(&number)))
    return number.ult(size);
  if (auto rest = rank.getDefiningOp<arith::RemUIOp>())
    return matchPattern(rest.getRhs(), m_ConstantInt(&number)) &&
           !number.isZero() && number.ule(size);
  auto argument = dyn_cast<BlockArgument>(rank);
  auto loop =
      argument
          ? dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp())
          : scf::ForOp();
  APInt lower, upper;
  return loop && loop.getInductionVar() == rank &&
         matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) &&
         matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) &&
         lower.sge(0) && upper.sle(size);
}

FailureOr<Value> KernelLowering::checkedWorldRank(Operation *op, Value team,
                                                  Value rank,
                                                  ImplicitLocOpBuilder &b) {
  FailureOr<TeamNumbers> numbers = getTeam(team);
  if (failed(numbers))
    return failure();
  auto peer = peersOf.find(rank);
  bool isMember = peer != peersOf.end() && peer->second == team;
  APInt size;
  if (!isMember && matchPattern(numbers->size, m_ConstantInt(&size)))
    isMember = isMemberOf(rank, size.getSExtValue());
  if (!isMember) {
    Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, rank,
                                          numbers->size);
    auto check = scf::IfOp::create(b, outside, /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(b.getLoc(), check.thenYield());
    fail(op, "rank of a peer", toI64(rank, inner), toI64(numbers->size, inner),
         inner);
  }
  return worldRank(team, rank, b);
}
