//===- MachineValues.cpp - Terms for the contents of tiles and memory -----===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What actions and tile ops do to the contents that a machine follows. Where
// the machine does not know the place, the length or whether it happens, what
// is written there is unknown from then on.
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Contents.h"
#include "lowering/check/Machine.h"
#include "lowering/check/ProgramBuilder.h"

#include "dialect/Packets.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Elements of a value that is a tile or a scalar.
static int64_t countOf(Type type) {
  return isa<ShapedType>(type) ? std::max<int64_t>(elementsOf(type), 1) : 1;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void Machine::followValues(Contents &followed,
                           std::function<void(int32_t)> begin,
                           std::function<void(int32_t)> end) {
  contents = &followed;
  beginsLaunch = std::move(begin);
  endsLaunch = std::move(end);
}

void Machine::beginValues(int32_t launch) {
  beginsLaunch(launch);
  for (Thread &thread : threads)
    for (auto [reg, argument] : program.floats)
      setTile(thread, reg,
              makeTile(1, contents->values.scalar(argument, launch)));
  for (auto [reg, argument] : program.scalars)
    for (Thread &thread : threads)
      if (Interval value = getInterval(thread, reg); value.term)
        valuesOfTerms.try_emplace(value.term,
                                  contents->values.scalar(argument, launch));
}

void Machine::endValues(int32_t launch) {
  endsLaunch(launch);
  contents->forgetTiles();
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

void Machine::setTile(const Thread &thread, Register reg, Tile tile) {
  if (reg >= 0)
    set(thread, reg, Interval::of(contents->keep(std::move(tile))));
}

Tile Machine::unknownTile(int64_t length, Operation *op) {
  return makeTile(length, contents->values.unknown(op));
}

/// What a register of `type` holds, which `op` uses.
Tile Machine::tileOf(const Thread &thread, Register reg, Type type,
                     Operation *op) {
  auto value = get(thread, reg);
  if (!isFollowedValue(type)) {
    if (value)
      return makeTile(1,
                      contents->values.constant(static_cast<double>(*value)));
    auto known = valueOf(getInterval(thread, reg).term);
    return known ? makeTile(1, *known) : unknownTile(1, op);
  }
  return value ? contents->tile(*value) : unknownTile(countOf(type), op);
}

void Machine::computeTile(Thread &thread, const Instruction &in) {
  const TileOp &tileOp = program.tileOps[in.extra];
  SmallVector<Tile> operands;
  for (auto [reg, operand] :
       llvm::zip(tileOp.operands, tileOp.op->getOperands()))
    operands.push_back(tileOf(thread, reg, operand.getType(), tileOp.op));
  Tile made = evaluateTile(contents->values, tileOp.op, operands);
  steps += operands.size();
  Type type = tileOp.op->getResult(0).getType();
  if (isFollowedValue(type))
    setTile(thread, in.dst, std::move(made));
  else
    set(thread, in.dst, integerOf(made.front().ref, widthOf(type)));
}

std::optional<Ref> Machine::valueOf(int32_t term) {
  if (term == 0)
    return std::nullopt;
  if (auto it = valuesOfTerms.find(term); it != valuesOfTerms.end())
    return it->second;
  Terms::Definition made = terms.describe(term);
  Values &values = contents->values;
  std::optional<Ref> found;
  if (made.isConstant)
    return values.constant(static_cast<double>(made.constant));
  auto apply = [&](llvm::StringRef name) {
    auto a = valueOf(made.operands[0]), b = valueOf(made.operands[1]);
    if (a && b)
      found = values.apply(name, {*a, *b});
  };
  switch (made.code) {
  case Code::Add:
    apply("add");
    break;
  case Code::Sub:
    apply("sub");
    break;
  case Code::Mul:
    apply("mul");
    break;
  case Code::MinS:
    apply("min");
    break;
  case Code::MaxS:
    apply("max");
    break;
  case Code::SignCast:
    // A cast to fewer bits may give another number.
    if (static_cast<unsigned>(made.extra) <= made.width)
      found = valueOf(made.operands[0]);
    break;
  case Code::Compare:
    switch (static_cast<arith::CmpIPredicate>(made.extra)) {
    case arith::CmpIPredicate::slt:
      apply("less");
      break;
    case arith::CmpIPredicate::sle:
      apply("at most");
      break;
    case arith::CmpIPredicate::sgt:
      std::swap(made.operands[0], made.operands[1]);
      apply("less");
      break;
    case arith::CmpIPredicate::sge:
      std::swap(made.operands[0], made.operands[1]);
      apply("at most");
      break;
    case arith::CmpIPredicate::eq:
      apply("equal");
      break;
    default:
      break;
    }
    break;
  default:
    break;
  }
  if (found)
    valuesOfTerms[term] = *found;
  return found;
}

void Machine::enterIf(UnknownBranch &unsure, Interval condition, bool holds) {
  // Of several regions but two it is not told which is run.
  bool isPlain = isa<scf::IfOp, scf::ForOp>(program.guards[unsure.guard].op);
  unsure.condition =
      !isPlain ? std::nullopt
      : condition.isKnown()
          ? std::optional(contents->values.constant(condition.low != 0 ? 1 : 0))
          : valueOf(condition.term);
  if (unsure.condition && !holds)
    unsure.condition = contents->values.apply("not", {*unsure.condition});
}

void Machine::enterOtherRegion(UnknownBranch &unsure) {
  if (unsure.condition)
    unsure.condition = contents->values.apply("not", {*unsure.condition});
}

std::optional<std::vector<std::pair<Ref, bool>>> Machine::chosenConditions() {
  std::vector<std::pair<Ref, bool>> found;
  for (auto [term, holds] : chosen) {
    auto condition = valueOf(term);
    if (!condition)
      return std::nullopt;
    found.emplace_back(*condition, holds);
  }
  return found;
}

std::optional<Tile> Machine::mixTiles(const Thread &thread, const Tile &tile,
                                      const Tile &old) {
  Tile mixed = tile;
  for (const UnknownBranch &unsure : llvm::reverse(thread.unsure)) {
    if (!unsure.condition)
      return std::nullopt;
    mixed = zipTiles({mixed, old}, [&](ArrayRef<Ref> refs) {
      return contents->values.choose(*unsure.condition, refs[0], refs[1]);
    });
  }
  return mixed;
}

Interval Machine::integerOf(Ref ref, unsigned width) {
  double number = 0;
  if (contents->values.isConstant(ref, number))
    return Interval::of(static_cast<int64_t>(number));
  if (contents->values.isUnknown(ref) || width == 0)
    return {};
  auto [it, isNew] = termsOfValues.try_emplace(ref, 0);
  if (isNew) {
    it->second = terms.fresh();
    valuesOfTerms[it->second] = ref;
  }
  Interval any;
  if (width == 1)
    any = {0, 1};
  else if (width < 64)
    any = {-(int64_t(1) << (width - 1)), (int64_t(1) << (width - 1)) - 1};
  any.term = it->second;
  return any;
}

void Machine::noteInteger(const Thread &thread, const Action &action,
                          Bounds bounds) {
  const RangePlan &range = action.ranges[0];
  Interval value = getInterval(thread, action.loads);
  if (value.term == 0 || valuesOfTerms.contains(value.term))
    return;
  Tile tile = readRange(thread, range, bounds, action.op);
  if (check::lengthOf(tile) == 1 &&
      !contents->values.isUnknown(tile.front().ref))
    valuesOfTerms[value.term] = elementOf(contents->values, tile, 0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Memory &Machine::memoryOf(const Thread &thread, const MemoryPlan &memory,
                          int64_t rank) {
  return memory.kind == MemoryPlan::Scratch
             ? contents->scratch(thread.id, memory.scratch)
             : contents->part(memory.argument, rank);
}

/// Whether all that is touched, and nothing else, is known to be `bounds`, or
/// the first elements of it as a value says.
bool Machine::isExact(const Thread &thread, const RangePlan &range,
                      Bounds bounds) {
  return !bounds.anywhere && range.rows == 1 &&
         range.memory.kind != MemoryPlan::Unknown &&
         (range.count < 0 || get(thread, range.count) ||
          countValue(thread, range)) &&
         (range.memory.kind != MemoryPlan::Peer ||
          get(thread, range.memory.peer));
}

std::optional<Ref> Machine::countValue(const Thread &thread,
                                       const RangePlan &range) {
  if (range.count < 0 || get(thread, range.count))
    return std::nullopt;
  return valueOf(getInterval(thread, range.count).term);
}

Tile Machine::maskTile(const Tile &tile, const Tile &rest, Ref count) {
  Values &values = contents->values;
  Tile within = makeTile(check::lengthOf(tile),
                         values.apply("less", {values.number(), count}));
  return zipTiles({within, tile, rest}, [&](ArrayRef<Ref> refs) {
    return values.choose(refs[0], refs[1], refs[2]);
  });
}

Tile Machine::readRange(const Thread &thread, const RangePlan &range,
                        Bounds bounds, Operation *op) {
  int64_t count = bounds.end - bounds.begin;
  // What packets hold is no data.
  bool isMailed = range.memory.argument >= 0 &&
                  program.arguments[range.memory.argument].hasMail;
  if (count == 0)
    return {};
  if (!isMailed && bounds.anywhere)
    if (auto found = gatherRange(thread, range))
      return *found;
  bool isOne = range.memory.kind != MemoryPlan::Multimem &&
               !program.unfollowedScratch.contains(range.memory.scratch);
  bool isPlaced = isExact(thread, range, bounds);
  if (isMailed || !isOne || !isPlaced)
    return unknownTile(std::max<int64_t>(count, 1), op);
  Tile found;
  auto readPart = [&](int64_t rank) {
    found = memoryOf(thread, range.memory, rank)
                .read(contents->values, bounds.begin, count);
  };
  if (range.memory.kind == MemoryPlan::Scratch)
    readPart(thread.rank);
  else
    forParts(thread, range.memory, readPart);
  return found.empty() ? unknownTile(count, op) : found;
}

/// What is read at a place that data decide, of an array that holds nothing but
/// what an argument held before the launch.
std::optional<Tile> Machine::gatherRange(const Thread &thread,
                                         const RangePlan &range) {
  const MemoryPlan &memory = range.memory;
  auto count = range.count < 0 ? std::optional(range.fixedCount)
                               : get(thread, range.count);
  bool isOne = memory.kind == MemoryPlan::Own ||
               (memory.kind == MemoryPlan::Peer && get(thread, memory.peer));
  if (memory.moved || memory.argument < 0 || !isOne || range.rows != 1 ||
      range.offset < 0 || memory.limit <= 0 || !count || *count <= 0)
    return std::nullopt;
  auto number = valueOf(getInterval(thread, range.offset).term);
  if (!number)
    return std::nullopt;
  std::optional<Tile> found;
  forParts(thread, memory, [&](int64_t rank) {
    Tile all = contents->part(memory.argument, rank)
                   .read(contents->values, 0, memory.limit);
    if (all.size() == 1)
      found = makeTile(*count,
                       contents->values.gather(all.front().ref, *number, 0));
  });
  return found;
}

/// Calls `change` with each memory of a range that is written.
void Machine::writeRange(const Thread &thread, const RangePlan &range,
                         Bounds bounds, Operation *op,
                         llvm::function_ref<void(Memory &)> change) {
  bool isPlaced = isExact(thread, range, bounds);
  auto counted = countValue(thread, range);
  bool isSure = isPlaced && thread.unsure.empty() && !counted;
  auto visit = [&](int64_t rank) {
    Memory &memory = memoryOf(thread, range.memory, rank);
    if (isSure)
      return change(memory);
    int64_t count = bounds.end - bounds.begin;
    if (isPlaced && count > 0) {
      Tile old = memory.read(contents->values, bounds.begin, count);
      change(memory);
      Tile made = memory.read(contents->values, bounds.begin, count);
      if (counted)
        made = maskTile(made, old, *counted);
      if (auto mixed = mixTiles(thread, made, old))
        return memory.write(contents->values, bounds.begin, *mixed, op);
    }
    // Somewhere there, or not at all.
    if (bounds.begin == bounds.end)
      return;
    constexpr int64_t most = int64_t(1) << 60;
    if (bounds.end > most || range.rows > 1)
      return memory.fill(contents->values.unknown(op));
    memory.write(contents->values, bounds.begin,
                 unknownTile(bounds.end - bounds.begin, op), op);
  };
  if (range.memory.kind == MemoryPlan::Scratch)
    return visit(thread.rank);
  if (range.memory.argument >= 0)
    forParts(thread, range.memory, visit);
}

/// Each place that it may be holds the tile if it is that one.
bool Machine::scatter(const Thread &thread, const RangePlan &range,
                      const Tile &tile, Operation *op) {
  constexpr int64_t mostPlaces = 64;
  Values &values = contents->values;
  int64_t length = check::lengthOf(tile);
  auto sum = findSum(terms, getInterval(thread, range.offset));
  bool isOne =
      range.memory.kind == MemoryPlan::Own ||
      (range.memory.kind == MemoryPlan::Peer && get(thread, range.memory.peer));
  if (range.memory.moved || !isOne || range.rows != 1 || range.count >= 0 ||
      !sum || sum->factors.size() != 1 || isa<MultimemReduceOp>(op))
    return false;
  auto [term, factor] = *sum->factors.begin();
  Interval among = findRange(terms, {{{term, 1}}, 0});
  auto number = valueOf(term);
  if (!number || factor < length || among.low == INT64_MIN ||
      among.high == INT64_MAX || among.high - among.low >= mostPlaces)
    return false;
  bool isKnown = true;
  forParts(thread, range.memory, [&](int64_t rank) {
    Memory &memory = memoryOf(thread, range.memory, rank);
    for (int64_t at = among.low; at <= among.high; ++at) {
      int64_t place = sum->constant + factor * at;
      if (place < 0 ||
          (range.memory.limit >= 0 && place + length > range.memory.limit))
        continue; // Such a launch ends with an error.
      Ref isThere = values.apply(
          "equal", {*number, values.constant(static_cast<double>(at))});
      Tile old = memory.read(values, place, length);
      Tile made = zipTiles({makeTile(length, isThere), tile, old},
                           [&](ArrayRef<Ref> refs) {
                             return values.choose(refs[0], refs[1], refs[2]);
                           });
      auto mixed = mixTiles(thread, made, old);
      isKnown &= mixed.has_value();
      if (mixed)
        memory.write(values, place, *mixed, op);
    }
  });
  return isKnown;
}

/// The first elements of a tile.
static Tile firstOf(const Tile &tile, int64_t count) {
  Tile made;
  for (const TilePiece &piece : tile) {
    if (count > 0)
      made.push_back({std::min(piece.end, count), piece.ref});
    if (piece.end >= count)
      break;
  }
  return made;
}

/// A tile of `length` elements that begins with `tile`, and is zero behind it.
static Tile fillUp(Values &values, Tile tile, int64_t length) {
  if (lengthOf(tile) < length)
    tile.push_back({length, values.constant(0)});
  return tile;
}

/// What the switch combines of all ranks.
Tile Machine::combineParts(const Thread &thread, const Action &action,
                           Bounds bounds) {
  auto kind = cast<MultimemLoadReduceOp>(action.op).getKind();
  const RangePlan &range = action.ranges[0];
  int64_t count = bounds.end - bounds.begin;
  SmallVector<Tile> parts;
  if (!isExact(thread, range, bounds))
    return unknownTile(count, action.op);
  forParts(thread, range.memory, [&](int64_t rank) {
    parts.push_back(memoryOf(thread, range.memory, rank)
                        .read(contents->values, bounds.begin, count));
  });
  contents->values.setOrigin(action.op);
  Tile made = zipTiles(parts, [&](ArrayRef<Ref> refs) {
    return contents->values.combineAnyhow(nameOf(kind), refs);
  });
  return kind == ReductionKind::Avg
             ? divideTile(contents->values, made,
                          static_cast<double>(parts.size()),
                          isa<IntegerType>(
                              getElementTypeOrSelf(action.op->getResult(0))))
             : made;
}

void Machine::copyContents(const Thread &thread, const Action &action,
                           Bounds from, Bounds to) {
  Operation *op = action.op;
  Values &values = contents->values;
  Tile tile = readRange(thread, action.ranges[0], from, op);
  int64_t length = to.end - to.begin;
  bool isWhole = check::lengthOf(tile) == length;
  writeRange(thread, action.ranges[1], to, op, [&](Memory &memory) {
    memory.write(values, to.begin, isWhole ? tile : unknownTile(length, op),
                 op);
  });
}

void Machine::loadContents(const Thread &thread, const Action &action,
                           Bounds bounds) {
  Operation *op = action.op;
  Values &values = contents->values;
  const RangePlan &range = action.ranges[0];
  Type type = op->getResult(0).getType();
  if (!isFollowedValue(type)) {
    // What only a block holds is known from its stores.
    if (range.memory.kind == MemoryPlan::Scratch && action.loads >= 0)
      set(thread, action.loads,
          integerOf(elementOf(values, readRange(thread, range, bounds, op), 0),
                    widthOf(type)));
    return;
  }
  bool isReduced = isa<MultimemLoadReduceOp>(op);
  Tile tile = isReduced ? combineParts(thread, action, bounds)
                        : readRange(thread, range, bounds, op);
  // How many elements there are may be unknown, too.
  bool isKnown = range.count < 0 || get(thread, range.count);
  auto counted = countValue(thread, range);
  if (!isKnown && (!counted || isReduced))
    return setTile(thread, action.tile, unknownTile(countOf(type), op));
  tile = fillUp(values, std::move(tile), countOf(type));
  if (counted)
    tile =
        maskTile(tile, makeTile(countOf(type), values.constant(0)), *counted);
  setTile(thread, action.tile, std::move(tile));
}

void Machine::storeContents(const Thread &thread, const Action &action,
                            const RangePlan &range, Bounds bounds) {
  Operation *op = action.op;
  Values &values = contents->values;
  Value stored = isa<TileOpInterface>(op)
                     ? cast<TileOpInterface>(op).getTileValue()
                     : op->getOperand(0);
  Tile whole = tileOf(thread, action.tile, stored.getType(), op);
  Tile tile = firstOf(whole, bounds.end - bounds.begin);
  values.setOrigin(op);
  if (bounds.anywhere && !bounds.isGuess && scatter(thread, range, whole, op))
    return;
  writeRange(thread, range, bounds, op, [&](Memory &memory) {
    if (auto reduce = dyn_cast<MultimemReduceOp>(op)) {
      Tile old = memory.read(values, bounds.begin, check::lengthOf(tile));
      Tile both = zipTiles({old, tile}, [&](ArrayRef<Ref> refs) {
        return values.combineAnyhow(nameOf(reduce.getKind()), refs);
      });
      return memory.write(values, bounds.begin, both, op);
    }
    memory.write(values, bounds.begin, tile, op);
  });
}

void Machine::moveContents(Thread &thread, const Action &action,
                           const std::optional<Bounds> *pieces) {
  Operation *op = action.op;
  const RangePlan &first = action.ranges[0], &second = action.ranges[1];
  if (isa<ContractOp>(op) && second.used)
    return multiply(thread, action, pieces);
  bool isCopy =
      isa<PutOp, GetOp, PutSignalOp, EngineCopyOp, BulkCopyOp, memref::CopyOp>(
          op);
  if (isCopy && first.used && second.used) {
    if (pieces[0] && pieces[1])
      copyContents(thread, action, *pieces[0], *pieces[1]);
    return;
  }
  if (!first.used || !pieces[0])
    return;
  bool hasTile = action.tile >= 0 && !second.used;
  if (hasTile && op->getNumResults() == 1 && !first.write)
    return loadContents(thread, action, *pieces[0]);
  if (hasTile && first.write)
    return storeContents(thread, action, first, *pieces[0]);
  for (auto [at, range] : llvm::enumerate(action.ranges))
    if (range.used && range.write && pieces[at])
      writeRange(thread, range, *pieces[at], op, [&](Memory &memory) {
        memory.fill(contents->values.unknown(op));
      });
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// Elements of one product, and terms of all of them, that are followed.
static constexpr int64_t mostProducts = int64_t(1) << 16, mostTerms = int64_t(1)
                                                                      << 20;

namespace {
/// A part of a matrix.
struct MatrixTiles {
  int64_t offset = 0, rows = 0, columns = 0, stride = 0;
  std::vector<Tile> lines;
};
} // namespace

/// Row `line` of a matrix, or column `line` of it.
static Tile lineOf(Values &values, const MatrixTiles &matrix, int64_t line,
                   bool isColumn) {
  if (!isColumn)
    return matrix.lines[line];
  Tile made;
  for (auto [at, row] : llvm::enumerate(matrix.lines))
    made.push_back(
        {static_cast<int64_t>(at) + 1, elementOf(values, row, line)});
  return made;
}

/// The scales of row (column) `line` of an operand, for each of its terms;
/// `firstTerm` and `firstLine` are its place in the operand's memory.
static Tile scalesOf(Values &values, const OperandScales &scales,
                     const MatrixTiles &matrix, int64_t firstTerm,
                     int64_t firstLine, int64_t line, int64_t depth) {
  constexpr int64_t block = OperandScales::kBlock;
  int64_t across = scales.across == 1       ? line
                   : scales.across == block ? (firstLine + line) / block
                                            : 0;
  Tile made;
  for (int64_t term = 0; term < depth;) {
    int64_t at = scales.terms == 0 ? 0 : (firstTerm + term) / scales.terms;
    int64_t end = scales.terms == 0
                      ? depth
                      : std::min(depth, (at + 1) * scales.terms - firstTerm);
    auto [row, column] =
        scales.termsAreRows ? std::pair(at, across) : std::pair(across, at);
    bool isThere = row < static_cast<int64_t>(matrix.lines.size());
    made.push_back({end, isThere ? elementOf(values, matrix.lines[row], column)
                                 : values.unknown(nullptr)});
    term = end;
  }
  return made;
}

void Machine::multiply(const Thread &thread, const Action &action,
                       const std::optional<Bounds> *pieces) {
  auto op = cast<ContractOp>(action.op);
  Values &values = contents->values;
  auto partOf = [&](const RangePlan &range) -> std::optional<MatrixTiles> {
    auto rows = range.rowCount < 0 ? std::optional<int64_t>(range.rows)
                                   : get(thread, range.rowCount);
    auto columns = range.count < 0 ? std::optional(range.fixedCount)
                                   : get(thread, range.count);
    auto offset = get(thread, range.offset);
    bool isPlaced = !range.memory.moved && rows && columns && offset &&
                    (range.memory.kind == MemoryPlan::Own ||
                     range.memory.kind == MemoryPlan::Scratch ||
                     (range.memory.kind == MemoryPlan::Peer &&
                      get(thread, range.memory.peer)));
    if (!isPlaced)
      return std::nullopt;
    return MatrixTiles{*offset, *rows, *columns, range.stride, {}};
  };
  auto withMemory = [&](const RangePlan &range,
                        llvm::function_ref<void(Memory &)> use) {
    if (range.memory.kind == MemoryPlan::Scratch)
      return use(memoryOf(thread, range.memory, thread.rank));
    forParts(thread, range.memory,
             [&](int64_t rank) { use(memoryOf(thread, range.memory, rank)); });
  };
  auto read = [&](const RangePlan &range) -> std::optional<MatrixTiles> {
    auto part = partOf(range);
    if (!part || part->rows > mostTerms)
      return std::nullopt;
    withMemory(range, [&](Memory &memory) {
      for (int64_t row = 0; row < part->rows; ++row)
        part->lines.push_back(memory.read(
            values, part->offset + row * part->stride, part->columns));
    });
    return static_cast<int64_t>(part->lines.size()) == part->rows
               ? part
               : std::nullopt;
  };
  auto lhs = read(action.ranges[0]), rhs = read(action.ranges[1]);
  auto acc = partOf(action.ranges[2]);
  bool isScaled = op.getLhsScales() != nullptr;
  std::vector<MatrixTiles> addends;
  if (op.getAccumulate())
    if (auto old = read(action.ranges[2]))
      addends.push_back(std::move(*old));
  for (const RangePlan &range : action.further)
    if (auto part = read(range))
      addends.push_back(std::move(*part));
  size_t expected = action.further.size() + (op.getAccumulate() ? 1 : 0);
  bool isRhsColumns = !op.getTransposeRhs(),
       isLhsColumns = op.getTransposeLhs();
  int64_t depth = !lhs ? 0 : isLhsColumns ? lhs->rows : lhs->columns;
  bool isKnown = lhs && rhs && acc && thread.unsure.empty() &&
                 addends.size() == expected && depth > 0 &&
                 acc->rows * acc->columns <= mostProducts &&
                 (!(isRhsColumns || isLhsColumns) ||
                  acc->rows * acc->columns * depth <= mostTerms);
  if (!isKnown) {
    for (auto [at, range] : llvm::enumerate(action.ranges))
      if (range.used && range.write && pieces[at])
        writeRange(thread, range, *pieces[at], op,
                   [&](Memory &memory) { memory.fill(values.unknown(op)); });
    return;
  }
  values.setOrigin(op);
  auto multiplied = [&](ArrayRef<Ref> refs) {
    return values.apply("mul", refs);
  };
  // A row or column, times its scales.
  auto factors = [&](const MatrixTiles &matrix, int64_t line, bool isColumn,
                     bool isLhs) {
    Tile plain = lineOf(values, matrix, line, isColumn);
    if (!isScaled)
      return plain;
    auto [term, first] = action.scaled[isLhs ? 0 : 1];
    const MatrixTiles &scales = addends[expected - (isLhs ? 2 : 1)];
    return zipTiles(
        {plain, scalesOf(values, op.getScales(isLhs), scales,
                         get(thread, term).value_or(0),
                         get(thread, first).value_or(0), line, depth)},
        multiplied);
  };
  std::vector<Tile> columns;
  for (int64_t column = 0; column < acc->columns; ++column)
    columns.push_back(factors(*rhs, column, isRhsColumns, /*isLhs=*/false));
  size_t added = expected - (isScaled ? 2 : 0);
  for (int64_t row = 0; row < acc->rows; ++row) {
    Tile left = factors(*lhs, row, isLhsColumns, /*isLhs=*/true), made;
    for (int64_t column = 0; column < acc->columns; ++column) {
      Tile products =
          zipTiles({left, columns[column]}, [&](ArrayRef<Ref> refs) {
            return values.apply("mul", refs);
          });
      SmallVector<std::pair<int64_t, Ref>> parts;
      for (const TilePiece &piece : products)
        parts.emplace_back(piece.end, piece.ref);
      Ref sum = values.reduceRow("add:contract", parts);
      for (const MatrixTiles &addend : ArrayRef(addends).take_front(added))
        sum = values.apply("add",
                           {sum, elementOf(values, addend.lines[row], column)});
      made.push_back({column + 1, sum});
    }
    withMemory(action.ranges[2], [&](Memory &memory) {
      memory.write(values, acc->offset + row * acc->stride, made, op);
    });
  }
}

/// An action that may not happen, and does not by itself.
void Machine::markUncertain(Thread &thread, const Action &action) {
  for (const RangePlan &range : action.ranges)
    if (range.used && range.write && range.memory.argument >= 0)
      forParts(thread, range.memory, [&](int64_t rank) {
        contents->part(range.memory.argument, rank)
            .fill(contents->values.unknown(action.op));
        contents->mail(range.memory.argument, rank)
            .fill(contents->values.unknown(action.op));
      });
  if (action.tile >= 0 && action.op->getNumResults() == 1)
    set(thread, action.tile, Interval());
}

//===----------------------------------------------------------------------===//
// Packets and channels
//===----------------------------------------------------------------------===//

/// Where the tile begins that lies at `offset`, in its elements; absent: it
/// begins within one.
static std::optional<int64_t> firstElement(const Action &action,
                                           int64_t offset) {
  bool packets = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  if (!packets)
    return offset;
  int64_t bits = offset * getUnitBits(action.assumes);
  if (action.elementBits <= 0 || bits % action.elementBits != 0)
    return std::nullopt;
  return bits / action.elementBits;
}

void Machine::packetContents(Thread &thread, const Action &action,
                             int64_t offset, int64_t rank) {
  Values &values = contents->values;
  const RangePlan &range = action.ranges[0];
  bool packets = action.kind == ActionKind::PacketStore ||
                 action.kind == ActionKind::PacketLoad;
  Memory &memory = packets ? contents->mail(range.memory.argument, rank)
                           : contents->part(range.memory.argument, rank);
  auto first = firstElement(action, offset);
  auto count = range.count < 0 ? std::optional(range.fixedCount)
                               : get(thread, range.count);
  auto counted = countValue(thread, range);
  bool isLoad = action.kind == ActionKind::PacketLoad ||
                action.kind == ActionKind::PoisonLoad;
  if (isLoad) {
    int64_t length = action.tileSize;
    if (!first || (!count && !counted))
      return setTile(thread, action.tile, unknownTile(length, action.op));
    Tile tile = memory.read(values, *first, count.value_or(length));
    tile = fillUp(values, std::move(tile), length);
    if (counted)
      tile = maskTile(tile, makeTile(length, values.constant(0)), *counted);
    return setTile(thread, action.tile, std::move(tile));
  }
  if (!first || (!count && !counted) ||
      (counted && action.kind == ActionKind::PoisonFill))
    return memory.fill(values.unknown(action.op));
  if (action.kind == ActionKind::PoisonFill) {
    memory.write(values, *first, unknownTile(*count, action.op), action.op);
    return;
  }
  Type type = cast<TileOpInterface>(action.op).getTileValue().getType();
  Tile tile = firstOf(tileOf(thread, action.tile, type, action.op),
                      count.value_or(action.tileSize));
  if (counted)
    tile = maskTile(tile, memory.read(values, *first, check::lengthOf(tile)),
                    *counted);
  memory.write(values, *first, tile, action.op);
}

int64_t Machine::sentTile(Thread &thread, const Action &action) {
  Type type = cast<TileOpInterface>(action.op).getTileValue().getType();
  Tile tile = tileOf(thread, action.tile, type, action.op);
  auto valid = action.valid < 0 ? std::optional(action.tileSize)
                                : get(thread, action.valid);
  if (auto counted = valid ? std::nullopt
                           : valueOf(getInterval(thread, action.valid).term))
    return contents->keep(
        maskTile(tile, makeTile(action.tileSize, contents->values.constant(0)),
                 *counted));
  return contents->keep(valid
                            ? cutTile(contents->values, std::move(tile), *valid)
                            : unknownTile(action.tileSize, action.op));
}
