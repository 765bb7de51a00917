//===- ThreadReduction.cpp - A row combined by many threads ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/ThreadReduction.h"

#include "lowering/nvvm/Ptx.h"
#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Values that a thread combines alone in the last levels; of more, each lane
/// takes one of 32.
static constexpr int64_t maxAlone = 32;
/// Words that one access of shared memory reads.
static constexpr int64_t wordsOfAccess = 4;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Type ThreadReduction::getWordType(OpBuilder &builder) const {
  return builder.getIntegerType(8 * Threads::getWordBytes(elementType));
}

/// `type`, a scalar or a vector, with other elements.
static Type withElements(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

Value ThreadReduction::toWord(OpBuilder &builder, Value value) const {
  Type type = value.getType(), word = withElements(type, getWordType(builder));
  if (elementType.isIndex())
    return arith::IndexCastOp::create(builder, loc, word, value);
  unsigned bits = elementType.getIntOrFloatBitWidth();
  if (isa<FloatType>(elementType))
    value = arith::BitcastOp::create(
        builder, loc, withElements(type, builder.getIntegerType(bits)), value);
  if (value.getType() != word)
    value = arith::ExtUIOp::create(builder, loc, word, value);
  return value;
}

Value ThreadReduction::fromWord(OpBuilder &builder, Value word) const {
  Type type = withElements(word.getType(), elementType);
  if (elementType.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, word);
  Type narrow =
      withElements(word.getType(),
                   builder.getIntegerType(elementType.getIntOrFloatBitWidth()));
  if (word.getType() != narrow)
    word = arith::TruncIOp::create(builder, loc, narrow, word);
  if (isa<FloatType>(elementType))
    word = arith::BitcastOp::create(builder, loc, type, word);
  return word;
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
  Value identity =
      vector::ExtractOp::create(builder, loc, getIdentity(builder, 1), 0);
  Value word = toWord(builder, identity);
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

//===----------------------------------------------------------------------===//
// After it
//===----------------------------------------------------------------------===//

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

/// Both lanes of a pair combine the same two values; the order of operands
/// does not change the bits of any kind (NaN are made canonical where they are
/// seen).
Value ThreadReduction::combineWarp(OpBuilder &builder, Value value) const {
  for (int64_t distance = 1; distance < kWarp; distance *= 2)
    value = combine(builder, value, shuffle(builder, value, distance));
  return value;
}

Value ThreadReduction::getPart(OpBuilder &builder, Value trip) const {
  if (direct)
    return parts[*getConstantIntValue(trip)];
  return fromWord(builder, memref::LoadOp::create(builder, loc, partsBuffer,
                                                  ValueRange(trip)));
}

void ThreadReduction::publish(OpBuilder &builder, Value value,
                              Value trip) const {
  auto constant = [&](int64_t number) {
    return getIndex(builder, loc, number);
  };
  Value word = toWord(builder, value);
  Value warp = arith::DivUIOp::create(builder, loc, threads.getNumber(),
                                      constant(kWarp));
  Value before =
      arith::MulIOp::create(builder, loc, trip, constant(threads.getWarps()));
  Value place = arith::AddIOp::create(builder, loc, before, warp);
  if (base)
    place = arith::AddIOp::create(builder, loc, base, place);
  // Lane c writes to CTA c.
  Value writes =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                            threads.getLane(), constant(threads.getCluster()));
  auto branch =
      scf::IfOp::create(builder, loc, writes, /*withElseRegion=*/false);
  OpBuilder inner = OpBuilder::atBlockTerminator(branch.thenBlock());
  if (threads.getCluster() == 1) {
    memref::StoreOp::create(inner, loc, word, shared, ValueRange(place));
    return;
  }
  ImplicitLocOpBuilder b(loc, inner);
  bool wide = word.getType().isInteger(64);
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, shared);
  Value bytes = arith::MulIOp::create(b, place, getIndex(b, loc, wide ? 8 : 4));
  Value address = arith::IndexCastOp::create(
      b, b.getI32Type(), arith::AddIOp::create(b, start, bytes).getResult());
  Value cta = arith::IndexCastOp::create(b, b.getI32Type(), threads.getLane());
  if (arrival) {
    nvvm::emit(b, wide ? nvvm::Ptx::StoreAsync64 : nvvm::Ptx::StoreAsync32,
               {address, cta, word, arrival});
    return;
  }
  nvvm::emit(b, wide ? nvvm::Ptx::StoreShared64 : nvvm::Ptx::StoreShared32,
             {address, cta, word});
}

Value ThreadReduction::combinePairs(OpBuilder &builder,
                                    SmallVector<Value> left) const {
  while (left.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i + 1 < left.size(); i += 2)
      next.push_back(combine(builder, left[i], left[i + 1]));
    if (left.size() % 2)
      next.push_back(left.back());
    left = std::move(next);
  }
  return left.front();
}

/// Up to 32 values, which every thread reads.
Value ThreadReduction::combineFew(OpBuilder &builder, Value first,
                                  int64_t count) const {
  Type word = getWordType(builder);
  SmallVector<Value> left;
  for (int64_t i = 0; i < count; i += wordsOfAccess) {
    int64_t lanes = std::min(wordsOfAccess, count - i);
    Value index =
        arith::AddIOp::create(builder, loc, first, getIndex(builder, loc, i));
    Value vector = vector::LoadOp::create(
        builder, loc, VectorType::get({lanes}, word), shared, ValueRange(index),
        /*nontemporal=*/false,
        lanes == wordsOfAccess ? llvm::MaybeAlign(16) : llvm::MaybeAlign());
    vector = fromWord(builder, vector);
    for (int64_t lane = 0; lane < lanes; ++lane)
      left.push_back(vector::ExtractOp::create(builder, loc, vector, lane));
  }
  return combinePairs(builder, std::move(left));
}

Value ThreadReduction::combineValues(OpBuilder &builder, Value first,
                                     int64_t count) const {
  if (count <= maxAlone)
    return combineFew(builder, first, count);
  // Each lane takes one of 32 neighbours.
  SmallVector<Value> left;
  Value identity =
      vector::ExtractOp::create(builder, loc, getIdentity(builder, 1), 0);
  for (int64_t i = 0; i < count; i += kWarp) {
    Value lane = threads.getLane();
    Value mine =
        arith::AddIOp::create(builder, loc, lane, getIndex(builder, loc, i));
    Value exists;
    if (i + kWarp > count) {
      Value last = getIndex(builder, loc, count - 1);
      exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                     mine, last);
      mine = arith::MinUIOp::create(builder, loc, mine, last);
    }
    Value index = arith::AddIOp::create(builder, loc, first, mine);
    Value value = fromWord(builder, memref::LoadOp::create(builder, loc, shared,
                                                           ValueRange(index)));
    if (exists)
      value = arith::SelectOp::create(builder, loc, exists, value, identity);
    left.push_back(combineWarp(builder, value));
  }
  return combinePairs(builder, std::move(left));
}

Value ThreadReduction::finish(OpBuilder &builder) {
  auto constant = [&](int64_t number) {
    return getIndex(builder, loc, number);
  };
  int64_t half = llvm::alignTo(values, wordsOfAccess);
  Value turn = threads.takeTurn(builder, loc);
  shared =
      threads.makeShared(loc, turn ? 2 * half : half, getWordType(builder));
  base = turn ? arith::MulIOp::create(builder, loc, turn, constant(half))
                    .getResult()
              : Value();
  arrival = threads.getArrival(builder, op);
  auto publishTrip = [&](OpBuilder &b, Value trip) {
    publish(b, combineWarp(b, getPart(b, trip)), trip);
  };
  if (trips > kMaxUnrolledTrips)
    emitLoop(builder, loc, constant(0), constant(trips), 1, publishTrip);
  else
    for (int64_t trip = 0; trip < trips; ++trip)
      publishTrip(builder, constant(trip));
  if (arrival) {
    ImplicitLocOpBuilder b(loc, builder);
    nvvm::emit(b, nvvm::Ptx::AwaitBytes, arrival);
  } else {
    threads.emitBarrier(builder, loc);
  }

  // Values that hold elements of the row, and those of a chunk.
  int64_t ofWarp = kWarp * threads.getLanes(length);
  int64_t used = llvm::divideCeil(length, ofWarp);
  int64_t ofChunk = std::max<int64_t>(width / ofWarp, 1);
  auto from = [&](OpBuilder &b, Value first) -> Value {
    return base ? arith::AddIOp::create(b, loc, base, first).getResult()
                : first;
  };
  Value sum = combineValues(builder, from(builder, constant(0)),
                            std::min(used, ofChunk));
  int64_t whole = used / ofChunk;
  if (whole > 1) {
    auto loop = scf::ForOp::create(
        builder, loc, constant(ofChunk), constant(whole * ofChunk),
        constant(ofChunk), sum,
        [&](OpBuilder &inner, Location, Value first, ValueRange left) {
          Value chunk = combineValues(inner, from(inner, first), ofChunk);
          scf::YieldOp::create(inner, loc, combine(inner, left[0], chunk));
        });
    loop->setAttr(kTileLoopAttr, builder.getUnitAttr());
    sum = loop.getResult(0);
  }
  if (int64_t rest = used % ofChunk; rest && whole > 0)
    sum = combine(
        builder, sum,
        combineValues(builder, from(builder, constant(whole * ofChunk)), rest));
  return finishRow(builder, sum);
}
