//===- Comms.h - The comms dialect ------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMS_H
#define COMMSIR_DIALECT_COMMS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

#include "dialect/CommsDialect.h.inc"

#include "dialect/CommsEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/CommsAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/CommsTypes.h.inc"

#include "dialect/CommsInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialect/CommsOps.h.inc"

#endif // COMMSIR_DIALECT_COMMS_H
