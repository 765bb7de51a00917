//===- TileCuts.cpp - Parts of tiles, and tiles in a row ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/TileCuts.h"

#include "dialect/Verify.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::comms;

bool mlir::comms::isTileCut(Operation *op) {
  return isa<tensor::ExtractSliceOp, tensor::ConcatOp>(op);
}

/// Whether a type is a tile of constant length that memory can hold.
static bool isStoredTile(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 1 && tile.hasStaticShape() &&
         tile.getNumElements() > 0 && isStorable(tile.getElementType());
}

StringRef mlir::comms::whyNotCut(Operation *op) {
  if (!llvm::all_of(op->getOperandTypes(), isStoredTile) ||
      !llvm::all_of(op->getResultTypes(), isStoredTile))
    return "takes parts of tiles, or joins them, only where they are tensors "
           "of rank 1 with constant lengths and offsets, of floats or signless "
           "integers of 8 to 64 bits";
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice)
    return {};
  if (slice.getStaticStrides()[0] != 1)
    return "has a stride; a part of a tile is contiguous";
  int64_t end = slice.getStaticOffsets()[0] + slice.getStaticSizes()[0];
  bool isInside = slice.getStaticOffsets()[0] >= 0 &&
                  end <= slice.getSourceType().getDimSize(0);
  return isInside ? StringRef() : "takes a part that leaves the tile";
}
