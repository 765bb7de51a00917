//===- TileChecks.h - What the pass on tiles takes and promises -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_TILECHECKS_H
#define COMMSIR_LOWERING_TILES_TILECHECKS_H

#include "mlir/IR/Operation.h"

namespace mlir::comms::tiles {

/// Lanes of a vector after the pass, at most.
constexpr int64_t kMaxLanes = 16;

/// Whether `op` works on tiles that can be distributed: tensors of rank 1, in
/// memory without a layout, that scf alone carries from block to block.
LogicalResult checkOp(Operation *op);

/// Refuses what has no meaning where a block is many threads.
LogicalResult checkForThreads(Operation *op);

/// What the pass promises: no tensor, no long vector.
LogicalResult checkDistributed(Operation *op);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_TILECHECKS_H
