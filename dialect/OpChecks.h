//===- OpChecks.h - What several verifiers ask ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers see IR that nothing has checked yet: the definitions of an op's
// operands may themselves be wrong, or be the op itself. What is here looks at
// them without trusting them. Each check takes the constraint's name in
// docs/Spec.md ("C3") and emits an error that begins with it. Private to the
// dialect's library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_OPCHECKS_H
#define COMMSIR_DIALECT_OPCHECKS_H

#include "dialect/Comms.h"
#include "dialect/Teams.h"
#include "dialect/Verify.h"

#include <optional>

namespace mlir::comms::checks {

/// The value of an integer or index constant; nothing for anything else.
std::optional<int64_t> getConstant(Value value);

/// The number of elements of a window or memref; nothing when a dimension is
/// dynamic or the product does not fit 64 bits.
std::optional<int64_t> getElements(Type memory);

/// The element type of a window or memref.
Type getElementType(Type memory);

/// Whether two operands of this name agree in their element type.
LogicalResult sameElement(Operation *op, StringRef constraint, Value source,
                          StringRef sourceName, Value dest, StringRef destName);

/// [offset, offset + count) lies within the memory, as far as constants tell.
LogicalResult inRange(Operation *op, StringRef constraint, Value memory,
                      StringRef name, Value offset,
                      std::optional<int64_t> count);

/// The same for a part of the memory, of `limit` elements where known.
LogicalResult inRange(Operation *op, StringRef constraint, StringRef name,
                      Value offset, std::optional<int64_t> count,
                      std::optional<int64_t> limit);

/// A constant number of elements is not negative.
LogicalResult isCount(Operation *op, StringRef constraint, Value count);

/// A constant index names one of `limit` things (`what`, in the singular).
LogicalResult isIndex(Operation *op, StringRef constraint, Value index,
                      std::optional<int64_t> limit, StringRef what);

/// A constant peer is a rank of the team.
LogicalResult isPeer(Operation *op, StringRef constraint, Value peer,
                     Value team);

/// A constant `valid` lies in [0, elements of the tile].
LogicalResult isValid(Operation *op, StringRef constraint, Value valid,
                      Type tile);

/// The number of elements that a tile op touches, when it is known.
std::optional<int64_t> getExtent(Value valid, Type tile);

/// A value stored in or compared with a cell is not negative.
LogicalResult isCellValue(Operation *op, StringRef constraint, Value value);

/// The order is one of the two; `relaxed` is always one of them.
LogicalResult isOrder(Operation *op, StringRef constraint, MemoryOrder order,
                      MemoryOrder strong);

/// `gin` names a context that can exist, and a fence that the network obeys.
LogicalResult isGin(Operation *op, StringRef contextConstraint,
                    StringRef fenceConstraint, GinAttr gin);

/// Memory that GIN reads or writes on this rank is this rank's part of a
/// window.
LogicalResult isRegistered(Operation *op, StringRef constraint, GinAttr gin,
                           Value memory, StringRef name);

/// A barrier over the whole grid does not stand in a role.
LogicalResult isOutsideRole(Operation *op, StringRef constraint,
                            BarrierExtent extent);

} // namespace mlir::comms::checks

#endif // COMMSIR_DIALECT_OPCHECKS_H
