//===- UncheckedOps.cpp - What a kernel must not hold ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels come from anyone and run in the process of comms-run. Whatever they
// do is checked, so an op that cannot be checked has no place in them.
//
//===----------------------------------------------------------------------===//

#include "lowering/UncheckedOps.h"

#include "dialect/Comms.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;

/// Whether a view by these can be out of bounds only when it is known to be,
/// which the verifier of the view refuses.
static bool isStatic(OffsetSizeAndStrideOpInterface view) {
  auto allStatic = [](ArrayRef<int64_t> numbers) {
    return !llvm::any_of(numbers, ShapedType::isDynamic);
  };
  return allStatic(view.getStaticOffsets()) &&
         allStatic(view.getStaticSizes()) && allStatic(view.getStaticStrides());
}

/// Whether a cast says nothing of the shape that is not known to be so.
static bool isChecked(memref::CastOp cast) {
  auto source = dyn_cast<MemRefType>(cast.getSource().getType());
  auto result = dyn_cast<MemRefType>(cast.getType());
  if (!source || !result)
    return false;
  for (auto [from, to] : llvm::zip_equal(source.getShape(), result.getShape()))
    if (ShapedType::isDynamic(from) && !ShapedType::isDynamic(to))
      return false;
  return source.getLayout() == result.getLayout();
}

static bool isCheckedMemRefOp(Operation *op) {
  if (auto view = dyn_cast<memref::SubViewOp>(op))
    return isStatic(view);
  if (auto cast = dyn_cast<memref::CastOp>(op))
    return isChecked(cast);
  return isa<memref::LoadOp, memref::StoreOp, memref::CopyOp, memref::DimOp,
             memref::AllocaOp, memref::CollapseShapeOp, memref::ExpandShapeOp>(
      op);
}

/// Vectors are loaded and stored by an offset into memory of one dimension.
static bool isCheckedVectorOp(Operation *op) {
  if (isa<vector::PrintOp>(op))
    return false;
  auto isMemory = [](Type type) { return isa<BaseMemRefType>(type); };
  if (llvm::none_of(op->getOperandTypes(), isMemory))
    return true;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp,
            vector::MaskedStoreOp>([](auto access) {
        auto type = dyn_cast<MemRefType>(access.getBase().getType());
        return type && type.getRank() == 1 && type.getLayout().isIdentity();
      })
      .Default([](Operation *) { return false; });
}

LogicalResult comms::refuseUnchecked(Operation *op) {
  if (isa<CallOpInterface>(op) &&
      !isa_and_present<CommsDialect>(op->getDialect()))
    return op->emitOpError("a kernel calls no functions: what they do cannot "
                           "be checked; inline them first");
  if (isa<cf::AssertOp>(op))
    return op->emitOpError("would end the process; a kernel ends with "
                           "comms.return");
  if (isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
    return op->emitOpError("accesses of the LLVM dialect cannot be checked; "
                           "use comms.tile_load, comms.tile_store, "
                           "memref.load or memref.store");
  bool known = true;
  if (isa_and_present<memref::MemRefDialect>(op->getDialect()))
    known = isCheckedMemRefOp(op);
  else if (isa_and_present<vector::VectorDialect>(op->getDialect()))
    known = isCheckedVectorOp(op);
  else if (isa_and_present<affine::AffineDialect>(op->getDialect()))
    known =
        isa<affine::AffineApplyOp, affine::AffineMinOp, affine::AffineMaxOp>(
            op);
  if (known)
    return success();
  return op->emitOpError("accesses through it cannot be checked; use a view "
                         "with constant offsets, comms.tile_load, "
                         "comms.tile_store, memref.load or memref.store");
}
