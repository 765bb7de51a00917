//===- CollectiveOps.cpp - Whole collectives --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/Directives.h"
#include "dialect/Rows.h"
#include "dialect/Teams.h"
#include "dialect/TileCuts.h"
#include "dialect/Verify.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// Regions in the assembly format
//===----------------------------------------------------------------------===//

/// Parses `keyword(%a: type, …) { … }` when `keyword` is there.
static ParseResult parseTileRegion(OpAsmParser &parser, StringRef keyword,
                                   Region &region) {
  if (parser.parseOptionalKeyword(keyword))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseRegion(region, arguments))
    return failure();
  if (region.empty())
    return parser.emitError(parser.getNameLoc())
           << "'" << keyword << "' has an empty region";
  return success();
}

static void printTileRegion(OpAsmPrinter &printer, StringRef keyword,
                            Region &region) {
  if (region.empty())
    return;
  printer << keyword << '(';
  llvm::interleaveComma(
      region.getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

ParseResult mlir::comms::parseTileRegions(OpAsmParser &parser, Region &produce,
                                          Region &consume) {
  return failure(parseTileRegion(parser, "produce", produce) ||
                 parseTileRegion(parser, "consume", consume));
}

void mlir::comms::printTileRegions(OpAsmPrinter &printer, Operation *op,
                                   Region &produce, Region &consume) {
  printTileRegion(printer, "produce", produce);
  if (!produce.empty() && !consume.empty())
    printer << ' ';
  printTileRegion(printer, "consume", consume);
}

//===----------------------------------------------------------------------===//
// What the interface asks for
//===----------------------------------------------------------------------===//

std::optional<ReductionKind> AllReduceOp::getReduction() { return getKind(); }
std::optional<ReductionKind> ReduceScatterOp::getReduction() {
  return getKind();
}
std::optional<ReductionKind> ReduceOp::getReduction() { return getKind(); }
std::optional<int64_t> ReduceOp::getRootRank() { return getRoot(); }
std::optional<int64_t> BroadcastOp::getRootRank() { return getRoot(); }
std::optional<int64_t> GatherOp::getRootRank() { return getRoot(); }
std::optional<int64_t> ScatterOp::getRootRank() { return getRoot(); }

//===----------------------------------------------------------------------===//
// Numbers of constraints
//===----------------------------------------------------------------------===//

/// Rules that some collectives have. C1 to C12 are common to all; these follow,
/// in this order, as far as they apply.
enum class Rule { Kind, Root, Parts, Pieces };

/// Whether parts, one a rank, are cut from the inputs.
static bool cutsInputs(CollectiveOpInterface op) {
  Movement flow = getRowFlow(op);
  return flow == Movement::Cut || flow == Movement::Exchange;
}

/// The number in docs/Spec.md that a rule has for this op.
static std::string getRule(CollectiveOpInterface op, Rule rule) {
  bool kind = op.getReduction().has_value(),
       root = op.getRootRank().has_value();
  bool cuts = cutsInputs(op);
  unsigned number = 13;
  for (auto [each, applies] :
       {std::pair(Rule::Kind, kind), std::pair(Rule::Root, root),
        std::pair(Rule::Parts, cuts), std::pair(Rule::Pieces, cuts)}) {
    if (each == rule)
      break;
    number += applies;
  }
  return "C" + std::to_string(number);
}

//===----------------------------------------------------------------------===//
// Rules of arrays
//===----------------------------------------------------------------------===//

/// An array that a collective can cut into rows.
static LogicalResult verifyArray(Operation *op, StringRef constraint, Type type,
                                 StringRef name) {
  if (failed(verifyPlainMemory(op, constraint, type, name)))
    return failure();
  std::optional<ArrayRows> rows = getArrayRows(type);
  if (!rows || !isStorable(rows->elementType) ||
      (rows->isStatic() && !rows->getNumElements()))
    return op->emitOpError()
           << constraint << ": the " << name << " is " << type
           << "; arrays have rank 1 or more and fewer than 2^63 elements, "
              "floats or signless integers of 8 to 64 bits";
  return success();
}

static LogicalResult verifyArrays(Operation *op, StringRef constraint,
                                  OperandRange arrays, StringRef name) {
  for (Value array : arrays)
    if (failed(verifyArray(op, constraint, array.getType(), name)))
      return failure();
  return success();
}

/// Whether two numbers agree, as far as they are known.
static bool agree(int64_t lhs, int64_t rhs) {
  return lhs == rhs || ShapedType::isDynamic(lhs) || ShapedType::isDynamic(rhs);
}

static bool isOfRankOne(Type array) {
  auto window = dyn_cast<WindowType>(array);
  return (window ? window.getShape().size()
                 : cast<MemRefType>(array).getRank()) == 1;
}

/// Whether `produce` reads an input other than the first: a row of any length
/// for each row of the first, or, of rank 1, one that all rows share.
static bool isReadBeside(Type input, Type first) {
  return agree(getArrayRows(input)->rows, getArrayRows(first)->rows) ||
         (isOfRankOne(input) && !isOfRankOne(first));
}

static LogicalResult verifySameRows(CollectiveOpInterface op) {
  Type first = op.getInputs().front().getType();
  int64_t length = getArrayRows(first)->length;
  bool produces = !op.getProduce().empty();
  for (Value input : op.getInputs().drop_front()) {
    ArrayRows rows = *getArrayRows(input.getType());
    if (produces ? isReadBeside(input.getType(), first)
                 : agree(rows.rows, getArrayRows(first)->rows) &&
                       agree(rows.length, length))
      continue;
    return op->emitOpError() << "C4: inputs " << first << " and "
                             << input.getType() << " differ in their rows";
  }
  return success();
}

/// Parts, one a rank, are whole rows; of an array of rank 1, whole elements.
static LogicalResult verifyParts(Operation *op, StringRef constraint,
                                 Type input, Movement flow,
                                 std::optional<int64_t> ranks) {
  if (!ranks || (flow != Movement::Cut && flow != Movement::Exchange))
    return success();
  ArrayRows rows = *getArrayRows(input);
  bool flat = isOfRankOne(input);
  int64_t count = flat ? rows.length : rows.rows;
  if (ShapedType::isDynamic(count) || count % *ranks == 0)
    return success();
  return op->emitOpError() << constraint << ": " << count
                           << (flat ? " elements" : " rows")
                           << " cannot be cut into " << *ranks
                           << " equal parts, one a rank; pad the input";
}

static LogicalResult verifyRank(Operation *op, StringRef constraint,
                                StringRef name, int64_t rank,
                                std::optional<int64_t> ranks) {
  if (rank >= 0 && (!ranks || rank < *ranks))
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << constraint << ": " << name << " " << rank
                             << " is not a rank of the team";
  if (ranks)
    error << ", which has " << *ranks;
  return error;
}

static LogicalResult verifyCollective(CollectiveOpInterface op) {
  if (failed(verifyTopLevel(op, "C1")))
    return failure();
  if (op.getInputs().empty() || op.getOutputs().empty())
    return op->emitOpError("C2: must have at least one input and one output");
  if (failed(verifyArrays(op, "C3", op.getInputs(), "input")) ||
      failed(verifyArrays(op, "C3", op.getOutputs(), "output")) ||
      failed(verifyArrays(op, "C3", op.getArgs(), "arg")) ||
      failed(verifySameRows(op)))
    return failure();
  std::optional<int64_t> ranks = getStaticTeamSize(op.getTeam());
  if (failed(verifyParts(op, getRule(op, Rule::Parts),
                         op.getInputs().front().getType(), getRowFlow(op),
                         ranks)))
    return failure();
  std::optional<int64_t> root = op.getRootRank();
  return root ? verifyRank(op, getRule(op, Rule::Root), "root", *root, ranks)
              : success();
}

//===----------------------------------------------------------------------===//
// Rules of regions
//===----------------------------------------------------------------------===//

/// Tiles of rank 1, and scalars.
static bool isTileOrScalar(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getRank() == 1 && !tensor.getEncoding() &&
           (tensor.getElementType().isIntOrIndexOrFloat());
  return type.isIntOrIndexOrFloat();
}

/// Whether an op may stand in a region: arithmetic on tiles, nothing that reads
/// or writes memory, branches or loops.
static bool isTileArithmetic(Operation &op) {
  if (op.getNumRegions() != 0 || op.getNumSuccessors() != 0 ||
      !llvm::all_of(op.getOperandTypes(), isTileOrScalar) ||
      !llvm::all_of(op.getResultTypes(), isTileOrScalar))
    return false;
  if (isa<RowReduceOp, SplatOp, BroadcastRowOp, IotaOp, MathOp>(op) ||
      op.hasTrait<OpTrait::ConstantLike>())
    return true;
  if (isTileCut(&op))
    return whyNotCut(&op).empty();
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return extract.getTensor().getType().getDimSize(0) == 1;
  StringRef dialect = op.getName().getDialectNamespace();
  return op.hasTrait<OpTrait::Elementwise>() &&
         (dialect == "arith" || dialect == "math");
}

/// Reports a fault in a region at the collective, with a note at the op.
static LogicalResult verifyArithmetic(CollectiveOpInterface op, Region &region,
                                      StringRef name) {
  for (Operation &inner : region.front().without_terminator())
    if (!isTileArithmetic(inner)) {
      InFlightDiagnostic error =
          op->emitOpError()
          << "C12: '" << name
          << "' has an op that is not arithmetic on "
             "tiles; regions hold arith and math on tiles of rank 1 and "
             "scalars, constants, comms.row_reduce, splat, broadcast_row "
             "and iota, tensor.extract from a tile of one, and "
             "tensor.extract_slice and concat of constant lengths";
      Diagnostic &note = error.attachNote(inner.getLoc());
      note << "the op is " << inner.getName();
      if (isTileCut(&inner))
        note << ", which " << whyNotCut(&inner);
      return error;
    }
  for (Operation &inner : region.front())
    for (Value operand : inner.getOperands()) {
      Operation *source = operand.getDefiningOp();
      bool constant = source && source->hasTrait<OpTrait::ConstantLike>();
      if (operand.getParentRegion() == &region || constant)
        continue;
      InFlightDiagnostic error = op->emitOpError()
                                 << "C12: '" << name
                                 << "' uses a value from outside; pass an "
                                    "array in args instead";
      error.attachNote(inner.getLoc()) << "it is used here";
      return error;
    }
  return success();
}

/// The region is one block that ends in comms.yield; nothing is yet known of
/// its arguments.
static LogicalResult verifyBlock(CollectiveOpInterface op, StringRef constraint,
                                 Region &region, StringRef name) {
  if (region.hasOneBlock() && !region.front().empty() &&
      isa<YieldOp>(region.front().back()))
    return success();
  return op->emitOpError() << constraint << ": '" << name
                           << "' is one block that ends in comms.yield";
}

/// Argument `index` of a region is a tile of `elementType` and, when both are
/// known, of `length` elements.
static LogicalResult verifyTile(CollectiveOpInterface op, StringRef constraint,
                                StringRef name, unsigned index, Type type,
                                int64_t length, Type elementType) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (tile && tile.getRank() == 1 && tile.getElementType() == elementType &&
      agree(tile.getDimSize(0), length))
    return success();
  return op->emitOpError() << constraint << ": " << name << " " << index
                           << " is " << type << "; it must be "
                           << RankedTensorType::get({length}, elementType);
}

/// Tiles that travel or are stored: tensors of rank 1 of elements that memory
/// can hold.
static LogicalResult verifyYield(CollectiveOpInterface op, StringRef constraint,
                                 Region &region, StringRef name) {
  for (Type type : region.front().getTerminator()->getOperandTypes()) {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile || tile.getRank() != 1 || tile.getDimSize(0) == 0 ||
        !isStorable(tile.getElementType()))
      return op->emitOpError()
             << constraint << ": '" << name << "' yields " << type
             << "; a tile is a tensor of rank 1 of at least one float or "
                "signless integer of 8 to 64 bits";
  }
  return success();
}

static LogicalResult verifyProduce(CollectiveOpInterface op,
                                   ArrayRef<ArrayRows> inputs) {
  Region &region = op.getProduce();
  if (region.empty())
    return success();
  if (failed(verifyBlock(op, "C5", region, "produce")))
    return failure();
  if (region.getNumArguments() != inputs.size())
    return op->emitOpError() << "C5: 'produce' has " << region.getNumArguments()
                             << " arguments for " << inputs.size() << " inputs";
  for (auto [index, type] : llvm::enumerate(region.getArgumentTypes()))
    if (failed(verifyTile(op, "C5", "'produce' argument", index, type,
                          inputs[index].length, inputs[index].elementType)))
      return failure();
  if (region.front().getTerminator()->getNumOperands() == 0)
    return op->emitOpError(
        "C6: 'produce' must yield at least one tile to exchange");
  return failure(failed(verifyYield(op, "C6", region, "produce")) ||
                 failed(verifyArithmetic(op, region, "produce")));
}

static LogicalResult verifyReduction(CollectiveOpInterface op,
                                     const CollectiveRows &rows) {
  std::optional<ReductionKind> kind = op.getReduction();
  for (RankedTensorType wire : rows.wires)
    if (kind && !canCombine(*kind, wire.getElementType()))
      return op->emitOpError()
             << getRule(op, Rule::Kind) << ": " << stringifyReductionKind(*kind)
             << " of elements of " << wire.getElementType()
             << "; bitwise reductions need integers";
  return success();
}

/// Arguments of `consume`: what arrived, then one tile an arg.
static LogicalResult verifyConsumeArguments(CollectiveOpInterface op,
                                            const CollectiveRows &rows) {
  Region &region = op.getConsume();
  size_t arrived = rows.arrived.size(), wanted = arrived + rows.args.size();
  if (region.getNumArguments() != wanted)
    return op->emitOpError()
           << "C7: 'consume' has " << region.getNumArguments() << " arguments; "
           << arrived << (arrived == 1 ? " tile arrives" : " tiles arrive")
           << " and " << rows.args.size() << " rows of args (...) follow";
  for (auto [index, type] : llvm::enumerate(region.getArgumentTypes())) {
    auto given = dyn_cast<RankedTensorType>(type);
    bool isArg = index >= arrived;
    // The length of an arg's rows is what its tile says: C11 compares it.
    int64_t length = !isArg ? rows.arrived[index].getDimSize(0)
                     : given && given.getRank() == 1
                         ? given.getDimSize(0)
                         : rows.args[index - arrived].length;
    Type element = isArg ? rows.args[index - arrived].elementType
                         : rows.arrived[index].getElementType();
    if (failed(verifyTile(op, "C7", "'consume' argument", index, type, length,
                          element)))
      return failure();
  }
  return success();
}

/// One tile an output, of the output's element type.
static LogicalResult verifyConsumeResults(CollectiveOpInterface op,
                                          const CollectiveRows &rows) {
  Operation *yield = op.getConsume().front().getTerminator();
  if (yield->getNumOperands() != rows.outputs.size())
    return op->emitOpError()
           << "C8: 'consume' yields " << yield->getNumOperands()
           << " tiles for " << rows.outputs.size() << " outputs";
  if (failed(verifyYield(op, "C8", op.getConsume(), "consume")))
    return failure();
  for (auto [index, type] : llvm::enumerate(yield->getOperandTypes()))
    if (getElementTypeOrSelf(type) != rows.outputs[index].elementType)
      return op->emitOpError()
             << "C8: 'consume' yields " << type << " for output " << index
             << ", which has elements of " << rows.outputs[index].elementType;
  return success();
}

/// Without `consume`, what arrives is converted and stored.
static LogicalResult verifyPlainResults(CollectiveOpInterface op,
                                        const CollectiveRows &rows) {
  if (!rows.args.empty())
    return op->emitOpError("C9: args need a 'consume' region that reads them");
  if (rows.arrived.size() != rows.outputs.size())
    return op->emitOpError()
           << "C9: " << rows.arrived.size() << " tiles arrive for "
           << rows.outputs.size()
           << " outputs; give each its own, or write 'consume'";
  for (auto [tile, output] : llvm::zip_equal(rows.arrived, rows.outputs))
    if (isa<FloatType>(tile.getElementType()) !=
        isa<FloatType>(output.elementType))
      return op->emitOpError()
             << "C9: " << tile.getElementType() << " arrives for an output of "
             << output.elementType << "; convert it in 'consume'";
  return success();
}

/// Elements that tiles of `length` elements make in all: one for each row of
/// the result. Nothing when that is not known; -1 when it fits no array.
static std::optional<int64_t> countResult(const CollectiveRows &rows,
                                          int64_t length) {
  int64_t inputRows = rows.inputs[0].rows, elements;
  bool scaled = rows.flow == Movement::Cut || rows.flow == Movement::Join;
  if (ShapedType::isDynamic(inputRows) || ShapedType::isDynamic(length) ||
      (scaled && !rows.ranks))
    return std::nullopt;
  if (__builtin_mul_overflow(inputRows, length, &elements))
    return -1;
  if (rows.flow == Movement::Cut)
    return elements % *rows.ranks == 0 ? elements / *rows.ranks : -1;
  if (rows.flow == Movement::Join &&
      __builtin_mul_overflow(elements, *rows.ranks, &elements))
    return -1;
  return elements;
}

/// An arg of rank 1 goes with every row of the result, whatever its size. Where
/// the inputs are of rank 1 as well, rows do not matter.
static bool isAlwaysShared(CollectiveOpInterface op, Type arg) {
  return isOfRankOne(arg) &&
         !llvm::any_of(op.getInputs().getTypes(), isOfRankOne);
}

/// An arg of rank 1 holds the one tile that all rows share.
static LogicalResult verifySharedArg(CollectiveOpInterface op, Type type,
                                     int64_t length) {
  if (agree(getArrayRows(type)->length, length))
    return success();
  return op->emitOpError()
         << "C11: arg " << type
         << " has rank 1, so that all rows share it, but its tile in "
            "'consume' has "
         << length << " elements; give it the shape [rows, " << length
         << "] if each row has its own";
}

/// The array holds one tile of `length` for each row of the result; one tile in
/// all if it may be shared.
static LogicalResult verifySize(CollectiveOpInterface op, StringRef constraint,
                                StringRef name, const CollectiveRows &rows,
                                Type type, int64_t length, bool mayBeShared) {
  if (mayBeShared && isAlwaysShared(op, type))
    return verifySharedArg(op, type, length);
  std::optional<int64_t> wanted = countResult(rows, length);
  std::optional<int64_t> held = getArrayRows(type)->getNumElements();
  if (!wanted || !held || held == wanted || (mayBeShared && held == length))
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << constraint << ": " << name << " " << type
                             << " has " << *held << " elements; the result ";
  if (*wanted < 0)
    return error << "is not a whole number of rows of " << length;
  error << "has " << *wanted << ", in rows of " << length;
  if (mayBeShared)
    error << ", and one row that all share has " << length;
  return error;
}

static LogicalResult verifySizes(CollectiveOpInterface op,
                                 const CollectiveRows &rows) {
  Region &consume = op.getConsume();
  TypeRange tiles;
  if (!consume.empty())
    tiles = consume.front().getTerminator()->getOperandTypes();
  for (auto [index, output] : llvm::enumerate(op.getOutputs())) {
    int64_t length = consume.empty()
                         ? rows.arrived[index].getDimSize(0)
                         : cast<RankedTensorType>(tiles[index]).getDimSize(0);
    if (failed(verifySize(op, "C10", "output", rows, output.getType(), length,
                          false)))
      return failure();
  }
  for (auto [index, arg] : llvm::enumerate(op.getArgs())) {
    Type tile =
        consume.front().getArgument(rows.arrived.size() + index).getType();
    if (failed(verifySize(op, "C11", "arg", rows, arg.getType(),
                          cast<RankedTensorType>(tile).getDimSize(0), true)))
      return failure();
  }
  return success();
}

/// Parts of an array of rank 1 are pieces of its one row: no region may look at
/// the row as a whole.
static LogicalResult verifyPieces(CollectiveOpInterface op,
                                  const CollectiveRows &rows) {
  int64_t length = rows.inputs[0].length;
  if (!cutsInputs(op) || rows.ranks == 1 ||
      !isOfRankOne(op.getInputs().front().getType()))
    return success();
  bool sameLength = llvm::all_of(rows.wires, [&](RankedTensorType wire) {
    return agree(wire.getDimSize(0), length);
  });
  if (sameLength && isElementwise(op.getProduce()) &&
      isElementwise(op.getConsume()))
    return success();
  InFlightDiagnostic error =
      op->emitOpError()
      << getRule(op, Rule::Pieces)
      << ": cuts a row into parts, but a region needs the whole row; ";
  return error << "give the input one row or more for each rank";
}

static LogicalResult verifyCollectiveRegions(CollectiveOpInterface op) {
  SmallVector<ArrayRows> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(*getArrayRows(input.getType()));
  if (failed(verifyProduce(op, inputs)))
    return failure();
  bool consumes = !op.getConsume().empty();
  if (consumes && failed(verifyBlock(op, "C7", op.getConsume(), "consume")))
    return failure();
  CollectiveRows rows = getCollectiveRows(op);
  if (failed(verifyReduction(op, rows)))
    return failure();
  if (consumes ? failed(verifyConsumeArguments(op, rows)) ||
                     failed(verifyConsumeResults(op, rows)) ||
                     failed(verifyArithmetic(op, op.getConsume(), "consume"))
               : failed(verifyPlainResults(op, rows)))
    return failure();
  return failure(failed(verifySizes(op, rows)) ||
                 failed(verifyPieces(op, rows)));
}

LogicalResult AllReduceOp::verify() { return verifyCollective(*this); }
LogicalResult AllReduceOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}
LogicalResult ReduceScatterOp::verify() { return verifyCollective(*this); }
LogicalResult ReduceScatterOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}
LogicalResult AllGatherOp::verify() { return verifyCollective(*this); }
LogicalResult AllGatherOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}
LogicalResult AllToAllOp::verify() { return verifyCollective(*this); }
LogicalResult AllToAllOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}
LogicalResult BroadcastOp::verify() { return verifyCollective(*this); }
LogicalResult BroadcastOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}
LogicalResult ReduceOp::verify() { return verifyCollective(*this); }
LogicalResult ReduceOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}
LogicalResult GatherOp::verify() { return verifyCollective(*this); }
LogicalResult GatherOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}
LogicalResult ScatterOp::verify() { return verifyCollective(*this); }
LogicalResult ScatterOp::verifyRegions() {
  return verifyCollectiveRegions(*this);
}

//===----------------------------------------------------------------------===//
// all_to_all_v, send_recv
//===----------------------------------------------------------------------===//

/// Numbers of rows: an array of i32 with one element a rank.
static LogicalResult verifyCounts(AllToAllVOp op, Type type, StringRef name) {
  auto counts = dyn_cast<MemRefType>(type);
  std::optional<int64_t> ranks = getStaticTeamSize(op.getTeam());
  if (counts && counts.getRank() == 1 && counts.getLayout().isIdentity() &&
      counts.getElementType().isInteger(32) &&
      (!ranks || agree(counts.getDimSize(0), *ranks)))
    return success();
  InFlightDiagnostic error = op.emitOpError()
                             << "C3: " << name << " is " << type
                             << "; it must be an array of rank 1 of i32, one "
                                "for each rank of the team";
  if (ranks)
    error << ", which has " << *ranks;
  return error;
}

LogicalResult AllToAllVOp::verify() {
  Type input = getInput().getType(), output = getOutput().getType();
  if (failed(verifyTopLevel(*this, "C1")) ||
      failed(verifyArray(*this, "C2", input, "input")) ||
      failed(verifyArray(*this, "C2", output, "output")) ||
      failed(verifyCounts(*this, getSendRows().getType(), "send_rows")) ||
      failed(verifyCounts(*this, getRecvRows().getType(), "recv_rows")))
    return failure();
  ArrayRows from = *getArrayRows(input), to = *getArrayRows(output);
  if (from.elementType != to.elementType || !agree(from.length, to.length))
    return emitOpError()
           << "C4: input " << input << " and output " << output
           << " differ in the length of their rows or in their elements";
  int64_t most = getMaxRowsAttr().getInt();
  if (most < 1 || most > std::numeric_limits<int32_t>::max())
    return emitOpError() << "C5: max_rows is " << most
                         << "; it must be 1 to 2147483647";
  return success();
}

LogicalResult SendRecvOp::verify() {
  Type input = getInput().getType(), output = getOutput().getType();
  if (failed(verifyTopLevel(*this, "C1")) ||
      failed(verifyArray(*this, "C2", input, "input")) ||
      failed(verifyArray(*this, "C2", output, "output")))
    return failure();
  std::optional<int64_t> ranks = getStaticTeamSize(getTeam());
  if (failed(
          verifyRank(*this, "C3", "source", getSourceAttr().getInt(), ranks)) ||
      failed(verifyRank(*this, "C3", "destination", getDestAttr().getInt(),
                        ranks)))
    return failure();
  ArrayRows from = *getArrayRows(input), to = *getArrayRows(output);
  std::optional<int64_t> sent = from.getNumElements(),
                         stored = to.getNumElements();
  if (from.elementType != to.elementType || (sent && stored && sent != stored))
    return emitOpError()
           << "C4: input " << input << " and output " << output
           << " differ in their elements or in the number of them";
  return success();
}
