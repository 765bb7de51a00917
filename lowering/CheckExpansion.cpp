//===- CheckExpansion.cpp - comms-check-expansion -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares what a kernel of whole collectives means with what an algorithm and
// a protocol make of it: translation validation, for each kernel anew.
//
//===----------------------------------------------------------------------===//

#include "lowering/Cleanup.h"
#include "lowering/Passes.h"
#include "lowering/check/Postcondition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::comms {
#define GEN_PASS_DEF_CHECKEXPANSION
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

namespace {
struct CheckExpansion : mlir::comms::impl::CheckExpansionBase<CheckExpansion> {
  using CheckExpansionBase::CheckExpansionBase;

  OpPassManager makePipeline();
  LogicalResult checkKernel(KernelOp kernel);
  void runOnOperation() override;
};
} // namespace

OpPassManager CheckExpansion::makePipeline() {
  OpPassManager manager(ModuleOp::getOperationName());
  OpPassManager &kernels = manager.nest<KernelOp>();
  ExpandCollectivesOptions expand;
  expand.ranks = ranks;
  expand.blocks = blocks;
  expand.algorithm = algorithm;
  expand.protocol = protocol;
  expand.tileSize = tileSize;
  kernels.addPass(createExpandCollectives(expand));
  if (lowerChannels)
    kernels.addPass(createLowerChannels());
  addCleanup(kernels);
  return manager;
}

LogicalResult CheckExpansion::checkKernel(KernelOp kernel) {
  int64_t count = ranks ? int64_t(ranks)
                        : static_cast<int64_t>(kernel.getRanks().value_or(0));
  if (count < 1 || count > 64)
    return kernel.emitOpError("is checked for ")
           << count << " ranks; comms-check-expansion takes 1 to 64";
  // In a module of its own: passes run only on what lies within their module.
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  auto inner = ModuleOp::create(builder, kernel.getLoc());
  inner.push_back(kernel->clone());
  OpPassManager pipeline = makePipeline();
  ValueVerdict verdict;
  bool expanded = succeeded(runPipeline(pipeline, inner));
  if (expanded) {
    WorldShape shape;
    shape.ranks = count;
    shape.reach = static_cast<int64_t>(kernel.getLsaSize().value_or(count));
    shape.blocks = std::max<int64_t>(blocks, 1);
    shape.budget = uint64_t(1) << 40;
    verdict = checkExpansion(kernel, *inner.getOps<KernelOp>().begin(), shape);
    for (const UnprovenReason &reason : verdict.unproven)
      reason.op->emitWarning()
          << "not decided: '" << reason.op->getName() << "' op " << reason.text;
  }
  inner.erase();
  if (!expanded || verdict.refuted)
    return failure();
  if (verdict.unproven.empty())
    kernel.emitRemark("its expansion computes what its collectives say");
  return success();
}

void CheckExpansion::runOnOperation() {
  for (KernelOp kernel :
       llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
    if (failed(checkKernel(kernel)))
      signalPassFailure();
}
