//===- Loops.cpp - Loops over the vectors of a tile -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::comms;

void tiles::emitLoop(OpBuilder &builder, Location loc, Value first, Value last,
                     int64_t step,
                     llvm::function_ref<void(OpBuilder &, Value index)> body) {
  Value stepValue = getIndex(builder, loc, step);
  auto loop = scf::ForOp::create(builder, loc, first, last, stepValue);
  loop->setAttr(kTileLoopAttr, builder.getUnitAttr());
  OpBuilder inner = OpBuilder::atBlockTerminator(loop.getBody());
  body(inner, loop.getInductionVar());
}
