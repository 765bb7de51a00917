//===- TileOps.cpp - Tiles --------------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Verify.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// tile_load, tile_store
//===----------------------------------------------------------------------===//

Value TileLoadOp::getTileValue() { return getTile(); }
Value TileStoreOp::getTileValue() { return getTile(); }

/// Checks the constraints that loads and stores of tiles share: C1 to C3.
static LogicalResult verifyAccess(Operation *op, Type memory, Type tile) {
  if (failed(verifyPlainMemory(op, "C1", memory, "memory")))
    return failure();
  Type held = cast<MemRefType>(memory).getElementType(),
       moved = getElementTypeOrSelf(tile);
  if (held != moved)
    return op->emitOpError()
           << "C2: the tile has elements of " << moved << ", the memory of "
           << held << "; convert the tile with arith";
  return verifyStaticTile(op, "C3", tile);
}

LogicalResult TileLoadOp::verify() {
  return verifyAccess(*this, getMemref().getType(), getTile().getType());
}

LogicalResult TileStoreOp::verify() {
  return verifyAccess(*this, getMemref().getType(), getTile().getType());
}

//===----------------------------------------------------------------------===//
// row_reduce, splat, broadcast_row, iota
//===----------------------------------------------------------------------===//

/// Whether both are tensors or both vectors.
static bool areSameKind(Type lhs, Type rhs) {
  return isa<VectorType>(lhs) == isa<VectorType>(rhs);
}

/// Whether a tile is known to have exactly one element.
static bool hasOneElement(Type tile) {
  auto vector = dyn_cast<VectorType>(tile);
  return cast<ShapedType>(tile).getDimSize(0) == 1 &&
         !(vector && vector.isScalable());
}

LogicalResult RowReduceOp::verify() {
  Type tile = getTile().getType(), result = getResult().getType();
  if (!hasOneElement(result) || !areSameKind(tile, result) ||
      getElementTypeOrSelf(tile) != getElementTypeOrSelf(result))
    return emitOpError() << "C1: the result is " << result
                         << "; it must be a tile of one "
                         << getElementTypeOrSelf(tile);
  if (!canCombine(getKind(), getElementTypeOrSelf(tile)))
    return emitOpError() << "C2: " << stringifyReductionKind(getKind())
                         << " of elements of " << getElementTypeOrSelf(tile)
                         << "; bitwise reductions need integers";
  if (cast<ShapedType>(tile).getDimSize(0) == 0)
    return emitOpError("C3: the tile must have at least one element");
  return success();
}

LogicalResult SplatOp::verify() {
  if (getElementTypeOrSelf(getResult().getType()) == getValue().getType())
    return success();
  return emitOpError() << "C1: a tile of "
                       << getElementTypeOrSelf(getResult().getType())
                       << " from a scalar of " << getValue().getType();
}

/// `value` for each element of a tile, when its length is known.
static OpFoldResult foldSplat(Type tile, Attribute value) {
  auto shaped = cast<ShapedType>(tile);
  auto vector = dyn_cast<VectorType>(tile);
  auto typed = dyn_cast_or_null<TypedAttr>(value);
  if (!typed || !isa<IntegerAttr, FloatAttr>(typed) ||
      !shaped.hasStaticShape() || typed.getType() != shaped.getElementType() ||
      (vector && vector.isScalable()))
    return {};
  return SplatElementsAttr::get(shaped, value);
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  return foldSplat(getResult().getType(), adaptor.getValue());
}

LogicalResult BroadcastRowOp::verify() {
  Type tile = getTile().getType(), result = getResult().getType();
  if (!hasOneElement(tile))
    return emitOpError() << "C1: the operand is " << tile
                         << "; it must be a tile of one element";
  if (!areSameKind(tile, result) ||
      getElementTypeOrSelf(tile) != getElementTypeOrSelf(result))
    return emitOpError() << "C2: a tile of " << getElementTypeOrSelf(result)
                         << " from a tile of " << getElementTypeOrSelf(tile);
  return success();
}

OpFoldResult BroadcastRowOp::fold(FoldAdaptor adaptor) {
  if (getTile() != getResult() && getTile().getType() == getResult().getType())
    return getTile();
  if (auto constant = dyn_cast_or_null<SplatElementsAttr>(adaptor.getTile()))
    return foldSplat(getResult().getType(),
                     constant.getSplatValue<Attribute>());
  return {};
}

LogicalResult MathOp::verify() {
  MathFunction function = getFunction();
  bool isOfTwo =
      function == MathFunction::Atan2 || function == MathFunction::Powf;
  if (getValues().size() == (isOfTwo ? 2 : 1))
    return success();
  return emitOpError() << "C1: " << stringifyMathFunction(function) << " takes "
                       << (isOfTwo ? "two values" : "one value") << ", not "
                       << getValues().size();
}

LogicalResult IotaOp::verify() {
  Type element = getElementTypeOrSelf(getResult().getType());
  bool counts = (isa<IntegerType>(element) && isStorable(element)) ||
                isa<Float32Type, Float64Type>(element);
  if (counts)
    return success();
  return emitOpError()
         << "C1: elements of " << element
         << " do not count; use integers of 8 to 64 bits, f32 or f64";
}
