//===- Postcondition.h - Proves the promised outputs ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Simulates a kernel with terms for the contents of elements, and compares
// outputs after each launch with the expected contents.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_POSTCONDITION_H
#define COMMSIR_LOWERING_CHECK_POSTCONDITION_H

#include "lowering/check/Expression.h"
#include "lowering/check/Verdict.h"

namespace mlir::comms::check {

/// Result of the check.
struct ValueVerdict {
  /// Errors have been reported.
  bool refuted = false;
  /// Why the result is unknown; empty: outputs are as expected.
  std::vector<UnprovenReason> unproven;
  /// Windows that are only added to are assumed to be zero before each launch.
  bool assumesZeros = false;
};

/// Checks that each output of `kernel` holds the values of `expressions` on all
/// ranks after each launch of `shape`, in which all ranks must be simulated.
ValueVerdict checkComputes(KernelOp kernel, const WorldShape &shape,
                           llvm::ArrayRef<Expression> expressions);

/// The contents of each array that the kernel writes, after its first launch:
/// "y[0, 64) of ranks 0 to 3: x(0) + x(1)". Empty: the kernel could not be
/// simulated.
std::vector<std::string> summarizeResults(KernelOp kernel,
                                          const WorldShape &shape);

/// Checks that `expanded`, a program over channels or memory, has the same
/// effect on the arguments as `kernel`, which consists of whole collectives.
ValueVerdict checkExpansion(KernelOp kernel, KernelOp expanded,
                            const WorldShape &shape);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_POSTCONDITION_H
