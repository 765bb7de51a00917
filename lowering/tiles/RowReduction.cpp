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

RowReduction::RowReduction(RowReduceOp op, TileMemory &memory)
    : loc(op.getLoc()), kind(op.getKind()),
      elementType(cast<ShapedType>(op.getTile().getType()).getElementType()),
      length(cast<ShapedType>(op.getTile().getType()).getNumElements()),
      width(std::min<int64_t>(kMaxTreeLanes, llvm::PowerOf2Ceil(length))),
      memory(memory) {}

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

Value RowReduction::getIdentity(OpBuilder &builder, int64_t lanes) const {
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

Value RowReduction::combine(OpBuilder &builder, Value a, Value b) const {
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

//===----------------------------------------------------------------------===//
// Before and in the loop over the row
//===----------------------------------------------------------------------===//

void RowReduction::begin(OpBuilder &builder) {
  int64_t lanes = memory.getLanes();
  int64_t used = std::min(length, width);
  lanesBuffer = memory.take(loc, used, elementType);
  if (length > width) {
    emitLoop(builder, loc, getIndex(builder, loc, 0),
             getIndex(builder, loc, width), lanes,
             [&](OpBuilder &inner, Value index) {
               TileMemory::write(inner, loc, getIdentity(inner, lanes),
                                 lanesBuffer, index);
             });
    return;
  }
  // The row's last vector may leave lanes that no element reaches.
  if (used % lanes != 0)
    TileMemory::write(builder, loc, getIdentity(builder, lanes), lanesBuffer,
                      getIndex(builder, loc, used / lanes * lanes));
}

void RowReduction::add(OpBuilder &builder, Value vector, Value index,
                       Value mask) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  if (mask)
    vector = arith::SelectOp::create(builder, loc, mask, vector,
                                     getIdentity(builder, lanes));
  if (length > width) {
    Value last = getIndex(builder, loc, width - 1);
    index = arith::AndIOp::create(builder, loc, index, last);
    Value sum =
        TileMemory::read(builder, loc, lanesBuffer, index, lanes, elementType);
    vector = combine(builder, sum, vector);
  }
  TileMemory::write(builder, loc, vector, lanesBuffer, index);
}

//===----------------------------------------------------------------------===//
// After it
//===----------------------------------------------------------------------===//

void RowReduction::emitLevel(OpBuilder &builder, Value count,
                             Value distance) const {
  int64_t lanes = memory.getLanes();
  emitLoop(
      builder, loc, getIndex(builder, loc, 0), count, lanes,
      [&](OpBuilder &inner, Value index) {
        Value far = arith::AddIOp::create(inner, loc, index, distance);
        Value a = TileMemory::read(inner, loc, lanesBuffer, index, lanes,
                                   elementType);
        Value b =
            TileMemory::read(inner, loc, lanesBuffer, far, lanes, elementType);
        TileMemory::write(inner, loc, combine(inner, a, b), lanesBuffer, index);
      });
}

/// Lanes [first, first + count) of a vector.
static Value getLanes(OpBuilder &builder, Location loc, Value vector,
                      int64_t first, int64_t count) {
  return vector::ExtractStridedSliceOp::create(
      builder, loc, vector, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{count},
      ArrayRef<int64_t>{1});
}

Value RowReduction::finishVector(OpBuilder &builder, Value vector,
                                 int64_t lanes) const {
  for (int64_t half = lanes / 2; half >= 1; half /= 2)
    vector = combine(builder, getLanes(builder, loc, vector, 0, half),
                     getLanes(builder, loc, vector, half, half));
  return vector::ExtractOp::create(builder, loc, vector, 0);
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

Value RowReduction::finish(OpBuilder &builder) {
  int64_t lanes = memory.getLanes();
  int64_t half = width / 2;
  if (half >= lanes) {
    // Only the first level may meet lanes that hold no element of the row.
    int64_t count = std::min(length, width) - half;
    emitLevel(builder, getIndex(builder, loc, count),
              getIndex(builder, loc, half));
    int64_t levels = llvm::Log2_64(half) - llvm::Log2_64(lanes);
    Value quarter = getIndex(builder, loc, half / 2);
    emitLoop(
        builder, loc, getIndex(builder, loc, 0), getIndex(builder, loc, levels),
        1, [&](OpBuilder &inner, Value level) {
          Value distance = arith::ShRUIOp::create(inner, loc, quarter, level);
          emitLevel(inner, distance, distance);
        });
  }
  Value first = TileMemory::read(builder, loc, lanesBuffer,
                                 getIndex(builder, loc, 0), lanes, elementType);
  memory.give(lanesBuffer);
  Value result = finishVector(builder, first, lanes);
  return kind == ReductionKind::Avg ? divide(builder, loc, result, length)
                                    : result;
}
