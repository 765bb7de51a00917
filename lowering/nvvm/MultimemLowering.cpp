//===- MultimemLowering.cpp - All parts at one address --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/Tiles.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;
using namespace mlir::comms::target;

/// The multicast address that `memref` stands for: a parameter, or what NCCL
/// said (comms-call-nccl).
FailureOr<Value> KernelLowering::multicastAddress(Operation *op, Value memref,
                                                  ImplicitLocOpBuilder &b) {
  auto cast = memref.getDefiningOp<UnrealizedConversionCastOp>();
  if (cast && cast.getNumOperands() == 1 &&
      cast.getOperand(0).getType().isInteger(64))
    return Value(LLVM::IntToPtrOp::create(b, global, cast.getOperand(0)));
  auto view = memref.getDefiningOp<MultimemOp>();
  if (!view)
    return op->emitOpError(
        "needs the result of comms.multimem itself, not a view of it");
  FailureOr<unsigned> argument = getArgument(op, view.getWindow());
  if (failed(argument))
    return failure();
  return parameter(multicast[*argument], global, b);
}

/// Refuses what multimem instructions do not do. `alignment` is that of the
/// access, in bytes.
static LogicalResult checkMultimem(Operation *op, MultimemAccess access,
                                   VectorType type, int64_t alignment) {
  if (access.valid)
    return op->emitOpError("has a tile that is not whole, which multimem "
                           "instructions cannot move: pad the array to whole "
                           "vectors of 16 bytes");
  if (getBytes(type) % 4 != 0 || alignment < 4)
    return op->emitOpError("moves ")
           << getBytes(type) << " bytes at an alignment of " << alignment
           << ": multimem instructions need whole words of 4 bytes";
  return success();
}

/// Words of 32 bits as words of this type.
static SmallVector<Value> combineWords(ValueRange words, Type type,
                                       ImplicitLocOpBuilder &b) {
  int64_t each = type.getIntOrFloatBitWidth() / 32;
  SmallVector<Value> combined;
  for (int64_t at = 0, e = words.size(); at < e; at += each)
    combined.push_back(vector::ExtractOp::create(
        b, joinWords(words.slice(at, each), VectorType::get({1}, type), b), 0));
  return combined;
}

/// The other way about.
static SmallVector<Value> splitCombined(ValueRange words,
                                        ImplicitLocOpBuilder &b) {
  SmallVector<Value> split;
  for (Value word : words) {
    auto type = VectorType::get({1}, word.getType());
    llvm::append_range(
        split, splitWords(vector::FromElementsOp::create(b, type, word), b));
  }
  return split;
}

LogicalResult KernelLowering::lowerMultimem(Operation *op,
                                            ImplicitLocOpBuilder &b) {
  MultimemAccess access = getMultimemAccess(op);
  auto [load, store, reduce, memref, offset, valid, tile] = access;
  if (target.sm < 90)
    return op->emitOpError("needs multimem instructions, which sm_")
           << target.sm << " does not have: set a chip from sm_90 on";
  FailureOr<VectorType> type = getTileType(op, tile, kMostLanes);
  if (failed(type))
    return failure();
  Type element = type->getElementType(), word = getMultimemWord(element);
  int64_t size = element.getIntOrFloatBitWidth() / 8;
  int64_t alignment =
      std::min<int64_t>(16, getDivisor(offset) * (size & -size));
  FailureOr<Value> base = multicastAddress(op, memref, b);
  if (failed(base) || failed(checkMultimem(op, access, *type, alignment)))
    return failure();
  Value address = addBytes(*base, scale(offset, element, b), b);
  SmallVector<Value> words;
  if (!load)
    words = splitWords(tile, b);
  for (Piece piece : getPieces(getBytes(*type), alignment)) {
    Value at = addBytes(address, piece.offset, b);
    if (load) {
      SmallVector<Value> mine = emitMultimemLoadReduce(
          b, load.getKind(), element, at,
          8 * piece.bytes / word.getIntOrFloatBitWidth());
      llvm::append_range(words, splitCombined(mine, b));
      continue;
    }
    ValueRange mine =
        ValueRange(words).slice(piece.offset / 4, piece.bytes / 4);
    if (store)
      emitMultimemStore(b, at, mine);
    else
      emitMultimemReduce(b, reduce.getKind(), element, at,
                         combineWords(mine, word, b));
  }
  if (load)
    rewriter.replaceOp(op, joinWords(words, *type, b));
  else
    rewriter.eraseOp(op);
  return success();
}
