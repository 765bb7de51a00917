//===- NVVMNumerics.cpp - Arithmetic by instructions of NVIDIA GPUs -------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/TargetNumerics.h"
#include "lowering/nvvm/Conversions.h"
#include "lowering/nvvm/SquareRoots.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;

namespace {

class NVVMNumerics final : public TargetNumerics {
public:
  void addDialects(DialectRegistry &registry) const override {
    registry.insert<NVVM::NVVMDialect>();
  }
  bool hasChip(StringRef chip) const override {
    return nvvm::getCapability(chip) != 0;
  }
  Value emitTruncF(OpBuilder &builder, Location loc, Value value, Type element,
                   StringRef chip) const override {
    return nvvm::emitTruncF(builder, loc, value, element,
                            nvvm::getCapability(chip));
  }
  Value emitExtFromBF16(OpBuilder &builder, Location loc,
                        Value value) const override {
    return nvvm::emitExtPairsFromBF16(builder, loc, value);
  }
  std::optional<Roots> emitRoots(OpBuilder &builder, Location loc,
                                 Value value) const override {
    nvvm::Roots roots = nvvm::emitRoots(builder, loc, value);
    return Roots{roots.root, roots.inverse};
  }
};

} // namespace

namespace mlir::comms {
const TargetNumerics &getNVVMNumerics() {
  static const NVVMNumerics target;
  return target;
}
} // namespace mlir::comms
