//===- TileLowering.cpp - Tiles, plain and as words -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles are vectors of one thread here, at most 16 lanes. Those that peers poll
// are in PacketLowering.cpp and PoisonLowering.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialect/Packets.h"

#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/Tiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;
using namespace mlir::comms::target;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

static Value zeros(VectorType type, ImplicitLocOpBuilder &b) {
  return arith::ConstantOp::create(b, b.getZeroAttr(type));
}

/// Lane i is on when i < count.
Value KernelLowering::laneMask(VectorType type, Value count,
                               ImplicitLocOpBuilder &b) {
  int64_t lanes = type.getNumElements();
  SmallVector<int64_t> numbers(lanes);
  for (int64_t i = 0; i < lanes; ++i)
    numbers[i] = i;
  auto lanesType = VectorType::get({lanes}, b.getI64Type());
  Value lane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(lanesType, ArrayRef(numbers)));
  Value limit = vector::BroadcastOp::create(b, lanesType, toI64(count, b));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane, limit);
}

/// i32: 1 when lane `lane` exists, else 0.
Value KernelLowering::isBelow(int64_t lane, Value count,
                              ImplicitLocOpBuilder &b) {
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                      constI64(lane, b), toI64(count, b));
  return arith::ExtUIOp::create(b, b.getI32Type(), below);
}

/// The tile with zeros (of all bits) from lane `valid` on; null: all valid.
Value KernelLowering::clearInvalid(Value tile, Value valid,
                                   ImplicitLocOpBuilder &b) {
  if (!valid)
    return tile;
  auto type = cast<VectorType>(tile.getType());
  Value cleared =
      arith::SelectOp::create(b, laneMask(type, valid, b), toIntegers(tile, b),
                              zeros(asIntegers(type), b));
  return bitcast(cleared, type, b);
}

//===----------------------------------------------------------------------===//
// Words and accesses
//===----------------------------------------------------------------------===//

int64_t nvvm::getBytes(VectorType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

SmallVector<Value> nvvm::splitWords(Value tile, ImplicitLocOpBuilder &b) {
  Value all = packWords(tile, b);
  SmallVector<Value> words;
  for (int64_t i = 0, e = cast<VectorType>(all.getType()).getNumElements();
       i < e; ++i)
    words.push_back(vector::ExtractOp::create(b, all, i));
  return words;
}

Value nvvm::joinWords(ValueRange words, VectorType tile,
                      ImplicitLocOpBuilder &b) {
  auto type = VectorType::get({int64_t(words.size())}, b.getI32Type());
  return unpackWords(vector::FromElementsOp::create(b, type, words), tile, b);
}

SmallVector<Piece> nvvm::getPieces(int64_t bytes, int64_t alignment) {
  SmallVector<Piece> pieces;
  for (int64_t at = 0; at < bytes;) {
    int64_t size = std::min<int64_t>(
        {16, alignment, int64_t(llvm::bit_floor(uint64_t(bytes - at)))});
    pieces.push_back({at, size});
    at += size;
  }
  return pieces;
}

void nvvm::splitTail(Value count, Value lanes, ImplicitLocOpBuilder &b,
                     llvm::function_ref<void(ImplicitLocOpBuilder &)> whole,
                     llvm::function_ref<void(ImplicitLocOpBuilder &)> part) {
  if (!count)
    return whole(b);
  Value full =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, count, lanes);
  auto branch = scf::IfOp::create(b, full, /*withElseRegion=*/true);
  ImplicitLocOpBuilder yes(b.getLoc(), branch.thenYield());
  whole(yes);
  ImplicitLocOpBuilder no(b.getLoc(), branch.elseYield());
  part(no);
}

//===----------------------------------------------------------------------===//
// Plain tiles
//===----------------------------------------------------------------------===//

void KernelLowering::lowerTileLoad(TileLoadOp op, VectorType type,
                                   ImplicitLocOpBuilder &b) {
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment =
      std::min<int64_t>(getAlignment(op.getMemref(), op.getOffset()), 16);
  auto integers = asIntegers(type);
  Value loaded;
  if (op.getValid())
    loaded = LLVM::MaskedLoadOp::create(
        b, integers, address, laneMask(type, op.getValid(), b),
        zeros(integers, b), b.getI32IntegerAttr(alignment));
  else
    loaded = LLVM::LoadOp::create(b, integers, address, alignment);
  rewriter.replaceOp(op, bitcast(loaded, type, b));
}

void KernelLowering::lowerTileStore(TileStoreOp op, VectorType type,
                                    ImplicitLocOpBuilder &b) {
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment =
      std::min<int64_t>(getAlignment(op.getMemref(), op.getOffset()), 16);
  Value integers = toIntegers(op.getTile(), b);
  if (op.getValid())
    LLVM::MaskedStoreOp::create(b, integers, address,
                                laneMask(type, op.getValid(), b),
                                b.getI32IntegerAttr(alignment));
  else
    LLVM::StoreOp::create(b, integers, address, alignment);
  rewriter.eraseOp(op);
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerTileOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  if (isa<MultimemLoadReduceOp, MultimemStoreOp, MultimemReduceOp>(op))
    return lowerMultimem(op, b);
  if (isa<PacketLoadOp, PoisonLoadOp>(op))
    return lowerPollGroup(op);
  if (auto fill = dyn_cast<PoisonFillOp>(op)) {
    lowerPoisonFill(fill, b);
    return success();
  }
  FailureOr<VectorType> type =
      getTileType(op, cast<TileOpInterface>(op).getTileValue(), kMostLanes);
  if (failed(type))
    return failure();
  if (auto load = dyn_cast<TileLoadOp>(op))
    lowerTileLoad(load, *type, b);
  else if (auto store = dyn_cast<TileStoreOp>(op))
    lowerTileStore(store, *type, b);
  else if (auto packet = dyn_cast<PacketStoreOp>(op)) {
    if (areLines(packet.getAssumes()))
      return lowerLineStore(packet, *type, b);
    lowerPacketStore(packet, *type, b);
  } else
    lowerPoisonStore(cast<PoisonStoreOp>(op), *type, b);
  return success();
}
