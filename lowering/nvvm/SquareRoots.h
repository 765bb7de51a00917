//===- SquareRoots.h - Rounded square roots without branches ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// sqrt.rn and rcp.rn of PTX are calls of functions where their operand is out
// of the ordinary, which the compiler of PTX takes 8 ms to make for a kernel
// that has both, and around which it keeps registers free.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_SQUAREROOTS_H
#define COMMSIR_LOWERING_NVVM_SQUAREROOTS_H

#include "mlir/IR/Builders.h"

namespace mlir::comms::nvvm {

/// The square root of f32 `value`, a scalar or a vector, rounded to nearest
/// even, and one over that root, rounded likewise. Both have the bits of
/// math.sqrt, and of arith.divf of 1 by it, for every operand; a NaN is
/// 0x7FFFFFFF as PTX has it. What nobody uses is dropped later.
struct Roots {
  Value root, inverse;
};
Roots emitRoots(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_SQUAREROOTS_H
