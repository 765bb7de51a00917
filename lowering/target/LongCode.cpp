//===- LongCode.cpp - Code that is too long to optimize -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/target/LongCode.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

#include <algorithm>

using namespace llvm;

/// The number of instructions in the longest chain of `module`.
static unsigned measureChains(const Module &module) {
  DenseMap<const Value *, unsigned> lengths;
  unsigned longest = 0;
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function)) {
      if (isa<PHINode>(instruction))
        continue;
      unsigned length = 0;
      for (const Value *operand : instruction.operand_values())
        if (isa<Instruction>(operand))
          length = std::max(length, lengths.lookup(operand));
      lengths[&instruction] = ++length;
      longest = std::max(longest, length);
    }
  return longest;
}

static unsigned countLoops(Function &function) {
  DominatorTree tree(function);
  return LoopInfo(tree).getLoopsInPreorder().size();
}

bool mlir::comms::isTooLongToOptimize(Module &module,
                                      const LongCodeLimits &limits) {
  unsigned count = module.getInstructionCount();
  if (count > limits.instructions ||
      (count > limits.chain && measureChains(module) > limits.chain))
    return true;
  return any_of(module, [&](Function &function) {
    return function.size() > limits.blocks ||
           (function.size() > limits.loops &&
            countLoops(function) > limits.loops);
  });
}

void mlir::comms::cutLongBlocks(Module &module) {
  constexpr unsigned kMostInstructions = 256;
  for (Function &function : module) {
    if (function.empty())
      continue;
    // Elsewhere they would be made anew each time.
    BasicBlock &entry = function.getEntryBlock();
    for (Instruction &instruction : make_early_inc_range(entry))
      if (auto *memory = dyn_cast<AllocaInst>(&instruction);
          memory && memory->isStaticAlloca())
        memory->moveBefore(entry, entry.begin());
    SmallVector<Instruction *> cuts;
    for (BasicBlock &block : function) {
      unsigned count = 0;
      for (Instruction &instruction : block)
        if (++count % kMostInstructions == 0 && !isa<PHINode>(instruction) &&
            !instruction.isTerminator())
          cuts.push_back(&instruction);
    }
    // The last one first: each moves what follows it.
    for (Instruction *cut : reverse(cuts))
      cut->getParent()->splitBasicBlock(cut);
  }
}

void mlir::comms::exposeLocalFunctions(Module &module) {
  for (Function &function : module)
    if (function.hasLocalLinkage())
      function.setLinkage(GlobalValue::ExternalLinkage);
}
