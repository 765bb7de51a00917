//===- Verify.h - Checks of types for verifiers -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of types and positions shared by several verifiers. Those that emit
// errors take the number of the constraint in docs/Spec.md ("C3"). Private to
// the dialect's library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_VERIFY_H
#define COMMSIR_DIALECT_VERIFY_H

#include "dialect/Comms.h"

#include <optional>

namespace mlir::comms {

/// Whether arrays can hold elements of this type: floats and signless integers
/// of 8, 16, 32 or 64 bits. False for null.
bool isStorable(Type type);

/// Whether a reduction supports elements of this type: and, or and xor require
/// integers, the others also allow floats. For f8, check the accumulator.
bool canCombine(ReductionKind kind, Type elementType);

/// Bytes of an array, with dynamic dimensions counted as 1. None if a dimension
/// is negative or the result does not fit 63 bits.
std::optional<int64_t> countBytes(ArrayRef<int64_t> shape, Type elementType);

/// Checks that the tile has a static length of at least one element and is not
/// scalable.
LogicalResult verifyStaticTile(Operation *op, StringRef constraint, Type tile);

/// Checks that the memory is ranked, contiguous, and not a multicast view.
LogicalResult verifyPlainMemory(Operation *op, StringRef constraint,
                                Type memory, StringRef name);

/// Checks that the op is directly in a kernel's body, or in a role there, so
/// that every block that reaches it runs it once.
LogicalResult verifyTopLevel(Operation *op, StringRef constraint);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_VERIFY_H
