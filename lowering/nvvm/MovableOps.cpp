//===- MovableOps.cpp - Ops and the accesses they may cross ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/MovableOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::comms;

bool nvvm::isStaleFill(Operation *op) {
  return isa<PoisonFillOp>(op) && op->hasAttr("comms.stale");
}

/// The guesses of SquareRoots.cpp, and conversions, of which MLIR does not know
/// that they touch no memory; and a warp that combines values.
static bool isKnownQuiet(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return call.getIntrin() == "llvm.nvvm.rsqrt.approx.ftz.f";
  return isa<NVVM::RcpApproxFtzF32Op, NVVM::ConvertF32x2ToF8x2Op,
             gpu::SubgroupReduceOp>(op);
}

bool nvvm::isQuiet(Operation *op) {
  return op->getNumRegions() == 0 &&
         (isMemoryEffectFree(op) || isKnownQuiet(op));
}

Value nvvm::getRoot(Value memref) {
  for (int depth = 0; depth < 64; ++depth) {
    Operation *op = memref.getDefiningOp();
    if (!op)
      return memref;
    if (isa<memref::ReinterpretCastOp, memref::SubViewOp, memref::CastOp,
            memref::CollapseShapeOp, memref::ExpandShapeOp, LocalOp>(op))
      memref = op->getOperand(0);
    else
      return isa<ScratchOp, memref::AllocaOp>(op) ? memref : Value();
  }
  return {};
}

Value nvvm::getStored(Operation *op) {
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return store.getBase();
  if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
    return store.getBase();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getMemRef();
  if (auto store = dyn_cast<TileStoreOp>(op))
    return store.getMemref();
  return {};
}

bool nvvm::isPlainLoad(Operation *op) {
  return isa<vector::LoadOp, vector::MaskedLoadOp, memref::LoadOp, TileLoadOp>(
      op);
}

Value nvvm::getLoaded(Operation *load) {
  return isa<TileLoadOp>(load) ? cast<TileLoadOp>(load).getMemref()
                               : load->getOperand(0);
}

bool nvvm::collectNeeded(Operation *op, Operation *first,
                         SmallVectorImpl<Operation *> &order) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Operation *> work{op};
  while (!work.empty()) {
    for (Value operand : work.pop_back_val()->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (!definition || definition->getBlock() != op->getBlock() ||
          definition->isBeforeInBlock(first))
        continue;
      if (!isQuiet(definition))
        return false;
      if (needed.insert(definition))
        work.push_back(definition);
    }
  }
  llvm::append_range(order, needed);
  llvm::sort(order,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  return true;
}
