//===- Rows.cpp - Arrays of a collective as rows ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Rows.h"
#include "dialect/Teams.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::comms;

std::optional<int64_t> ArrayRows::getNumElements() const {
  int64_t elements;
  if (!isStatic() || __builtin_mul_overflow(rows, length, &elements))
    return std::nullopt;
  return elements;
}

std::optional<ArrayRows> mlir::comms::getArrayRows(Type type) {
  ArrayRef<int64_t> shape;
  ArrayRows array;
  if (auto window = dyn_cast<WindowType>(type)) {
    shape = window.getShape();
    array.elementType = window.getElementType();
  } else if (auto memref = dyn_cast<MemRefType>(type)) {
    shape = memref.getShape();
    array.elementType = memref.getElementType();
  }
  if (shape.empty())
    return std::nullopt;
  array.length = shape.back();
  for (int64_t dim : shape.drop_back()) {
    if (ShapedType::isDynamic(dim)) {
      array.rows = ShapedType::kDynamic;
      break;
    }
    if (__builtin_mul_overflow(array.rows, dim, &array.rows))
      return std::nullopt;
  }
  return array;
}

Movement mlir::comms::getRowFlow(CollectiveOpInterface op) {
  const CollectiveKind *kind = getCollectiveKind(op);
  assert(kind && "Collectives.def has every collective");
  return kind->movement;
}

Type mlir::comms::getReductionType(Type elementType) {
  MLIRContext *context = elementType.getContext();
  if (auto type = dyn_cast<FloatType>(elementType);
      type && type.getWidth() < 32)
    return Float32Type::get(context);
  if (elementType.isInteger(8))
    return IntegerType::get(context, 32);
  return elementType;
}

/// The tiles that travel. A region that is not yet verified may yield anything:
/// what is no tensor of rank 1 is left out.
static SmallVector<RankedTensorType> getWires(CollectiveOpInterface op,
                                              ArrayRef<ArrayRows> inputs) {
  SmallVector<RankedTensorType> wires;
  Region &produce = op.getProduce();
  if (produce.empty()) {
    for (const ArrayRows &input : inputs)
      wires.push_back(RankedTensorType::get({input.length}, input.elementType));
    return wires;
  }
  for (Type type : produce.front().getTerminator()->getOperandTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type))
      wires.push_back(tile);
  return wires;
}

/// Rows of the result for R rows of the inputs.
static std::optional<int64_t> getResultRows(int64_t rows, Movement flow,
                                            std::optional<int64_t> ranks) {
  if (ShapedType::isDynamic(rows))
    return std::nullopt;
  if (flow == Movement::Same || flow == Movement::Exchange)
    return rows;
  int64_t joined;
  if (!ranks || (flow == Movement::Cut && rows % *ranks != 0) ||
      __builtin_mul_overflow(rows, *ranks, &joined))
    return std::nullopt;
  return flow == Movement::Cut ? rows / *ranks : joined;
}

/// Reads an array with the row length of its tile in `consume`.
static void readWith(ArrayRows &array, Type tile,
                     std::optional<int64_t> resultRows) {
  auto type = dyn_cast<RankedTensorType>(tile);
  std::optional<int64_t> elements = array.getNumElements();
  if (!type || type.getRank() != 1 || type.getDimSize(0) < 1 || !elements ||
      !resultRows)
    return;
  int64_t length = type.getDimSize(0), all;
  if (__builtin_mul_overflow(length, *resultRows, &all))
    return;
  array.shared = *elements == length && *elements != all;
  if (*elements % length == 0) {
    array.rows = *elements / length;
    array.length = length;
  }
}

CollectiveRows mlir::comms::getCollectiveRows(CollectiveOpInterface op) {
  CollectiveRows all;
  all.flow = getRowFlow(op);
  all.ranks = getStaticTeamSize(op.getTeam());
  auto read = [](OperandRange arrays, SmallVector<ArrayRows> &rows) {
    for (Value array : arrays)
      rows.push_back(getArrayRows(array.getType()).value_or(ArrayRows()));
  };
  read(op.getInputs(), all.inputs);
  read(op.getOutputs(), all.outputs);
  read(op.getArgs(), all.args);
  if (!all.inputs.empty())
    all.resultRows = getResultRows(all.inputs[0].rows, all.flow, all.ranks);
  all.wires = getWires(op, all.inputs);
  for (RankedTensorType wire : all.wires)
    all.arrived.push_back(
        op.getReduction()
            ? RankedTensorType::get(wire.getShape(),
                                    getReductionType(wire.getElementType()))
            : wire);
  if (op.getConsume().empty())
    return all;
  Block &consume = op.getConsume().front();
  for (auto [array, tile] :
       llvm::zip(all.outputs, consume.getTerminator()->getOperandTypes()))
    readWith(array, tile, all.resultRows);
  size_t arrived =
      std::min<size_t>(all.arrived.size(), consume.getNumArguments());
  for (auto [array, argument] :
       llvm::zip(all.args, consume.getArguments().drop_front(arrived)))
    readWith(array, argument.getType(), all.resultRows);
  return all;
}

/// Whether one op of a region treats every element alone.
static bool isElementwise(Operation &op) {
  if (isa<YieldOp, SplatOp>(op))
    return true;
  Attribute value;
  if (matchPattern(&op, m_Constant(&value)))
    return !isa<ElementsAttr>(value) || isa<SplatElementsAttr>(value);
  return op.getNumRegions() == 0 && op.hasTrait<OpTrait::Elementwise>();
}

bool mlir::comms::isElementwise(Region &region) {
  if (region.empty())
    return true;
  std::optional<int64_t> length;
  auto agrees = [&](Type type) {
    auto tile = dyn_cast<ShapedType>(type);
    if (!tile)
      return true;
    if (!tile.hasRank() || tile.getRank() != 1)
      return false;
    if (!length)
      length = tile.getDimSize(0);
    return length == tile.getDimSize(0);
  };
  return llvm::all_of(region.getArgumentTypes(), agrees) &&
         llvm::all_of(region.getOps(), [&](Operation &op) {
           return ::isElementwise(op) &&
                  llvm::all_of(op.getOperandTypes(), agrees) &&
                  llvm::all_of(op.getResultTypes(), agrees);
         });
}
