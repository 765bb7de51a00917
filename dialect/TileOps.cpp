//===- TileOps.cpp - Tiles -------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

Value TileLoadOp::getTileValue() { return getTile(); }
Value TileStoreOp::getTileValue() { return getTile(); }

LogicalResult TileLoadOp::verify() { return success(); }
LogicalResult TileStoreOp::verify() { return success(); }
LogicalResult RowReduceOp::verify() { return success(); }
LogicalResult SplatOp::verify() { return success(); }
OpFoldResult SplatOp::fold(FoldAdaptor adaptor) { return {}; }
LogicalResult BroadcastRowOp::verify() { return success(); }
OpFoldResult BroadcastRowOp::fold(FoldAdaptor adaptor) { return {}; }
LogicalResult IotaOp::verify() { return success(); }
LogicalResult ScratchOp::verify() { return success(); }
