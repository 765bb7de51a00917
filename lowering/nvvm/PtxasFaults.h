//===- PtxasFaults.h - PTX that ptxas gets right ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas 13.0 miscompiles some PTX of LLVM 22, as its SASS shows and runs on
// H200 confirmed:
//
// - A store narrower than its register: `st.b16 [a], %r1` stores the low half.
//   If a float instruction wrote the register (`add.f32 %r1`; LLVM's registers
//   have no types), ptxas converts the number to an integer of that width.
// - `mov.b32 %r1, {%rs1, %rs2}` of two results of `cvt….e4m3x2.f32` becomes one
//   conversion that merges the two. Other uses of %rs1, or of the low half of
//   %r1, may then read a register that was never written.
// - `add.s16x2` of a constant, if only one half of the result is used, adds 0.
// - `abs.s16` and `neg.s16` of -32768 yield 32768 if the result is widened
// next.
//   ptxas assumes that `abs.s32` and `abs.s64` of the least number are not
//   negative.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_PTXASFAULTS_H
#define COMMSIR_LOWERING_NVVM_PTXASFAULTS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::comms::nvvm {

/// Returns equivalent PTX without these patterns: registers are narrowed by
/// integer conversions before they are stored, halves with other uses are
/// combined by a shift and added separately, and operations that may overflow
/// are computed in 32 bits or by the sign. Other instructions are unchanged.
std::string avoidPtxasFaults(llvm::StringRef ptx);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_PTXASFAULTS_H
