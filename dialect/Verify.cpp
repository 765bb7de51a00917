//===- Verify.cpp - Checks of types for verifiers ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Verify.h"

using namespace mlir;
using namespace mlir::comms;

bool mlir::comms::isStorable(Type type) {
  if (!type || !(isa<FloatType>(type) || type.isSignlessInteger()))
    return false;
  unsigned width = type.getIntOrFloatBitWidth();
  return width >= 8 && width <= 64 && llvm::isPowerOf2_32(width);
}

bool mlir::comms::canCombine(ReductionKind kind, Type elementType) {
  bool bitwise = kind == ReductionKind::And || kind == ReductionKind::Or ||
                 kind == ReductionKind::Xor;
  return !bitwise || isa<IntegerType>(elementType);
}

std::optional<int64_t> mlir::comms::countBytes(ArrayRef<int64_t> shape,
                                               Type elementType) {
  int64_t bytes = llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
  for (int64_t dim : shape) {
    if (ShapedType::isDynamic(dim))
      continue;
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes))
      return std::nullopt;
  }
  return bytes;
}

LogicalResult mlir::comms::verifyStaticTile(Operation *op, StringRef constraint,
                                            Type tile) {
  auto shaped = cast<ShapedType>(tile);
  auto vector = dyn_cast<VectorType>(tile);
  if (shaped.hasStaticShape() && shaped.getDimSize(0) >= 1 &&
      !(vector && vector.isScalable()))
    return success();
  return op->emitOpError()
         << constraint << ": the tile is " << tile
         << "; it needs a fixed number of elements, at least one";
}

LogicalResult mlir::comms::verifyPlainMemory(Operation *op,
                                             StringRef constraint, Type memory,
                                             StringRef name) {
  if (isa<WindowType>(memory))
    return success();
  auto memref = dyn_cast<MemRefType>(memory);
  if (!memref)
    return op->emitOpError() << constraint << ": the " << name << " is "
                             << memory << "; it needs a known rank";
  if (!memref.getLayout().isIdentity())
    return op->emitOpError()
           << constraint << ": the " << name << " is " << memref
           << ", which is not contiguous; copy it to contiguous memory first";
  auto space = dyn_cast_or_null<MemorySpaceAttr>(memref.getMemorySpace());
  if (space && space.getValue() == MemorySpace::Multimem)
    return op->emitOpError()
           << constraint << ": the " << name
           << " is a multimem view; use the comms.multimem_* ops";
  return success();
}

LogicalResult mlir::comms::verifyTopLevel(Operation *op, StringRef constraint) {
  Operation *parent = op->getParentOp();
  if (isa_and_nonnull<RoleOp>(parent))
    parent = parent->getParentOp();
  if (isa_and_nonnull<KernelOp>(parent))
    return success();
  return op->emitOpError()
         << constraint
         << ": must be in the body of a comms.kernel or comms.role, not inside "
            "other control flow: every block must run it exactly once";
}
