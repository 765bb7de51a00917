//===- StripFastMath.cpp - No optimizer may change bits -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First in the pipelines, before MLIR's canonicaliser, which takes a rounding
// and its undoing for nothing where flags permit it, and an index that is cast
// to few bits and back for the index; and which computes functions of constants
// by the host's libm, and narrow floats of constants in their own type, where
// f8E4M3FN has NaN for what saturates.
//
// And before the bounds are proven: the arithmetic that the proof sees is the
// arithmetic that runs, so nothing is promised in it.
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "lowering/Passes.h"
#include "lowering/analysis/FastMathFlags.h"
#include "lowering/analysis/NarrowFloats.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::comms {
#define GEN_PASS_DEF_STRIPFASTMATH
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

void mlir::comms::stripFastMath(Operation *op) {
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op)) {
    arith::FastMathFlagsAttr flags = fast.getFastMathFlagsAttr();
    if (flags && isa<arith::ExtFOp, arith::TruncFOp>(op))
      op->removeAttr(fast.getFastMathAttrName());
    else if (flags && flags.getValue() != arith::FastMathFlags::none)
      op->setAttr(fast.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(op->getContext(),
                                                arith::FastMathFlags::none));
  }
  if (auto overflow = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    op->setAttr(overflow.getIntegerOverflowAttrName(),
                arith::IntegerOverflowFlagsAttr::get(
                    op->getContext(), arith::IntegerOverflowFlags::none));
  llvm::TypeSwitch<Operation *>(op)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [](auto o) { o.setIsExact(false); })
      .Case<memref::LoadOp, memref::StoreOp, vector::LoadOp, vector::StoreOp>(
          [](auto access) {
            access.removeAlignmentAttr();
            access.setNontemporal(false);
          })
      .Case<vector::MaskedLoadOp, vector::MaskedStoreOp>(
          [](auto access) { access.removeAlignmentAttr(); });
}

/// Lowerings hand attributes that an op does not have on to LLVM's op, where
/// they may be its own: `isDisjoint`, say. Ops of comms say what theirs mean.
static void dropUnknownAttributes(Operation *op) {
  if (!isa_and_present<CommsDialect>(op->getDialect()))
    op->setDiscardableAttrs(ArrayRef<NamedAttribute>());
}

//===----------------------------------------------------------------------===//
// Indices, in one spelling
//===----------------------------------------------------------------------===//

template <typename OpT>
static Value respell(OpBuilder &builder, Operation *op) {
  return OpT::create(builder, op->getLoc(), op->getResultTypes(),
                     op->getOperands());
}

/// The predicate of arith that has the same name.
static arith::CmpIPredicate respell(index::IndexCmpPredicate predicate) {
  return *arith::symbolizeCmpIPredicate(
      index::stringifyIndexCmpPredicate(predicate));
}

/// An op of arith for one of the index dialect. Between integers of two widths
/// there is none.
static Value respellCast(OpBuilder &builder, Operation *op, bool isSigned) {
  if (op->getOperand(0).getType() == op->getResult(0).getType())
    return op->getOperand(0);
  return isSigned ? respell<arith::IndexCastOp>(builder, op)
                  : respell<arith::IndexCastUIOp>(builder, op);
}

static Value respellIndexOp(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
#define COMMSIR_X(INDEX, ARITH)                                                \
  .Case<index::INDEX>([&](auto) { return respell<arith::ARITH>(builder, op); })
  return llvm::TypeSwitch<Operation *, Value>(op)
      // clang-format off
      COMMSIR_X(AddOp, AddIOp) COMMSIR_X(SubOp, SubIOp)
      COMMSIR_X(MulOp, MulIOp) COMMSIR_X(DivSOp, DivSIOp)
      COMMSIR_X(DivUOp, DivUIOp) COMMSIR_X(CeilDivSOp, CeilDivSIOp)
      COMMSIR_X(CeilDivUOp, CeilDivUIOp) COMMSIR_X(FloorDivSOp, FloorDivSIOp)
      COMMSIR_X(RemSOp, RemSIOp) COMMSIR_X(RemUOp, RemUIOp)
      COMMSIR_X(MaxSOp, MaxSIOp) COMMSIR_X(MaxUOp, MaxUIOp)
      COMMSIR_X(MinSOp, MinSIOp) COMMSIR_X(MinUOp, MinUIOp)
      COMMSIR_X(ShlOp, ShLIOp) COMMSIR_X(ShrSOp, ShRSIOp)
      COMMSIR_X(ShrUOp, ShRUIOp) COMMSIR_X(AndOp, AndIOp)
      COMMSIR_X(OrOp, OrIOp) COMMSIR_X(XOrOp, XOrIOp)
                          // clang-format on
                          .Case([&](index::CastSOp) {
                            return respellCast(builder, op, true);
                          })
                          .Case([&](index::CastUOp) {
                            return respellCast(builder, op, false);
                          })
                          .Case([&](index::CmpOp compare) -> Value {
                            return arith::CmpIOp::create(
                                builder, loc, respell(compare.getPred()),
                                compare.getLhs(), compare.getRhs());
                          })
                          .Case([&](index::ConstantOp constant) -> Value {
                            return arith::ConstantOp::create(
                                builder, loc, constant.getValueAttr());
                          })
                          .Case([&](index::BoolConstantOp constant) -> Value {
                            return arith::ConstantOp::create(
                                builder, loc, constant.getValueAttr());
                          })
                          .Case([&](index::SizeOfOp) -> Value {
                            return arith::ConstantIndexOp::create(builder, loc,
                                                                  64);
                          })
                          .Default([](Operation *) { return Value(); });
#undef COMMSIR_X
}

/// The smallest or largest result of the map of an affine op, or the only one;
/// null: the map divides by a constant that is not positive, which is reported.
static Value respellMap(OpBuilder &builder, Operation *op, AffineMap map) {
  auto values =
      affine::expandAffineMap(builder, op->getLoc(), map, op->getOperands());
  if (!values)
    return {};
  Value result = values->front();
  for (Value value : llvm::drop_begin(*values))
    result = isa<affine::AffineMinOp>(op)
                 ? arith::MinSIOp::create(builder, op->getLoc(), result, value)
                       .getResult()
                 : arith::MaxSIOp::create(builder, op->getLoc(), result, value)
                       .getResult();
  return result;
}

/// Index and affine arithmetic becomes that of arith, whose divisions and
/// shifts comms-legalize-numerics defines and whose ranges the proofs know.
static LogicalResult spellByArith(Operation *op) {
  OpBuilder builder(op);
  Value result;
  if (isa_and_present<index::IndexDialect>(op->getDialect()))
    result = respellIndexOp(builder, op);
  else if (isa<affine::AffineApplyOp, affine::AffineMinOp, affine::AffineMaxOp>(
               op))
    result = llvm::TypeSwitch<Operation *, Value>(op)
                 .Case([&](affine::AffineApplyOp o) {
                   return respellMap(builder, op, o.getAffineMap());
                 })
                 .Case<affine::AffineMinOp, affine::AffineMaxOp>([&](auto o) {
                   return respellMap(builder, op, o.getAffineMap());
                 });
  else
    return success();
  if (!result)
    return op->emitOpError(
        "has no equivalent in arith; write it with ops of arith");
  op->replaceAllUsesWith(ValueRange(result));
  op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Loops, compared as signed numbers
//===----------------------------------------------------------------------===//

/// Whether both comparisons make the same turns: nothing comes near the sign.
static bool countsFar(scf::ForOp loop) {
  constexpr int64_t far = int64_t(1) << 30;
  auto isNear = [&](Value value, int64_t least) {
    std::optional<int64_t> number = getConstantIntValue(value);
    return number && *number >= least && *number < far;
  };
  return isNear(loop.getLowerBound(), 0) && isNear(loop.getUpperBound(), 0) &&
         isNear(loop.getStep(), 1);
}

/// A loop that is compared as unsigned becomes one over numbers that are less
/// by half of what the type holds: MLIR's folders take each loop for signed.
static void signLoop(scf::ForOp loop) {
  if (!loop.getUnsignedCmp())
    return;
  loop.setUnsignedCmp(false);
  if (countsFar(loop))
    return;
  Type type = loop.getInductionVar().getType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  auto shift = [&](OpBuilder &builder, Value value) -> Value {
    Value half = arith::ConstantOp::create(
        builder, loop.getLoc(),
        builder.getIntegerAttr(type, APInt::getSignedMinValue(width)));
    return arith::AddIOp::create(builder, loop.getLoc(), value, half);
  };
  OpBuilder before(loop);
  loop.setLowerBound(shift(before, loop.getLowerBound()));
  loop.setUpperBound(shift(before, loop.getUpperBound()));
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  Value counter = loop.getInductionVar();
  Value shifted = shift(inside, counter);
  counter.replaceAllUsesExcept(shifted, shifted.getDefiningOp());
}

/// A loop whose step is not written down checks that it is at least 1: folders
/// take a step that becomes 0 for a loop without turns.
static void checkStep(scf::ForOp loop) {
  Value step = loop.getStep();
  if (getConstantIntValue(step) || step.getDefiningOp<NumBlocksOp>() ||
      step.getDefiningOp<SizeOp>())
    return;
  bool isChecked = llvm::any_of(step.getUsers(), [&](Operation *user) {
    auto check = dyn_cast<CheckBoundsOp>(user);
    return check && check.getLimit() == step &&
           check->getBlock() == loop->getBlock() &&
           check->isBeforeInBlock(loop);
  });
  if (isChecked)
    return;
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  if (!step.getType().isIndex())
    step = arith::IndexCastOp::create(b, b.getIndexType(), step);
  CheckBoundsOp::create(b, arith::ConstantIndexOp::create(b, 1),
                        arith::ConstantIndexOp::create(b, 0), step,
                        "step of a loop");
}

//===----------------------------------------------------------------------===//
// What folders may not see
//===----------------------------------------------------------------------===//

/// Cuts by `trunci`, which keeps MLIR's pattern IndexCastOfIndexCast (and that
/// of the unsigned cast) from what it would lose bits of.
template <typename CastOp>
static void splitNarrowCast(CastOp cast) {
  constexpr unsigned indexWidth = 64;
  Type from = cast.getIn().getType(), to = cast.getType();
  if (!getElementTypeOrSelf(from).isIndex() ||
      getElementTypeOrSelf(to).getIntOrFloatBitWidth() >= indexWidth)
    return;
  OpBuilder builder(cast);
  Type wide = builder.getIntegerType(indexWidth);
  if (auto shaped = dyn_cast<ShapedType>(to))
    wide = shaped.clone(wide);
  Value all = CastOp::create(builder, cast.getLoc(), wide, cast.getIn());
  cast.replaceAllUsesWith(
      arith::TruncIOp::create(builder, cast.getLoc(), to, all).getResult());
  cast.erase();
}

/// A function that libm and MLIR's expansion compute to different bits.
static void hideFromFolders(Operation *op) {
  StringRef name = op->getName().getStringRef();
  std::optional<MathFunction> function;
  if (name.consume_front("math."))
    function = symbolizeMathFunction(name);
  if (!function)
    return;
  OpBuilder builder(op);
  auto hidden =
      comms::MathOp::create(builder, op->getLoc(), op->getResult(0).getType(),
                            *function, op->getOperands());
  op->replaceAllUsesWith(hidden);
  op->erase();
}

/// Whether a folder computes `op` in a narrow type, and by way of f32 it would
/// be something else.
static bool differsInF32(Operation *op) {
  if (op->getNumResults() == 0)
    return false;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return isNarrowFloat(element);
  return isa<Float8E4M3FNType>(element) &&
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op);
}

namespace {
struct StripFastMathPass : comms::impl::StripFastMathBase<StripFastMathPass> {
  void runOnOperation() override {
    Region &body = getOperation().getBody();
    WalkResult spelled =
        body.walk([](Operation *op) { return WalkResult(spellByArith(op)); });
    if (spelled.wasInterrupted())
      return signalPassFailure();
    body.walk([](scf::ForOp loop) {
      signLoop(loop);
      checkStep(loop);
    });
    body.walk([](Operation *op) {
      dropUnknownAttributes(op);
      stripFastMath(op);
      if (differsInF32(op))
        return widenNarrow(op);
      llvm::TypeSwitch<Operation *>(op)
          .Case<arith::IndexCastOp, arith::IndexCastUIOp>(
              [](auto cast) { splitNarrowCast(cast); })
          .Default([](Operation *other) { hideFromFolders(other); });
    });
  }
};
} // namespace
