//===- OpChecks.h - Checks that several verifiers share ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers see IR that nothing has checked yet: the definitions of an op's
// operands may be invalid, or be the op itself. These helpers do not rely on
// them. Each check takes the constraint's name in docs/Spec.md ("C3") and emits
// an error that begins with it. Private to the dialect's library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_OPCHECKS_H
#define COMMSIR_DIALECT_OPCHECKS_H

#include "dialect/Comms.h"
#include "dialect/Teams.h"
#include "dialect/Verify.h"

#include <optional>

namespace mlir::comms::checks {

/// The value of an integer or index constant, or none for other values.
std::optional<int64_t> getConstant(Value value);

/// The number of elements of a window or memref, or none if a dimension is
/// dynamic or the product does not fit 64 bits.
std::optional<int64_t> getElements(Type memory);

/// The element type of a window or memref.
Type getElementType(Type memory);

/// Checks that two named operands have the same element type.
LogicalResult sameElement(Operation *op, StringRef constraint, Value source,
                          StringRef sourceName, Value dest, StringRef destName);

/// Checks that [offset, offset + count) lies within the memory, as far as it is
/// constant.
LogicalResult inRange(Operation *op, StringRef constraint, Value memory,
                      StringRef name, Value offset,
                      std::optional<int64_t> count);

/// Same, for a part of the memory with `limit` elements, if known.
LogicalResult inRange(Operation *op, StringRef constraint, StringRef name,
                      Value offset, std::optional<int64_t> count,
                      std::optional<int64_t> limit);

/// Checks that a constant number of elements is not negative.
LogicalResult isCount(Operation *op, StringRef constraint, Value count);

/// Checks that a constant index is below `limit`. `what` names the indexed
/// objects, in the singular.
LogicalResult isIndex(Operation *op, StringRef constraint, Value index,
                      std::optional<int64_t> limit, StringRef what);

/// Checks that a constant peer is a rank of the team.
LogicalResult isPeer(Operation *op, StringRef constraint, Value peer,
                     Value team);

/// Checks that a constant `valid` lies in [0, elements of the tile].
LogicalResult isValid(Operation *op, StringRef constraint, Value valid,
                      Type tile);

/// The number of elements that a tile op accesses, if known.
std::optional<int64_t> getExtent(Value valid, Type tile);

/// Checks that a constant that is stored in or compared with a cell is not
/// negative.
LogicalResult isCellValue(Operation *op, StringRef constraint, Value value);

/// Checks that the order is `relaxed` or the given one.
LogicalResult isOrder(Operation *op, StringRef constraint, MemoryOrder order,
                      MemoryOrder strong);

/// Checks that `gin` names a valid context and that the network supports the
/// fence.
LogicalResult isGin(Operation *op, StringRef contextConstraint,
                    StringRef fenceConstraint, GinAttr gin);

/// Checks that memory that GIN accesses on this rank is this rank's part of a
/// window.
LogicalResult isRegistered(Operation *op, StringRef constraint, GinAttr gin,
                           Value memory, StringRef name);

/// Checks that a grid barrier is not inside a role.
LogicalResult isOutsideRole(Operation *op, StringRef constraint,
                            BarrierExtent extent);

} // namespace mlir::comms::checks

#endif // COMMSIR_DIALECT_OPCHECKS_H
