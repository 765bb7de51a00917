//===- Canonical.cpp - NaN that leave a kernel ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Canonical.h"

#include "dialect/Comms.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/SetVector.h"

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

//===----------------------------------------------------------------------===//
// What control flow carries
//===----------------------------------------------------------------------===//

static constexpr StringRef kMovedAttr = "comms.moved";

/// What `value` may be where a loop or a branch carries it; empty: it is none
/// of those that are followed.
static SmallVector<Value, 2> getCarriedValues(Value value) {
  auto ofLoop = [](scf::ForOp loop, unsigned number) {
    return SmallVector<Value, 2>{loop.getInitArgs()[number],
                                 loop.getYieldedValues()[number]};
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument == loop.getInductionVar())
      return {};
    return ofLoop(loop, argument.getArgNumber() - 1);
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto loop = value.getDefiningOp<scf::ForOp>())
    return ofLoop(loop, number);
  if (auto branch = value.getDefiningOp<scf::IfOp>())
    return {branch.thenYield()->getOperand(number),
            branch.elseYield()->getOperand(number)};
  return {};
}

/// Whether control flow carries `value`, and it is nowhere computed.
static bool isCarriedOnly(Value value) {
  llvm::SmallSetVector<Value, 8> seen;
  seen.insert(value);
  bool isCarried = false;
  for (size_t next = 0; next < seen.size(); ++next) {
    // A scalar seen as a tile is only moved.
    Operation *op = seen[next].getDefiningOp();
    if (isa_and_nonnull<SplatOp, BroadcastRowOp>(op)) {
      seen.insert(op->getOperand(0));
      continue;
    }
    SmallVector<Value, 2> values = getCarriedValues(seen[next]);
    isCarried |= !values.empty();
    if (values.empty() && isComputedFloat(seen[next]))
      return false;
    seen.insert_range(values);
  }
  return isCarried;
}

bool tiles::isComputedAnywhere(Value value) {
  return isComputedFloat(value) && !isCarriedOnly(value);
}

void tiles::markMovedTiles(Operation *kernel) {
  kernel->walk([](TileOpInterface op) {
    op->removeAttr(kMovedAttr); // What the input says of it does not count.
    if (op->getNumResults() == 0 && isCarriedOnly(op.getTileValue()))
      op->setAttr(kMovedAttr, UnitAttr::get(op->getContext()));
  });
}

Value tiles::canonicalizeNaN(OpBuilder &builder, Location loc, Value vector,
                             Value origin, Operation *writer) {
  bool isMoved = writer && writer->hasAttr(kMovedAttr);
  return !isMoved && isComputedFloat(origin)
             ? emitCanonicalNaN(builder, loc, vector)
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
