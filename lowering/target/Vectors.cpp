//===- Vectors.cpp - Tiles as vectors and words ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/target/Vectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;

FailureOr<VectorType> target::getTileType(Operation *op, Value tile,
                                          int64_t mostLanes) {
  auto type = dyn_cast<VectorType>(tile.getType());
  if (!type || type.getRank() != 1 || type.isScalable() ||
      !type.hasStaticShape() || (mostLanes && type.getDimSize(0) > mostLanes))
    return op->emitOpError("has a tile of type ")
           << tile.getType() << ", not a " << (mostLanes ? "short " : "")
           << "vector: run comms-distribute-tiles first";
  if (type.getElementTypeBitWidth() % 8 != 0)
    return op->emitOpError("has elements of ")
           << type.getElementTypeBitWidth()
           << " bits, which memory does not hold";
  return type;
}

VectorType target::asIntegers(VectorType type) {
  return type.cloneWith(
      std::nullopt,
      IntegerType::get(type.getContext(), type.getElementTypeBitWidth()));
}

Value target::bitcast(Value vector, VectorType type, ImplicitLocOpBuilder &b) {
  if (vector.getType() == type)
    return vector;
  return vector::BitCastOp::create(b, type, vector);
}

Value target::toIntegers(Value vector, ImplicitLocOpBuilder &b) {
  return bitcast(vector, asIntegers(cast<VectorType>(vector.getType())), b);
}

Value target::packWords(Value tile, ImplicitLocOpBuilder &b) {
  Value integers = toIntegers(tile, b);
  auto type = cast<VectorType>(integers.getType());
  int64_t lanes = type.getNumElements(), width = type.getElementTypeBitWidth();
  int64_t words = llvm::divideCeil(lanes * width, 32);
  int64_t padded = words * 32 / width;
  if (padded != lanes) {
    SmallVector<int64_t> order(padded, lanes); // Lane `lanes` is a zero.
    for (int64_t i = 0; i < lanes; ++i)
      order[i] = i;
    Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(type));
    integers = vector::ShuffleOp::create(b, integers, zeros, order);
  }
  return bitcast(integers, VectorType::get({words}, b.getI32Type()), b);
}

Value target::unpackWords(Value words, VectorType tile,
                          ImplicitLocOpBuilder &b) {
  int64_t lanes = tile.getNumElements(), width = tile.getElementTypeBitWidth();
  int64_t padded =
      cast<VectorType>(words.getType()).getNumElements() * 32 / width;
  Value integers =
      bitcast(words, VectorType::get({padded}, b.getIntegerType(width)), b);
  if (padded != lanes)
    integers = vector::ShuffleOp::create(
        b, integers, integers, llvm::to_vector(llvm::seq<int64_t>(0, lanes)));
  return bitcast(integers, tile, b);
}

Value target::countWords(VectorType tile, Value valid,
                         ImplicitLocOpBuilder &b) {
  if (!valid)
    return {};
  int64_t width = tile.getElementTypeBitWidth();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  if (width >= 32)
    return b.createOrFold<arith::MulIOp>(valid, constant(width / 32));
  int64_t perWord = 32 / width;
  Value up = b.createOrFold<arith::AddIOp>(valid, constant(perWord - 1));
  return b.createOrFold<arith::DivSIOp>(up, constant(perWord));
}

target::MultimemAccess target::getMultimemAccess(Operation *op) {
  if (auto load = dyn_cast<MultimemLoadReduceOp>(op))
    return {load,
            {},
            {},
            load.getMemref(),
            load.getOffset(),
            load.getValid(),
            load.getTile()};
  if (auto store = dyn_cast<MultimemStoreOp>(op))
    return {{},
            store,
            {},
            store.getMemref(),
            store.getOffset(),
            store.getValid(),
            store.getTile()};
  auto reduce = cast<MultimemReduceOp>(op);
  return {{},
          {},
          reduce,
          reduce.getMemref(),
          reduce.getOffset(),
          reduce.getValid(),
          reduce.getTile()};
}
