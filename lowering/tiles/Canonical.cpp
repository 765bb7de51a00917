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

/// comms-legalize-numerics makes the NaN of these types canonical when it
/// rounds.
static bool makesCanonicalNaN(Operation *op) {
  Type type = isa<arith::TruncFOp>(op) ? getElementTypeOrSelf(op->getResult(0))
                                       : Type();
  return type && (type.isBF16() || type.getIntOrFloatBitWidth() == 8);
}

/// The number that all elements of a constant are.
static std::optional<APFloat> getConstantFloat(Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(constant))
    constant = splat.getSplatValue<Attribute>();
  auto number = dyn_cast<FloatAttr>(constant);
  return number ? std::optional(number.getValue()) : std::nullopt;
}

bool tiles::isCanonicalized(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                        : arith::CmpFOp();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::UNO ||
      compare.getLhs() != compare.getRhs() ||
      compare.getLhs() != select.getFalseValue())
    return false;
  std::optional<APFloat> nan = getConstantFloat(select.getTrueValue());
  return nan && nan->bitwiseIsEqual(APFloat::getQNaN(nan->getSemantics()));
}

/// Results that may be a NaN of any bits, which are to stay.
static bool holdsAnyBits(Operation *op) {
  return isa_and_nonnull<TileLoadOp, PacketLoadOp, PoisonLoadOp, memref::LoadOp,
                         vector::LoadOp, vector::MaskedLoadOp,
                         arith::BitcastOp>(op);
}

bool tiles::isComputedFloat(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() < 16 ||
      isCanonicalized(value))
    return false;
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (makesCanonicalNaN(op))
    return false;
  // Memory, integers seen as floats, and scalars seen as tiles are only moved.
  if (holdsAnyBits(op) || isa<arith::SIToFPOp, arith::UIToFPOp, IotaOp>(op))
    return false;
  if (isa<SplatOp, BroadcastRowOp>(op))
    return isComputedFloat(op->getOperand(0));
  if (isa<arith::ConstantOp>(op)) {
    // Not NaN: nothing to do. A constant NaN is made canonical.
    std::optional<APFloat> number = getConstantFloat(value);
    return !number || number->isNaN();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What control flow carries
//===----------------------------------------------------------------------===//

static constexpr StringRef kMovedAttr = "comms.moved";

/// Returns the operands by which a loop or branch carries `value`; empty if it
/// is carried in another way.
static SmallVector<OpOperand *, 2> getCarryingOperands(Value value) {
  auto ofLoop = [](scf::ForOp loop, unsigned number) {
    return SmallVector<OpOperand *, 2>{
        &loop.getInitArgsMutable()[number],
        &(*loop.getYieldedValuesMutable())[number]};
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
    return {&branch.thenYield()->getOpOperand(number),
            &branch.elseYield()->getOpOperand(number)};
  return {};
}

/// `value` before it was seen as a tile, or as a longer one.
static Value skipSpreading(Value value) {
  while (isa_and_nonnull<SplatOp, BroadcastRowOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether control flow carries `value`, and it is nowhere computed.
static bool isCarriedOnly(Value value) {
  llvm::SmallSetVector<Value, 8> seen;
  seen.insert(skipSpreading(value));
  bool isCarried = false;
  for (size_t next = 0; next < seen.size(); ++next) {
    SmallVector<OpOperand *, 2> operands = getCarryingOperands(seen[next]);
    isCarried |= !operands.empty();
    if (operands.empty() && isComputedFloat(seen[next]))
      return false;
    for (OpOperand *operand : operands)
      seen.insert(skipSpreading(operand->get()));
  }
  return isCarried;
}

/// Where control flow carries `value`, and it is computed on some ways and
/// moved on others, makes what is computed canonical as it is handed on.
static void canonicalizeCarried(Value value) {
  llvm::SmallSetVector<Value, 8> seen;
  seen.insert(skipSpreading(value));
  SmallVector<OpOperand *> computed;
  bool isMoved = false;
  for (size_t next = 0; next < seen.size(); ++next)
    for (OpOperand *operand : getCarryingOperands(seen[next])) {
      Value handed = skipSpreading(operand->get());
      if (!getCarryingOperands(handed).empty())
        seen.insert(handed);
      else if (isComputedFloat(handed))
        computed.push_back(operand);
      else
        isMoved |= holdsAnyBits(handed.getDefiningOp());
    }
  if (!isMoved)
    return;
  for (OpOperand *operand : computed) {
    OpBuilder builder(operand->getOwner());
    operand->set(emitCanonicalNaN(builder, operand->getOwner()->getLoc(),
                                  operand->get()));
  }
}

bool tiles::isComputedAnywhere(Value value) {
  return isComputedFloat(value) && !isCarriedOnly(value);
}

void tiles::canonicalizeCarriedNaNs(Operation *kernel) {
  kernel->walk([](Operation *op) {
    auto tile = dyn_cast<TileOpInterface>(op);
    Value written =
        tile && op->getNumResults() == 0 ? tile.getTileValue() : Value();
    if (OpOperand *seen = getSeenOperand(op))
      written = seen->get();
    if (auto store = dyn_cast<memref::StoreOp>(op))
      written = store.getValueToStore();
    if (written && isa<FloatType>(getElementTypeOrSelf(written.getType())))
      canonicalizeCarried(written);
  });
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
