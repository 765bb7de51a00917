//===- Blocks.cpp - The number of blocks per rank -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/Blocks.h"

#include "dialect/Collectives.h"

using namespace mlir;
using namespace mlir::comms;

bool mlir::comms::isBlockDependent(KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        return isa<BlockIdOp, NumBlocksOp, RoleOp>(op) || getCollectiveKind(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

int64_t mlir::comms::chooseBlocks(KernelOp kernel, int64_t usual) {
  if (auto own = kernel.getBlocks())
    return static_cast<int64_t>(*own);
  if (!isBlockDependent(kernel))
    return 1;
  int64_t blocks = usual;
  kernel.walk([&](RoleOp role) {
    blocks = std::max(blocks, static_cast<int64_t>(role.getLast()));
  });
  return blocks;
}
