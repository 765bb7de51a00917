//===- RowReduction.cpp - The tree that combines a row --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/RowReduction.h"

#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

RowCombiner::RowCombiner(RowReduceOp op)
    : loc(op.getLoc()), kind(op.getKind()),
      elementType(cast<ShapedType>(op.getTile().getType()).getElementType()),
      length(cast<ShapedType>(op.getTile().getType()).getNumElements()),
      width(std::min<int64_t>(kMaxChunk, llvm::PowerOf2Ceil(length))) {}

//===----------------------------------------------------------------------===//
// Combination
//===----------------------------------------------------------------------===//

/// The value that changes no bit of what it is combined with. For a sum that is
/// minus zero: plus zero would turn a sum of minus zeros around.
static TypedAttr getIdentityValue(OpBuilder &builder, ReductionKind kind,
                                  Type type) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    auto extreme = [&](bool negative) {
      return APFloat::semanticsHasInf(semantics)
                 ? APFloat::getInf(semantics, negative)
                 : APFloat::getLargest(semantics, negative);
    };
    switch (kind) {
    case ReductionKind::Prod:
      return builder.getFloatAttr(type, APFloat::getOne(semantics));
    case ReductionKind::Min:
      return builder.getFloatAttr(type, extreme(false));
    case ReductionKind::Max:
      return builder.getFloatAttr(type, extreme(true));
    default:
      return builder.getFloatAttr(
          type, APFloat::getZero(semantics, /*Negative=*/true));
    }
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  switch (kind) {
  case ReductionKind::Prod:
    return builder.getIntegerAttr(type, APInt(bits, 1));
  case ReductionKind::Min:
    return builder.getIntegerAttr(type, APInt::getSignedMaxValue(bits));
  case ReductionKind::Max:
    return builder.getIntegerAttr(type, APInt::getSignedMinValue(bits));
  case ReductionKind::And:
    return builder.getIntegerAttr(type, APInt::getAllOnes(bits));
  default:
    return builder.getIntegerAttr(type, APInt::getZero(bits));
  }
}

Value RowCombiner::getIdentity(OpBuilder &builder, int64_t lanes) const {
  TypedAttr value = getIdentityValue(builder, kind, elementType);
  auto type = VectorType::get({lanes}, elementType);
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, Attribute(value)));
}

template <typename FloatOp, typename IntOp>
static Value combineBy(OpBuilder &builder, Location loc, Value a, Value b) {
  if (isa<FloatType>(getElementTypeOrSelf(a)))
    return FloatOp::create(builder, loc, a, b);
  return IntOp::create(builder, loc, a, b);
}

Value RowCombiner::combine(OpBuilder &builder, Value a, Value b) const {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Avg:
    return combineBy<arith::AddFOp, arith::AddIOp>(builder, loc, a, b);
  case ReductionKind::Prod:
    return combineBy<arith::MulFOp, arith::MulIOp>(builder, loc, a, b);
  case ReductionKind::Min:
    return combineBy<arith::MinimumFOp, arith::MinSIOp>(builder, loc, a, b);
  case ReductionKind::Max:
    return combineBy<arith::MaximumFOp, arith::MaxSIOp>(builder, loc, a, b);
  case ReductionKind::And:
    return arith::AndIOp::create(builder, loc, a, b);
  case ReductionKind::Or:
    return arith::OrIOp::create(builder, loc, a, b);
  case ReductionKind::Xor:
    return arith::XOrIOp::create(builder, loc, a, b);
  }
  return a;
}

Value RowCombiner::combineNeighbors(OpBuilder &builder, Value a,
                                    Value b) const {
  int64_t lanes = cast<VectorType>(a.getType()).getNumElements();
  int64_t results = b ? lanes : lanes / 2;
  SmallVector<int64_t> left, right;
  for (int64_t i = 0; i < results; ++i) {
    left.push_back(2 * i);
    right.push_back(2 * i + 1);
  }
  Value second = b ? b : a;
  Value even = vector::ShuffleOp::create(builder, loc, a, second, left);
  Value odd = vector::ShuffleOp::create(builder, loc, a, second, right);
  return combine(builder, even, odd);
}

Value RowCombiner::combineLanes(OpBuilder &builder, Value vector) const {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  for (; lanes > 1; lanes /= 2)
    vector = combineNeighbors(builder, vector, Value());
  return vector;
}

/// Divides a sum by the number of elements.
static Value divide(OpBuilder &builder, Location loc, Value sum,
                    int64_t length) {
  Type type = sum.getType();
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat count(floatType.getFloatSemantics());
    count.convertFromAPInt(APInt(64, length), /*IsSigned=*/true,
                           APFloat::rmNearestTiesToEven);
    Value divisor = arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(type, count));
    return arith::DivFOp::create(builder, loc, sum, divisor);
  }
  Value divisor = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(type, length));
  return arith::DivSIOp::create(builder, loc, sum, divisor);
}

Value RowCombiner::finishRow(OpBuilder &builder, Value combined) const {
  return kind == ReductionKind::Avg ? divide(builder, loc, combined, length)
                                    : combined;
}

//===----------------------------------------------------------------------===//
// Before and in the loop over the row
//===----------------------------------------------------------------------===//

void RowReduction::begin(OpBuilder &builder) {
  int64_t lanes = memory.getLanes();
  int64_t whole = llvm::alignTo(length, 2 * lanes);
  buffer = memory.take(loc, whole, elementType);
  // Levels read two vectors at a time: the row's last may not be full, or not
  // be the second.
  for (int64_t index = length / lanes * lanes; index < whole; index += lanes)
    TileMemory::write(builder, loc, getIdentity(builder, lanes), buffer,
                      getIndex(builder, loc, index));
}

void RowReduction::add(OpBuilder &builder, Value vector, Value index,
                       Value mask) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  if (mask)
    vector = arith::SelectOp::create(builder, loc, mask, vector,
                                     getIdentity(builder, lanes));
  TileMemory::write(builder, loc, vector, buffer, index);
}

//===----------------------------------------------------------------------===//
// After it
//===----------------------------------------------------------------------===//

void RowReduction::emitLevel(OpBuilder &builder, Value level) const {
  int64_t lanes = memory.getLanes();
  auto constant = [&](int64_t value) { return getIndex(builder, loc, value); };
  // Vectors of results: (length - 1) / (lanes * 2^(level + 1)) + 1.
  Value pairs = constant((length - 1) / (2 * lanes));
  Value last = arith::ShRUIOp::create(builder, loc, pairs, level);
  Value vectors = arith::AddIOp::create(builder, loc, last, constant(1));
  Value end = arith::MulIOp::create(builder, loc, vectors, constant(lanes));
  emitLoop(builder, loc, constant(0), end, lanes,
           [&](OpBuilder &inner, Value index) {
             Value first = arith::AddIOp::create(inner, loc, index, index);
             Value second = arith::AddIOp::create(inner, loc, first,
                                                  getIndex(inner, loc, lanes));
             Value a = TileMemory::read(inner, loc, buffer, first, lanes,
                                        elementType);
             Value b = TileMemory::read(inner, loc, buffer, second, lanes,
                                        elementType);
             TileMemory::write(inner, loc, combineNeighbors(inner, a, b),
                               buffer, index);
           });
  // The next level may read one vector more.
  TileMemory::write(builder, loc, getIdentity(builder, lanes), buffer, end);
}

Value RowReduction::emitChunks(OpBuilder &builder, int64_t chunks) const {
  auto read = [&](OpBuilder &b, Value index) {
    return TileMemory::read(b, loc, buffer, index, 1, elementType);
  };
  Value first = read(builder, getIndex(builder, loc, 0));
  auto loop = scf::ForOp::create(
      builder, loc, getIndex(builder, loc, 1), getIndex(builder, loc, chunks),
      getIndex(builder, loc, 1), first,
      [&](OpBuilder &inner, Location, Value index, ValueRange sum) {
        scf::YieldOp::create(inner, loc,
                             combine(inner, sum[0], read(inner, index)));
      });
  loop->setAttr(kTileLoopAttr, builder.getUnitAttr());
  return loop.getResult(0);
}

Value RowReduction::finish(OpBuilder &builder) {
  int64_t lanes = memory.getLanes();
  int64_t chunks = llvm::divideCeil(length, width);
  // The last levels of a single chunk are made in one vector.
  int64_t levels = llvm::Log2_64(width);
  if (chunks == 1)
    levels = std::max<int64_t>(levels - llvm::Log2_64(lanes), 0);
  if (levels > 0)
    emitLoop(builder, loc, getIndex(builder, loc, 0),
             getIndex(builder, loc, levels), 1,
             [&](OpBuilder &inner, Value level) { emitLevel(inner, level); });
  Value rest;
  if (chunks > 1) {
    rest = emitChunks(builder, chunks);
  } else {
    rest = combineLanes(builder, TileMemory::read(builder, loc, buffer,
                                                  getIndex(builder, loc, 0),
                                                  lanes, elementType));
  }
  memory.give(buffer);
  return finishRow(builder, vector::ExtractOp::create(builder, loc, rest, 0));
}
