//===- UnrollRanks.cpp - Loops over ranks become straight lines -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of many threads keeps a tile in registers as long as what it does
// with it stands in one basic block. So loops over few ranks are unrolled, and
// poison is filled in behind what is on the way to the result.
//
//===----------------------------------------------------------------------===//

#include "lowering/Accesses.h"
#include "lowering/Passes.h"
#include "lowering/tiles/Stage.h"
#include "lowering/tiles/ThreadOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::comms {
#define GEN_PASS_DEF_UNROLLRANKS
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

/// Ops that all copies of a loop's body may have.
static constexpr int64_t maxOps = 4096;

/// Iterations of a loop with constant bounds, if they are few.
static std::optional<int64_t> getFewIterations(scf::ForOp loop, int64_t limit) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> last = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  int64_t span;
  if (!first || !last || !step || *step < 1 ||
      __builtin_sub_overflow(*last, *first, &span))
    return std::nullopt;
  int64_t iterations = span <= 0 ? 0 : (span - 1) / *step + 1;
  if (iterations > limit)
    return std::nullopt;
  return iterations;
}

static int64_t countOps(Operation *op) {
  int64_t count = 0;
  op->walk([&](Operation *) { ++count; });
  return count;
}

/// Whether a loop moves tiles or carries them.
static bool handlesTiles(Operation *loop) {
  return tiles::touchesTiles(loop) || loop->walk([](Operation *op) {
                                            return isa<PoisonFillOp, PeerOp>(op)
                                                       ? WalkResult::interrupt()
                                                       : WalkResult::advance();
                                          })
                                          .wasInterrupted();
}

/// Copies the region of `op` once for each peer.
static void unrollPeers(ForPeersOp op, int64_t limit) {
  std::optional<int64_t> size = getConstantTeamSize(op.getTeam());
  if (!size || *size > limit || !op.getBody().hasOneBlock() ||
      countOps(op) * *size > maxOps || !handlesTiles(op))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value rank = RankOp::create(b, loc, op.getTeam());
  Value ranks = arith::ConstantIndexOp::create(b, loc, *size);
  Block &body = op.getBody().front();
  for (int64_t i = 1; i < *size; ++i) {
    int64_t distance = op.getReversed() ? *size - i : i;
    Value sum = arith::AddIOp::create(
        b, loc, rank, arith::ConstantIndexOp::create(b, loc, distance));
    IRMapping mapping;
    mapping.map(body.getArgument(0),
                arith::RemUIOp::create(b, loc, sum, ranks).getResult());
    for (Operation &inner : body.without_terminator())
      b.clone(inner, mapping);
  }
  op.erase();
}

/// Moves a fill, which nobody waits for in this launch, behind what stands
/// between it and the next op at which this block may meet others: a sender
/// that has met this block relies on the fill.
static void sink(PoisonFillOp fill) {
  Operation *last = fill->getBlock()->getTerminator();
  for (Operation *op = fill->getNextNode(); op != last; op = op->getNextNode())
    if (op->walk([](Operation *inner) {
            return tiles::isMeeting(inner) ? WalkResult::interrupt()
                                           : WalkResult::advance();
          }).wasInterrupted()) {
      last = op;
      break;
    }
  fill->moveBefore(last);
}

namespace {
struct UnrollRanks : comms::impl::UnrollRanksBase<UnrollRanks> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<ForPeersOp> visits;
    kernel.walk([&](ForPeersOp op) { visits.push_back(op); });
    for (ForPeersOp op : visits)
      unrollPeers(op, limit);
    // Inner loops come first: an outer one copies what they have become.
    SmallVector<scf::ForOp> loops;
    kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      std::optional<int64_t> iterations = getFewIterations(loop, limit);
      if (iterations && countOps(loop) * *iterations <= maxOps &&
          handlesTiles(loop))
        (void)loopUnrollFull(loop);
    }
    // Branches that the number of a rank decides.
    RewritePatternSet patterns(&getContext());
    scf::IfOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      return signalPassFailure();
    SmallVector<PoisonFillOp> fills;
    kernel.walk([&](PoisonFillOp fill) {
      if (fill->hasAttr(tiles::kStaleAttr))
        fills.push_back(fill);
    });
    for (PoisonFillOp fill : fills)
      sink(fill);
  }
};
} // namespace
