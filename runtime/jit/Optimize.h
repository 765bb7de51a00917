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

/// Runs the passes that are worthwhile for kernels, whose loops are already
/// vectorized. Level 0 runs none, 1 the cheap ones, 2 the default, 3 LLVM's
/// -O3.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned level);

/// Replaces masked stores of elements narrower than 32 bits by a loop over the
/// active lanes. LLVM 22 merges such a store with the preceding truncation, and
/// for AVX-512 then writes 4 bytes for an active lane of 1 or 2 bytes. Returns
/// the number of stores replaced.
unsigned expandNarrowMaskedStores(llvm::Module &module);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_OPTIMIZE_H
