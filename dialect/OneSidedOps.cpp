//===- OneSidedOps.cpp - One-sided operations -===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

LogicalResult PutOp::verify() { return success(); }
LogicalResult GetOp::verify() { return success(); }
LogicalResult PutSignalOp::verify() { return success(); }
LogicalResult SignalOp::verify() { return success(); }
LogicalResult WaitSignalOp::verify() { return success(); }
LogicalResult WaitSignalFromOp::verify() { return success(); }
LogicalResult ReadSignalOp::verify() { return success(); }
LogicalResult ResetSignalOp::verify() { return success(); }
LogicalResult WaitCounterOp::verify() { return success(); }
LogicalResult ReadCounterOp::verify() { return success(); }
LogicalResult ResetCounterOp::verify() { return success(); }
LogicalResult FenceOp::verify() { return success(); }
