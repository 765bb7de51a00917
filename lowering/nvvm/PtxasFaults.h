//===- PtxasFaults.h - PTX that ptxas gets right ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM 22 writes PTX of which ptxas 13.0 makes other code than it says, as its
// SASS shows and H200 did:
//
// - A store of fewer bits than its register has: `st.b16 [a], %r1` takes the
// low
//   half. Where an instruction of floats made the register (`add.f32 %r1`;
//   LLVM's registers have no types of their own), ptxas converts the number to
//   an integer of that width.
// - `mov.b32 %r1, {%rs1, %rs2}` of two results of `cvt….e4m3x2.f32` becomes one
//   conversion that merges the two. What else uses %rs1 or the low half of %r1
//   may then read a register that nobody has written.
// - `add.s16x2` of a constant, of which one half is used alone, adds 0.
// - `abs.s16` and `neg.s16` of -32768 are 32768 where they are widened next,
// and
//   `abs.s32` and `abs.s64` of the least number are taken as not negative.
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
