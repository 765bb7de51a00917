//===- Postcondition.h - Whether outputs hold what they should --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows a kernel with the terms of what elements hold, and compares outputs
// after each launch with what is expected of them.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_POSTCONDITION_H
#define COMMSIR_LOWERING_CHECK_POSTCONDITION_H

#include "lowering/check/Expression.h"
#include "lowering/check/Verdict.h"

namespace mlir::comms::check {

/// What came of it.
struct ValueVerdict {
  /// Errors have been reported.
  bool refuted = false;
  /// Why it is not known; empty: the outputs hold what they should.
  std::vector<UnprovenReason> unproven;
  /// A window that is only added to is taken to be zero before each launch.
  bool assumesZeros = false;
};

/// Whether each output of `kernel` holds what `expressions` say, on all ranks
/// and after each of the launches of `shape`, in which all ranks are followed.
ValueVerdict checkComputes(KernelOp kernel, const WorldShape &shape,
                           llvm::ArrayRef<Expression> expressions);

/// What each array that the kernel writes holds after its first launch: "y[0,
/// 64) of ranks 0 to 3: x(0) + x(1)". Empty: the kernel could not be followed.
std::vector<std::string> summarizeResults(KernelOp kernel,
                                          const WorldShape &shape);

/// Whether `expanded`, a program over channels or memory, does to the arguments
/// of `kernel`, which is made of whole collectives alone, what these say.
ValueVerdict checkExpansion(KernelOp kernel, KernelOp expanded,
                            const WorldShape &shape);

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_POSTCONDITION_H
