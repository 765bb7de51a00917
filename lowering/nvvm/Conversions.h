//===- Conversions.h - Narrow floats by a GPU's instructions ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the conversions of lowering/analysis/NarrowFloats.h, to the bit,
// with the GPU's instructions, which convert two elements at a time.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_CONVERSIONS_H
#define COMMSIR_LOWERING_NVVM_CONVERSIONS_H

#include "mlir/IR/Builders.h"

namespace mlir::comms::nvvm {

/// Marks an op whose result contains only canonical NaNs.
inline constexpr const char kCanonicalAttr[] = "comms.canonical";

/// The number in "sm_90a"; 0 if there is none.
unsigned getCapability(StringRef chip);

/// Emits the conversion of f32 `value`, a scalar or vector, to bf16, f16 or
/// f8E4M3FN. Null: the chip has no instruction with these bits.
Value emitTruncF(OpBuilder &builder, Location loc, Value value, Type element,
                 unsigned capability);

/// Emits the conversion of bf16 `value` to f32, two elements a word. Null: it
/// is no vector of pairs; then comms::emitExtFromBF16 converts it.
Value emitExtPairsFromBF16(OpBuilder &builder, Location loc, Value value);

/// Emits a word of two 16-bit elements or one 32-bit element, with NaNs made
/// canonical.
Value emitCanonicalWord(OpBuilder &builder, Location loc, Value word,
                        FloatType element);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONVERSIONS_H
