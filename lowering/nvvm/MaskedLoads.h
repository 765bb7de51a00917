//===- MaskedLoads.h - Masked loads that NVPTX gets right -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM 22's NVPTX takes a masked load whose mask is a constant for one of all
// elements: those that the mask leaves out are what lies in memory, and not
// what was to stand for them (a tile's zeros behind `valid`). Masks become
// constants where LLVM finds that one thread alone has a tile's tail.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_MASKEDLOADS_H
#define COMMSIR_LOWERING_NVVM_MASKEDLOADS_H

#include "llvm/IR/PassManager.h"

namespace mlir::comms::nvvm {

/// Adds passes that leave no masked load: one of a constant mask becomes loads
/// of its elements, another one branches around them. They come last, since
/// what follows could make a constant of a mask.
void addMaskedLoadPasses(llvm::ModulePassManager &passes);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_MASKEDLOADS_H
