//===- MaskedLoads.h - Masked loads that NVPTX gets right -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM 22's NVPTX treats a masked load with a constant mask as a load of all
// elements: masked-off elements get the contents of memory rather than the
// pass-through value (a tile's zeros behind `valid`). Masks become constant
// when LLVM finds that only one thread has a tile's tail.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_MASKEDLOADS_H
#define COMMSIR_LOWERING_NVVM_MASKEDLOADS_H

#include "llvm/IR/PassManager.h"

namespace mlir::comms::nvvm {

/// Adds passes that remove all masked loads: those with a constant mask become
/// loads of single elements, others become branches. They must run last,
/// because later passes could make masks constant.
void addMaskedLoadPasses(llvm::ModulePassManager &passes);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_MASKEDLOADS_H
