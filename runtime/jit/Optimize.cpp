//===- Optimize.cpp - LLVM IR of a kernel, made fast and right ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Optimize.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

static FunctionPassManager makePasses(unsigned level) {
  FunctionPassManager passes;
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(SimplifyCFGPass());
  passes.addPass(InstCombinePass());
  if (level < 2)
    return passes;
  LoopPassManager loops;
  loops.addPass(LoopRotatePass());
  loops.addPass(LICMPass(LICMOptions()));
  passes.addPass(
      createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  return passes;
}

void commsir::jit::optimize(Module &module, TargetMachine &machine,
                            unsigned level) {
  if (level == 0)
    return;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graphs;
  ModuleAnalysisManager modules;
  // The JIT knows these alone (see Compile.cpp): no loop becomes another call.
  TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  for (LibFunc function : {LibFunc_memcpy, LibFunc_memmove, LibFunc_memset})
    library.setAvailable(function);
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  if (level > 2) {
    builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3)
        .run(module, modules);
    return;
  }
  ModulePassManager passes;
  passes.addPass(createModuleToFunctionPassAdaptor(makePasses(level)));
  passes.run(module, modules);
}

/// The lanes of `mask` as bits of an integer.
static Value *maskBits(IRBuilder<> &builder, Value *mask) {
  unsigned lanes = cast<FixedVectorType>(mask->getType())->getNumElements();
  return builder.CreateBitCast(mask, builder.getIntNTy(lanes));
}

/// store(vector, pointer, mask) becomes: spill the vector; while a bit of the
/// mask is on, copy the element of the lowest bit and clear that bit.
static void expandMaskedStore(IntrinsicInst &store) {
  Value *vector = store.getArgOperand(0), *pointer = store.getArgOperand(1);
  Value *mask = store.getArgOperand(store.arg_size() - 1);
  auto *type = cast<FixedVectorType>(vector->getType());
  Function &function = *store.getFunction();
  IRBuilder<> entry(&function.getEntryBlock(),
                    function.getEntryBlock().begin());
  AllocaInst *spill = entry.CreateAlloca(type);

  BasicBlock *before = store.getParent();
  BasicBlock *after = before->splitBasicBlock(store.getIterator());
  LLVMContext &context = function.getContext();
  BasicBlock *loop = BasicBlock::Create(context, "lane", &function, after);
  before->getTerminator()->eraseFromParent();
  IRBuilder<> builder(before);
  builder.CreateStore(vector, spill);
  Value *bits = maskBits(builder, mask);
  Type *word = bits->getType();
  Value *zero = ConstantInt::get(word, 0);
  builder.CreateCondBr(builder.CreateICmpEQ(bits, zero), after, loop);

  builder.SetInsertPoint(loop);
  PHINode *rest = builder.CreatePHI(word, 2);
  Value *lane = builder.CreateIntrinsic(Intrinsic::cttz, {word},
                                        {rest, builder.getTrue()});
  Value *index = builder.CreateZExt(lane, builder.getInt64Ty());
  Type *element = type->getElementType();
  Value *value =
      builder.CreateLoad(element, builder.CreateGEP(element, spill, index));
  builder.CreateStore(value, builder.CreateGEP(element, pointer, index));
  Value *next = builder.CreateAnd(
      rest, builder.CreateSub(rest, ConstantInt::get(word, 1)));
  builder.CreateCondBr(builder.CreateICmpEQ(next, zero), after, loop);
  rest->addIncoming(bits, before);
  rest->addIncoming(next, loop);
  store.eraseFromParent();
}

unsigned commsir::jit::expandNarrowMaskedStores(Module &module) {
  SmallVector<IntrinsicInst *> stores;
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (Instruction &instruction : block) {
        auto *call = dyn_cast<IntrinsicInst>(&instruction);
        if (!call || call->getIntrinsicID() != Intrinsic::masked_store)
          continue;
        auto *type =
            dyn_cast<FixedVectorType>(call->getArgOperand(0)->getType());
        if (type && type->getScalarSizeInBits() < 32)
          stores.push_back(call);
      }
  for (IntrinsicInst *store : stores)
    expandMaskedStore(*store);
  return stores.size();
}
