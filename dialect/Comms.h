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

namespace mlir::comms {
/// The scales of an operand of `contract`, which memory holds. They lie as the
/// operand does: in rows and columns, of which one are the terms of the sum.
struct OperandScales {
  /// Terms, rows or columns of a block that has one scale.
  static constexpr int64_t kBlock = 128;

  /// Null: the operand has no scales.
  Value memory;
  /// How many rows (of the right operand: columns) of the product share a
  /// scale, and how many terms do: 1, `kBlock`, or 0 for all.
  int64_t across = 0, terms = 0;
  /// Rows of memory are terms, rather than columns.
  bool termsAreRows = false;
  /// The number of the part's first term, and of its first row (column), in the
  /// operand's memory.
  Value firstTerm, firstAcross;
};

/// Checks that the op has no attribute whose name is neither one of the op's
/// own nor one with a dialect's prefix: that is a typing error.
LogicalResult verifyAttributeNames(Operation *op);

template <typename Op>
class KnownAttributes : public OpTrait::TraitBase<Op, KnownAttributes> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return verifyAttributeNames(op);
  }
};
} // namespace mlir::comms

#define GET_OP_CLASSES
#include "dialect/CommsOps.h.inc"

#endif // COMMSIR_DIALECT_COMMS_H
