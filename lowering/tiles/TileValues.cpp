//===- TileValues.cpp - The lowered form of each tile ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/TileValues.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

Value TileValues::getScalar(Value value) const {
  auto it = scalars.find(value);
  return it == scalars.end() ? value : it->second;
}

/// index, index + 1, … as numbers of `elementType`: integers of 64 bits are
/// rounded once to a float, or cut to a narrower integer.
static Value emitIota(OpBuilder &builder, Location loc, Value index,
                      VectorType type) {
  int64_t count = type.getNumElements();
  SmallVector<int64_t> steps(count);
  for (int64_t i = 0; i < count; ++i)
    steps[i] = i;
  auto wide = VectorType::get({count}, builder.getI64Type());
  Value first =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
  Value splat = vector::BroadcastOp::create(builder, loc, wide, first);
  Value lanes = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(wide, ArrayRef(steps)));
  Value numbers = arith::AddIOp::create(builder, loc, splat, lanes);
  if (isa<FloatType>(type.getElementType()))
    return arith::SIToFPOp::create(builder, loc, type, numbers);
  unsigned bits = type.getElementTypeBitWidth();
  if (bits == 64)
    return numbers;
  if (bits > 64)
    return arith::ExtUIOp::create(builder, loc, type, numbers);
  return arith::TruncIOp::create(builder, loc, type, numbers);
}

Value TileValues::recompute(OpBuilder &builder, Location loc, Value tile,
                            Value index, int64_t count) const {
  Operation *op = tile.getDefiningOp();
  if (!op || !isRecomputed(op))
    return {};
  VectorType type = getVectorType(tile, count);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Attribute value =
        cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, value));
  }
  if (isa<IotaOp>(op))
    return emitIota(builder, loc, index, type);
  return vector::BroadcastOp::create(builder, loc, type,
                                     getScalar(op->getOperand(0)));
}
