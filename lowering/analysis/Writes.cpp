//===- Writes.cpp - Arguments that a kernel writes ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/Writes.h"

#include "lowering/analysis/Accesses.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::comms;

/// Appends the memory that `op` may write.
static void getWrites(Operation *op, SmallVectorImpl<MemoryRoot> &roots) {
  SmallVector<Access> accesses;
  getAccesses(op, accesses);
  for (const Access &access : accesses)
    if (!access.isRead())
      roots.push_back(access.getRoot());
  if (!accesses.empty())
    return;
  // Ops of other dialects, such as vector.maskedstore.
  for (OpOperand &operand : op->getOpOperands())
    if (isa<MemRefType>(operand.get().getType()))
      if (auto effects = dyn_cast<MemoryEffectOpInterface>(op);
          effects &&
          effects.getEffectOnValue<MemoryEffects::Write>(operand.get()))
        roots.push_back(getMemoryRoot(operand.get()));
}

llvm::BitVector mlir::comms::findWrittenArguments(KernelOp kernel) {
  Block &entry = kernel.getBody().front();
  llvm::BitVector written(entry.getNumArguments());
  SmallVector<MemoryRoot> roots;
  kernel.walk([&](Operation *op) { getWrites(op, roots); });
  for (const MemoryRoot &root : roots) {
    auto argument = dyn_cast_or_null<BlockArgument>(root.value);
    if (argument && argument.getOwner() == &entry)
      written.set(argument.getArgNumber());
    else if (root.kind != MemoryRoot::Scratch)
      written.set();
  }
  return written;
}
