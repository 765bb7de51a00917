//===- Loops.h - Loops over the vectors of a tile ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_LOOPS_H
#define COMMSIR_LOWERING_TILES_LOOPS_H

#include "lowering/tiles/Stage.h"
#include "lowering/tiles/TileMemory.h"

namespace mlir::comms::tiles {

/// Attribute of the loops made here: they terminate, and no block waits for
/// their end.
inline constexpr const char kTileLoopAttr[] = "comms.tile";

/// Emits `for index = first to last step step { body }`, marked as a loop over
/// a tile. Leaves the builder after it.
void emitLoop(OpBuilder &builder, Location loc, Value first, Value last,
              int64_t step,
              llvm::function_ref<void(OpBuilder &, Value index)> body);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_LOOPS_H
