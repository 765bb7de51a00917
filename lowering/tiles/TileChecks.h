//===- TileChecks.h - Pre- and postconditions of the tile pass --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_TILECHECKS_H
#define COMMSIR_LOWERING_TILES_TILECHECKS_H

#include "mlir/IR/Operation.h"

namespace mlir::comms::tiles {

/// Maximum lanes of a vector after the pass.
constexpr int64_t kMaxLanes = 16;

/// Checks that `op` works on tiles that can be distributed: tensors of rank 1,
/// in memory without a layout, carried between blocks only by scf.
LogicalResult checkOp(Operation *op);

/// Refuses ops that are not supported if a block has several threads.
LogicalResult checkForThreads(Operation *op);

/// Checks the pass's result: no tensors, no long vectors.
LogicalResult checkDistributed(Operation *op);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_TILECHECKS_H
