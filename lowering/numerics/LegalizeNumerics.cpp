//===- LegalizeNumerics.cpp - The same bits on every target ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a target, a libm or an optimizer could decide is decided here. After the
// pass a kernel holds only operations whose result IEEE 754 or two's complement
// fixes to the bit. docs/Spec.md, chapter "Bits", has the rules.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"

#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/FastMathFlags.h"
#include "lowering/analysis/NarrowFloats.h"
#include "lowering/numerics/Functions.h"
#include "lowering/numerics/TargetNumerics.h"
#include "lowering/tiles/Canonical.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

namespace mlir::comms {
#define GEN_PASS_DEF_LEGALIZENUMERICS
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

/// Functions with one right result, which every target gives.
static constexpr StringLiteral exactFunctions[] = {
    "math.absf",     "math.absi",      "math.ceil",  "math.copysign",
    "math.ctlz",     "math.ctpop",     "math.cttz",  "math.floor",
    "math.fma",      "math.isfinite",  "math.isinf", "math.isnan",
    "math.isnormal", "math.roundeven", "math.sqrt",  "math.trunc"};

static bool isExact(StringRef name) {
  return llvm::is_contained(exactFunctions, name);
}

/// The function that `op`, of the math dialect, has an expansion by.
static std::optional<MathFunction> getFunction(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name.consume_front("math.") ? symbolizeMathFunction(name)
                                     : std::nullopt;
}

static bool isMath(Operation *op) {
  return isa_and_nonnull<math::MathDialect>(op->getDialect());
}

static bool isArithmetic(Operation *op) {
  return isMath(op) || isa_and_nonnull<arith::ArithDialect>(op->getDialect());
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

static LogicalResult refuseFunction(Operation *op) {
  SmallVector<std::string> all(std::begin(exactFunctions),
                               std::end(exactFunctions));
  for (uint32_t i = 0; i <= getMaxEnumValForMathFunction(); ++i)
    if (auto function = symbolizeMathFunction(i))
      all.push_back(("math." + stringifyMathFunction(*function)).str());
  llvm::sort(all);
  return op->emitOpError()
         << "has no expansion that gives the same bits on every target; "
            "supported are "
         << llvm::join(all, ", ");
}

static LogicalResult checkTypes(Operation *op) {
  auto check = [&](Type type) -> LogicalResult {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    if (!element || isSupportedFloat(element))
      return success();
    return op->emitOpError()
           << "uses " << element
           << ": supported floats are f8E4M3FN, f8E5M2, bf16, f16, f32 and f64";
  };
  for (Type type : op->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(type)))
      return failure();
  return success();
}

static LogicalResult checkTruncation(arith::TruncFOp op) {
  auto mode = op.getRoundingmode();
  if (mode && *mode != arith::RoundingMode::to_nearest_even)
    return op.emitOpError("uses a rounding mode other than to nearest even, "
                          "which kernels do not support");
  if (getElementTypeOrSelf(op.getIn().getType()).isF64() &&
      !getElementTypeOrSelf(op.getType()).isF32())
    return op.emitOpError()
           << "rounds f64 to " << getElementTypeOrSelf(op.getType())
           << ": round to f32 first, and say so";
  return success();
}

/// f64 has functions with one right result, and what takes few of them.
static LogicalResult checkFunction(Operation *op) {
  if (isExact(op->getName().getStringRef()))
    return success();
  std::optional<MathFunction> function = getFunction(op);
  if (!function)
    return refuseFunction(op);
  auto isF64 = [](Type type) { return getElementTypeOrSelf(type).isF64(); };
  if (function != MathFunction::Rsqrt && function != MathFunction::Round &&
      llvm::any_of(op->getOperandTypes(), isF64))
    return op->emitOpError(
        "is approximated in f32 only: convert the f64 operand to f32 first");
  return success();
}

static LogicalResult checkOp(Operation *op) {
  if (!isArithmetic(op))
    return success();
  if (failed(checkTypes(op)))
    return failure();
  if (auto truncate = dyn_cast<arith::TruncFOp>(op))
    return checkTruncation(truncate);
  if (isa<arith::RemFOp>(op))
    return op->emitOpError(
        "would call a function of libm; write it with floor or trunc");
  if (isMath(op) && isa<TensorType>(op->getResult(0).getType()))
    return op->emitOpError("is of a tile, and functions are expanded thread by "
                           "thread: run comms-distribute-tiles before");
  return isMath(op) ? checkFunction(op) : success();
}

//===----------------------------------------------------------------------===//
// NaN that are seen
//===----------------------------------------------------------------------===//

static void canonicalizeOperand(Operation *op, unsigned position) {
  Value value = op->getOperand(position);
  if (tiles::isCanonicalized(value) || !tiles::isComputedAnywhere(value))
    return;
  OpBuilder builder(op);
  op->setOperand(position,
                 tiles::emitCanonicalNaN(builder, op->getLoc(), value));
}

/// Places other than tile stores where the bits of a NaN show.
static void canonicalizeSeenNaN(Operation *op) {
  if (OpOperand *seen = tiles::getSeenOperand(op))
    canonicalizeOperand(op, seen->getOperandNumber());
  else if (auto store = dyn_cast<memref::StoreOp>(op))
    canonicalizeOperand(store, 0);
}

//===----------------------------------------------------------------------===//
// Classes of numbers
//===----------------------------------------------------------------------===//

static Value emitConstant(OpBuilder &builder, Location loc, Type type,
                          TypedAttr value) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    value = DenseElementsAttr::get(shaped, Attribute(value));
  return arith::ConstantOp::create(builder, loc, value);
}

/// math.isinf and math.isnormal, which MLIR 22 lowers for no target, as
/// comparisons. In the type of the operand: what is subnormal there is a normal
/// number of a wider type.
static void expandClass(Operation *op) {
  if (!isa<math::IsInfOp, math::IsNormalOp>(op))
    return;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value value = op->getOperand(0);
  Type type = value.getType();
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  const llvm::fltSemantics &semantics = element.getFloatSemantics();
  Value size = math::AbsFOp::create(builder, loc, value);
  auto compare = [&](arith::CmpFPredicate predicate,
                     const APFloat &number) -> Value {
    Value limit =
        emitConstant(builder, loc, type, builder.getFloatAttr(element, number));
    return arith::CmpFOp::create(builder, loc, predicate, size, limit);
  };
  APFloat most = APFloat::getLargest(semantics);
  Value result;
  if (isa<math::IsInfOp>(op))
    result = compare(arith::CmpFPredicate::OGT, most);
  else
    result = arith::AndIOp::create(
        builder, loc,
        compare(arith::CmpFPredicate::OGE,
                APFloat::getSmallestNormalized(semantics)),
        compare(arith::CmpFPredicate::OLE, most));
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// What comms-strip-fast-math has kept from folders, which ask the host's libm.
static void unhideFromFolders(MathOp op) {
  OpBuilder builder(op);
  OperationState state(
      op.getLoc(), ("math." + stringifyMathFunction(op.getFunction())).str(),
      op.getValues(), op->getResultTypes());
  op.replaceAllUsesWith(builder.create(state)->getResult(0));
  op.erase();
}

/// Functions are written out here. Folders are not asked: those of the math
/// dialect ask the host's libm.
static void expandFunction(Operation *op) {
  std::optional<MathFunction> function = getFunction(op);
  if (!function)
    return;
  OpBuilder builder(op);
  Value result = numerics::emitFunction(builder, op->getLoc(), *function,
                                        op->getOperands());
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

/// Divisions that round up or down, as others.
static LogicalResult expandDivisions(KernelOp kernel) {
  RewritePatternSet patterns(kernel.getContext());
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  GreedyRewriteConfig config;
  config.enableFolding(false).enableConstantCSE(false);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(kernel, std::move(patterns), config);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

namespace {
/// The chip that is compiled for; without one everything is done by integers.
struct Chip {
  explicit Chip(StringRef name)
      : name(name), numerics(findTargetNumerics(name)) {}
  StringRef name;
  const TargetNumerics *numerics;
};
} // namespace

/// f32 of bf16.
static Value emitExtBF16(OpBuilder &builder, Location loc, Value value,
                         const Chip &chip) {
  if (chip.numerics)
    if (Value wide = chip.numerics->emitExtFromBF16(builder, loc, value))
      return wide;
  return emitExtFromBF16(builder, loc, value);
}

static Value emitTruncF(OpBuilder &builder, Location loc, Value value,
                        Type type, const Chip &chip) {
  Type to = getElementTypeOrSelf(type);
  if (isNarrowFloat(getElementTypeOrSelf(value.getType())))
    value = getElementTypeOrSelf(value.getType()).isBF16()
                ? emitExtBF16(builder, loc, value, chip)
                : arith::ExtFOp::create(builder, loc,
                                        withElement(type, builder.getF32Type()),
                                        value)
                      .getResult();
  if (chip.numerics)
    if (Value narrow =
            chip.numerics->emitTruncF(builder, loc, value, to, chip.name))
      return narrow;
  if (to.isBF16())
    return emitTruncToBF16(builder, loc, value);
  return emitTruncToF8(builder, loc, value, to);
}

/// Null when the target's own conversion has one result. (NaN of f16 are made
/// canonical where they are stored: LLVM drops a choice of NaN before an
/// fptrunc.)
static Value pinTruncF(OpBuilder &builder, arith::TruncFOp op,
                       const Chip &chip) {
  Type to = getElementTypeOrSelf(op.getType());
  if (to.isF32() || to.isF16())
    return {};
  return emitTruncF(builder, op.getLoc(), op.getIn(), op.getType(), chip);
}

static Value pinExtF(OpBuilder &builder, arith::ExtFOp op, const Chip &chip) {
  Type from = getElementTypeOrSelf(op.getIn().getType()),
       to = getElementTypeOrSelf(op.getType());
  Location loc = op.getLoc();
  if (from.isF16() || from.isF32())
    return {};
  Value wide = from.isBF16() ? emitExtBF16(builder, loc, op.getIn(), chip)
                             : emitExtFromF8(builder, loc, op.getIn());
  if (to.isF32())
    return wide;
  if (to.isF64())
    return arith::ExtFOp::create(builder, loc, op.getType(), wide);
  if (to.isF16())
    return arith::TruncFOp::create(builder, loc, op.getType(), wide);
  return emitTruncF(builder, loc, wide, op.getType(), chip);
}

/// 2^exponent, times -1 if `negative`, in a float type.
static Value emitPowerOfTwo(OpBuilder &builder, Location loc, Type type,
                            int exponent, bool negative) {
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  APFloat value = scalbn(APFloat::getOne(element.getFloatSemantics(), negative),
                         exponent, APFloat::rmNearestTiesToEven);
  return emitConstant(builder, loc, type, builder.getFloatAttr(element, value));
}

/// Float to integer: towards zero, saturating; NaN becomes 0.
template <typename OpT>
static Value pinToInteger(OpBuilder &builder, OpT op, bool isSigned) {
  Location loc = op.getLoc();
  Value in = op.getIn();
  Type type = op.getType(), from = in.getType();
  auto integer = cast<IntegerType>(getElementTypeOrSelf(type));
  unsigned bits = integer.getWidth();
  auto compare = [&](arith::CmpFPredicate predicate, Value a,
                     Value b) -> Value {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  };
  Value zero =
      emitConstant(builder, loc, from,
                   builder.getFloatAttr(getElementTypeOrSelf(from), 0.0));
  Value low =
      isSigned ? emitPowerOfTwo(builder, loc, from, bits - 1, true) : zero;
  Value high =
      emitPowerOfTwo(builder, loc, from, isSigned ? bits - 1 : bits, false);
  Value tooLow = compare(arith::CmpFPredicate::OLT, in, low);
  Value tooHigh = compare(arith::CmpFPredicate::OGE, in, high);
  Value inRange = arith::AndIOp::create(
      builder, loc, compare(arith::CmpFPredicate::OGE, in, low),
      compare(arith::CmpFPredicate::OLT, in, high));
  Value safe = arith::SelectOp::create(builder, loc, inRange, in, zero);
  Value number = OpT::create(builder, loc, type, safe);
  APInt least =
      isSigned ? APInt::getSignedMinValue(bits) : APInt::getZero(bits);
  APInt most =
      isSigned ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits);
  Value smallest =
      emitConstant(builder, loc, type, builder.getIntegerAttr(integer, least));
  Value largest =
      emitConstant(builder, loc, type, builder.getIntegerAttr(integer, most));
  number = arith::SelectOp::create(builder, loc, tooLow, smallest, number);
  return arith::SelectOp::create(builder, loc, tooHigh, largest, number);
}

//===----------------------------------------------------------------------===//
// Integers, minima and maxima
//===----------------------------------------------------------------------===//

/// Whether every element of a constant fulfills `test`.
static bool isConstantOf(Value value,
                         llvm::function_ref<bool(const APInt &)> test) {
  Attribute attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return false;
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return test(integer.getValue());
  auto elements = dyn_cast<DenseIntElementsAttr>(attribute);
  return elements && llvm::all_of(elements.getValues<APInt>(), test);
}

static Value emitInteger(OpBuilder &builder, Location loc, Type type,
                         int64_t value) {
  return emitConstant(
      builder, loc, type,
      builder.getIntegerAttr(getElementTypeOrSelf(type), value));
}

/// Division where the divisor may be 0 or overflow: x / 0 = -1, x rem 0 = x,
/// the least number / -1 = itself, with remainder 0.
template <typename OpT, bool isSigned, bool isRemainder>
static Value pinDivision(OpBuilder &builder, OpT op) {
  if (isConstantOf(op.getRhs(), [](const APInt &divisor) {
        return !divisor.isZero() && !(isSigned && divisor.isAllOnes());
      }))
    return {};
  Location loc = op.getLoc();
  Type type = op.getType();
  Value x = op.getLhs(), divisor = op.getRhs();
  Value zero = emitInteger(builder, loc, type, 0),
        one = emitInteger(builder, loc, type, 1);
  auto equal = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  };
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  };
  Value minusOne = emitInteger(builder, loc, type, -1);
  Value byZero = equal(divisor, zero), byMinusOne = equal(divisor, minusOne);
  Value unsafe =
      isSigned
          ? arith::OrIOp::create(builder, loc, byZero, byMinusOne).getResult()
          : byZero;
  Value result = OpT::create(builder, loc, x, select(unsafe, one, divisor));
  if (isSigned) {
    Value negated =
        isRemainder ? zero
                    : arith::SubIOp::create(builder, loc, zero, x).getResult();
    result = select(byMinusOne, negated, result);
  }
  return select(byZero, isRemainder ? x : minusOne, result);
}

/// Whether a shift count is below `width`: a constant, or what a constant mask
/// has left.
static bool isCountBelow(Value count, unsigned width) {
  auto isBelow = [&](const APInt &number) { return number.ult(width); };
  if (auto mask = count.getDefiningOp<arith::AndIOp>())
    return isConstantOf(mask.getRhs(), isBelow);
  return isConstantOf(count, isBelow);
}

/// A shift by the width or more leaves nothing but the sign.
template <typename OpT>
static Value pinShift(OpBuilder &builder, OpT op) {
  Type type = op.getType();
  Type element = getElementTypeOrSelf(type);
  unsigned width =
      element.isIndex() ? 64 : cast<IntegerType>(element).getWidth();
  if (isCountBelow(op.getRhs(), width))
    return {};
  Location loc = op.getLoc();
  Value most =
      emitConstant(builder, loc, type,
                   builder.getIntegerAttr(element, APInt(width, width - 1)));
  Value count = arith::MinUIOp::create(builder, loc, op.getRhs(), most);
  Value shifted = OpT::create(builder, loc, op.getLhs(), count);
  if (std::is_same_v<OpT, arith::ShRSIOp>)
    return shifted;
  Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                       op.getRhs(), most);
  return arith::SelectOp::create(builder, loc, inside, shifted,
                                 emitInteger(builder, loc, type, 0));
}

/// maxnum and minnum: a number wins over NaN, +0 is greater than -0.
template <typename NumberOp, typename ExactOp>
static Value pinNumber(OpBuilder &builder, NumberOp op) {
  Location loc = op.getLoc();
  Value a = op.getLhs(), b = op.getRhs();
  auto isNaN = [&](Value value) -> Value {
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, value,
                                 value);
  };
  Value both = ExactOp::create(builder, loc, a, b);
  Value notB = arith::SelectOp::create(builder, loc, isNaN(b), a, both);
  return arith::SelectOp::create(builder, loc, isNaN(a), b, notB);
}

/// The root of a number that has one, else NaN. Written as the root of `value`,
/// LLVM 22 would see that the operand decides where it is NaN, and leave out
/// the choice of the canonical one, since any other is as good to it. (Hence no
/// constant for those that have no root either: it would move the choice out.)
static Value emitRootOfNumber(OpBuilder &builder, Location loc, Value value) {
  auto element = cast<FloatType>(getElementTypeOrSelf(value.getType()));
  auto constant = [&](double number) {
    return emitConstant(builder, loc, value.getType(),
                        builder.getFloatAttr(element, number));
  };
  Value root = math::SqrtOp::create(builder, loc,
                                    math::AbsFOp::create(builder, loc, value));
  Value hasNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ULT,
                                        value, constant(0));
  // -0 is its own root.
  return arith::SelectOp::create(
      builder, loc, hasNone, constant(std::numeric_limits<double>::quiet_NaN()),
      math::CopySignOp::create(builder, loc, root, value));
}

/// Of f32 on GPUs one over the root, too, whose uses are replaced here.
static Value pinRoot(OpBuilder &builder, math::SqrtOp op, const Chip &chip) {
  // Of a constant LLVM makes the root.
  if (matchPattern(op.getOperand(), m_Constant()))
    return {};
  std::optional<TargetNumerics::Roots> roots;
  if (chip.numerics && getElementTypeOrSelf(op.getType()).isF32())
    roots = chip.numerics->emitRoots(builder, op.getLoc(), op.getOperand());
  if (!roots)
    return emitRootOfNumber(builder, op.getLoc(), op.getOperand());
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto divide = dyn_cast<arith::DivFOp>(user);
    if (divide && divide.getRhs() == op &&
        matchPattern(divide.getLhs(), m_OneFloat()))
      divide.replaceAllUsesWith(roots->inverse);
  }
  return roots->root;
}

/// Returns the replacement of `op`, or null if `op` can stay.
static Value pin(OpBuilder &builder, Operation *op, const Chip &chip) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::TruncFOp o) { return pinTruncF(builder, o, chip); })
      .Case([&](arith::ExtFOp o) { return pinExtF(builder, o, chip); })
      .Case([&](math::SqrtOp o) { return pinRoot(builder, o, chip); })
      .Case([&](arith::FPToSIOp o) { return pinToInteger(builder, o, true); })
      .Case([&](arith::FPToUIOp o) { return pinToInteger(builder, o, false); })
      .Case([&](arith::DivSIOp o) {
        return pinDivision<arith::DivSIOp, true, false>(builder, o);
      })
      .Case([&](arith::DivUIOp o) {
        return pinDivision<arith::DivUIOp, false, false>(builder, o);
      })
      .Case([&](arith::RemSIOp o) {
        return pinDivision<arith::RemSIOp, true, true>(builder, o);
      })
      .Case([&](arith::RemUIOp o) {
        return pinDivision<arith::RemUIOp, false, true>(builder, o);
      })
      .Case([&](arith::ShLIOp o) { return pinShift(builder, o); })
      .Case([&](arith::ShRUIOp o) { return pinShift(builder, o); })
      .Case([&](arith::ShRSIOp o) { return pinShift(builder, o); })
      .Case([&](arith::MaxNumFOp o) {
        return pinNumber<arith::MaxNumFOp, arith::MaximumFOp>(builder, o);
      })
      .Case([&](arith::MinNumFOp o) {
        return pinNumber<arith::MinNumFOp, arith::MinimumFOp>(builder, o);
      })
      .Default([](Operation *) { return Value(); });
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// All ops of the kernel's body, so that a loop over them may make others.
static SmallVector<Operation *> collect(KernelOp kernel) {
  SmallVector<Operation *> ops;
  kernel.getBody().walk([&](Operation *op) { ops.push_back(op); });
  return ops;
}

//===----------------------------------------------------------------------===//
// Switches
//===----------------------------------------------------------------------===//

/// MLIR lowers `scf.index_switch` to a switch on 32 bits: it cuts the argument
/// and the cases. Here the argument becomes one that has the same case when
/// cut.
static void fitSwitch(scf::IndexSwitchOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto choose = [&](arith::CmpIPredicate predicate, Value left, int64_t right,
                    Value yes, Value no) -> Value {
    Value holds =
        arith::CmpIOp::create(builder, loc, predicate, left, constant(right));
    return arith::SelectOp::create(builder, loc, holds, yes, no);
  };
  Value argument = op.getArg();
  SmallVector<int64_t> cases(op.getCases());
  int64_t other = 0;
  while (llvm::is_contained(cases, other))
    ++other;
  if (llvm::all_of(cases, llvm::isInt<32>)) {
    Value shifted =
        arith::AddIOp::create(builder, loc, argument, constant(1ll << 31));
    op.getArgMutable().assign(choose(arith::CmpIPredicate::ult, shifted,
                                     1ll << 32, argument, constant(other)));
    return;
  }
  Value number = constant(int64_t(cases.size()));
  for (auto [i, value] : llvm::enumerate(cases)) {
    number = choose(arith::CmpIPredicate::eq, argument, value,
                    constant(int64_t(i)), number);
    cases[i] = int64_t(i);
  }
  op.getArgMutable().assign(number);
  op.setCases(cases);
}

namespace {
struct LegalizeNumericsPass
    : comms::impl::LegalizeNumericsBase<LegalizeNumericsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    for (const TargetNumerics *one : getTargetNumerics())
      one->addDialects(registry);
  }

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    kernel.walk(unhideFromFolders);
    for (Operation *op : collect(kernel))
      if (failed(checkOp(op)))
        return signalPassFailure();
    kernel.walk(fitSwitch);
    for (Operation *op : collect(kernel)) {
      stripFastMath(op);
      canonicalizeSeenNaN(op);
    }
    for (Operation *op : collect(kernel))
      expandClass(op);
    // After all of the above: a comparison that has been widened would not be
    // recognized, and one that is made here must be widened too.
    for (Operation *op : collect(kernel))
      if (isArithmetic(op))
        widenNarrow(op);
    for (Operation *op : collect(kernel))
      expandFunction(op);
    if (failed(expandDivisions(kernel))) {
      kernel.emitError(
          "comms-legalize-numerics: the expansion of divisions did not end");
      return signalPassFailure();
    }
    Chip target(chip);
    for (Operation *op : collect(kernel)) {
      OpBuilder builder(op);
      Value pinned = pin(builder, op, target);
      if (!pinned)
        continue;
      op->getResult(0).replaceAllUsesWith(pinned);
      op->erase();
    }
  }
};
} // namespace
