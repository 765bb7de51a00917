//===- CheckOps.cpp - Checks, and the tile of each tile op -===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

Value PacketStoreOp::getTileValue() { return getTile(); }
Value PacketLoadOp::getTileValue() { return getTile(); }
Value PoisonStoreOp::getTileValue() { return getTile(); }
Value PoisonLoadOp::getTileValue() { return getTile(); }
Value MultimemLoadReduceOp::getTileValue() { return getTile(); }
Value MultimemStoreOp::getTileValue() { return getTile(); }
Value MultimemReduceOp::getTileValue() { return getTile(); }
Value SendOp::getTileValue() { return getTile(); }
Value RecvOp::getTileValue() { return getTile(); }

LogicalResult CheckBoundsOp::canonicalize(CheckBoundsOp, PatternRewriter &) { return failure(); }
