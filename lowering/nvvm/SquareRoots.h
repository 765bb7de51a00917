//===- SquareRoots.h - Rounded square roots without branches ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// sqrt.rn and rcp.rn of PTX call functions for exceptional operands. For a
// kernel with both, the PTX compiler takes 8 ms to generate them, and keeps
// registers free around the calls.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_SQUAREROOTS_H
#define COMMSIR_LOWERING_NVVM_SQUAREROOTS_H

#include "mlir/IR/Builders.h"

namespace mlir::comms::nvvm {

/// Square root of f32 `value`, a scalar or vector, rounded to nearest even, and
/// the reciprocal of that root, rounded likewise. Both have the bits of
/// math.sqrt, and of arith.divf of 1 by it, for every operand; NaN is
/// 0x7FFFFFFF as in PTX. Unused results are removed later.
struct Roots {
  Value root, inverse;
};
Roots emitRoots(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_SQUAREROOTS_H
