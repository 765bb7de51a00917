//===- TeamLowering.cpp - Teams as three numbers --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/cpu/KernelLowering.h"

#include "mlir/IR/Matchers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::cpu;

LogicalResult KernelLowering::lowerTeamOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  ThisRank me = {field(Field::Rank), field(Field::Ranks),
                 field(Field::LsaSize)};
  auto constant = [&](int64_t value) { return constIndex(value, b); };
  return teams.lower(op, me, constant, rewriter, b);
}

/// Whether `rank` is certainly a member's number: a constant below a constant
/// size, or one that a loop over this team's ranks counts through.
bool KernelLowering::isKnownMember(Value team, Value rank) {
  auto peer = peersOf.find(rank);
  if (peer != peersOf.end() && peer->second == team)
    return true;
  FailureOr<TeamNumbers> numbers = teams.get(team);
  APInt size, number;
  if (failed(numbers) || !matchPattern(numbers->size, m_ConstantInt(&size)))
    return false;
  if (matchPattern(rank, m_ConstantInt(&number)))
    return number.ult(size);
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
  if (!isKnownMember(team, rank)) {
    Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, rank,
                                          numbers->size);
    auto check = scf::IfOp::create(b, outside, /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(b.getLoc(), check.thenYield());
    callRuntime(inner, "out_of_bounds",
                {siteOf(op, inner, "rank of a peer"), toI64(rank, inner),
                 constI64(1, inner), toI64(numbers->size, inner)});
  }
  return worldRank(team, rank, b);
}
