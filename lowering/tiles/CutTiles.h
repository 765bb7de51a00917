//===- CutTiles.h - Parts of tiles pass through memory ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_CUTTILES_H
#define COMMSIR_LOWERING_TILES_CUTTILES_H

#include "dialect/Comms.h"

namespace mlir::comms::tiles {

/// Replaces parts of tiles (tensor.extract_slice) and joined tiles
/// (tensor.concat) by stores to scratch memory of the block and loads of other
/// elements from there. The elements then change their owner among the threads;
/// what orders accesses of memory orders these too.
void cutTiles(KernelOp kernel);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_CUTTILES_H
