//===- Cleanup.h - Folding between passes -----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CLEANUP_H
#define COMMSIR_LOWERING_CLEANUP_H

#include "mlir/Pass/PassManager.h"

namespace mlir::comms {

/// Adds passes to `kernels` that fold what the last passes left, so that the
/// next see constants. Memory and time grow only with the number of ops.
void addCleanup(OpPassManager &kernels);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_CLEANUP_H
