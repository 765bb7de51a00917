//===- TileChecks.cpp - Pre- and postconditions of the tile pass ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/TileChecks.h"

#include "dialect/TileCuts.h"
#include "lowering/tiles/Stage.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Elements of a tile, at most: its scratch memory has to stay addressable.
static constexpr int64_t kMaxTileLength = int64_t(1) << 28;

//===----------------------------------------------------------------------===//
// What it takes
//===----------------------------------------------------------------------===//

/// Every tensor is a tile: rank 1, at least one element, of numbers.
static LogicalResult checkTile(Operation *op, Type type) {
  if (!isa<TensorType>(type))
    return success();
  std::optional<int64_t> length = getTileLength(type);
  if (!length || *length < 1 ||
      !cast<ShapedType>(type).getElementType().isIntOrIndexOrFloat())
    return op->emitOpError()
           << "has a value of type " << type
           << ": a tile is a tensor of rank 1 with a static length of at least "
              "1; give the array a static shape";
  if (*length > kMaxTileLength)
    return op->emitOpError()
           << "has a tile of " << *length << " elements, more than the "
           << kMaxTileLength << " that a tile may have; cut it into tiles";
  return success();
}

static LogicalResult checkMemory(Operation *op) {
  auto tileOp = dyn_cast<TileOpInterface>(op);
  if (!tileOp)
    return success();
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<MemRefType>(operand.getType()))
      if (!type.getLayout().isIdentity())
        return op->emitOpError()
               << "addresses memory of type " << type
               << ": a tile's memory must be contiguous, without a layout";
  return success();
}

/// The average of integers divides by a number that its type has to hold.
static LogicalResult checkReduction(Operation *op) {
  auto reduce = dyn_cast<RowReduceOp>(op);
  if (!reduce)
    return success();
  auto type = cast<ShapedType>(reduce.getTile().getType());
  auto integer = dyn_cast<IntegerType>(type.getElementType());
  if (reduce.getKind() != ReductionKind::Avg || !integer ||
      integer.getWidth() > 62)
    return success();
  if (type.getNumElements() < (int64_t(1) << (integer.getWidth() - 1)))
    return success();
  return op->emitOpError()
         << "averages " << type.getNumElements() << " elements of " << integer
         << ", which cannot hold that number; extend the tile first";
}

/// Tiles pass between blocks by scf alone: an edge of a control-flow graph has
/// no place to keep one.
static LogicalResult checkFlow(Operation *op) {
  for (Value operand : op->getOperands()) {
    if (!isa<TensorType>(operand.getType()) ||
        operand.getParentBlock()->findAncestorOpInBlock(*op))
      continue;
    return op->emitOpError(
        "uses a tile of another block; keep it in memory with "
        "comms.tile_store and comms.tile_load, or use scf.for and scf.if");
  }
  if (isa<scf::ForOp>(op))
    return success();
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (isa<TensorType>(type))
          return op->emitOpError(
              "carries a tile: only scf.for and scf.if can; keep the tile in "
              "memory with comms.tile_store and comms.tile_load instead");
  return success();
}

/// Parts of tiles have constant places.
static LogicalResult checkCut(Operation *op) {
  StringRef why = isTileCut(op) ? whyNotCut(op) : StringRef();
  return why.empty() ? success() : LogicalResult(op->emitOpError() << why);
}

LogicalResult tiles::checkOp(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (failed(checkTile(op, type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(checkTile(op, type)))
      return failure();
  return success(succeeded(checkMemory(op)) && succeeded(checkReduction(op)) &&
                 succeeded(checkFlow(op)) && succeeded(checkCut(op)));
}

LogicalResult tiles::checkForThreads(Operation *op) {
  if (isa<memref::StoreOp>(op))
    return op->emitOpError(
        "stores from a block of many threads, where each has this memory for "
        "itself or its elements are no row of numbers: use comms.tile_store of "
        "a tile of one element, which one thread stores");
  auto reduce = dyn_cast<RowReduceOp>(op);
  Type type =
      reduce ? getElementTypeOrSelf(reduce.getTile().getType()) : Type();
  if (type && type.isIntOrFloat() && type.getIntOrFloatBitWidth() > 64)
    return op->emitOpError() << "combines elements of " << type
                             << ", but threads exchange 64 bits at most";
  return success();
}

//===----------------------------------------------------------------------===//
// What it promises
//===----------------------------------------------------------------------===//

LogicalResult tiles::checkDistributed(Operation *op) {
  auto isWrong = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return isa<TensorType>(type) ||
           (vector && vector.getNumElements() > kMaxLanes);
  };
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                SmallVector<Type>(op->getResultTypes())))
    if (isWrong(type))
      return op->emitOpError()
             << "still has a value of type " << type
             << " after comms-distribute-tiles: tensors are gone by then, and "
                "vectors have at most "
             << kMaxLanes << " elements";
  return success();
}
