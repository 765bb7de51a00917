//===- UnrollRanks.cpp - Loops over ranks become straight lines -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of many threads keeps a tile in registers as long as what it does
// with it stands in one basic block. So loops over few ranks are unrolled, as
// are a block's loops over its own tiles where every block has as many, and
// poison is filled in behind what is on the way to the result.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/SlowPatterns.h"
#include "lowering/tiles/FoldLoops.h"
#include "lowering/tiles/Stage.h"
#include "lowering/tiles/ThreadOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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
  std::optional<int64_t> iterations = tiles::getIterations(loop);
  return iterations && *iterations <= limit ? iterations : std::nullopt;
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

/// Whether `count` copies of a body are not too much code. A matrix product is
/// thousands of instructions, and keeps no tile in registers for the next op.
static bool mayCopy(Operation *loop, int64_t count) {
  bool hasProduct =
      loop->walk([](ContractOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  return countOps(loop) * count <= maxOps && (count <= 1 || !hasProduct);
}

/// Copies the region of `op` once for each peer.
static void unrollPeers(ForPeersOp op, int64_t limit) {
  std::optional<int64_t> size = getConstantTeamSize(op.getTeam());
  if (!size || *size > limit || !op.getBody().hasOneBlock() ||
      !mayCopy(op, *size - 1) || !handlesTiles(op))
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

//===----------------------------------------------------------------------===//
// Loops over a block's own tiles
//===----------------------------------------------------------------------===//

/// Turns of such a loop that become straight code, at most.
static constexpr int64_t maxTileTurns = 8;
/// Loads and polls that all turns may have where they become straight code, and
/// that copies of a body may have where a loop is left: as many vectors as a
/// thread's registers hold besides what it computes.
static constexpr int64_t maxStraightLoads = 16, maxLoads = 8;

/// The value of an index, where it is the same in all blocks.
static std::optional<int64_t> evaluate(Value index, int64_t blocks) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return constant;
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<NumBlocksOp>(op))
    return blocks;
  if (!isa_and_nonnull<arith::MulIOp>(op))
    return std::nullopt;
  std::optional<int64_t> x = evaluate(op->getOperand(0), blocks),
                         y = evaluate(op->getOperand(1), blocks);
  int64_t product;
  if (!x || !y || __builtin_mul_overflow(*x, *y, &product))
    return std::nullopt;
  return product;
}

/// The greatest value of an index that counts ranks, blocks or tiles.
static std::optional<int64_t> getGreatest(Value index, int64_t blocks) {
  if (std::optional<int64_t> known = evaluate(index, blocks))
    return known;
  Operation *op = index.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<BlockIdOp>(op))
    return blocks - 1;
  if (isa<arith::RemUIOp>(op)) {
    std::optional<int64_t> divisor = evaluate(op->getOperand(1), blocks);
    return divisor && *divisor > 0 ? std::optional(*divisor - 1) : std::nullopt;
  }
  if (!isa<arith::AddIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<int64_t> x = getGreatest(op->getOperand(0), blocks),
                         y = getGreatest(op->getOperand(1), blocks);
  int64_t result;
  if (!x || !y || *x < 0 || *y < 0 ||
      (isa<arith::AddIOp>(op) ? __builtin_add_overflow(*x, *y, &result)
                              : __builtin_mul_overflow(*x, *y, &result)))
    return std::nullopt;
  return result;
}

namespace {
/// Turns of a loop over a block's own tiles.
struct TileTurns {
  int64_t count;
  /// Whether every block makes so many; else one less may be.
  bool isExact;
};
} // namespace

static std::optional<TileTurns> getTileTurns(scf::ForOp loop, int64_t blocks) {
  if (!loop.getInductionVar().getType().isIndex())
    return std::nullopt;
  std::optional<int64_t> first = getGreatest(loop.getLowerBound(), blocks),
                         end = evaluate(loop.getUpperBound(), blocks),
                         step = evaluate(loop.getStep(), blocks);
  if (!first || !end || !step || *step < 1 || *first < 0 || *first >= *step ||
      *end < 1 || loop->getNumResults())
    return std::nullopt;
  return TileTurns{(*end - 1) / *step + 1, *end % *step == 0};
}

/// Whether copies of the body gain by standing together: no threads meet and
/// no op holds others in it.
static bool mayInterleave(scf::ForOp loop) {
  return llvm::none_of(*loop.getBody(), [](Operation &op) {
    return op.getNumRegions() || isa<RowReduceOp, ContractOp>(op) ||
           tiles::isMeeting(&op);
  });
}

static int64_t countLoads(scf::ForOp loop) {
  return llvm::count_if(*loop.getBody(), [](Operation &op) {
    return isa<TileLoadOp, PacketLoadOp, PoisonLoadOp>(op);
  });
}

/// Copies of the body in a turn: all turns, or as many as divide them.
static int64_t getCopies(scf::ForOp loop, int64_t turns) {
  if (turns == 1)
    return 1;
  if (!mayInterleave(loop))
    return 0;
  if (turns <= maxTileTurns && countOps(loop) * turns <= maxOps &&
      countLoads(loop) * turns <= maxStraightLoads)
    return turns;
  for (int64_t copies : {4, 2})
    if (turns % copies == 0 && copies * countLoads(loop) <= maxLoads)
      return copies;
  return 0;
}

/// `copies` turns of `loop` stand where `b` is, the first with `index`.
static void copyBody(OpBuilder &b, scf::ForOp loop, Value index,
                     int64_t copies) {
  for (int64_t copy = 0; copy < copies; ++copy) {
    if (copy > 0)
      index = arith::AddIOp::create(b, loop.getLoc(), index, loop.getStep());
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), index);
    for (Operation &op : loop.getBody()->without_terminator())
      b.clone(op, mapping);
  }
}

static void unrollTiles(scf::ForOp loop, int64_t blocks) {
  std::optional<TileTurns> turns = getTileTurns(loop, blocks);
  if (!turns || !handlesTiles(loop))
    return;
  OpBuilder b(loop);
  if (!turns->isExact) {
    if (turns->count > 1)
      return;
    Value exists =
        arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::slt,
                              loop.getLowerBound(), loop.getUpperBound());
    auto branch =
        scf::IfOp::create(b, loop.getLoc(), exists, /*withElseRegion=*/false);
    b.setInsertionPoint(branch.thenYield());
    copyBody(b, loop, loop.getLowerBound(), 1);
    loop.erase();
    return;
  }
  int64_t copies = getCopies(loop, turns->count);
  if (copies == 0)
    return;
  if (copies == turns->count) {
    copyBody(b, loop, loop.getLowerBound(), copies);
  } else {
    Value factor = arith::ConstantIndexOp::create(b, loop.getLoc(), copies);
    Value step =
        arith::MulIOp::create(b, loop.getLoc(), loop.getStep(), factor);
    auto longer = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(),
                                     loop.getUpperBound(), step);
    b.setInsertionPointToStart(longer.getBody());
    copyBody(b, loop, longer.getInductionVar(), copies);
  }
  loop.erase();
}

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

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

/// Folds branches that the number of a rank decides, and the arithmetic that
/// they depend on. A copy of memory takes no part: folding would give it the
/// static types of views of different sizes, which its verifier refuses before
/// a check of bounds can say what is wrong.
static LogicalResult foldBranches(KernelOp kernel) {
  SmallVector<Operation *> ops;
  kernel.getBody().walk([&](Operation *op) {
    if (!isa<memref::CopyOp>(op))
      ops.push_back(op);
  });
  RewritePatternSet patterns(kernel.getContext());
  scf::IfOp::getCanonicalizationPatterns(patterns, kernel.getContext());
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  FrozenRewritePatternSet fast(std::move(patterns), getSlowPatterns(kernel));
  return applyOpPatternsGreedily(ops, fast, config);
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
      if (iterations && mayCopy(loop, *iterations) && handlesTiles(loop))
        (void)loopUnrollFull(loop);
    }
    if (failed(foldBranches(kernel)))
      return signalPassFailure();
    if (std::optional<int64_t> blocks = kernel.getBlocks()) {
      loops.clear();
      kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
      for (scf::ForOp loop : loops)
        unrollTiles(loop, *blocks);
    }
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
