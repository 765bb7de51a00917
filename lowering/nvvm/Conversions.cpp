//===- Conversions.cpp - Narrow floats by a GPU's instructions ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every NaN that these instructions make is 0x7FFF (0x7F in f8E4M3FN): the
// lesser of that and the canonical NaN, as signed integers, is the canonical
// NaN, and changes no number, for the greatest is infinity.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/Conversions.h"

#include "lowering/nvvm/Ptx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::comms;

unsigned nvvm::getCapability(StringRef chip) {
  unsigned number = 0;
  if (!chip.consume_front("sm_") || chip.consumeInteger(10, number))
    return 0;
  return number;
}

static APInt getCanonicalNaN(FloatType type) {
  return APFloat::getQNaN(type.getFloatSemantics()).bitcastToAPInt();
}

/// A constant of `type`, a scalar or a vector of integers.
static Value makeConstant(ImplicitLocOpBuilder &b, Type type, APInt value) {
  TypedAttr attribute = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto shaped = dyn_cast<ShapedType>(type))
    attribute = DenseElementsAttr::get(shaped, Attribute(attribute));
  return arith::ConstantOp::create(b, attribute);
}

/// Two elements of 16 bits, or fewer, whose only NaN is 0x7FFF.
static Value replaceNaN(ImplicitLocOpBuilder &b, Value integers,
                        FloatType type) {
  Value most = makeConstant(b, integers.getType(), getCanonicalNaN(type));
  return arith::MinSIOp::create(b, integers, most);
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// Elements 2i and 2i + 1 of `vector` as bf16, in a vector of two integers.
static Value roundPair(ImplicitLocOpBuilder &b, Value vector, int64_t at,
                       FloatType type) {
  Value pair = vector::ExtractStridedSliceOp::create(
      b, vector, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{2},
      ArrayRef<int64_t>{1});
  Value narrow = arith::TruncFOp::create(b, VectorType::get({2}, type), pair);
  Value integers = vector::BitCastOp::create(
      b, VectorType::get({2}, b.getI16Type()), narrow);
  return replaceNaN(b, integers, type);
}

/// Elements 2i and 2i + 1 as f8E4M3FN: out of range is saturated, NaN is 0x7F.
static Value roundPairToF8(ImplicitLocOpBuilder &b, Value vector, int64_t at,
                           FloatType type) {
  Value low = vector::ExtractOp::create(b, vector, at),
        high = vector::ExtractOp::create(b, vector, at + 1);
  return NVVM::ConvertF32x2ToF8x2Op::create(
      b, VectorType::get({2}, b.getI8Type()), high, low,
      NVVM::FPRoundingMode::RN, NVVM::SaturationMode::SATFINITE,
      /*relu=*/false, type);
}

/// A vector whose pairs of elements are `pairs`.
static Value joinPairs(ImplicitLocOpBuilder &b, ArrayRef<Value> pairs,
                       FloatType type) {
  int64_t count = pairs.size();
  Type word = b.getIntegerType(2 * type.getWidth());
  SmallVector<Value> words;
  for (Value pair : pairs)
    words.push_back(vector::ExtractOp::create(
        b, vector::BitCastOp::create(b, VectorType::get({1}, word), pair), 0));
  Value all =
      vector::FromElementsOp::create(b, VectorType::get({count}, word), words);
  return vector::BitCastOp::create(b, VectorType::get({2 * count}, type), all);
}

Value nvvm::emitTruncF(OpBuilder &builder, Location loc, Value value,
                       Type element, unsigned capability) {
  bool isF8 = isa<Float8E4M3FNType>(element);
  auto vector = dyn_cast<VectorType>(value.getType());
  // Of a constant LLVM would make the NaN.
  if ((!isF8 && !element.isBF16()) || capability < (isF8 ? 90 : 80) ||
      !vector || vector.getRank() != 1 || vector.getNumElements() % 2 ||
      matchPattern(value, m_Constant()))
    return {};
  auto type = cast<FloatType>(element);
  ImplicitLocOpBuilder b(loc, builder);
  SmallVector<Value> pairs;
  for (int64_t i = 0; i < vector.getNumElements(); i += 2)
    pairs.push_back(isF8 ? roundPairToF8(b, value, i, type)
                         : roundPair(b, value, i, type));
  Value result = joinPairs(b, pairs, type);
  result.getDefiningOp()->setAttr(kCanonicalAttr, b.getUnitAttr());
  return result;
}

//===----------------------------------------------------------------------===//
// Extension
//===----------------------------------------------------------------------===//

Value nvvm::emitExtPairsFromBF16(OpBuilder &builder, Location loc,
                                 Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector || vector.getRank() != 1 || vector.getNumElements() % 2)
    return {};
  ImplicitLocOpBuilder b(loc, builder);
  int64_t count = vector.getNumElements();
  auto words = VectorType::get({count / 2}, b.getI32Type());
  Value pairs = vector::BitCastOp::create(b, words, value);
  Value even =
      arith::ShLIOp::create(b, pairs, makeConstant(b, words, APInt(32, 16)));
  Value odd = arith::AndIOp::create(
      b, pairs, makeConstant(b, words, APInt(32, 0xFFFF0000)));
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < count; ++i)
    order.push_back(i % 2 * (count / 2) + i / 2);
  Value wide = vector::ShuffleOp::create(b, even, odd, order);
  return arith::BitcastOp::create(b, VectorType::get({count}, b.getF32Type()),
                                  wide);
}

//===----------------------------------------------------------------------===//
// NaN
//===----------------------------------------------------------------------===//

Value nvvm::emitCanonicalWord(OpBuilder &builder, Location loc, Value word,
                              FloatType element) {
  ImplicitLocOpBuilder b(loc, builder);
  if (element.isF32()) {
    Value number = arith::BitcastOp::create(b, element, word);
    Value isNaN =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, number, number);
    Value nan = makeConstant(b, word.getType(), getCanonicalNaN(element));
    return arith::SelectOp::create(b, isNaN, nan, word);
  }
  // x * 1 + -0 is x, except for NaN.
  bool isBF16 = element.isBF16();
  auto both = [&](uint32_t bits) {
    return makeConstant(b, word.getType(), APInt(32, bits << 16 | bits));
  };
  Value same = emitOne(b, isBF16 ? Ptx::FmaBF16x2 : Ptx::FmaF16x2,
                       {word, both(isBF16 ? 0x3F80 : 0x3C00), both(0x8000)},
                       word.getType());
  Value integers =
      LLVM::BitcastOp::create(b, VectorType::get({2}, b.getI16Type()), same);
  return LLVM::BitcastOp::create(b, word.getType(),
                                 replaceNaN(b, integers, element));
}
