//===- FoldLoops.h - Loops that fold tiles into an accumulator --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_FOLDLOOPS_H
#define COMMSIR_LOWERING_TILES_FOLDLOOPS_H

#include "dialect/Comms.h"

#include <optional>

namespace mlir::scf {
class ForOp;
} // namespace mlir::scf

namespace mlir::comms::tiles {

/// Iterations of a loop with constant bounds and a positive step, which counts
/// in at most 64 bits, as scf's own unrolling does.
std::optional<int64_t> getIterations(scf::ForOp loop);

/// Unrolls the loops over peers that carry a tile and hold nothing but loads
/// and elementwise arithmetic: completely up to kMaxFold iterations, else
/// kFoldStep at a time. The accumulator then stays in registers across the
/// peers of a round, and the loop over the tile's vectors is outside.
void unrollFoldLoops(KernelOp kernel);

/// Iterations up to which a loop disappears.
inline constexpr int64_t kMaxFold = 16;
/// Iterations that a longer loop does at once.
inline constexpr int64_t kFoldStep = 8;

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_FOLDLOOPS_H
