//===- TargetNumerics.h - What a target calculates by itself ----*- C++ -*-===//
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

/// Instructions of a chip that give the bits that kernels are to have. What is
/// null is expanded into integers, with the same bits. docs/AddATarget.md.
class TargetNumerics {
public:
  virtual ~TargetNumerics() = default;

  /// Dialects of the ops that the functions below make.
  virtual void addDialects(DialectRegistry &registry) const = 0;
  /// Whether the target has the chip of that name: "sm_90".
  virtual bool hasChip(StringRef chip) const = 0;

  /// f32 `value`, a scalar or a vector, as bf16, f16 or f8E4M3FN.
  virtual Value emitTruncF(OpBuilder &builder, Location loc, Value value,
                           Type element, StringRef chip) const {
    return {};
  }
  /// bf16 `value` as f32.
  virtual Value emitExtFromBF16(OpBuilder &builder, Location loc,
                                Value value) const {
    return {};
  }
  /// The square root of f32 `value` rounded to nearest even, and one over that
  /// root, rounded likewise.
  struct Roots {
    Value root, inverse;
  };
  virtual std::optional<Roots> emitRoots(OpBuilder &builder, Location loc,
                                         Value value) const {
    return std::nullopt;
  }
};

/// All targets of this build, and the one that has the chip; null: none has,
/// as where there is no chip.
ArrayRef<const TargetNumerics *> getTargetNumerics();
const TargetNumerics *findTargetNumerics(StringRef chip);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_NUMERICS_TARGETNUMERICS_H
