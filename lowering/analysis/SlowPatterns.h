//===- SlowPatterns.h - Patterns that take too long -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_SLOWPATTERNS_H
#define COMMSIR_LOWERING_ANALYSIS_SLOWPATTERNS_H

#include "mlir/IR/Operation.h"

#include <string>

namespace mlir::comms {

/// Whether more than `most` ops in `kernel` are of the given kind.
bool hasMoreThan(unsigned most, Operation *kernel,
                 function_ref<bool(Operation *)> isCounted);

/// The names of MLIR's patterns that take too long for `kernel`, because the
/// time of each grows with the square of the number of some of its ops.
SmallVector<std::string, 3> getSlowPatterns(Operation *kernel);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_SLOWPATTERNS_H
