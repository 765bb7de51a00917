//===- MovableOps.h - Ops and the accesses they may cross -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties of ops in one block of IR, after distribution: the memory they
// access, and the ops that must move with them.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_MOVABLEOPS_H
#define COMMSIR_LOWERING_NVVM_MOVABLEOPS_H

#include "dialect/Comms.h"

namespace mlir::comms::nvvm {

/// Whether the op clears slots that no rank waits for in this launch.
bool isStaleFill(Operation *op);

/// Whether the op accesses no memory and contains no other ops.
bool isQuiet(Operation *op);

/// Whether the op loads and orders nothing.
bool isPlainLoad(Operation *op);

/// Memory that a plain load reads.
Value getLoaded(Operation *load);

/// Memory that a plain store writes; null: not a plain store.
Value getStored(Operation *op);

/// The argument, allocation or window that a memref is part of; null: unknown,
/// or a peer's.
Value getRoot(Value memref);

/// Adds the ops from `first` on that `op` depends on, in order. Returns false
/// if one of them cannot be moved.
bool collectNeeded(Operation *op, Operation *first,
                   SmallVectorImpl<Operation *> &order);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_MOVABLEOPS_H
