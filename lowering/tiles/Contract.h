//===- Contract.h - Matrix products as loops --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TILES_CONTRACT_H
#define COMMSIR_LOWERING_TILES_CONTRACT_H

#include "dialect/Comms.h"

namespace mlir::comms::tiles {

/// Replaces the matrix products of `kernel`, whose blocks are one thread each,
/// by loops over vectors of `lanes` columns. Each element is the sum of its
/// terms in f32, in the order of the depth; with block scales, the sum of the
/// blocks' sums, each times its scales.
void lowerContracts(KernelOp kernel, int64_t lanes);

} // namespace mlir::comms::tiles

#endif // COMMSIR_LOWERING_TILES_CONTRACT_H
