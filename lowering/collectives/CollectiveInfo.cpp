//===- CollectiveInfo.cpp - A collective in numbers -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/CollectiveInfo.h"

#include "dialect/Teams.h"
#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
using Combiner = Value (*)(OpBuilder &, Location, Value, Value);

/// The op that combines two elements; null if the reduction does not support
/// them.
struct ReductionRow {
  ReductionKind kind;
  Combiner floats, integers;
};
} // namespace

template <typename OpT>
static Value combine(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  return OpT::create(builder, loc, lhs, rhs);
}

// Averages are sums here: the division comes once, at the end.
static constexpr ReductionRow reductions[] = {
    {ReductionKind::Sum, combine<arith::AddFOp>, combine<arith::AddIOp>},
    {ReductionKind::Avg, combine<arith::AddFOp>, combine<arith::AddIOp>},
    {ReductionKind::Prod, combine<arith::MulFOp>, combine<arith::MulIOp>},
    {ReductionKind::Min, combine<arith::MinimumFOp>, combine<arith::MinSIOp>},
    {ReductionKind::Max, combine<arith::MaximumFOp>, combine<arith::MaxSIOp>},
    {ReductionKind::And, nullptr, combine<arith::AndIOp>},
    {ReductionKind::Or, nullptr, combine<arith::OrIOp>},
    {ReductionKind::Xor, nullptr, combine<arith::XOrIOp>},
};

static Combiner getCombiner(ReductionKind kind, Type elementType) {
  for (const ReductionRow &row : reductions)
    if (row.kind == kind)
      return isa<FloatType>(elementType) ? row.floats : row.integers;
  return nullptr;
}

bool mlir::comms::hasCombiner(ReductionKind kind, Type elementType) {
  return getCombiner(kind, elementType) != nullptr;
}

Value mlir::comms::combineTiles(OpBuilder &builder, Location loc,
                                ReductionKind kind, Value lhs, Value rhs) {
  return getCombiner(kind, getElementTypeOrSelf(lhs))(builder, loc, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

Type mlir::comms::getAccumulatorType(Type elementType) {
  if (auto type = dyn_cast<FloatType>(elementType);
      type && type.getWidth() < 32)
    return Float32Type::get(elementType.getContext());
  if (elementType.isInteger(8))
    return IntegerType::get(elementType.getContext(), 32);
  return elementType;
}

Type CollectiveInfo::getPartialType(Type elementType) const {
  if (isa<FloatType>(elementType))
    return elementType;
  bool narrow = !consume && reduction != ReductionKind::Avg &&
                llvm::all_of(outputs, [&](const TileArray &output) {
                  return output.elementType.getIntOrFloatBitWidth() <=
                         elementType.getIntOrFloatBitWidth();
                });
  return narrow ? elementType : getAccumulatorType(elementType);
}

bool mlir::comms::canConvert(Type from, Type to) {
  return (isa<FloatType>(from) && isa<FloatType>(to)) ||
         (isa<IntegerType>(from) && isa<IntegerType>(to));
}

Value mlir::comms::convertTile(OpBuilder &builder, Location loc, Value value,
                               Type to) {
  auto tile = cast<RankedTensorType>(value.getType());
  Type from = tile.getElementType();
  if (from == to)
    return value;
  Type type = tile.clone(to);
  unsigned have = from.getIntOrFloatBitWidth(),
           want = to.getIntOrFloatBitWidth();
  if (isa<IntegerType>(from))
    return have < want
               ? Value(arith::ExtSIOp::create(builder, loc, type, value))
               : Value(arith::TruncIOp::create(builder, loc, type, value));
  if (have < want)
    return arith::ExtFOp::create(builder, loc, type, value);
  // Two formats of one width (f16 and bf16) have f32 between them.
  if (have == want)
    value = convertTile(builder, loc, value, builder.getF32Type());
  return arith::TruncFOp::create(builder, loc, type, value);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Elements of the smallest flat tile: one vector.
static constexpr int64_t smallestTile = 16;

/// Bounds that keep products of sizes within 64 bits.
static constexpr int64_t maxRanks = int64_t(1) << 20, maxElements = int64_t(1)
                                                                    << 40;

/// Whether `a` times `b` is `product`; false when it does not fit 64 bits.
static bool isProduct(int64_t product, int64_t a, int64_t b) {
  int64_t result;
  return !__builtin_mul_overflow(a, b, &result) && result == product;
}

namespace {
/// An array as rows: `rows` of `length` elements.
struct Rows {
  int64_t rank = 0;
  int64_t rows = 1;
  int64_t length = 1;
  int64_t elements() const { return rows * length; }
};
} // namespace

/// Shape and element type of a window or memref.
static std::pair<ArrayRef<int64_t>, Type> getArrayShape(Value memory) {
  if (auto window = dyn_cast<WindowType>(memory.getType()))
    return {window.getShape(), window.getElementType()};
  if (auto memref = dyn_cast<MemRefType>(memory.getType()))
    return {memref.getShape(), memref.getElementType()};
  return {{}, Type()};
}

static FailureOr<Rows> getRows(Operation *op, Value memory) {
  auto [shape, elementType] = getArrayShape(memory);
  if (!elementType)
    return op->emitOpError(
        "has an array of unknown rank: give it a ranked type");
  int64_t elements = 1;
  for (int64_t size : shape)
    if (ShapedType::isDynamic(size))
      return op->emitOpError(
          "has an array with a dimension that is not known: specialize the "
          "kernel to its inputs first");
    else if (__builtin_mul_overflow(elements, size, &elements) ||
             elements > maxElements)
      return op->emitOpError("has an array of more than 2^40 elements");
  Rows rows;
  rows.rank = shape.size();
  if (!shape.empty())
    rows.length = shape.back();
  for (int64_t size : shape.drop_back(shape.empty() ? 0 : 1))
    rows.rows *= size;
  return rows;
}

int64_t CollectiveInfo::inputParts() const {
  return kind->movement == Movement::Cut || kind->movement == Movement::Exchange
             ? ranks
             : 1;
}

int64_t CollectiveInfo::outputParts() const {
  return kind->movement == Movement::Join ||
                 kind->movement == Movement::Exchange
             ? ranks
             : 1;
}

bool CollectiveInfo::storesToPeers() const {
  if (outputs.empty())
    return windows;
  return args.empty() && llvm::all_of(outputs, [](const TileArray &output) {
           return isa<WindowType>(output.memory.getType());
         });
}

double CollectiveInfo::partBytes() const {
  double bits = 0;
  for (const WireTile &wire : wires)
    bits += double(wire.elementType.getIntOrFloatBitWidth()) *
            double(flat ? partElements : wire.length * tiles);
  return bits / 8;
}

double CollectiveInfo::allBytes() const {
  bool fromOne = kind->direction == Direction::RootToAll ||
                 kind->direction == Direction::OneToOne;
  return fromOne ? partBytes() : partBytes() * double(ranks);
}

double CollectiveInfo::largestShare() const {
  double count = std::max<double>(
      1, flat ? llvm::divideCeil(partElements, smallestTile) : tiles);
  return std::ceil(count / double(ranks)) / count;
}

double CollectiveInfo::transfer(double copies, bool inStep) const {
  return copies * partBytes() * overhead / (inStep ? rateInStep : rate);
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Length of a tile type, or -1 when the type is none.
static int64_t getTileLength(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 1 && tile.hasStaticShape()
             ? tile.getDimSize(0)
             : -1;
}

/// Whether one element of every result depends on the same element of the
/// operands alone.
static bool isElementwise(Operation &op) {
  if (isa<YieldOp, SplatOp>(op))
    return true;
  Attribute value;
  if (matchPattern(&op, m_Constant(&value)))
    return !isa<ElementsAttr>(value) || isa<SplatElementsAttr>(value);
  return op.getNumRegions() == 0 && op.hasTrait<OpTrait::Elementwise>();
}

/// Whether `value`, which a region uses, is its own or a constant that has
/// moved out of it and is the same everywhere.
static bool isFlatOperand(Region *region, Value value) {
  Operation *op = value.getDefiningOp();
  return region->isAncestor(value.getParentRegion()) ||
         (op && isElementwise(*op));
}

/// Whether `region` treats each element alone, on tiles of one length.
static bool isFlatRegion(Region *region) {
  if (!region)
    return true;
  int64_t length = -1;
  auto agrees = [&](Type type) {
    int64_t tile = getTileLength(type);
    if (!isa<ShapedType>(type))
      return true;
    if (length < 0)
      length = tile;
    return tile >= 0 && tile == length;
  };
  Block &block = region->front();
  return llvm::all_of(block.getArgumentTypes(), agrees) &&
         llvm::all_of(block, [&](Operation &op) {
           return isElementwise(op) &&
                  llvm::all_of(op.getOperandTypes(), agrees) &&
                  llvm::all_of(op.getResultTypes(), agrees) &&
                  llvm::all_of(op.getOperands(), [&](Value value) {
                    return isFlatOperand(region, value);
                  });
         });
}

/// A region that there is, of one block that ends in a yield.
static FailureOr<Region *> getTileRegion(Operation *op, Region &region) {
  if (region.empty())
    return static_cast<Region *>(nullptr);
  if (!region.hasOneBlock() || region.front().empty() ||
      !isa<YieldOp>(region.front().back()))
    return op->emitOpError(
        "has a region that is not one block with a comms.yield");
  return &region;
}

//===----------------------------------------------------------------------===//
// Reading an op
//===----------------------------------------------------------------------===//

namespace {
/// Fills a CollectiveInfo from its op, and says at the op what does not fit.
class Reader {
public:
  explicit Reader(Operation *op) : op(op) {}

  FailureOr<CollectiveInfo> read() {
    problem.op = op;
    if (auto kernel = op->getParentOfType<KernelOp>())
      readNumbers(kernel);
    problem.kind = getCollectiveKind(op);
    if (!problem.kind)
      return op->emitOpError("is not a collective that can be expanded");
    if (failed(readOperands()) || failed(readTeam()) || failed(readShapes()) ||
        failed(readWires()) || failed(readReduction()))
      return failure();
    problem.flat = isFlat();
    if (failed(problem.flat ? setFlat() : setRows()) || failed(checkRegions()))
      return failure();
    return std::move(problem);
  }

private:
  void readNumbers(KernelOp kernel);
  LogicalResult readOperands();
  LogicalResult readTeam();
  LogicalResult checkRank(int64_t rank, StringRef what);
  LogicalResult checkRootArgument();
  LogicalResult readShapes();
  LogicalResult readWires();
  LogicalResult readReduction();
  bool isFlat();
  LogicalResult setFlat();
  LogicalResult setRows();
  LogicalResult setRowArray(TileArray &array, const Rows &rows, int64_t length,
                            int64_t resultRows, bool mayBeShared,
                            StringRef what);
  LogicalResult checkRegions();
  LogicalResult checkArguments(Region *region, ArrayRef<Type> elementTypes,
                               ArrayRef<int64_t> lengths, StringRef what);

  static void addArrays(SmallVector<TileArray> &arrays, ValueRange values) {
    for (Value value : values)
      arrays.push_back({value, getArrayShape(value).second});
  }

  Operation *op;
  CollectiveInfo problem;
  SmallVector<Rows> inputRows, outputRows, argRows;
};
} // namespace

static constexpr KernelNumber kernelNumbers[] = {
    {"round_bytes", &CollectiveInfo::roundBytes, 1},
    {"step_bytes", &CollectiveInfo::stepBytes, 0},
    {"step_fence", &CollectiveInfo::stepFence, 0},
    {"late_copies", &CollectiveInfo::lateCopies, 0},
    {"held_tiles", &CollectiveInfo::heldTiles, 0},
    {"batch_loads", &CollectiveInfo::batchLoads, 0},
    {"run_time_extent", &CollectiveInfo::extentStep, 1},
};

ArrayRef<KernelNumber> mlir::comms::getKernelNumbers() { return kernelNumbers; }

void Reader::readNumbers(KernelOp kernel) {
  for (const KernelNumber &number : kernelNumbers)
    if (auto value =
            kernel->getAttrOfType<IntegerAttr>(("comms." + number.name).str()))
      problem.*number.field =
          std::max(value.getValue().trySExtValue().value_or(0), number.least);
}

LogicalResult Reader::readOperands() {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    problem.team = collective.getTeam();
    addArrays(problem.inputs, collective.getInputs());
    addArrays(problem.outputs, collective.getOutputs());
    addArrays(problem.args, collective.getArgs());
    problem.reduction = collective.getReduction();
    problem.root = collective.getRootRank().value_or(0);
    if (collective.getRootRank())
      problem.rootArgument = findRootArgument(op->getParentOfType<KernelOp>());
    FailureOr<Region *> produce = getTileRegion(op, collective.getProduce());
    FailureOr<Region *> consume = getTileRegion(op, collective.getConsume());
    if (failed(produce) || failed(consume))
      return failure();
    problem.produce = *produce;
    problem.consume = *consume;
  } else if (auto exchange = dyn_cast<AllToAllVOp>(op)) {
    problem.team = exchange.getTeam();
    addArrays(problem.inputs, exchange.getInput());
    addArrays(problem.outputs, exchange.getOutput());
    problem.sendRows = exchange.getSendRows();
    problem.recvRows = exchange.getRecvRows();
  } else if (auto pair = dyn_cast<SendRecvOp>(op)) {
    problem.team = pair.getTeam();
    addArrays(problem.inputs, pair.getInput());
    addArrays(problem.outputs, pair.getOutput());
    problem.root = pair.getSource();
    problem.dest = pair.getDest();
  }
  if (problem.inputs.empty())
    return op->emitOpError("has no input to exchange");
  return success();
}

LogicalResult Reader::checkRank(int64_t rank, StringRef what) {
  if (rank >= 0 && rank < problem.ranks)
    return success();
  return op->emitOpError() << what << " " << rank
                           << " is not a rank of its team, which has "
                           << problem.ranks;
}

/// The checker follows every rank of the world as the root.
LogicalResult Reader::checkRootArgument() {
  if (!problem.rootArgument.getType().isIndex())
    return op->emitOpError("takes its root from an argument of type ")
           << problem.rootArgument.getType()
           << ": comms.run_time_root must be on an argument of type index";
  auto kernel = op->getParentOfType<KernelOp>();
  if (problem.ranks == static_cast<int64_t>(kernel.getRanks().value_or(0)))
    return success();
  return op->emitOpError("takes its root at run time in a team of ")
         << problem.ranks
         << " ranks: comms.run_time_root needs the team of all ranks "
            "(comms.team world)";
}

LogicalResult Reader::readTeam() {
  std::optional<int64_t> size = getStaticTeamSize(problem.team);
  if (!size)
    return op->emitOpError("has a team whose size is not known: give the "
                           "kernel 'ranks', or the pass or pipeline its option "
                           "ranks=4 (comms-translate: --gpu=\"ranks=4\"), make "
                           "teams by comms.team and comms.team_split, and let "
                           "factors divide");
  if (*size > maxRanks)
    return op->emitOpError("has a team of ")
           << *size << " ranks: " << maxRanks << " are the most";
  problem.ranks = *size;
  if (problem.rootArgument && failed(checkRootArgument()))
    return failure();
  bool oneToOne = problem.kind->direction == Direction::OneToOne;
  if (failed(checkRank(problem.root, oneToOne ? "source" : "root")) ||
      failed(checkRank(problem.dest, "destination")))
    return failure();
  return success();
}

LogicalResult Reader::readShapes() {
  auto readAll = [&](ArrayRef<TileArray> arrays,
                     SmallVector<Rows> &rows) -> LogicalResult {
    for (const TileArray &array : arrays) {
      FailureOr<Rows> one = getRows(op, array.memory);
      if (failed(one))
        return failure();
      rows.push_back(*one);
    }
    return success();
  };
  if (failed(readAll(problem.inputs, inputRows)) ||
      failed(readAll(problem.outputs, outputRows)) ||
      failed(readAll(problem.args, argRows)))
    return failure();
  const Rows &first = inputRows[0];
  for (const Rows &rows : inputRows) {
    bool isShared = rows.rank == 1 && first.rank > 1;
    if (problem.produce
            ? rows.rows != first.rows && !isShared
            : rows.rows != first.rows || rows.length != first.length)
      return op->emitOpError("has inputs of different shapes");
  }
  int64_t parts = problem.inputParts();
  int64_t divided = first.rank <= 1 ? first.length : first.rows;
  if (divided % parts)
    return op->emitOpError("cannot cut ")
           << divided << (first.rank <= 1 ? " elements" : " rows") << " into "
           << parts << " equal parts, one a rank: pad the input";
  problem.partElements = first.elements() / parts;
  return success();
}

LogicalResult Reader::readWires() {
  if (!problem.produce) {
    for (auto [array, rows] : llvm::zip_equal(problem.inputs, inputRows))
      problem.wires.push_back({array.elementType, rows.length});
    return success();
  }
  for (Type type :
       problem.produce->front().getTerminator()->getOperandTypes()) {
    if (getTileLength(type) <= 0)
      return op->emitOpError("produce yields ")
             << type << ": a wire tile is a tensor of rank 1";
    problem.wires.push_back(
        {cast<ShapedType>(type).getElementType(), getTileLength(type)});
  }
  if (problem.wires.empty())
    return op->emitOpError("produce must yield at least one tile to exchange");
  return success();
}

LogicalResult Reader::readReduction() {
  if (!problem.reduction)
    return success();
  for (const WireTile &wire : problem.wires)
    if (!hasCombiner(*problem.reduction, wire.elementType))
      return op->emitOpError("cannot combine ")
             << wire.elementType << " by '"
             << stringifyReductionKind(*problem.reduction)
             << "': use integers, or another reduction";
  return success();
}

bool Reader::isFlat() {
  if (problem.kind->rowsVary || !isFlatRegion(problem.produce) ||
      !isFlatRegion(problem.consume))
    return false;
  int64_t length = inputRows[0].length;
  for (const WireTile &wire : problem.wires)
    if (wire.length != length)
      return false;
  for (const Rows &rows : inputRows)
    if (rows.rows != inputRows[0].rows || rows.length != length)
      return false;
  int64_t result = problem.partElements * problem.outputParts();
  auto isWhole = [&](const Rows &rows) { return rows.elements() == result; };
  return llvm::all_of(outputRows, isWhole) && llvm::all_of(argRows, isWhole);
}

LogicalResult Reader::setFlat() {
  for (SmallVector<TileArray> *arrays :
       {&problem.inputs, &problem.outputs, &problem.args})
    for (TileArray &array : *arrays)
      array.partElements = problem.partElements;
  return success();
}

LogicalResult Reader::setRowArray(TileArray &array, const Rows &rows,
                                  int64_t length, int64_t resultRows,
                                  bool mayBeShared, StringRef what) {
  array.tileLength = length;
  array.shared = mayBeShared && resultRows > 1 && rows.elements() == length;
  if (isProduct(rows.elements(), length, resultRows))
    array.partElements = length * problem.tiles;
  else if (!array.shared)
    return op->emitOpError("has an ")
           << what << " of " << rows.elements() << " elements where "
           << resultRows << " rows of " << length << " are exchanged";
  return success();
}

LogicalResult Reader::setRows() {
  const Rows &first = inputRows[0];
  if (problem.inputParts() > 1 && first.rank <= 1)
    return op->emitOpError("cuts a row into ")
           << problem.ranks
           << " parts, but needs whole rows (a region looks at them, or the "
           << "arrays differ in length): give the input the shape ["
           << problem.ranks << ", " << first.length / problem.ranks << "]";
  problem.tileSize = problem.wires[0].length;
  if (auto exchange = dyn_cast<AllToAllVOp>(op)) {
    problem.tiles = exchange.getMaxRows();
    if (problem.tiles < 0 ||
        problem.tiles > maxElements / std::max<int64_t>(first.length, 1))
      return op->emitOpError("has max_rows ")
             << problem.tiles << ", which do not divide into rows of "
             << first.length << " elements";
    problem.inputs[0].tileLength = problem.outputs[0].tileLength = first.length;
    problem.partElements = first.length * problem.tiles;
    if (outputRows[0].length != first.length)
      return op->emitOpError("has rows of ")
             << first.length << " elements but an output of rows of "
             << outputRows[0].length;
    return success();
  }
  problem.tiles = first.rows / problem.inputParts();
  int64_t resultRows = problem.tiles * problem.outputParts();
  for (auto [array, rows] : llvm::zip_equal(problem.inputs, inputRows))
    if (failed(setRowArray(array, rows, rows.length, first.rows,
                           problem.produce != nullptr, "input")))
      return failure();
  // Lengths of outputs and arguments are those of the region that meets them.
  SmallVector<int64_t> outputLengths, argLengths;
  if (problem.consume) {
    Block &block = problem.consume->front();
    for (Type type : block.getTerminator()->getOperandTypes())
      outputLengths.push_back(getTileLength(type));
    for (BlockArgument argument : block.getArguments().drop_front(
             std::min<size_t>(problem.wires.size(), block.getNumArguments())))
      argLengths.push_back(getTileLength(argument.getType()));
  } else {
    for (const WireTile &wire : problem.wires)
      outputLengths.push_back(wire.length);
    argLengths.assign(problem.args.size(), first.length);
  }
  if (outputLengths.size() != problem.outputs.size())
    return op->emitOpError("has ") << problem.outputs.size() << " outputs and "
                                   << outputLengths.size() << " tiles for them";
  if (argLengths.size() != problem.args.size())
    return op->emitOpError("has ")
           << problem.args.size() << " args and a consume region with "
           << argLengths.size() << " arguments for them";
  for (auto [array, rows, length] :
       llvm::zip_equal(problem.outputs, outputRows, outputLengths))
    if (failed(setRowArray(array, rows, length, resultRows, false, "output")))
      return failure();
  for (auto [array, rows, length] :
       llvm::zip_equal(problem.args, argRows, argLengths))
    if (failed(setRowArray(array, rows, length, resultRows, true, "arg")))
      return failure();
  return success();
}

LogicalResult Reader::checkArguments(Region *region,
                                     ArrayRef<Type> elementTypes,
                                     ArrayRef<int64_t> lengths,
                                     StringRef what) {
  if (region->getNumArguments() != elementTypes.size())
    return op->emitOpError()
           << what << " has " << region->getNumArguments()
           << " arguments where " << elementTypes.size() << " tiles come";
  for (auto [index, argument] : llvm::enumerate(region->getArguments())) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    bool fits = type && type.getRank() == 1 &&
                type.getElementType() == elementTypes[index] &&
                (problem.flat || type.getDimSize(0) == lengths[index]);
    if (!fits)
      return op->emitOpError()
             << what << " argument " << index << " is " << argument.getType()
             << " where a tile of " << lengths[index] << " "
             << elementTypes[index] << " comes";
  }
  return success();
}

LogicalResult Reader::checkRegions() {
  SmallVector<Type> types;
  SmallVector<int64_t> lengths;
  auto add = [&](Type type, int64_t length) {
    types.push_back(type);
    lengths.push_back(length);
  };
  if (problem.produce) {
    for (const TileArray &input : problem.inputs)
      add(input.elementType,
          problem.flat ? inputRows[0].length : input.tileLength);
    if (failed(checkArguments(problem.produce, types, lengths, "produce")))
      return failure();
  }
  types.clear();
  lengths.clear();
  for (const WireTile &wire : problem.wires)
    add(problem.reduction ? getAccumulatorType(wire.elementType)
                          : wire.elementType,
        wire.length);
  SmallVector<Type> results = types;
  if (problem.consume) {
    for (const TileArray &arg : problem.args)
      add(arg.elementType, problem.flat ? inputRows[0].length : arg.tileLength);
    if (failed(checkArguments(problem.consume, types, lengths, "consume")))
      return failure();
    results.clear();
    for (Type type :
         problem.consume->front().getTerminator()->getOperandTypes())
      results.push_back(getElementTypeOrSelf(type));
  }
  if (results.size() != problem.outputs.size())
    return op->emitOpError("has ") << problem.outputs.size() << " outputs and "
                                   << results.size() << " tiles for them";
  for (auto [output, type] : llvm::zip_equal(problem.outputs, results))
    if (problem.consume ? type != output.elementType
                        : !canConvert(type, output.elementType))
      return op->emitOpError("gives tiles of ")
             << type << " to an output of " << output.elementType
             << ": convert in a consume region";
  return success();
}

FailureOr<CollectiveInfo> mlir::comms::readCollective(Operation *op) {
  return Reader(op).read();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

int64_t mlir::comms::getTileSizeFor(const CollectiveInfo &problem,
                                    int64_t threads, int64_t pieces) {
  constexpr int64_t vectorBits = 128, mostLanes = 16;
  int64_t narrowest = vectorBits;
  auto add = [&](Type type) {
    if (type.isIntOrFloat())
      narrowest = std::min<int64_t>(narrowest,
                                    std::max(type.getIntOrFloatBitWidth(), 8u));
  };
  for (const SmallVector<TileArray> *arrays :
       {&problem.inputs, &problem.outputs, &problem.args})
    for (const TileArray &array : *arrays)
      add(array.elementType);
  for (const WireTile &wire : problem.wires)
    add(wire.elementType);
  int64_t size = threads * std::min(vectorBits / narrowest, mostLanes);
  if (pieces <= 1)
    return size;
  int64_t fair = llvm::alignDown(problem.partElements / pieces, smallestTile);
  return std::max<int64_t>(std::min(size, fair), smallestTile);
}

void mlir::comms::chooseTiles(CollectiveInfo &problem, int64_t pieces,
                              int64_t tileSize, int64_t step) {
  if (!problem.flat)
    return;
  // Many tiles keep many blocks busy; small ones pay for their loop and their
  // poll more often, so 256 elements are the least unless ranks would idle.
  constexpr int64_t small = 256, largest = 4096, wanted = 64;
  int64_t smallest = std::max(smallestTile, step);
  int64_t whole = std::max<int64_t>(
      llvm::alignTo(problem.partElements, smallest), smallest);
  auto cut = [&](int64_t count) {
    if (count <= 1)
      return whole;
    // Rounded down: there are to be `count` tiles or more.
    int64_t size = llvm::alignDown(problem.partElements / count, smallest);
    return std::max(size, smallest);
  };
  if (tileSize <= 0)
    tileSize = std::clamp(cut(std::max(pieces, wanted)),
                          std::min(small, cut(pieces)), largest);
  // Cut to the array first: rounding up may leave 64 bits.
  tileSize =
      std::min<int64_t>(llvm::alignTo(std::min(tileSize, whole), step), whole);
  problem.tileSize = tileSize;
  problem.tiles = llvm::divideCeil(problem.partElements, tileSize);
  for (SmallVector<TileArray> *arrays :
       {&problem.inputs, &problem.outputs, &problem.args})
    for (TileArray &array : *arrays)
      array.tileLength = tileSize;
  for (WireTile &wire : problem.wires)
    wire.length = tileSize;
}
