//===- ContractOp.cpp - Matrix products -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/OpChecks.h"

#include <limits>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

/// Elements of a product's tile, at most.
static constexpr int64_t kMostElements = int64_t(1) << 20;

namespace {
/// A part of memory: where it begins, and how much of it is known to be used.
struct Part {
  StringRef name;
  Value memory, row, column;
  std::optional<int64_t> rows, columns;
};
} // namespace

static bool isF8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

/// C1: memory whose rows lie one behind the other.
static LogicalResult verifyMatrix(ContractOp op, const Part &part) {
  if (failed(verifyPlainMemory(op, "C1", part.memory.getType(), part.name)))
    return failure();
  auto type = cast<MemRefType>(part.memory.getType());
  if (type.getRank() >= 2 && type.hasStaticShape() && getElements(type))
    return success();
  return op.emitOpError() << "C1: the " << part.name << " is " << type
                          << "; a matrix has two dimensions or more, all of "
                             "them known";
}

/// C2 and C3.
static LogicalResult verifyElements(ContractOp op) {
  Type lhs = getElementType(op.getLhs().getType()),
       rhs = getElementType(op.getRhs().getType()),
       acc = getElementType(op.getAcc().getType());
  bool alike = lhs == rhs && (lhs.isBF16() || lhs.isF16() || lhs.isF32());
  if (!alike && !(isF8(lhs) && isF8(rhs)))
    return op.emitOpError()
           << "C2: a product of elements of " << lhs << " and " << rhs
           << "; both are bf16, f16 or f32, or each f8E4M3FN or f8E5M2";
  if (acc.isF32() || acc.isBF16() || acc.isF16())
    return success();
  return op.emitOpError() << "C3: the product has elements of " << acc
                          << "; store it as f32, bf16 or f16";
}

/// C4 and C5.
static LogicalResult verifyTile(ContractOp op) {
  ArrayRef<int64_t> tile = op.getTile();
  if (tile.size() != 2 || tile[0] < 1 || tile[1] < 1 ||
      tile[0] > kMostElements / tile[1])
    return op.emitOpError() << "C4: the tile is [" << tile
                            << "]; give its rows and columns, of at most "
                            << kMostElements << " elements";
  std::pair<Value, int64_t> limits[] = {
      {op.getRows(), tile[0]},
      {op.getColumns(), tile[1]},
      {op.getDepth(), std::numeric_limits<int64_t>::max()}};
  StringRef names[] = {"rows", "columns", "depth"};
  for (auto [name, limit] : llvm::zip_equal(names, limits)) {
    std::optional<int64_t> count = getConstant(limit.first);
    if (!count || (*count >= 0 && *count <= limit.second))
      continue;
    InFlightDiagnostic error = op.emitOpError()
                               << "C5: `" << name << "` is " << *count;
    if (*count < 0)
      return error << "; it has to be at least 0";
    return error << " of a tile that has " << limit.second;
  }
  return success();
}

/// C6: what constants tell of a part lies in its memory.
static LogicalResult verifyPlace(ContractOp op, const Part &part) {
  auto type = cast<MemRefType>(part.memory.getType());
  int64_t columns = type.getShape().back();
  int64_t rows = columns ? *getElements(type) / columns : 0;
  return success(
      succeeded(inRange(op, "C6", (part.name + ", counted by rows").str(),
                        part.row, part.rows, rows)) &&
      succeeded(inRange(op, "C6", (part.name + ", counted by columns").str(),
                        part.column, part.columns, columns)));
}

LogicalResult ContractOp::verify() {
  if (failed(verifyTile(*this)))
    return failure();
  auto extent = [&](Value count, int64_t all) {
    return count ? getConstant(count) : std::optional<int64_t>(all);
  };
  std::optional<int64_t> rows = extent(getRows(), getTileRows()),
                         columns = extent(getColumns(), getTileColumns()),
                         depth = getConstant(getDepth());
  Part lhs{"left operand", getLhs(), getLhsRow(), getLhsColumn(), rows, depth};
  Part rhs{"right operand", getRhs(), getRhsRow(),
           getRhsColumn(),  depth,    columns};
  Part acc{"product", getAcc(), getAccRow(), getAccColumn(), rows, columns};
  if (getTransposeLhs())
    std::swap(lhs.rows, lhs.columns);
  if (getTransposeRhs())
    std::swap(rhs.rows, rhs.columns);
  for (const Part &part : {lhs, rhs, acc})
    if (failed(verifyMatrix(*this, part)))
      return failure();
  if (failed(verifyElements(*this)))
    return failure();
  for (const Part &part : {lhs, rhs, acc})
    if (failed(verifyPlace(*this, part)))
      return failure();
  if (getAcc() == getLhs() || getAcc() == getRhs())
    return emitOpError("C7: the product is stored in the memory of an operand; "
                       "give it memory of its own");
  return success();
}
