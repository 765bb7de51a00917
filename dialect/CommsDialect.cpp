//===- CommsDialect.cpp - The comms dialect ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/Directives.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;

#include "dialect/CommsDialect.cpp.inc"

#include "dialect/CommsEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/CommsAttrs.cpp.inc"

#include "dialect/CommsInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/CommsOps.cpp.inc"

void CommsDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/CommsAttrs.cpp.inc"
      >();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/CommsOps.cpp.inc"
      >();
}

Operation *CommsDialect::materializeConstant(OpBuilder &builder,
                                             Attribute value, Type type,
                                             Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
