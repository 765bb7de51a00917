//===- WindowOps.cpp - Views of windows, and scratch memory -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Verify.h"

using namespace mlir;
using namespace mlir::comms;

/// A view of one rank's part has the window's shape and elements.
static LogicalResult verifyPart(Operation *op, WindowType window, Type result) {
  if (result == window.getLocalType())
    return success();
  return op->emitOpError() << "C1: a part of " << window << " is "
                           << window.getLocalType() << ", not " << result;
}

LogicalResult LocalOp::verify() {
  return verifyPart(*this, getWindow().getType(), getResult().getType());
}

LogicalResult PeerOp::verify() {
  return verifyPart(*this, getWindow().getType(), getResult().getType());
}

LogicalResult MultimemOp::verify() {
  WindowType window = getWindow().getType();
  auto space = MemorySpaceAttr::get(getContext(), MemorySpace::Multimem);
  auto wanted = MemRefType::get(window.getShape(), window.getElementType(),
                                MemRefLayoutAttrInterface(), space);
  if (getResult().getType() == wanted)
    return success();
  return emitOpError() << "C1: the multimem view of " << window << " is "
                       << wanted << ", not " << getResult().getType();
}

LogicalResult ScratchOp::verify() {
  auto type = dyn_cast<MemRefType>(getResult().getType());
  if (!type || type.getRank() == 0 || !type.hasStaticShape() ||
      !type.getLayout().isIdentity())
    return emitOpError()
           << "C1: scratch memory is " << getResult().getType()
           << "; it needs a static shape of rank 1 or more and identity layout";
  auto space = dyn_cast_or_null<MemorySpaceAttr>(type.getMemorySpace());
  if (type.getMemorySpace() &&
      !(space && space.getValue() != MemorySpace::Multimem))
    return emitOpError()
           << "C2: scratch memory is in the default memory space, in "
              "#comms.space<scratch> or in #comms.space<shared>, not in "
           << type.getMemorySpace();
  Type element = type.getElementType();
  bool plain = isa<FloatType, IntegerType>(element);
  if (!plain || !countBytes(type.getShape(), element))
    return emitOpError() << "C3: scratch memory holds floats or integers that "
                            "fit in 2^63 bytes, "
                            "not "
                         << type;
  return success();
}
