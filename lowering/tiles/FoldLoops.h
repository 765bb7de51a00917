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

/// Number of iterations of a loop with constant bounds and a positive step,
/// counted in at most 64 bits as in scf's unrolling.
std::optional<int64_t> getIterations(scf::ForOp loop);

/// Unrolls loops over peers that carry a tile and contain only loads and
/// elementwise arithmetic: completely up to kMaxFold iterations, else kFoldStep
/// at a time. The accumulator then stays in registers across the peers of a
/// round, and the loop over the tile's vectors is outside.
void unrollFoldLoops(KernelOp kernel);

/// Maximum number of iterations for complete unrolling.
inline constexpr int64_t kMaxFold = 16;
/// Unroll factor of longer loops.
inline constexpr int64_t kFoldStep = 8;

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_FOLDLOOPS_H
