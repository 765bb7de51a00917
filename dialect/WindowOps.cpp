//===- WindowOps.cpp - Views of windows, and scratch memory ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"

using namespace mlir;
using namespace mlir::comms;

LogicalResult LocalOp::verify() { return success(); }
LogicalResult PeerOp::verify() { return success(); }
LogicalResult MultimemOp::verify() { return success(); }
