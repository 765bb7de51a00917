//===- ThreadReduction.cpp - A thread's part of a row ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/ThreadReduction.h"

#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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
  if (elementType.isF32() || elementType.isInteger(32))
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

Value ThreadReduction::getIdentityScalar(OpBuilder &builder) const {
  return vector::ExtractOp::create(builder, loc, getIdentity(builder, 1), 0);
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
  Value word = toWord(builder, getIdentityScalar(builder));
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
      vector::ExtractOp::create(builder, loc, combineLanes(builder, vector), 0);
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
