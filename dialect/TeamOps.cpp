//===- TeamOps.cpp - Teams and identity -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/Teams.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// What is known of a team
//===----------------------------------------------------------------------===//

/// Splits between a value and the team that it starts from, the last made
/// first.
namespace {
struct TeamChain {
  TeamOp base;
  SmallVector<TeamSplitOp> splits;
};
} // namespace

/// Follows splits to the team they start from; fails on anything else. IR that
/// has not been verified may be cyclic or lack attributes.
static FailureOr<TeamChain> getChain(Value team) {
  constexpr size_t longest =
      64; // Each split at least halves a team, or is idle.
  TeamChain chain;
  while (team && chain.splits.size() <= longest) {
    if (auto base = team.getDefiningOp<TeamOp>()) {
      if (!base.getKindAttr())
        return failure();
      chain.base = base;
      return chain;
    }
    auto split = team.getDefiningOp<TeamSplitOp>();
    if (!split || !split.getKindAttr() || !split.getFactorAttr())
      return failure();
    chain.splits.push_back(split);
    team = split.getTeam();
  }
  return failure();
}

/// The attribute's value when it is there and positive.
static std::optional<int64_t> getPositive(IntegerAttr attribute) {
  if (!attribute || attribute.getInt() < 1)
    return std::nullopt;
  return attribute.getInt();
}

static std::optional<int64_t> getBaseSize(TeamOp team) {
  auto kernel = team->getParentOfType<KernelOp>();
  if (!kernel)
    return std::nullopt;
  std::optional<int64_t> ranks = getPositive(kernel.getRanksAttr());
  std::optional<int64_t> reach =
      kernel.getLsaSizeAttr() ? getPositive(kernel.getLsaSizeAttr()) : ranks;
  switch (team.getKind()) {
  case TeamKind::World:
    return ranks;
  case TeamKind::Lsa:
    return reach;
  case TeamKind::Rail:
    if (ranks && reach && *ranks % *reach == 0)
      return *ranks / *reach;
  }
  return std::nullopt;
}

std::optional<int64_t> mlir::comms::getStaticTeamSize(Value team) {
  FailureOr<TeamChain> chain = getChain(team);
  if (failed(chain))
    return std::nullopt;
  std::optional<int64_t> size = getBaseSize(chain->base);
  for (TeamSplitOp split : llvm::reverse(chain->splits)) {
    std::optional<int64_t> factor = getPositive(split.getFactorAttr());
    if (!factor || (size && *size % *factor != 0))
      return std::nullopt;
    if (split.getKind() == SplitKind::Inner)
      size = factor;
    else if (size)
      size = *size / *factor;
  }
  return size;
}

bool mlir::comms::areSameTeam(Value lhs, Value rhs) {
  if (lhs == rhs)
    return true;
  FailureOr<TeamChain> a = getChain(lhs), b = getChain(rhs);
  if (failed(a) || failed(b) || a->base.getKind() != b->base.getKind())
    return false;
  return llvm::equal(a->splits, b->splits, [](TeamSplitOp x, TeamSplitOp y) {
    return x.getKind() == y.getKind() && x.getFactor() == y.getFactor();
  });
}

//===----------------------------------------------------------------------===//
// team_split
//===----------------------------------------------------------------------===//

LogicalResult TeamSplitOp::verify() {
  int64_t factor = getFactorAttr().getInt();
  if (factor < 1)
    return emitOpError() << "C1: factor is " << factor
                         << "; it must be at least 1";
  std::optional<int64_t> size = getStaticTeamSize(getTeam());
  if (size && *size % factor != 0)
    return emitOpError() << "C2: factor " << factor
                         << " does not divide the team's " << *size << " ranks";
  return success();
}

OpFoldResult TeamSplitOp::fold(FoldAdaptor) {
  // Neighbors of the whole team, or every rank of it: the team itself.
  if (getTeam() == getResult())
    return {};
  int64_t factor = getFactorAttr().getInt();
  if (getKind() == SplitKind::Outer)
    return factor == 1 ? OpFoldResult(getTeam()) : OpFoldResult();
  return getStaticTeamSize(getTeam()) == factor ? OpFoldResult(getTeam())
                                                : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// rank, size, translate_rank
//===----------------------------------------------------------------------===//

/// No machine has more ranks or blocks: identities fit 31 bits.
static constexpr int64_t largestCount = std::numeric_limits<int32_t>::max();

/// The range [smallest, largest] of an index.
static ConstantIntRanges getRange(int64_t smallest, int64_t largest) {
  return ConstantIntRanges::fromSigned(APInt(64, smallest, /*isSigned=*/true),
                                       APInt(64, largest, /*isSigned=*/true));
}

/// The range of a rank of `team`.
static ConstantIntRanges getRankRange(Value team) {
  return getRange(0, getStaticTeamSize(team).value_or(largestCount) - 1);
}

static OpFoldResult getIndex(MLIRContext *context, int64_t value) {
  return IntegerAttr::get(IndexType::get(context), value);
}

OpFoldResult RankOp::fold(FoldAdaptor) {
  if (getStaticTeamSize(getTeam()) == 1)
    return getIndex(getContext(), 0);
  return {};
}

OpFoldResult SizeOp::fold(FoldAdaptor) {
  if (std::optional<int64_t> size = getStaticTeamSize(getTeam()))
    return getIndex(getContext(), *size);
  return {};
}

OpFoldResult TranslateRankOp::fold(FoldAdaptor) {
  if (getRank() != getResult() && areSameTeam(getFrom(), getTo()))
    return getRank();
  return {};
}

LogicalResult TranslateRankOp::canonicalize(TranslateRankOp op,
                                            PatternRewriter &rewriter) {
  // This rank's number in one team, translated, is its number in the other.
  auto rank = op.getRank().getDefiningOp<RankOp>();
  if (!rank || !areSameTeam(rank.getTeam(), op.getFrom()))
    return failure();
  rewriter.replaceOpWithNewOp<RankOp>(op, op.getTo());
  return success();
}

void RankOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), getRankRange(getTeam()));
}

void SizeOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  std::optional<int64_t> size = getStaticTeamSize(getTeam());
  set(getResult(), getRange(size.value_or(1), size.value_or(largestCount)));
}

/// The result is undefined if `rank` is not a rank of `from`, or has no number
/// in `to`.
void TranslateRankOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges,
                                        SetIntRangeFn set) {
  set(getResult(),
      ConstantIntRanges::maxRange(ranges.front().smin().getBitWidth()));
}

//===----------------------------------------------------------------------===//
// block_id, num_blocks, epoch
//===----------------------------------------------------------------------===//

/// Blocks of a rank, when the kernel around `op` fixes them.
static std::optional<int64_t> getBlocks(Operation *op) {
  auto kernel = op->getParentOfType<KernelOp>();
  return kernel ? getPositive(kernel.getBlocksAttr()) : std::nullopt;
}

/// The range of the number of a block that runs `op`: roles leave some out.
static ConstantIntRanges getBlockRange(Operation *op) {
  int64_t first = 0, last = getBlocks(op).value_or(largestCount);
  if (auto role = op->getParentOfType<RoleOp>()) {
    int64_t from = role.getFirstAttr().getInt(),
            to = role.getLastAttr().getInt();
    if (0 <= from && from < to && to <= last)
      return getRange(from, to - 1);
  }
  return getRange(first, last - 1);
}

void BlockIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                  SetIntRangeFn set) {
  set(getResult(), getBlockRange(getOperation()));
}

void NumBlocksOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                    SetIntRangeFn set) {
  std::optional<int64_t> blocks = getBlocks(getOperation());
  set(getResult(), getRange(blocks.value_or(1), blocks.value_or(largestCount)));
}

LogicalResult ExtentOp::verify() {
  if (static_cast<int64_t>(getMost()) < 0)
    return emitOpError("C1: an extent is at most ")
           << static_cast<int64_t>(getMost()) << ", which is below 0";
  return success();
}

void ExtentOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                 SetIntRangeFn set) {
  set(getResult(), getRange(0, static_cast<int64_t>(getMost())));
}

void EpochOp::inferResultRanges(ArrayRef<ConstantIntRanges>,
                                SetIntRangeFn set) {
  set(getResult(), getRange(1, std::numeric_limits<int64_t>::max()));
}
