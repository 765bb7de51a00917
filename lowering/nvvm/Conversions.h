//===- Conversions.h - Narrow floats by a GPU's instructions ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conversions of lowering/analysis/NarrowFloats.h, to the bit, in the few
// instructions that a GPU has for them: two elements at a time.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_CONVERSIONS_H
#define COMMSIR_LOWERING_NVVM_CONVERSIONS_H

#include "mlir/IR/Builders.h"

namespace mlir::comms::nvvm {

/// Marks an op whose result holds no NaN but the canonical one.
inline constexpr const char kCanonicalAttr[] = "comms.canonical";

/// The number of "sm_90a", with 0 when it is none.
unsigned getCapability(StringRef chip);

/// Emits f32 `value`, a scalar or a vector, as bf16, f16 or f8E4M3FN; null:
/// the chip has no instruction that gives these bits.
Value emitTruncF(OpBuilder &builder, Location loc, Value value, Type element,
                 unsigned capability);

/// Emits bf16 `value` as f32; null as above.
Value emitExtFromBF16(OpBuilder &builder, Location loc, Value value);

/// Emits a word of two elements of 16 bits, or of one of 32 bits, with its NaN
/// made canonical.
Value emitCanonicalWord(OpBuilder &builder, Location loc, Value word,
                        FloatType element);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONVERSIONS_H
