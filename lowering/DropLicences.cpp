//===- DropLicences.cpp - No optimiser may change bits --------------------===//
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
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "lowering/Licences.h"
#include "lowering/NarrowFloats.h"
#include "lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::comms {
#define GEN_PASS_DEF_DROPLICENCES
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

void mlir::comms::dropLicences(Operation *op) {
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op)) {
    arith::FastMathFlagsAttr flags = fast.getFastMathFlagsAttr();
    if (flags && isa<arith::ExtFOp, arith::TruncFOp>(op))
      op->removeAttr(fast.getFastMathAttrName());
    else if (flags && flags.getValue() != arith::FastMathFlags::none)
      op->setAttr(fast.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(op->getContext(),
                                                arith::FastMathFlags::none));
  }
  if (op->getNumResults() == 0 ||
      getElementTypeOrSelf(op->getResult(0).getType()).isIndex())
    return;
  if (auto overflow = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    op->setAttr(overflow.getIntegerOverflowAttrName(),
                arith::IntegerOverflowFlagsAttr::get(
                    op->getContext(), arith::IntegerOverflowFlags::none));
  llvm::TypeSwitch<Operation *>(op)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [](auto o) { o.setIsExact(false); });
}

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
struct DropLicencesPass : comms::impl::DropLicencesBase<DropLicencesPass> {
  void runOnOperation() override {
    getOperation().getBody().walk([](Operation *op) {
      dropLicences(op);
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
