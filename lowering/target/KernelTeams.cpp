//===- KernelTeams.cpp - Teams as three numbers ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/target/KernelBase.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::target;

FailureOr<TeamNumbers> KernelBase::getTeam(Value team) {
  return teams.get(team);
}

FailureOr<Value> KernelBase::worldRank(Value team, Value rank,
                                       ImplicitLocOpBuilder &b) {
  return teams.worldRank(team, rank, b);
}

LogicalResult KernelBase::lowerTeamOp(Operation *op, ImplicitLocOpBuilder &b) {
  auto constant = [&](int64_t value) { return constIndex(value, b); };
  return teams.lower(op, me, constant, rewriter, b);
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

/// Whether `rank` is certainly below `size`: a constant or a remainder is, or a
/// loop counts through it.
static bool isBelow(Value rank, int64_t size) {
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

/// Whether `rank` is certainly a member's number.
bool KernelBase::isKnownMember(const TeamNumbers &numbers, Value team,
                               Value rank) {
  auto peer = peersOf.find(rank);
  if (peer != peersOf.end() && peer->second == team)
    return true;
  APInt size;
  return matchPattern(numbers.size, m_ConstantInt(&size)) &&
         isBelow(rank, size.getSExtValue());
}

FailureOr<Value> KernelBase::checkedWorldRank(Operation *op, Value team,
                                              Value rank,
                                              ImplicitLocOpBuilder &b) {
  FailureOr<TeamNumbers> numbers = getTeam(team);
  if (failed(numbers))
    return failure();
  if (!isKnownMember(*numbers, team, rank)) {
    Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, rank,
                                          numbers->size);
    auto check = scf::IfOp::create(b, outside, /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(b.getLoc(), check.thenYield());
    failBounds(op, "rank of a peer", rank, constIndex(1, inner), numbers->size,
               inner);
  }
  return worldRank(team, rank, b);
}

//===----------------------------------------------------------------------===//
// Loops over peers, roles
//===----------------------------------------------------------------------===//

/// Moves the body of a comms region into `block`, before its scf.yield.
static void moveBody(IRRewriter &rewriter, Block *from, Block *to,
                     ValueRange arguments) {
  rewriter.eraseOp(from->getTerminator());
  rewriter.inlineBlockBefore(from, to->getTerminator(), arguments);
}

LogicalResult KernelBase::lowerPeerLoop(ForPeersOp op,
                                        ImplicitLocOpBuilder &b) {
  FailureOr<TeamNumbers> team = getTeam(op.getTeam());
  if (failed(team))
    return failure();
  Value one = constIndex(1, b);
  Value mine = b.createOrFold<arith::DivUIOp>(
      b.createOrFold<arith::SubIOp>(me.rank, team->first), team->stride);
  auto loop = scf::ForOp::create(b, one, team->size, one);
  ImplicitLocOpBuilder inner(op.getLoc(), loop.getBody(),
                             loop.getBody()->begin());
  // rank ± step, wrapped by one addition or subtraction of the size.
  Value step = loop.getInductionVar();
  if (op.getReversed())
    step = arith::SubIOp::create(inner, team->size, step);
  Value sum = arith::AddIOp::create(inner, mine, step);
  Value wrapped = arith::SubIOp::create(inner, sum, team->size);
  Value wraps =
      arith::CmpIOp::create(inner, arith::CmpIPredicate::uge, sum, team->size);
  Value peer = arith::SelectOp::create(inner, wraps, wrapped, sum);
  peersOf[peer] = op.getTeam();
  moveBody(rewriter, &op.getBody().front(), loop.getBody(), peer);
  rewriter.eraseOp(op);
  return success();
}

void KernelBase::lowerRole(RoleOp op, ImplicitLocOpBuilder &b) {
  Value from = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, block,
                                     constIndex(op.getFirst(), b));
  Value to = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, block,
                                   constIndex(op.getLast(), b));
  Value inside = arith::AndIOp::create(b, from, to);
  auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
  moveBody(rewriter, &op.getBody().front(), branch.thenBlock(), {});
  rewriter.eraseOp(op);
}
