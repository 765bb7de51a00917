//===- ScalarStores.h - Stores of one element -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_SCALARSTORES_H
#define COMMSIR_LOWERING_TILES_SCALARSTORES_H

#include "dialect/Comms.h"

namespace mlir::comms::tiles {

/// Converts stores of one element to stores of a tile of one element, so that
/// one of many threads stores it. Memory private to each thread is excluded.
void storeTilesOfOne(KernelOp kernel);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_SCALARSTORES_H
