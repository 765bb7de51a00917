//===- ContractOp.cpp - Matrix products -------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Directives.h"
#include "dialect/OpChecks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

/// Elements of a product's tile, at most.
static constexpr int64_t kMostElements = int64_t(1) << 20;
/// Code for each addend of each element is unrolled.
static constexpr size_t kMostAddends = 64;

//===----------------------------------------------------------------------===//
// Addends in the assembly format
//===----------------------------------------------------------------------===//

ParseResult mlir::comms::parseAddends(OpAsmParser &parser,
                                      UnresolvedOperands &addends,
                                      UnresolvedOperands &rows,
                                      UnresolvedOperands &columns) {
  if (parser.parseOptionalKeyword("plus"))
    return success();
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    return failure(
        parser.parseOperand(addends.emplace_back()) || parser.parseLSquare() ||
        parser.parseOperand(rows.emplace_back()) || parser.parseComma() ||
        parser.parseOperand(columns.emplace_back()) || parser.parseRSquare());
  });
}

void mlir::comms::printAddends(OpAsmPrinter &printer, Operation *,
                               OperandRange addends, OperandRange rows,
                               OperandRange columns) {
  if (addends.empty())
    return;
  printer << "plus ";
  llvm::interleaveComma(
      llvm::zip_equal(addends, rows, columns), printer, [&](auto part) {
        auto [memory, row, column] = part;
        printer << memory << '[' << row << ", " << column << ']';
      });
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

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

static bool isStored(Type type) {
  return type.isF32() || type.isBF16() || type.isF16();
}

/// C2, C3 and C8.
static LogicalResult verifyElements(ContractOp op) {
  Type lhs = getElementType(op.getLhs().getType()),
       rhs = getElementType(op.getRhs().getType()),
       acc = getElementType(op.getAcc().getType());
  bool alike = lhs == rhs && (lhs.isBF16() || lhs.isF16() || lhs.isF32());
  if (!alike && !(isF8(lhs) && isF8(rhs)))
    return op.emitOpError()
           << "C2: a product of elements of " << lhs << " and " << rhs
           << "; both are bf16, f16 or f32, or each f8E4M3FN or f8E5M2";
  if (!isStored(acc))
    return op.emitOpError() << "C3: the product has elements of " << acc
                            << "; store it as f32, bf16 or f16";
  for (Value addend : op.getAddends())
    if (Type type = getElementType(addend.getType()); !isStored(type))
      return op.emitOpError() << "C8: an addend has elements of " << type
                              << "; they are f32, bf16 or f16";
  return success();
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
      return error << "; it must be at least 0";
    return error << " of a tile that has " << limit.second;
  }
  return success();
}

namespace {
/// How many rows, and how many columns, memory of static shape has.
struct Extents {
  explicit Extents(Value memory, bool termsAreRows) {
    ArrayRef<int64_t> shape = cast<MemRefType>(memory.getType()).getShape();
    across = shape.back();
    for (int64_t size : shape.drop_back())
      terms *= size;
    if (!termsAreRows)
      std::swap(across, terms);
  }
  int64_t across, terms = 1;
};
} // namespace

/// C6: what constants tell of a part lies in its memory.
static LogicalResult verifyPlace(ContractOp op, const Part &part) {
  Extents extents(part.memory, /*termsAreRows=*/true);
  return success(
      succeeded(inRange(op, "C6", (part.name + ", counted by rows").str(),
                        part.row, part.rows, extents.terms)) &&
      succeeded(inRange(op, "C6", (part.name + ", counted by columns").str(),
                        part.column, part.columns, extents.across)));
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

namespace {
/// An operand and its scales, by their rows and columns in memory.
struct Scaled {
  Scaled(ContractOp op, bool isLhs)
      : name(isLhs ? "left operand" : "right operand"),
        across(isLhs ? "rows" : "columns"),
        operand(isLhs ? op.getLhs() : op.getRhs()),
        scales(isLhs ? op.getLhsScales() : op.getRhsScales()),
        termsAreRows(isLhs ? op.getTransposeLhs() : !op.getTransposeRhs()) {}

  StringRef name, across;
  Value operand, scales;
  bool termsAreRows;
};

} // namespace

static int64_t getBlocks(int64_t count) {
  return llvm::divideCeil(count, OperandScales::kBlock);
}

/// How many of `count` share one of so many scales; nullopt: the number of
/// scales is wrong.
static std::optional<int64_t> getSharing(int64_t count, int64_t scales,
                                         bool mayBeEach) {
  if (scales == 1)
    return 0;
  if (scales < 1)
    return std::nullopt;
  if (mayBeEach && scales == count)
    return 1;
  if (scales == getBlocks(count))
    return OperandScales::kBlock;
  return std::nullopt;
}

OperandScales ContractOp::getScales(bool isLhs) {
  Scaled scaled(*this, isLhs);
  OperandScales result;
  result.memory = scaled.scales;
  result.termsAreRows = scaled.termsAreRows;
  result.firstTerm = isLhs ? getLhsRow() : getRhsRow();
  result.firstAcross = isLhs ? getLhsColumn() : getRhsColumn();
  if (!result.termsAreRows)
    std::swap(result.firstTerm, result.firstAcross);
  if (!result.memory)
    return result;
  Extents all(scaled.operand, scaled.termsAreRows),
      given(scaled.scales, scaled.termsAreRows);
  result.across = getSharing(all.across, given.across, true).value_or(0);
  result.terms = getSharing(all.terms, given.terms, false).value_or(0);
  return result;
}

bool ContractOp::hasBlockScales() {
  return getScales(true).terms > 0 || getScales(false).terms > 0;
}

/// `1, 2 or 160`, of numbers of which some may be the same.
static std::string listCounts(std::initializer_list<int64_t> counts) {
  SmallVector<std::string> shown;
  for (int64_t count : counts)
    if (std::string text = std::to_string(count);
        count > 0 && !llvm::is_contained(shown, text))
      shown.push_back(text);
  std::string last = shown.pop_back_val();
  return shown.empty() ? last : llvm::join(shown, ", ") + " or " + last;
}

/// C10 and C11.
static LogicalResult verifyScalesOf(ContractOp op, bool isLhs) {
  Scaled scaled(op, isLhs);
  Extents all(scaled.operand, scaled.termsAreRows),
      given(scaled.scales, scaled.termsAreRows);
  std::optional<int64_t> terms = getSharing(all.terms, given.terms, false);
  if (!terms || !getSharing(all.across, given.across, true))
    return op.emitOpError()
           << "C10: the scales of the " << scaled.name << " are "
           << scaled.scales.getType() << ", of " << scaled.operand.getType()
           << "; give " << listCounts({1, getBlocks(all.terms)})
           << " along its terms, and "
           << listCounts({1, getBlocks(all.across), all.across})
           << " along its " << scaled.across;
  std::optional<int64_t> first = getConstant(op.getScales(isLhs).firstTerm);
  if (*terms > 0 && first && *first % OperandScales::kBlock != 0)
    return op.emitOpError()
           << "C11: the " << scaled.name << " begins with term " << *first
           << ", within a block of scales; begin with a multiple of "
           << OperandScales::kBlock;
  return success();
}

/// C9 to C11.
static LogicalResult verifyScales(ContractOp op) {
  if (!op.getLhsScales() && !op.getRhsScales())
    return success();
  if (!op.getLhsScales() || !op.getRhsScales())
    return op.emitOpError()
           << "C9: only the " << (op.getLhsScales() ? "left" : "right")
           << " operand has scales; give those of both, or "
              "one of 1.0 for an operand without";
  Type element = getElementType(op.getLhs().getType());
  if (!isF8(element))
    return op.emitOpError() << "C9: scales of a product of elements of "
                            << element << "; operands of fp8 have scales";
  for (bool isLhs : {true, false}) {
    Scaled scaled(op, isLhs);
    std::string name = ("scale matrix of the " + scaled.name).str();
    if (failed(verifyMatrix(op, {name, scaled.scales, {}, {}, {}, {}})))
      return failure();
    if (Type type = getElementType(scaled.scales.getType()); !type.isF32())
      return op.emitOpError() << "C9: the " << name << " has elements of "
                              << type << "; they are f32";
    if (failed(verifyScalesOf(op, isLhs)))
      return failure();
  }
  return success();
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
  SmallVector<Part> parts{lhs, rhs, acc};
  if (getAddends().size() > kMostAddends)
    return emitOpError() << "C8: there are " << getAddends().size()
                         << " addends; give at most " << kMostAddends;
  if (getAddendRows().size() != getAddends().size() ||
      getAddendColumns().size() != getAddends().size())
    return emitOpError("C8: an addend has one row and one column");
  for (auto [memory, row, column] :
       llvm::zip_equal(getAddends(), getAddendRows(), getAddendColumns()))
    parts.push_back({"addend", memory, row, column, rows, columns});
  for (const Part &part : parts)
    if (failed(verifyMatrix(*this, part)))
      return failure();
  if (failed(verifyElements(*this)))
    return failure();
  for (const Part &part : parts)
    if (failed(verifyPlace(*this, part)))
      return failure();
  if (getAcc() == getLhs() || getAcc() == getRhs() ||
      getAcc() == getLhsScales() || getAcc() == getRhsScales() ||
      llvm::is_contained(getAddends(), getAcc()))
    return emitOpError("C7: the product is stored in the memory of an operand; "
                       "give it memory of its own");
  return verifyScales(*this);
}
