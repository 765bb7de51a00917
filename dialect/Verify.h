//===- Verify.h - What verifiers share about types -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of types and places that several verifiers make. Those that emit an
// error take the number of the constraint in docs/Spec.md ("C3"). Private to
// the dialect's library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_VERIFY_H
#define COMMSIR_DIALECT_VERIFY_H

#include "dialect/Comms.h"

#include <optional>

namespace mlir::comms {

/// Whether arrays can hold elements of this type: floats and signless integers
/// of 8, 16, 32 or 64 bits. Null is none.
bool isStorable(Type type);

/// Whether a reduction combines elements of this type: and, or, xor want
/// integers, the others take floats too. For f8, see the accumulator.
bool canCombine(ReductionKind kind, Type elementType);

/// Bytes of an array, dynamic dimensions counted as 1; nothing when a dimension
/// is negative or the number does not fit 63 bits.
std::optional<int64_t> countBytes(ArrayRef<int64_t> shape, Type elementType);

/// The tile has a static length of at least one element and is not scalable.
LogicalResult verifyStaticTile(Operation *op, StringRef constraint, Type tile);

/// The memory is ranked, contiguous, and no multicast view.
LogicalResult verifyPlainMemory(Operation *op, StringRef constraint,
                                Type memory, StringRef name);

/// The op stands in a kernel's body, or in a role that does: all blocks that
/// run it run it once.
LogicalResult verifyTopLevel(Operation *op, StringRef constraint);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_VERIFY_H
