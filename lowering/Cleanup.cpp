//===- Cleanup.cpp - Folding between passes -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Cleanup.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

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
} // namespace

void mlir::comms::addCleanup(OpPassManager &kernels) {
  // Two roundings of an integer have other bits than one, and stay two.
  static const std::string others[] = {
      "(anonymous namespace)::TruncFSIToFPToSIToFP",
      "(anonymous namespace)::TruncFUIToFPToUIToFP"};
  static ShortLocations listener; // Holds nothing: passes share it.
  GreedyRewriteConfig config;
  config.setListener(&listener);
  kernels.addPass(createCanonicalizerPass(config, others));
  kernels.addPass(createCSEPass());
}
