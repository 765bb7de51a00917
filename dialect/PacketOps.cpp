//===- PacketOps.cpp - Packets and poison -===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

LogicalResult PacketStoreOp::verify() { return success(); }
LogicalResult PacketLoadOp::verify() { return success(); }
LogicalResult PoisonStoreOp::verify() { return success(); }
LogicalResult PoisonLoadOp::verify() { return success(); }
LogicalResult PoisonFillOp::verify() { return success(); }
