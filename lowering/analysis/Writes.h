//===- Writes.h - Arguments that a kernel writes ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_WRITES_H
#define COMMSIR_LOWERING_ANALYSIS_WRITES_H

#include "dialect/Comms.h"

#include "llvm/ADT/BitVector.h"

namespace mlir::comms {

/// Returns for each argument of a kernel whether an op may write its memory, on
/// any rank. A write to memory that is not known counts for all.
llvm::BitVector findWrittenArguments(KernelOp kernel);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_WRITES_H
