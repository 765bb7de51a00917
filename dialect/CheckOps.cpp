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

/// Whether an earlier check of the same block asks the same. Bounded, because
/// one offset may have any number of users.
static bool isRepeated(CheckBoundsOp op) {
  constexpr unsigned maxUsers = 64;
  unsigned seen = 0;
  for (Operation *user : op.getOffset().getUsers()) {
    if (++seen > maxUsers)
      return false;
    auto other = dyn_cast<CheckBoundsOp>(user);
    if (other && other != op && other->getBlock() == op->getBlock() &&
        other.getOffset() == op.getOffset() &&
        other.getCount() == op.getCount() &&
        other.getLimit() == op.getLimit() && other->isBeforeInBlock(op))
      return true;
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
