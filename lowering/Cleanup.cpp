//===- Cleanup.cpp - Folding between passes -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Cleanup.h"

#include "dialect/Comms.h"
#include "lowering/analysis/SlowPatterns.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

#include <algorithm>

using namespace mlir;

/// The most places in a text that an op keeps. Messages name the first one.
static constexpr size_t kMostPlaces = 8;

namespace {
/// A pattern gives the op that it makes the places of all ops that it replaces.
/// Along a chain of n ops these would be n lists of up to n places: 3 GB for
/// 30,000 arith.select.
struct ShortLocations : RewriterBase::Listener {
  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) override {
    auto fused = dyn_cast<FusedLoc>(op->getLoc());
    if (!fused || fused.getLocations().size() <= kMostPlaces)
      return;
    op->setLoc(FusedLoc::get(op->getContext(),
                             fused.getLocations().take_front(kMostPlaces),
                             fused.getMetadata()));
  }
};

/// The most ops with regions of a kernel in which CSE looks for equal ones, and
/// for equal loads. It compares each with all of the same operands, whatever
/// their regions hold, and looks for writes between two loads in all regions
/// between them.
constexpr unsigned kMostCompared = 1024;

/// The most branches of a kernel whose ops are simplified from the last to the
/// first. In this order each block of a long row takes the ops of all blocks
/// behind it, one by one, so that the time grows with the square of the number.
constexpr unsigned kMostBranches = 256;

bool hasRegions(Operation *op) { return op->getNumRegions() != 0; }

/// The longest chain of ops of a kernel, each of which uses the one before it,
/// that is simplified from the last op to the first. In this order each op of a
/// chain of `arith.addi` with constants is made anew for each op before it if
/// other ops use these too, so that the time grows with the square of the
/// length.
constexpr unsigned kMostChained = 1024;

/// Whether a chain of ops in `kernel` has more than kMostChained ops.
bool hasLongChain(Operation *kernel) {
  if (!comms::hasMoreThan(kMostChained, kernel,
                          [](Operation *) { return true; }))
    return false;
  DenseMap<Operation *, unsigned> lengths;
  return kernel
      ->walk<WalkOrder::PreOrder>([&](Operation *op) {
        unsigned length = 0;
        for (Value operand : op->getOperands())
          if (Operation *before = operand.getDefiningOp())
            length = std::max(length, lengths.lookup(before));
        lengths[op] = ++length;
        return length > kMostChained ? WalkResult::interrupt()
                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The canonicalizer, with the patterns that suit the kernel.
struct CanonicalizePass
    : PassWrapper<CanonicalizePass, OperationPass<comms::KernelOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CanonicalizePass)

  StringRef getName() const override { return "CanonicalizeKernel"; }
  StringRef getArgument() const override { return "canonicalize"; }
  void runOnOperation() override {
    // Two roundings of an integer have other bits than one, and stay two.
    SmallVector<std::string, 3> others = {
        "(anonymous namespace)::TruncFSIToFPToSIToFP",
        "(anonymous namespace)::TruncFUIToFPToUIToFP"};
    llvm::append_range(others, comms::getSlowPatterns(getOperation()));
    static ShortLocations listener; // Holds nothing: passes share it.
    GreedyRewriteConfig config;
    config.setListener(&listener);
    config.setUseTopDownTraversal(
        comms::hasMoreThan(kMostBranches, getOperation(),
                           llvm::IsaPred<BranchOpInterface>) ||
        hasLongChain(getOperation()));
    OpPassManager passes(getOperation()->getName());
    passes.addPass(createCanonicalizerPass(config, others));
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
};

/// CSE. In kernels with very many regions it finds only equal ops that have no
/// regions and read no memory.
struct CsePass : PassWrapper<CsePass, OperationPass<comms::KernelOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CsePass)

  StringRef getName() const override { return "CSE"; }
  StringRef getArgument() const override { return "cse"; }
  void runOnOperation() override {
    Operation *kernel = getOperation();
    bool isLarge = comms::hasMoreThan(kMostCompared, kernel, hasRegions);
    if (isLarge)
      makeDistinct(kernel);
    IRRewriter rewriter(&getContext());
    bool changed = false;
    eliminateCommonSubExpressions(rewriter, getAnalysis<DominanceInfo>(),
                                  kernel, &changed);
    if (isLarge)
      kernel->walk([](Operation *op) { op->removeDiscardableAttr(kDistinct); });
    if (changed)
      markAnalysesPreserved<DominanceInfo, PostDominanceInfo>();
    else
      markAllAnalysesPreserved();
  }

private:
  static constexpr StringLiteral kDistinct = "comms.distinct";
  /// Gives each op whose comparison takes long a number, so that it equals no
  /// other one.
  static void makeDistinct(Operation *kernel) {
    Builder builder(kernel->getContext());
    int64_t number = 0;
    kernel->walk([&](Operation *op) {
      if (hasRegions(op) || !isMemoryEffectFree(op))
        op->setDiscardableAttr(kDistinct, builder.getI64IntegerAttr(++number));
    });
  }
};
} // namespace

void mlir::comms::addCleanup(OpPassManager &kernels) {
  kernels.addPass(std::make_unique<CanonicalizePass>());
  kernels.addPass(std::make_unique<CsePass>());
}
