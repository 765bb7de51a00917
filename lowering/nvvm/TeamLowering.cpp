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

namespace {
/// Index arithmetic that folds what is known.
struct Calculator {
  ImplicitLocOpBuilder &b;
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return b.createOrFold<arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return b.createOrFold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return b.createOrFold<arith::DivUIOp>(x, y); }
  Value rem(Value x, Value y) { return b.createOrFold<arith::RemUIOp>(x, y); }
};
} // namespace

static TeamNumbers split(const TeamNumbers &team, SplitKind kind, Value factor,
                         Value rank, Calculator c) {
  Value within = c.div(c.sub(rank, team.first), team.stride);
  if (kind == SplitKind::Inner) {
    Value start = c.mul(c.div(within, factor), c.mul(factor, team.stride));
    return {c.add(team.first, start), team.stride, factor};
  }
  Value start = c.mul(c.rem(within, factor), team.stride);
  return {c.add(team.first, start), c.mul(team.stride, factor),
          c.div(team.size, factor)};
}

FailureOr<TeamNumbers> KernelLowering::getTeam(Value team) {
  auto it = teams.find(team);
  if (it != teams.end())
    return it->second;
  return emitError(team.getLoc())
         << "a GPU kernel must know its teams: this one does not come "
            "from comms.team or comms.team_split; "
            "use the team where it is made";
}

LogicalResult KernelLowering::lowerTeamOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  Calculator c{b};
  Value ranks = constIndex(this->ranks, b), lsa = constIndex(lsaSize, b);
  if (auto team = dyn_cast<TeamOp>(op)) {
    Value zero = constIndex(0, b), one = constIndex(1, b);
    switch (team.getKind()) {
    case TeamKind::World:
      teams[team] = {zero, one, ranks};
      break;
    case TeamKind::Lsa:
      teams[team] = {c.mul(c.div(rank, lsa), lsa), one, lsa};
      break;
    case TeamKind::Rail:
      teams[team] = {c.rem(rank, lsa), lsa, c.div(ranks, lsa)};
      break;
    }
    return success();
  }
  if (auto part = dyn_cast<TeamSplitOp>(op)) {
    FailureOr<TeamNumbers> team = getTeam(part.getTeam());
    if (failed(team))
      return failure();
    if (static_cast<int64_t>(part.getFactor()) <= 0)
      return op->emitOpError("cannot split a team by a factor below 1");
    teams[part] =
        split(*team, part.getKind(), constIndex(part.getFactor(), b), rank, c);
    return success();
  }
  if (auto mine = dyn_cast<RankOp>(op)) {
    FailureOr<TeamNumbers> team = getTeam(mine.getTeam());
    if (failed(team))
      return failure();
    rewriter.replaceOp(op, c.div(c.sub(rank, team->first), team->stride));
    return success();
  }
  if (auto size = dyn_cast<SizeOp>(op)) {
    FailureOr<TeamNumbers> team = getTeam(size.getTeam());
    if (failed(team))
      return failure();
    rewriter.replaceOp(op, team->size);
    return success();
  }
  auto translate = cast<TranslateRankOp>(op);
  FailureOr<Value> world =
      worldRank(translate.getFrom(), translate.getRank(), b);
  FailureOr<TeamNumbers> to = getTeam(translate.getTo());
  if (failed(world) || failed(to))
    return failure();
  // Signed: a rank before the team's first must not become a huge number.
  Value within = b.createOrFold<arith::DivSIOp>(
      b.createOrFold<arith::SubIOp>(*world, to->first), to->stride);
  rewriter.replaceOp(op, within);
  return success();
}

FailureOr<Value> KernelLowering::worldRank(Value team, Value rank,
                                           ImplicitLocOpBuilder &b) {
  FailureOr<TeamNumbers> numbers = getTeam(team);
  if (failed(numbers))
    return failure();
  Calculator c{b};
  return c.add(numbers->first, c.mul(rank, numbers->stride));
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
