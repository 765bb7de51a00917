//===- ConvertCommsToCPU.cpp - Kernels become LLVM functions --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/cpu/KernelLowering.h"
#include "lowering/target/ToLLVM.h"

#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::comms {
#define GEN_PASS_DEF_CONVERTCOMMSTOCPU
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

namespace {

struct ConvertCommsToCPU
    : comms::impl::ConvertCommsToCPUBase<ConvertCommsToCPU> {
  using ConvertCommsToCPUBase::ConvertCommsToCPUBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, arith::ArithDialect,
                    cf::ControlFlowDialect, scf::SCFDialect,
                    vector::VectorDialect, affine::AffineDialect>();
  }

  void runOnOperation() override;
};

} // namespace

void ConvertCommsToCPU::runOnOperation() {
  LowerToLLVMOptions options(&getContext());
  LLVMTypeConverter types(&getContext(), options);
  target::addTypeConversions(types);
  types.addTypeAttributeConversion(
      [](BaseMemRefType memref, MemorySpaceAttr) -> Attribute {
        return IntegerAttr::get(IntegerType::get(memref.getContext(), 64), 0);
      });
  SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
  for (KernelOp kernel : kernels)
    if (failed(cpu::KernelLowering(kernel, types).run()))
      return signalPassFailure();
  RewritePatternSet patterns(&getContext());
  cf::populateAssertToLLVMConversionPattern(types, patterns);
  if (failed(target::convertToLLVM(getOperation(), types, "CPU",
                                   std::move(patterns))))
    signalPassFailure();
}
