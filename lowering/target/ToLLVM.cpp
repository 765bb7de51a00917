//===- ToLLVM.cpp - The rest of a kernel becomes LLVM ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/target/ToLLVM.h"

#include "dialect/Comms.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::comms;

void target::addTypeConversions(LLVMTypeConverter &types) {
  types.addConversion(
      [](TokenType token) { return IntegerType::get(token.getContext(), 64); });
}

/// Views of views become plain descriptors. Skipped when there are none, for it
/// looks at every op.
static LogicalResult simplifyMemRefs(ModuleOp module) {
  bool found = false;
  module.walk([&](Operation *op) {
    found |= isa<memref::SubViewOp, memref::CollapseShapeOp,
                 memref::ExpandShapeOp, memref::ExtractStridedMetadataOp>(op) ||
             isa_and_present<affine::AffineDialect>(op->getDialect());
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found)
    return success();
  RewritePatternSet patterns(module.getContext());
  memref::populateExpandStridedMetadataPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Appends the ops of scf in a region, the last of a block first and each
/// before those within it.
static void listBackwards(Region &region, SmallVectorImpl<Operation *> &ops) {
  for (Block &block : llvm::reverse(region))
    for (Operation &op : llvm::reverse(block)) {
      if (isa<scf::SCFDialect>(op.getDialect()) && op.getNumRegions())
        ops.push_back(&op);
      for (Region &inner : op.getRegions())
        listBackwards(inner, ops);
    }
}

/// Loops and branches become blocks. Each moves what follows it in its block to
/// a new one: from the end, that is no more than up to the next one. (The
/// dialect conversion begins at the front, and takes a time that grows with the
/// square of their number.)
static LogicalResult lowerLoops(ModuleOp module) {
  SmallVector<Operation *> ops;
  listBackwards(module.getBodyRegion(), ops);
  RewritePatternSet patterns(module.getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  PatternApplicator applicator(frozen);
  applicator.applyDefaultCostModel();
  PatternRewriter rewriter(module.getContext());
  for (Operation *op : ops) {
    Location loc = op->getLoc();
    StringRef name = op->getName().getStringRef();
    rewriter.setInsertionPoint(op);
    if (failed(applicator.matchAndRewrite(op, rewriter)))
      return emitError(loc) << "'" << name << "' cannot become branches";
  }
  return success();
}

/// Decomposes vector operations that LLVM vectors do not support.
static void addVectorPatterns(const LLVMTypeConverter &types,
                              RewritePatternSet &patterns) {
  vector::populateVectorBitCastLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorStepLoweringPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorMaskMaterializationPatterns(
      patterns, /*force32BitVectorIndices=*/true);
  vector::populateVectorFromElementsUnrollPatterns(patterns);
  populateVectorToLLVMConversionPatterns(types, patterns,
                                         /*reassociateFPReductions=*/false,
                                         /*force32BitVectorIndices=*/true);
}

/// Both sides of a cast are of the LLVM dialect now.
static LogicalResult removeCasts(ModuleOp module, StringRef target) {
  SmallVector<UnrealizedConversionCastOp> casts, left;
  module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
  reconcileUnrealizedCasts(casts, &left);
  for (UnrealizedConversionCastOp cast : left)
    return cast.emitError("a value of type ")
           << cast.getResult(0).getType()
           << " is used in a way that cannot be lowered for the " << target;
  return success();
}

/// Rejects kernels in nested modules, which the pipelines do not lower.
static LogicalResult findNested(ModuleOp module) {
  WalkResult result = module.walk([](KernelOp kernel) {
    kernel.emitOpError("is in a nested module, but pipelines lower only the "
                       "kernels of the outermost module: move it there");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult target::convertToLLVM(ModuleOp module, LLVMTypeConverter &types,
                                    StringRef target, RewritePatternSet more,
                                    ArrayRef<StringRef> legal) {
  if (failed(findNested(module)) || failed(simplifyMemRefs(module)) ||
      failed(lowerLoops(module)))
    return failure();
  RewritePatternSet patterns = std::move(more);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  addVectorPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  index::populateIndexToLLVMConversionPatterns(types, patterns);
  ub::populateUBToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  LLVMConversionTarget conversion(*module.getContext());
  conversion.addLegalOp<ModuleOp>();
  for (StringRef dialect : legal)
    conversion.addLegalDialect(dialect);
  if (failed(applyFullConversion(module, conversion, std::move(patterns))))
    return failure();
  return removeCasts(module, target);
}
