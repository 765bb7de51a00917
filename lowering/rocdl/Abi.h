//===- Abi.h - The ABI of kernels on AMD GPUs -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A skeleton: no runtime launches such kernels. A kernel takes the address of a
// Context in its GPU's memory.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ROCDL_ABI_H
#define COMMSIR_LOWERING_ROCDL_ABI_H

#include "lowering/target/KernelBase.h"

#include <cstdint>

namespace mlir::comms::rocdl {

/// Numbers first, then addresses, 8 bytes each.
struct Context {
  int64_t rank, ranks, lsaSize, blocks, epoch;
  /// For each argument, the address of each rank's part as this rank reaches
  /// it.
  void **const *parts;
  /// For each rank, its barrier cells (i64): arrivals at the barriers of each
  /// block, then at those of all blocks; then the number of barriers so far of
  /// each.
  int64_t *const *barriers;
};

} // namespace mlir::comms::rocdl

#endif // COMMSIR_LOWERING_ROCDL_ABI_H
