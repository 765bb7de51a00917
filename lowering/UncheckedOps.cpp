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

namespace {
/// What to write in place of an op that a kernel cannot hold.
struct Alternative {
  StringLiteral op, instead;
};
} // namespace

static constexpr StringLiteral
    kWholeTiles = "a block computes with whole tiles and has no threads to "
                  "number: write arithmetic on tensors of rank 1, "
                  "comms.tile_load and comms.tile_store",
    kReduceRow = "write comms.row_reduce, which combines the elements of a "
                 "tile",
    kLoad = "write memref.load or comms.tile_load",
    kStore = "write memref.store or comms.tile_store", kLoop = "write scf.for",
    kScratch = "memory of a block is comms.scratch, which the kernel does not "
               "free";

static constexpr Alternative kAlternatives[] = {
    {"affine.for", kLoop},
    {"affine.parallel", kLoop},
    {"affine.if", "write scf.if"},
    {"affine.load", kLoad},
    {"affine.vector_load", kLoad},
    {"affine.store", kStore},
    {"affine.vector_store", kStore},
    {"gpu.thread_id", kWholeTiles},
    {"gpu.block_dim", kWholeTiles},
    {"gpu.global_id", kWholeTiles},
    {"gpu.lane_id", kWholeTiles},
    {"gpu.subgroup_id", kWholeTiles},
    {"gpu.subgroup_size", kWholeTiles},
    {"gpu.num_subgroups", kWholeTiles},
    {"gpu.block_id", "write comms.block_id"},
    {"gpu.cluster_block_id", "write comms.block_id"},
    {"gpu.cluster_id", "write comms.block_id"},
    {"gpu.grid_dim", "write comms.num_blocks"},
    {"gpu.barrier", "leave it out: what a block does is in order; "
                    "comms.barrier waits for other ranks and blocks"},
    {"gpu.all_reduce", kReduceRow},
    {"gpu.subgroup_reduce", kReduceRow},
    {"gpu.shuffle", kReduceRow},
    {"gpu.printf", "store the value in an array that the kernel is given"},
    {"gpu.alloc", kScratch},
    {"memref.alloc", kScratch},
    {"memref.dealloc", kScratch},
    {"memref.realloc", kScratch},
    {"memref.atomic_rmw", "comms.signal adds to a cell of a rank, "
                          "comms.multimem_reduce to all parts of a window"},
    {"memref.generic_atomic_rmw", "comms.signal adds to a cell of a rank"},
    {"vector.transfer_read", kLoad},
    {"vector.transfer_write", kStore},
};

/// Ops of one target's threads.
static bool isOfThreads(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "gpu" || dialect == "nvvm";
}

/// What to write in place of `op`; empty: nothing is known.
static StringRef findAlternative(Operation *op) {
  StringRef name = op->getName().getStringRef();
  for (const Alternative &one : kAlternatives)
    if (one.op == name)
      return one.instead;
  return isOfThreads(op) ? StringRef(kWholeTiles) : StringRef();
}

/// The end of an op that is refused itself.
static bool endsRefused(Operation *op) {
  return op->hasTrait<OpTrait::IsTerminator>() &&
         isa_and_present<affine::AffineDialect>(op->getDialect());
}

static bool isChecked(Operation *op) {
  if (isa_and_present<memref::MemRefDialect>(op->getDialect()))
    return isCheckedMemRefOp(op);
  if (isa_and_present<vector::VectorDialect>(op->getDialect()))
    return isCheckedVectorOp(op);
  if (isa_and_present<affine::AffineDialect>(op->getDialect()))
    return isa<affine::AffineApplyOp, affine::AffineMinOp, affine::AffineMaxOp>(
        op);
  return !isOfThreads(op);
}

LogicalResult comms::refuseUnchecked(Operation *op) {
  if (isa<CallOpInterface>(op) &&
      !isa_and_present<CommsDialect>(op->getDialect()))
    return op->emitOpError("a kernel calls no functions: what they do cannot "
                           "be checked; inline them first");
  if (isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
    return op->emitOpError("accesses of the LLVM dialect cannot be checked; "
                           "use comms.tile_load, comms.tile_store, "
                           "memref.load or memref.store");
  if (isa<cf::AssertOp>(op))
    return op->emitOpError("would end the process; a kernel ends with "
                           "comms.return, and a run that has left bounds with "
                           "comms.check_bounds");
  if (endsRefused(op) || isChecked(op))
    return success();
  StringRef instead = findAlternative(op);
  if (instead.empty())
    instead = "use a view with constant offsets, comms.tile_load, "
              "comms.tile_store, memref.load or memref.store";
  return op->emitOpError() << (isOfThreads(op)
                                   ? "has no place in a kernel; "
                                   : "accesses through it cannot be checked; ")
                           << instead;
}
