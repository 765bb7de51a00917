//===- ThreadReduction.cpp - A thread's part of a row ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/ThreadReduction.h"

#include "lowering/tiles/Canonical.h"
#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Type ThreadReduction::getWordType(OpBuilder &builder) const {
  return builder.getIntegerType(8 * getWordBytes());
}

Value ThreadReduction::toWord(OpBuilder &builder, Value value) const {
  Type word = getWordType(builder);
  if (value.getType() == word)
    return value;
  if (elementType.isIndex())
    return arith::IndexCastOp::create(builder, loc, word, value);
  unsigned bits = elementType.getIntOrFloatBitWidth();
  if (isa<FloatType>(elementType))
    value = arith::BitcastOp::create(builder, loc, builder.getIntegerType(bits),
                                     value);
  if (value.getType() != word)
    value = arith::ExtUIOp::create(builder, loc, word, value);
  return value;
}

Value ThreadReduction::fromWord(OpBuilder &builder, Value word) const {
  if (isExchangedAsInteger())
    return word;
  if (elementType.isIndex())
    return arith::IndexCastOp::create(builder, loc, elementType, word);
  Type narrow = builder.getIntegerType(elementType.getIntOrFloatBitWidth());
  if (word.getType() != narrow)
    word = arith::TruncIOp::create(builder, loc, narrow, word);
  if (isa<FloatType>(elementType))
    word = arith::BitcastOp::create(builder, loc, elementType, word);
  return word;
}

Value ThreadReduction::shuffle(OpBuilder &builder, Value value,
                               int64_t distance) const {
  auto exchange = [&](Value one) -> Value {
    return gpu::ShuffleOp::create(builder, loc, one, distance, kWarp,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  if (value.getType().isF32() || value.getType().isInteger(32))
    return exchange(value);
  Value word = toWord(builder, value);
  if (word.getType().isInteger(32))
    return fromWord(builder, exchange(word));
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  Value half = arith::ConstantIntOp::create(builder, loc, i64, 32);
  Value low = arith::TruncIOp::create(builder, loc, i32, word);
  Value high = arith::TruncIOp::create(
      builder, loc, i32, arith::ShRUIOp::create(builder, loc, word, half));
  low = arith::ExtUIOp::create(builder, loc, i64, exchange(low));
  high = arith::ExtUIOp::create(builder, loc, i64, exchange(high));
  high = arith::ShLIOp::create(builder, loc, high, half);
  return fromWord(builder, arith::OrIOp::create(builder, loc, low, high));
}

//===----------------------------------------------------------------------===//
// What is exchanged
//===----------------------------------------------------------------------===//

bool ThreadReduction::isExchangedAsInteger() const {
  if (elementType.isInteger(8) || elementType.isInteger(16) ||
      elementType.isInteger(32))
    return true;
  return (kind == ReductionKind::Max || kind == ReductionKind::Min) &&
         (elementType.isF32() || elementType.isF16() || elementType.isBF16());
}

/// All bits but the sign, of negative numbers, turned around; done twice it
/// changes nothing.
Value ThreadReduction::turnNegatives(OpBuilder &builder, Value bits) const {
  auto constant = [&](int64_t number) {
    return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(),
                                        number);
  };
  int64_t others = llvm::maxIntN(int64_t(elementType.getIntOrFloatBitWidth()));
  Value sign = arith::ShRSIOp::create(builder, loc, bits, constant(31));
  Value turned = arith::AndIOp::create(builder, loc, sign, constant(others));
  return arith::XOrIOp::create(builder, loc, bits, turned);
}

/// A float's bits are in the float's order, except for negative ones:
/// -0.0 is then less than +0.0, as arith.maximumf has it, too. A canonical NaN
/// is greater than all numbers, and of a minimum, where it has to win, less.
Value ThreadReduction::toExchanged(OpBuilder &builder, Value value) const {
  if (!isExchangedAsInteger())
    return value;
  unsigned width = elementType.getIntOrFloatBitWidth();
  bool isFloat = isa<FloatType>(elementType);
  Value bits = value;
  if (isFloat) {
    value = emitCanonicalNaN(builder, loc, value);
    bits = arith::BitcastOp::create(builder, loc, builder.getIntegerType(width),
                                    value);
  }
  if (width < 32)
    bits = arith::ExtSIOp::create(builder, loc, builder.getI32Type(), bits);
  if (!isFloat)
    return bits;
  Value ordered = turnNegatives(builder, bits);
  if (kind != ReductionKind::Min)
    return ordered;
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO,
                                      value, value);
  return arith::SelectOp::create(builder, loc, isNaN, getLeast(builder),
                                 ordered);
}

Value ThreadReduction::getLeast(OpBuilder &builder) const {
  return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(),
                                      llvm::minIntN(32));
}

Value ThreadReduction::fromExchanged(OpBuilder &builder,
                                     Value exchanged) const {
  if (!isExchangedAsInteger())
    return exchanged;
  auto floatType = dyn_cast<FloatType>(elementType);
  unsigned width = elementType.getIntOrFloatBitWidth();
  Value bits = floatType ? turnNegatives(builder, exchanged) : exchanged;
  if (width < 32)
    bits = arith::TruncIOp::create(builder, loc, builder.getIntegerType(width),
                                   bits);
  if (!floatType)
    return bits;
  Value number = arith::BitcastOp::create(builder, loc, floatType, bits);
  if (kind != ReductionKind::Min)
    return number;
  Value nan = arith::ConstantOp::create(
      builder, loc,
      builder.getFloatAttr(floatType,
                           APFloat::getQNaN(floatType.getFloatSemantics())));
  Value isNaN = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                      exchanged, getLeast(builder));
  return arith::SelectOp::create(builder, loc, isNaN, nan, number);
}

Value ThreadReduction::getExchangedIdentity(OpBuilder &builder) const {
  return toExchanged(builder, vector::ExtractOp::create(
                                  builder, loc, getIdentity(builder, 1), 0));
}

//===----------------------------------------------------------------------===//
// A warp at once
//===----------------------------------------------------------------------===//

/// Below this many lanes, two shuffle steps are as fast, as measured on H200.
static constexpr int64_t kLeastAtOnce = 8;

std::optional<gpu::AllReduceOperation>
ThreadReduction::getOperation(int64_t lanes) const {
  using gpu::AllReduceOperation;
  if (!isExchangedAsInteger() || lanes < kLeastAtOnce)
    return std::nullopt;
  // Of a sum what comes twice would count twice.
  bool isWhole = lanes == kWarp;
  switch (kind) {
  case ReductionKind::Max:
    return AllReduceOperation::MAXSI;
  case ReductionKind::Min:
    return AllReduceOperation::MINSI;
  case ReductionKind::And:
    return AllReduceOperation::AND;
  case ReductionKind::Or:
    return AllReduceOperation::OR;
  case ReductionKind::Xor:
    return isWhole ? std::optional(AllReduceOperation::XOR) : std::nullopt;
  case ReductionKind::Sum:
  case ReductionKind::Avg:
    return isWhole ? std::optional(AllReduceOperation::ADD) : std::nullopt;
  case ReductionKind::Prod:
    return std::nullopt;
  }
  return std::nullopt;
}

Value ThreadReduction::combineAtOnce(OpBuilder &builder, Value exchanged,
                                     int64_t lanes) const {
  std::optional<gpu::AllReduceOperation> operation = getOperation(lanes);
  if (!operation)
    return {};
  return gpu::SubgroupReduceOp::create(builder, loc, exchanged, *operation,
                                       /*uniform=*/true);
}

//===----------------------------------------------------------------------===//
// In the stage
//===----------------------------------------------------------------------===//

void ThreadReduction::begin(OpBuilder &builder, bool isDirect) {
  direct = isDirect;
  if (direct) {
    parts.resize(trips);
    return;
  }
  partsBuffer = threads.makePrivate(loc, trips, getWordType(builder));
  Value word = toWord(builder, getExchangedIdentity(builder));
  auto store = [&](OpBuilder &b, Value trip) {
    memref::StoreOp::create(b, loc, word, partsBuffer, ValueRange(trip));
  };
  if (trips > kMaxUnrolledTrips)
    return emitLoop(builder, loc, getIndex(builder, loc, 0),
                    getIndex(builder, loc, trips), 1, store);
  for (int64_t trip = 0; trip < trips; ++trip)
    store(builder, getIndex(builder, loc, trip));
}

void ThreadReduction::add(OpBuilder &builder, Value vector, Value trip,
                          Value mask) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  if (mask)
    vector = arith::SelectOp::create(builder, loc, mask, vector,
                                     getIdentity(builder, lanes));
  Value part =
      toExchanged(builder, vector::ExtractOp::create(
                               builder, loc, combineLanes(builder, vector), 0));
  if (direct)
    parts[*getConstantIntValue(trip)] = part;
  else
    memref::StoreOp::create(builder, loc, toWord(builder, part), partsBuffer,
                            ValueRange(trip));
}

Value ThreadReduction::getPart(OpBuilder &builder, Value trip) const {
  if (direct)
    return parts[*getConstantIntValue(trip)];
  return fromWord(builder, memref::LoadOp::create(builder, loc, partsBuffer,
                                                  ValueRange(trip)));
}
