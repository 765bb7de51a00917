//===- UncheckedOps.h - What a kernel must not hold -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_UNCHECKEDOPS_H
#define COMMSIR_LOWERING_UNCHECKEDOPS_H

#include "mlir/IR/Operation.h"

namespace mlir::comms {

/// Refuses `op`, an op of a kernel, when it could reach memory that no check
/// guards, leave the kernel or end the process: pointers, calls, assertions,
/// views whose bounds are not known, memory that the kernel would have to free.
LogicalResult refuseUnchecked(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_UNCHECKEDOPS_H
