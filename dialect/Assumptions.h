//===- Assumptions.h - Assumptions that a kernel states ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attribute `comms.assumes` of a kernel: an array with the names of
// hardware assumptions (docs/Spec.md, "Named assumptions") that belong to no
// single op.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_ASSUMPTIONS_H
#define COMMSIR_DIALECT_ASSUMPTIONS_H

#include "dialect/Comms.h"

namespace mlir::comms {

inline constexpr const char kAssumesAttr[] = "comms.assumes";

/// M25: what a fence releases stays in front of a chain of relaxed messages.
inline constexpr llvm::StringLiteral kPacketsCumulative = "packets_cumulative";

/// Integers that the host keeps in the argument `name` are the same on all
/// ranks: "same_on_ranks(name)".
std::string sameOnRanks(llvm::StringRef name);

/// Whether `kernel` states the assumption `name`.
bool statesAssumption(KernelOp kernel, llvm::StringRef name);

/// Adds `name` to what `kernel` states.
void stateAssumption(KernelOp kernel, llvm::StringRef name);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_ASSUMPTIONS_H
