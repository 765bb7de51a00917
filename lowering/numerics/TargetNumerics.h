//===- TargetNumerics.h - The interface of target arithmetic ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NUMERICS_TARGETNUMERICS_H
#define COMMSIR_LOWERING_NUMERICS_TARGETNUMERICS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectRegistry.h"

#include <optional>

namespace mlir::comms {

/// Instructions of a chip that compute the exact bits that kernels require. If
/// a function returns null, the operation is expanded into integer arithmetic
/// with the same bits. See docs/AddATarget.md.
class TargetNumerics {
public:
  virtual ~TargetNumerics() = default;

  /// Dialects of the ops that the functions below create.
  virtual void addDialects(DialectRegistry &registry) const = 0;
  /// Whether the target includes the chip of that name: "sm_90".
  virtual bool hasChip(StringRef chip) const = 0;

  /// Converts f32 `value`, a scalar or vector, to bf16, f16 or f8E4M3FN.
  virtual Value emitTruncF(OpBuilder &builder, Location loc, Value value,
                           Type element, StringRef chip) const {
    return {};
  }
  /// Converts bf16 `value` to f32.
  virtual Value emitExtFromBF16(OpBuilder &builder, Location loc,
                                Value value) const {
    return {};
  }
  /// Square root of f32 `value`, rounded to nearest even, and the reciprocal of
  /// that root, rounded likewise.
  struct Roots {
    Value root, inverse;
  };
  virtual std::optional<Roots> emitRoots(OpBuilder &builder, Location loc,
                                         Value value) const {
    return std::nullopt;
  }
};

/// All targets of this build, and the one that includes the chip; null: none
/// does, or there is no chip.
ArrayRef<const TargetNumerics *> getTargetNumerics();
const TargetNumerics *findTargetNumerics(StringRef chip);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_NUMERICS_TARGETNUMERICS_H
