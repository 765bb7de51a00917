//===- TileMemory.cpp - Buffers for tiles between loops -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/TileMemory.h"

#include "lowering/tiles/Threads.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Elements of i1 have no address of their own.
static Type getStoredType(Type elementType) {
  return elementType.isInteger(1)
             ? IntegerType::get(elementType.getContext(), 8)
             : elementType;
}

MemRefType TileMemory::getBufferType(int64_t length, Type elementType) const {
  int64_t elements = llvm::alignTo(length, lanes);
  if (threads)
    elements = threads->getTrips(length) * threads->getLanes(length);
  return MemRefType::get({elements}, getStoredType(elementType));
}

Value TileMemory::take(Location loc, int64_t length, Type elementType) {
  SmallVector<Value> &free = unused[getBufferType(length, elementType)];
  return free.empty() ? takeNew(loc, length, elementType) : free.pop_back_val();
}

Value TileMemory::takeNew(Location loc, int64_t length, Type elementType) {
  MemRefType type = getBufferType(length, elementType);
  if (threads)
    return threads->makePrivate(loc, type.getNumElements(),
                                type.getElementType());
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  return ScratchOp::create(builder, loc, type);
}

void TileMemory::give(Value buffer) {
  unused[buffer.getType()].push_back(buffer);
}

Value TileMemory::read(OpBuilder &builder, Location loc, Value buffer,
                       Value index, int64_t count, Type elementType) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  Value vector =
      vector::LoadOp::create(builder, loc, VectorType::get({count}, stored),
                             buffer, ValueRange(index));
  if (stored == elementType)
    return vector;
  return arith::TruncIOp::create(builder, loc,
                                 VectorType::get({count}, elementType), vector);
}

void TileMemory::write(OpBuilder &builder, Location loc, Value vector,
                       Value buffer, Value index) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType() != stored)
    vector = arith::ExtUIOp::create(builder, loc, type.clone(stored), vector);
  vector::StoreOp::create(builder, loc, vector, buffer, ValueRange(index));
}

Value tiles::getFlatView(OpBuilder &builder, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.getRank() == 1)
    return memref;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(memref);
  OpFoldResult size = builder.getIndexAttr(1);
  int64_t elements = 1;
  for (auto [position, dim] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(dim) && !ShapedType::isDynamic(elements)) {
      elements *= dim;
      size = builder.getIndexAttr(elements);
      continue;
    }
    Value factor = memref::DimOp::create(builder, loc, memref, position);
    Value before = getValueOrCreateConstantIndexOp(builder, loc, size);
    size = arith::MulIOp::create(builder, loc, before, factor).getResult();
    elements = ShapedType::kDynamic;
  }
  auto flatType =
      MemRefType::get({elements}, type.getElementType(),
                      MemRefLayoutAttrInterface{}, type.getMemorySpace());
  return memref::ReinterpretCastOp::create(
      builder, loc, flatType, memref, OpFoldResult(builder.getIndexAttr(0)),
      ArrayRef<OpFoldResult>{size},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
}
