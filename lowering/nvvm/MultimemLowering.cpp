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
  Type element = type.getElementType();
  if (!access.store) {
    ReductionKind kind =
        access.load ? access.load.getKind() : access.reduce.getKind();
    if (!hasMultimem(kind, element, bool(access.load)))
      return op->emitOpError("asks for ")
             << stringifyReductionKind(kind) << " of " << element
             << ", which multimem instructions do not have: use sum, or min "
                "and max of f16, bf16 and i32";
  }
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

/// Words as multimem instructions take and give them: of f32, f32.
static void bitcastWords(MutableArrayRef<Value> words, Type type,
                         ImplicitLocOpBuilder &b) {
  for (Value &word : words)
    if (word.getType() != type)
      word = arith::BitcastOp::create(b, type, word);
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
  Type element = type->getElementType();
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
  if (reduce && element.isF32())
    bitcastWords(words, element, b);
  for (Piece piece : getPieces(getBytes(*type), alignment)) {
    Value at = addBytes(address, piece.offset, b);
    int64_t count = piece.bytes / 4;
    if (load) {
      SmallVector<Value> mine =
          emitMultimemLoadReduce(b, load.getKind(), element, at, count);
      bitcastWords(mine, b.getI32Type(), b);
      llvm::append_range(words, mine);
      continue;
    }
    ValueRange mine = ValueRange(words).slice(piece.offset / 4, count);
    if (store)
      emitMultimemStore(b, at, mine);
    else
      emitMultimemReduce(b, reduce.getKind(), element, at, mine);
  }
  if (load)
    rewriter.replaceOp(op, joinWords(words, *type, b));
  else
    rewriter.eraseOp(op);
  return success();
}
