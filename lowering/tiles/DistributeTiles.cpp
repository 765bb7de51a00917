//===- DistributeTiles.cpp - Tiles become loops over vectors --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass comms-distribute-tiles: what a kernel has to be, what is made of it
// first, and tiles/Distributor.h.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"

#include "dialect/TileCuts.h"
#include "lowering/tiles/Canonical.h"
#include "lowering/tiles/Contract.h"
#include "lowering/tiles/CutTiles.h"
#include "lowering/tiles/Distributor.h"
#include "lowering/tiles/FoldLoops.h"
#include "lowering/tiles/GatherRows.h"
#include "lowering/tiles/Loops.h"
#include "lowering/tiles/ScalarStores.h"
#include "lowering/tiles/ThreadTarget.h"
#include "lowering/tiles/TileChecks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::comms {
#define GEN_PASS_DEF_DISTRIBUTETILES
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

static LogicalResult
walkAll(KernelOp kernel, llvm::function_ref<LogicalResult(Operation *)> check) {
  return failure(kernel
                     .walk([&](Operation *op) {
                       return failed(check(op)) ? WalkResult::interrupt()
                                                : WalkResult::advance();
                     })
                     .wasInterrupted());
}

/// Lanes of this kernel's vectors.
static int64_t chooseLanes(KernelOp kernel, int64_t lanes) {
  // Whole i64 of lines: eight elements have eight bytes or more.
  constexpr int64_t lanesOfLines = 8;
  bool lines = kernel
                   .walk([](Operation *op) {
                     return movesLines(op) ? WalkResult::interrupt()
                                           : WalkResult::advance();
                   })
                   .wasInterrupted();
  return lines ? std::max<int64_t>(lanes, lanesOfLines) : lanes;
}

namespace {
struct DistributeTilesPass
    : comms::impl::DistributeTilesBase<DistributeTilesPass> {
  using DistributeTilesBase::DistributeTilesBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    DistributeTilesBase::getDependentDialects(registry);
    for (const ThreadTarget *one : getThreadTargets())
      one->addDialects(registry);
  }

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(checkOptions(kernel)))
      return signalPassFailure();
    if (kernel.getBody().empty())
      return;
    // Code that nothing reaches may use what is not there yet.
    IRRewriter rewriter(&getContext());
    (void)eraseUnreachableBlocks(rewriter, kernel->getRegions());
    storeTilesOfOne(kernel);
    if (failed(walkAll(kernel, checkOp)) ||
        failed(walkAll(kernel,
                       [&](Operation *op) { return checkForCluster(op); })))
      return signalPassFailure();
    cutTiles(kernel);
    canonicalizeCarriedNaNs(kernel);
    markMovedTiles(kernel);
    unrollFoldLoops(kernel);
    std::optional<Threads> block;
    if (threads > 0 && failed(prepareThreads(kernel, block)))
      return signalPassFailure();
    int64_t most = chooseLanes(kernel, lanes);
    if (!block)
      lowerContracts(kernel, most);
    if (failed(Distributor(kernel, most, block ? &*block : nullptr).run()) ||
        failed(walkAll(kernel, checkDistributed)))
      signalPassFailure();
  }

private:
  LogicalResult checkOptions(KernelOp kernel) {
    if (lanes < 1 || lanes > kMaxLanes || !llvm::isPowerOf2_64(lanes))
      return kernel.emitError()
             << "comms-distribute-tiles: lanes = " << lanes.getValue()
             << " is not 1, 2, 4, 8 or 16";
    return checkThreads(kernel);
  }

  LogicalResult checkThreads(KernelOp kernel) {
    if (threads == 0 && cluster == 1)
      return success();
    if (threads < kWarp || threads > 1024 || !llvm::isPowerOf2_64(threads))
      return kernel.emitError()
             << "comms-distribute-tiles: threads = " << threads.getValue()
             << " is not 32, 64, 128, 256, 512 or 1024";
    if (cluster < 1 || cluster > 16 || !llvm::isPowerOf2_64(cluster))
      return kernel.emitError()
             << "comms-distribute-tiles: cluster = " << cluster.getValue()
             << " is not 1, 2, 4, 8 or 16";
    return checkTarget(kernel);
  }

  LogicalResult checkTarget(KernelOp kernel) {
    const ThreadTarget *found = findThreadTarget(target);
    if (!found)
      return kernel.emitError()
             << "comms-distribute-tiles: there is no target '"
             << StringRef(target) << "': known are "
             << llvm::join(llvm::map_range(getThreadTargets(),
                                           [](const ThreadTarget *one) {
                                             return one->name();
                                           }),
                           ", ");
    if (cluster > found->maxCluster())
      return kernel.emitError()
             << "comms-distribute-tiles: target '" << StringRef(target)
             << "' has no clusters of " << cluster.getValue()
             << " CTAs: give cluster = " << found->maxCluster() << " or less";
    return success();
  }

  /// Scratch memory is a CTA's, and a block's threads have to see all of it.
  LogicalResult checkForCluster(Operation *op) {
    if (cluster == 1 || !(isa<ScratchOp, ContractOp>(op) || isTileCut(op)))
      return success();
    if (isTileCut(op))
      return op->emitOpError()
             << "passes through memory of one CTA, and a block is a cluster of "
             << cluster.getValue() << ": set cluster = 1";
    if (isa<ContractOp>(op))
      return op->emitOpError()
             << "multiplies on one CTA, and a block is a cluster of "
             << cluster.getValue() << ": set cluster = 1";
    return op->emitOpError()
           << "is memory of one CTA, and a block is a cluster of "
           << cluster.getValue()
           << ": set cluster = 1, or an array that the kernel is given";
  }

  /// A block is `threads` threads of each of `cluster` CTAs.
  LogicalResult prepareThreads(KernelOp kernel, std::optional<Threads> &block) {
    if (failed(walkAll(kernel, checkForThreads)))
      return failure();
    gatherRows(kernel);
    block.emplace(kernel, threads, cluster, *findThreadTarget(target));
    if (block->reduces())
      block->awaitCluster(countArrivals);
    Builder builder(&getContext());
    kernel->setAttr(kThreadsAttr, builder.getI64IntegerAttr(threads));
    kernel->setAttr(kClusterAttr, builder.getI64IntegerAttr(cluster));
    return success();
  }
};
} // namespace
