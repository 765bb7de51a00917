//===- OpChecks.cpp - Checks that several verifiers share -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/OpChecks.h"

using namespace mlir;
using namespace mlir::comms;

std::optional<int64_t> checks::getConstant(Value value) {
  // Not matchPattern: it folds, and the constant may lack its attribute.
  auto constant =
      value ? value.getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  if (!constant)
    return std::nullopt;
  Attribute attribute = constant.getProperties().value;
  auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
  if (!integer || integer.getValue().getSignificantBits() > 64)
    return std::nullopt;
  return integer.getValue().getSExtValue();
}

/// The product of the dimensions, unless one is dynamic or it does not fit.
static std::optional<int64_t> multiply(ArrayRef<int64_t> shape) {
  int64_t product = 1;
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product))
      return std::nullopt;
  return product;
}

std::optional<int64_t> checks::getElements(Type memory) {
  if (auto window = dyn_cast<WindowType>(memory))
    return multiply(window.getShape());
  if (auto memref = dyn_cast<MemRefType>(memory))
    return multiply(memref.getShape());
  return std::nullopt;
}

Type checks::getElementType(Type memory) {
  if (auto window = dyn_cast<WindowType>(memory))
    return window.getElementType();
  if (auto shaped = dyn_cast<ShapedType>(memory))
    return shaped.getElementType();
  return {};
}

LogicalResult checks::sameElement(Operation *op, StringRef constraint,
                                  Value source, StringRef sourceName,
                                  Value dest, StringRef destName) {
  Type from = getElementType(source.getType()),
       to = getElementType(dest.getType());
  if (from == to)
    return success();
  return op->emitOpError() << constraint << ": the " << sourceName
                           << " has elements of " << from << ", the "
                           << destName << " of " << to << "; they must agree";
}

LogicalResult checks::inRange(Operation *op, StringRef constraint, Value memory,
                              StringRef name, Value offset,
                              std::optional<int64_t> count) {
  return inRange(op, constraint, name, offset, count,
                 getElements(memory.getType()));
}

LogicalResult checks::inRange(Operation *op, StringRef constraint,
                              StringRef name, Value offset,
                              std::optional<int64_t> count,
                              std::optional<int64_t> limit) {
  std::optional<int64_t> first = getConstant(offset);
  if (first && *first < 0)
    return op->emitOpError() << constraint << ": offset " << *first
                             << " in the " << name << " is negative";
  // Without the one, the other alone may already be too large.
  int64_t start = first.value_or(0),
          extent = std::max<int64_t>(count.value_or(0), 0);
  if (!limit || (start <= *limit && extent <= *limit - start))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << constraint << ": ";
  if (count)
    diagnostic << extent << " elements";
  if (count && first)
    diagnostic << " from ";
  if (first)
    diagnostic << "offset " << start;
  return diagnostic << (count || !first ? " leave the " : " leaves the ")
                    << name << ", which has " << *limit << " elements";
}

LogicalResult checks::isCount(Operation *op, StringRef constraint,
                              Value count) {
  std::optional<int64_t> number = getConstant(count);
  if (!number || *number >= 0)
    return success();
  return op->emitOpError() << constraint << ": a count of " << *number
                           << " elements is negative";
}

LogicalResult checks::isIndex(Operation *op, StringRef constraint, Value index,
                              std::optional<int64_t> limit, StringRef what) {
  std::optional<int64_t> number = getConstant(index);
  if (!number || (*number >= 0 && (!limit || *number < *limit)))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << constraint << ": there is no " << what
                                  << ' ' << *number;
  if (limit)
    diagnostic << "; they are numbered from 0 and there are " << *limit;
  return diagnostic;
}

LogicalResult checks::isPeer(Operation *op, StringRef constraint, Value peer,
                             Value team) {
  std::optional<int64_t> rank = getConstant(peer);
  if (!rank)
    return success();
  std::optional<int64_t> size = getStaticTeamSize(team);
  if (*rank >= 0 && (!size || *rank < *size))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << constraint << ": peer " << *rank
                                  << " is not a rank of the team";
  if (size)
    diagnostic << ", which has " << *size;
  return diagnostic;
}

/// The number of elements of a tile, if it is static.
static std::optional<int64_t> getLength(Type tile) {
  auto shaped = dyn_cast<ShapedType>(tile);
  if (!shaped || !shaped.hasStaticShape())
    return std::nullopt;
  return multiply(shaped.getShape());
}

LogicalResult checks::isValid(Operation *op, StringRef constraint, Value valid,
                              Type tile) {
  std::optional<int64_t> number = getConstant(valid), length = getLength(tile);
  if (!number || (*number >= 0 && (!length || *number <= *length)))
    return success();
  InFlightDiagnostic diagnostic =
      op->emitOpError() << constraint << ": " << *number << " valid elements";
  if (length)
    return diagnostic << " of a tile that has " << *length;
  return diagnostic << ": the number is negative";
}

std::optional<int64_t> checks::getExtent(Value valid, Type tile) {
  return valid ? getConstant(valid) : getLength(tile);
}

LogicalResult checks::isCellValue(Operation *op, StringRef constraint,
                                  Value value) {
  std::optional<int64_t> number = getConstant(value);
  if (!number || *number >= 0)
    return success();
  return op->emitOpError()
         << constraint << ": the value " << *number
         << " is negative; cells hold numbers from 0 to 2^63 - 1";
}

LogicalResult checks::isOrder(Operation *op, StringRef constraint,
                              MemoryOrder order, MemoryOrder strong) {
  if (order == MemoryOrder::Relaxed || order == strong)
    return success();
  return op->emitOpError() << constraint << ": the order is "
                           << stringifyMemoryOrder(strong)
                           << " or relaxed, not "
                           << stringifyMemoryOrder(order);
}

LogicalResult checks::isGin(Operation *op, StringRef contextConstraint,
                            StringRef fenceConstraint, GinAttr gin) {
  if (!gin)
    return success();
  if (gin.getContextId() < 0 ||
      gin.getContextId() > std::numeric_limits<int32_t>::max())
    return op->emitOpError()
           << contextConstraint
           << ": GIN contexts are numbered from 0 and fit 31 "
           << "bits; there is no context " << gin.getContextId();
  if (gin.getFence() != MemoryScope::Sys)
    return op->emitOpError()
           << fenceConstraint << ": a network adapter reads memory at system "
           << "scope; write fence = sys, not "
           << stringifyMemoryScope(gin.getFence());
  return success();
}

LogicalResult checks::isRegistered(Operation *op, StringRef constraint,
                                   GinAttr gin, Value memory, StringRef name) {
  if (!gin || memory.getDefiningOp<LocalOp>())
    return success();
  return op->emitOpError()
         << constraint << ": over GIN the " << name
         << " must be this rank's part of a window; take it with comms.local";
}

LogicalResult checks::isOutsideRole(Operation *op, StringRef constraint,
                                    BarrierExtent extent) {
  if (extent != BarrierExtent::Grid || !op->getParentOfType<RoleOp>())
    return success();
  return op->emitOpError()
         << constraint << ": a barrier over the grid waits for all blocks, but "
         << "only some run this role; use block, or move it out of the role";
}
