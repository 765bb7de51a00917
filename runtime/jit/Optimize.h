//===- Optimize.h - LLVM IR of a kernel, made fast and right ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_OPTIMIZE_H
#define COMMSIR_RUNTIME_JIT_OPTIMIZE_H

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace commsir::jit {

/// Runs the passes that pay for kernels, whose loops are vectors already.
/// Level 0 runs none, 1 the cheap ones, 2 the default, 3 LLVM's own -O3.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned level);

/// Replaces every masked store of elements narrower than 32 bits by a loop over
/// the lanes that are on. LLVM 22 merges such a store with the truncation
/// before it, and for AVX-512 then writes 4 bytes where one lane of 1 or 2
/// bytes is on. Returns the number of stores replaced.
unsigned expandNarrowMaskedStores(llvm::Module &module);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_OPTIMIZE_H
