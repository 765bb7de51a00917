//===- MaskedLoads.cpp - Masked loads that NVPTX gets right ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/MaskedLoads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"

using namespace llvm;

namespace {

struct ConstantMasksPass : PassInfoMixin<ConstantMasksPass> {
  static PreservedAnalyses run(Function &function,
                               FunctionAnalysisManager &analyses);
};

} // namespace

/// The call's mask where it is a constant; null: it is no masked load, or its
/// mask none.
static Constant *findConstantMask(Instruction &instruction) {
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  bool isLoad = call && call->getIntrinsicID() == Intrinsic::masked_load;
  return isLoad ? dyn_cast<Constant>(call->getArgOperand(1)) : nullptr;
}

/// Loads the elements of the mask one by one; LLVM joins neighbors again.
static void expand(IntrinsicInst &call, const Constant &mask) {
  IRBuilder<> builder(&call);
  auto *type = cast<FixedVectorType>(call.getType());
  Type *element = type->getElementType();
  Value *address = call.getArgOperand(0), *result = call.getArgOperand(2);
  uint64_t bytes = call.getDataLayout().getTypeStoreSize(element);
  Align alignment = call.getParamAlign(0).valueOrOne();
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    // An element that nobody has decided on may be left out.
    Constant *bit = mask.getAggregateElement(i);
    if (!bit || !bit->isOneValue())
      continue;
    Value *place = builder.CreateConstInBoundsGEP1_64(element, address, i);
    Value *loaded = builder.CreateAlignedLoad(
        element, place, commonAlignment(alignment, i * bytes));
    result = builder.CreateInsertElement(result, loaded, i);
  }
  call.replaceAllUsesWith(result);
  call.eraseFromParent();
}

PreservedAnalyses ConstantMasksPass::run(Function &function,
                                         FunctionAnalysisManager & /*unused*/) {
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    if (Constant *mask = findConstantMask(instruction)) {
      expand(cast<IntrinsicInst>(instruction), *mask);
      changed = true;
    }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

void mlir::comms::nvvm::addMaskedLoadPasses(ModulePassManager &passes) {
  FunctionPassManager functions;
  functions.addPass(ConstantMasksPass());
  functions.addPass(ScalarizeMaskedMemIntrinPass());
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(functions)));
}
