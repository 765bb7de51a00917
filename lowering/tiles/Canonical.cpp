//===- Canonical.cpp - NaN that leave a kernel ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Canonical.h"

#include "dialect/Comms.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// comms-pin-arithmetic makes the NaN of these types canonical when it rounds.
static bool makesCanonicalNaN(Operation *op) {
  Type type = isa<arith::TruncFOp>(op) ? getElementTypeOrSelf(op->getResult(0))
                                       : Type();
  return type && (type.isBF16() || type.getIntOrFloatBitWidth() == 8);
}

bool tiles::isComputedFloat(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() < 16)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (makesCanonicalNaN(op))
    return false;
  // Memory, integers seen as floats, and scalars seen as tiles are only moved.
  if (isa<TileLoadOp, PacketLoadOp, PoisonLoadOp, memref::LoadOp,
          vector::LoadOp, vector::MaskedLoadOp, arith::BitcastOp,
          arith::SIToFPOp, arith::UIToFPOp, IotaOp>(op))
    return false;
  if (isa<SplatOp, BroadcastRowOp>(op))
    return isComputedFloat(op->getOperand(0));
  if (isa<arith::ConstantOp>(op)) {
    // Not NaN: nothing to do. A constant NaN is made canonical.
    Attribute constant;
    if (!matchPattern(value, m_Constant(&constant)))
      return true;
    if (auto splat = dyn_cast<SplatElementsAttr>(constant))
      constant = splat.getSplatValue<Attribute>();
    auto number = dyn_cast<FloatAttr>(constant);
    return !number || number.getValue().isNaN();
  }
  return true;
}

Value tiles::canonicalizeNaN(OpBuilder &builder, Location loc, Value vector,
                             Value origin) {
  return isComputedFloat(origin) ? emitCanonicalNaN(builder, loc, vector)
                                 : vector;
}

Value tiles::emitCanonicalNaN(OpBuilder &builder, Location loc, Value value) {
  Type type = value.getType();
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  TypedAttr nan = builder.getFloatAttr(
      element, APFloat::getQNaN(element.getFloatSemantics()));
  if (auto shaped = dyn_cast<ShapedType>(type))
    nan = DenseElementsAttr::get(shaped, Attribute(nan));
  Value canonical = arith::ConstantOp::create(builder, loc, nan);
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO,
                                      value, value);
  return arith::SelectOp::create(builder, loc, isNaN, canonical, value);
}

OpOperand *tiles::getSeenOperand(Operation *op) {
  if (isa<arith::BitcastOp>(op) &&
      isa<IntegerType>(getElementTypeOrSelf(op->getResult(0))))
    return &op->getOpOperand(0);
  return isa<math::CopySignOp>(op) ? &op->getOpOperand(1) : nullptr;
}
