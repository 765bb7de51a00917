//===- FoldLoops.cpp - Loops that fold tiles into an accumulator ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/FoldLoops.h"

#include "lowering/tiles/Stage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Most ops of a body: what is unrolled stays small.
static constexpr unsigned maxBodyOps = 64;

/// Ops that may run in one loop with those of other iterations.
static bool isFoldable(Operation &op) {
  if (op.getNumRegions() || isa<RowReduceOp>(op))
    return false;
  if (isa<TileLoadOp, PacketLoadOp, PoisonLoadOp, MultimemLoadReduceOp,
          CheckBoundsOp, scf::YieldOp>(op))
    return true;
  return isMemoryEffectFree(&op);
}

static bool isFoldLoop(scf::ForOp loop) {
  if (llvm::none_of(loop.getResultTypes(), isLongTile))
    return false;
  unsigned count = 0;
  for (Operation &op : loop.getBody()->getOperations())
    if (++count > maxBodyOps || !isFoldable(op))
      return false;
  return true;
}

std::optional<int64_t> tiles::getIterations(scf::ForOp loop) {
  Type type = loop.getInductionVar().getType();
  if (!type.isIndex() && type.getIntOrFloatBitWidth() > 64)
    return std::nullopt;
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> last = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  int64_t span;
  if (!first || !last || !step || *step < 1 ||
      __builtin_sub_overflow(*last, *first, &span))
    return std::nullopt;
  return span <= 0 ? 0 : (span - 1) / *step + 1;
}

void tiles::unrollFoldLoops(KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (isFoldLoop(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    std::optional<int64_t> iterations = getIterations(loop);
    // A loop that cannot be unrolled keeps its accumulator in scratch memory.
    if (!iterations || *iterations < 2)
      continue;
    if (*iterations <= kMaxFold)
      (void)loopUnrollFull(loop);
    else
      (void)loopUnrollByFactor(loop, kFoldStep);
  }
}
