//===- TeamNumbers.cpp - Teams as three numbers ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/TeamNumbers.h"

using namespace mlir;
using namespace mlir::comms;

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

FailureOr<TeamNumbers> TeamTable::get(Value team) const {
  auto it = teams.find(team);
  if (it != teams.end())
    return it->second;
  return emitError(team.getLoc())
         << target
         << " must know its teams: this one does not come from comms.team or "
            "comms.team_split; use the team where it is made";
}

LogicalResult TeamTable::lower(Operation *op, const ThisRank &me,
                               llvm::function_ref<Value(int64_t)> constant,
                               RewriterBase &rewriter,
                               ImplicitLocOpBuilder &b) {
  Calculator c{b};
  auto [rank, ranks, lsa] = me;
  if (auto team = dyn_cast<TeamOp>(op)) {
    Value zero = constant(0), one = constant(1);
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
    FailureOr<TeamNumbers> team = get(part.getTeam());
    if (failed(team))
      return failure();
    if (static_cast<int64_t>(part.getFactor()) <= 0)
      return op->emitOpError("cannot split a team by a factor below 1");
    teams[part] =
        split(*team, part.getKind(), constant(part.getFactor()), rank, c);
    return success();
  }
  if (auto mine = dyn_cast<RankOp>(op)) {
    FailureOr<TeamNumbers> team = get(mine.getTeam());
    if (failed(team))
      return failure();
    rewriter.replaceOp(op, c.div(c.sub(rank, team->first), team->stride));
    return success();
  }
  if (auto size = dyn_cast<SizeOp>(op)) {
    FailureOr<TeamNumbers> team = get(size.getTeam());
    if (failed(team))
      return failure();
    rewriter.replaceOp(op, team->size);
    return success();
  }
  auto translate = cast<TranslateRankOp>(op);
  FailureOr<Value> world =
      worldRank(translate.getFrom(), translate.getRank(), b);
  FailureOr<TeamNumbers> to = get(translate.getTo());
  if (failed(world) || failed(to))
    return failure();
  // Signed: a rank before the team's first must not become a huge number.
  Value within = b.createOrFold<arith::DivSIOp>(
      b.createOrFold<arith::SubIOp>(*world, to->first), to->stride);
  rewriter.replaceOp(op, within);
  return success();
}

FailureOr<Value> TeamTable::worldRank(Value team, Value rank,
                                      ImplicitLocOpBuilder &b) const {
  FailureOr<TeamNumbers> numbers = get(team);
  if (failed(numbers))
    return failure();
  Calculator c{b};
  return c.add(numbers->first, c.mul(rank, numbers->stride));
}
