//===- CheckOps.cpp - Checks, and the tile of each tile op ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/OpChecks.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// Whether constants prove that [offset, offset + count) lies in [0, limit).
static bool isProven(CheckBoundsOp op) {
  std::optional<int64_t> offset = getConstant(op.getOffset());
  std::optional<int64_t> count = getConstant(op.getCount());
  std::optional<int64_t> limit = getConstant(op.getLimit());
  return offset && count && limit && *offset >= 0 && *count >= 0 &&
         *count <= *limit && *offset <= *limit - *count;
}

/// Whether a check shortly before, in the same block, asks the same. The search
/// is short, so that long blocks cost linear time.
static bool isRepeated(CheckBoundsOp op) {
  constexpr unsigned farthest = 64;
  Operation *earlier = op->getPrevNode();
  for (unsigned i = 0; earlier && i < farthest; ++i) {
    auto other = dyn_cast<CheckBoundsOp>(earlier);
    if (other && other.getOffset() == op.getOffset() &&
        other.getCount() == op.getCount() && other.getLimit() == op.getLimit())
      return true;
    earlier = earlier->getPrevNode();
  }
  return false;
}

LogicalResult CheckBoundsOp::canonicalize(CheckBoundsOp op,
                                          PatternRewriter &rewriter) {
  if (!isProven(op) && !isRepeated(op))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// TileOpInterface
//===----------------------------------------------------------------------===//

Value PacketStoreOp::getTileValue() { return getTile(); }
Value PacketLoadOp::getTileValue() { return getTile(); }
Value PoisonStoreOp::getTileValue() { return getTile(); }
Value PoisonLoadOp::getTileValue() { return getTile(); }
Value MultimemLoadReduceOp::getTileValue() { return getTile(); }
Value MultimemStoreOp::getTileValue() { return getTile(); }
Value MultimemReduceOp::getTileValue() { return getTile(); }
Value SendOp::getTileValue() { return getTile(); }
Value RecvOp::getTileValue() { return getTile(); }
