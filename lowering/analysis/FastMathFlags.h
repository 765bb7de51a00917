//===- FastMathFlags.h - Flags that let optimizers change bits --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_FASTMATHFLAGS_H
#define COMMSIR_LOWERING_ANALYSIS_FASTMATHFLAGS_H

#include "mlir/IR/Operation.h"

namespace mlir::comms {

/// Removes attributes of `op` that allow an optimizer to change results, and
/// unchecked promises: fast-math flags, overflow and exactness flags, and
/// alignments of accesses.
void stripFastMath(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_FASTMATHFLAGS_H
