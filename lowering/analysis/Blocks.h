//===- Blocks.h - How many blocks a rank has --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_BLOCKS_H
#define COMMSIR_LOWERING_ANALYSIS_BLOCKS_H

#include "dialect/Comms.h"

namespace mlir::comms {

/// Whether the blocks of a rank do different things: by their number, in roles,
/// or in collectives, which share out tiles. More blocks of another kernel
/// would all do the same, over one another: where nobody says how many there
/// are, it has one.
bool isBlockDependent(KernelOp kernel);

/// Blocks of a rank where nothing says how many, on the CPU.
inline constexpr int64_t kDefaultBlocks = 1;

/// The blocks of a rank for which nobody has asked for a number: the kernel's
/// own, 1 where it is not block-dependent, else `usual`, or as many as its
/// roles name.
int64_t chooseBlocks(KernelOp kernel, int64_t usual = kDefaultBlocks);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_ANALYSIS_BLOCKS_H
