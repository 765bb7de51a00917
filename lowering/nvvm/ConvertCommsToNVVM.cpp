//===- ConvertCommsToNVVM.cpp - Kernels become GPU functions --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/nvvm/Conversions.h"
#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/PtxEmission.h"
#include "lowering/target/ToLLVM.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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
};

} // namespace

void ConvertCommsToNVVM::runOnOperation() {
  nvvm::Target shape;
  shape.threads = threads;
  shape.cluster = cluster;
  shape.sm = nvvm::getCapability(chip);
  SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
  if (std::string mistake = findChipMistake(chip); !mistake.empty()) {
    // The module of a file is at no line of it.
    emitError(kernels.empty() ? getOperation().getLoc()
                              : kernels.front().getLoc())
        << mistake;
    return signalPassFailure();
  }
  LowerToLLVMOptions options(&getContext());
  LLVMTypeConverter types(&getContext(), options);
  target::addTypeConversions(types);
  // Shared memory has its own pointers, for other CTAs are reached by them; all
  // else is addressed by generic ones, whose spaces LLVM infers.
  types.addTypeAttributeConversion(
      [](BaseMemRefType memref, MemorySpaceAttr space) -> Attribute {
        bool isShared = space.getValue() == MemorySpace::Shared;
        return IntegerAttr::get(IntegerType::get(memref.getContext(), 64),
                                isShared ? 3 : 0);
      });
  for (KernelOp kernel : kernels)
    if (failed(nvvm::KernelLowering(kernel, types, shape).run()))
      return signalPassFailure();
  if (failed(target::convertToLLVM(getOperation(), types, "GPU",
                                   RewritePatternSet(&getContext()),
                                   {NVVM::NVVMDialect::getDialectNamespace()})))
    signalPassFailure();
}
