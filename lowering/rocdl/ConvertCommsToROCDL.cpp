//===- ConvertCommsToROCDL.cpp - Kernels become functions for AMD GPUs ----===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A skeleton that shows where a target attaches: docs/AddATarget.md. Nothing
// runs what it makes.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/rocdl/KernelLowering.h"
#include "lowering/target/ToLLVM.h"

#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::comms {
#define GEN_PASS_DEF_CONVERTCOMMSTOROCDL
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

namespace {

struct ConvertCommsToROCDL
    : comms::impl::ConvertCommsToROCDLBase<ConvertCommsToROCDL> {
  using ConvertCommsToROCDLBase::ConvertCommsToROCDLBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    module->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                    StringAttr::get(&getContext(), "amdgcn-amd-amdhsa"));
    LowerToLLVMOptions options(&getContext());
    LLVMTypeConverter types(&getContext(), options);
    target::addTypeConversions(types);
    SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
    for (KernelOp kernel : kernels)
      if (failed(rocdl::KernelLowering(kernel, types, chip).run()))
        return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    cf::populateAssertToLLVMConversionPattern(types, patterns);
    if (failed(target::convertToLLVM(module, types, "ROCDL",
                                     std::move(patterns), {"rocdl"})))
      signalPassFailure();
  }
};

} // namespace
