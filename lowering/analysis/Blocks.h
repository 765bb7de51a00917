//===- Blocks.h - The number of blocks per rank -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_BLOCKS_H
#define COMMSIR_LOWERING_ANALYSIS_BLOCKS_H

#include "dialect/Comms.h"

namespace mlir::comms {

/// Whether the blocks of a rank behave differently: they use their block
/// number, roles, or collectives, which distribute tiles. In other kernels
/// additional blocks would repeat the same work on the same memory; such a
/// kernel runs with one block per rank if the number is open.
bool isBlockDependent(KernelOp kernel);

/// Default number of blocks per rank on the CPU.
inline constexpr int64_t kDefaultBlocks = 1;

/// Number of blocks per rank if the caller requests none: the kernel's own; 1
/// if it is not block-dependent; else `usual`, or as many as its roles name.
int64_t chooseBlocks(KernelOp kernel, int64_t usual = kDefaultBlocks);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_BLOCKS_H
