//===- CopyOps.cpp - Multimem, bulk and engine copies -===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

LogicalResult MultimemLoadReduceOp::verify() { return success(); }
LogicalResult MultimemStoreOp::verify() { return success(); }
LogicalResult MultimemReduceOp::verify() { return success(); }
LogicalResult BulkCopyOp::verify() { return success(); }
LogicalResult BulkWaitOp::verify() { return success(); }
LogicalResult EngineCopyOp::verify() { return success(); }
