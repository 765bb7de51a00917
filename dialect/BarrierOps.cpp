//===- BarrierOps.cpp - Barriers -===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

LogicalResult BarrierOp::verify() { return success(); }
LogicalResult BarrierArriveOp::verify() { return success(); }
LogicalResult BarrierWaitOp::verify() { return success(); }
