//===- ConvertCommsToNVVM.cpp - Kernels become GPU functions --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/nvvm/Conversions.h"
#include "lowering/nvvm/KernelLowering.h"

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
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::comms {
#define GEN_PASS_DEF_CONVERTCOMMSTONVVM
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

namespace {

struct ConvertCommsToNVVM
    : comms::impl::ConvertCommsToNVVMBase<ConvertCommsToNVVM> {
  using ConvertCommsToNVVMBase::ConvertCommsToNVVMBase;

  void runOnOperation() override;

private:
  LogicalResult simplifyMemRefs();
  LogicalResult lowerLoops();
  LogicalResult convertToLLVM(LLVMTypeConverter &types);
};

} // namespace

/// Views of views become plain descriptors. Skipped when there are none, for it
/// looks at every op.
LogicalResult ConvertCommsToNVVM::simplifyMemRefs() {
  bool found = false;
  getOperation().walk([&](Operation *op) {
    found |= isa<memref::SubViewOp, memref::CollapseShapeOp,
                 memref::ExpandShapeOp, memref::ExtractStridedMetadataOp>(op) ||
             isa_and_present<affine::AffineDialect>(op->getDialect());
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found)
    return success();
  RewritePatternSet patterns(&getContext());
  memref::populateExpandStridedMetadataPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns);
  return applyPatternsGreedily(getOperation(), std::move(patterns));
}

LogicalResult ConvertCommsToNVVM::lowerLoops() {
  RewritePatternSet patterns(&getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(getContext());
  target.addIllegalDialect<scf::SCFDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(getOperation(), target, std::move(patterns));
}

LogicalResult ConvertCommsToNVVM::convertToLLVM(LLVMTypeConverter &types) {
  RewritePatternSet patterns(&getContext());
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
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
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  index::populateIndexToLLVMConversionPatterns(types, patterns);
  ub::populateUBToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  LLVMConversionTarget target(getContext());
  target.addLegalOp<ModuleOp>();
  target.addLegalDialect<NVVM::NVVMDialect>();
  if (failed(applyFullConversion(getOperation(), target, std::move(patterns))))
    return failure();
  // Both sides of a cast are of the LLVM dialect now.
  SmallVector<UnrealizedConversionCastOp> casts, left;
  getOperation().walk(
      [&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
  reconcileUnrealizedCasts(casts, &left);
  for (UnrealizedConversionCastOp cast : left)
    return cast.emitError("a value of type ")
           << cast.getResult(0).getType()
           << " is used in a way that has no form on the GPU";
  return success();
}

void ConvertCommsToNVVM::runOnOperation() {
  nvvm::Target target;
  target.threads = threads;
  target.cluster = cluster;
  target.sm = nvvm::getCapability(chip);
  if (target.sm < 80) {
    getOperation().emitError("comms-to-nvvm cannot make code for the chip '")
        << chip << "': give sm_80, sm_90, sm_100 or a later one";
    return signalPassFailure();
  }
  LowerToLLVMOptions options(&getContext());
  LLVMTypeConverter types(&getContext(), options);
  types.addConversion(
      [](TokenType token) { return IntegerType::get(token.getContext(), 64); });
  // Shared memory has its own pointers, for other CTAs are reached by them; all
  // else is addressed by generic ones, whose spaces LLVM infers.
  types.addTypeAttributeConversion(
      [](BaseMemRefType memref, MemorySpaceAttr space) -> Attribute {
        bool isShared = space.getValue() == MemorySpace::Shared;
        return IntegerAttr::get(IntegerType::get(memref.getContext(), 64),
                                isShared ? 3 : 0);
      });
  SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
  for (KernelOp kernel : kernels)
    if (failed(nvvm::KernelLowering(kernel, types, target).run()))
      return signalPassFailure();
  if (failed(simplifyMemRefs()) || failed(lowerLoops()) ||
      failed(convertToLLVM(types)))
    return signalPassFailure();
}
