//===- GatherRows.h - Row reductions that may share an exchange -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_GATHERROWS_H
#define COMMSIR_LOWERING_TILES_GATHERROWS_H

#include "dialect/Comms.h"

namespace mlir::comms::tiles {

/// Moves independent row reductions of equal length to the first of them, with
/// the pure ops that they depend on. They then form one stage, whose rows share
/// an exchange. Results do not change.
void gatherRows(KernelOp kernel);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_GATHERROWS_H
