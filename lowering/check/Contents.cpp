//===- Contents.cpp - Terms for the contents of tiles and memory ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Contents.h"

#include "dialect/TileCuts.h"
#include "lowering/check/ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Elements of a constant that are told apart.
static constexpr int64_t mostConstants = 4096;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static void append(Tile &tile, int64_t end, Ref ref) {
  if (!tile.empty() && tile.back().ref == ref)
    tile.back().end = end;
  else
    tile.push_back({end, ref});
}

Tile mlir::comms::check::makeTile(int64_t length, Ref ref) {
  return {TilePiece{length, ref}};
}

int64_t mlir::comms::check::lengthOf(const Tile &tile) {
  return tile.empty() ? 0 : tile.back().end;
}

Ref mlir::comms::check::elementOf(Values &values, const Tile &tile,
                                  int64_t element) {
  const auto *piece = llvm::find_if(
      tile, [&](const TilePiece &one) { return element < one.end; });
  return piece == tile.end() ? values.unknown(nullptr)
                             : values.pin(piece->ref, element);
}

Tile mlir::comms::check::cutTile(Values &values, Tile tile, int64_t valid) {
  int64_t length = lengthOf(tile);
  if (valid >= length)
    return tile;
  Tile made;
  for (const TilePiece &piece : tile) {
    append(made, std::min(piece.end, valid), piece.ref);
    if (piece.end >= valid)
      break;
  }
  if (valid <= 0)
    made.clear();
  append(made, length, values.constant(0));
  return made;
}

Tile mlir::comms::check::zipTiles(
    ArrayRef<Tile> tiles, llvm::function_ref<Ref(ArrayRef<Ref>)> combine) {
  Tile made;
  SmallVector<size_t> at(tiles.size());
  SmallVector<Ref> refs(tiles.size());
  int64_t done = 0, length = tiles.empty() ? 0 : lengthOf(tiles.front());
  while (done < length) {
    int64_t end = length;
    for (auto [index, tile] : llvm::enumerate(tiles)) {
      while (tile[at[index]].end <= done)
        ++at[index];
      end = std::min(end, tile[at[index]].end);
      refs[index] = tile[at[index]].ref;
    }
    append(made, end, combine(refs));
    done = end;
  }
  return made;
}

llvm::StringRef mlir::comms::check::nameOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Avg:
    return "add";
  case ReductionKind::Prod:
    return "mul";
  case ReductionKind::Min:
    return "min";
  case ReductionKind::Max:
    return "max";
  case ReductionKind::And:
    return "and";
  case ReductionKind::Or:
    return "or";
  case ReductionKind::Xor:
    return "xor";
  }
  llvm_unreachable("a kind of reduction");
}

Tile mlir::comms::check::reduceTiles(Values &values, ReductionKind kind,
                                     ArrayRef<Tile> tiles) {
  Tile made = tiles.front();
  for (const Tile &next : tiles.drop_front())
    made = zipTiles({made, next}, [&](ArrayRef<Ref> refs) {
      return values.apply(nameOf(kind), refs);
    });
  return made;
}

Tile mlir::comms::check::divideTile(Values &values, const Tile &tile,
                                    double divisor, bool isInteger) {
  return zipTiles({tile}, [&](ArrayRef<Ref> refs) {
    return values.apply(isInteger ? "divsi" : "div",
                        {refs[0], values.constant(divisor)});
  });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The name under which Values knows an op: what it does to numbers, and behind
/// a colon what decides its bits alone.
static std::string describeOp(Operation *op) {
  llvm::StringRef plain =
      llvm::TypeSwitch<Operation *, llvm::StringRef>(op)
          .Case<arith::AddFOp, arith::AddIOp>([](auto) { return "add"; })
          .Case<arith::SubFOp, arith::SubIOp>([](auto) { return "sub"; })
          .Case<arith::MulFOp, arith::MulIOp>([](auto) { return "mul"; })
          .Case<arith::DivFOp>([](auto) { return "div"; })
          .Case<arith::NegFOp>([](auto) { return "neg"; })
          .Case<math::FmaOp>([](auto) { return "fma"; })
          .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp>(
              [](auto) { return "max"; })
          .Case<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp>(
              [](auto) { return "min"; })
          .Case<arith::AndIOp>([](auto) { return "and"; })
          .Case<arith::OrIOp>([](auto) { return "or"; })
          .Case<arith::XOrIOp>([](auto) { return "xor"; })
          .Case<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp,
                arith::IndexCastOp>([](auto) { return "cast"; })
          .Case<arith::ExtSIOp>([](auto) { return "extend"; })
          .Case<arith::TruncIOp>([](auto) { return "cut"; })
          .Default(llvm::StringRef());
  if (auto function = dyn_cast<MathOp>(op))
    return stringifyMathFunction(function.getFunction()).str();
  std::string name =
      plain.empty() ? op->getName().stripDialect().str() : plain.str();
  llvm::raw_string_ostream stream(name);
  // From and to how many bits.
  if (isa<arith::ExtSIOp>(op))
    stream << getElementTypeOrSelf(op->getOperand(0)).getIntOrFloatBitWidth();
  if (isa<arith::TruncIOp>(op))
    stream << getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth();
  // Of what is not known better, attributes say what it does.
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != "fastmath" &&
        attribute.getName() != "overflowFlags")
      stream << (plain.empty() ? " " : ":") << attribute.getValue();
  stream << ":" << op->getName() << getElementTypeOrSelf(op->getResult(0));
  return name;
}

namespace {
/// A comparison as Values names it: of the operands, or of the second and the
/// first, or its opposite.
struct Comparison {
  llvm::StringRef name;
  bool isTurned = false, isNegated = false;
};
} // namespace

/// Of ordered floats and of signed integers; `x != y` also of NaNs.
static std::optional<Comparison> comparisonOf(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    switch (compare.getPredicate()) {
    case arith::CmpFPredicate::OLT:
      return Comparison{"less"};
    case arith::CmpFPredicate::OLE:
      return Comparison{"at most"};
    case arith::CmpFPredicate::OGT:
      return Comparison{"less", /*isTurned=*/true};
    case arith::CmpFPredicate::OGE:
      return Comparison{"at most", /*isTurned=*/true};
    case arith::CmpFPredicate::OEQ:
      return Comparison{"equal"};
    case arith::CmpFPredicate::UNE:
      return Comparison{"equal", /*isTurned=*/false, /*isNegated=*/true};
    default:
      return std::nullopt;
    }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
      return Comparison{"less"};
    case arith::CmpIPredicate::sle:
      return Comparison{"at most"};
    case arith::CmpIPredicate::sgt:
      return Comparison{"less", /*isTurned=*/true};
    case arith::CmpIPredicate::sge:
      return Comparison{"at most", /*isTurned=*/true};
    case arith::CmpIPredicate::eq:
      return Comparison{"equal"};
    case arith::CmpIPredicate::ne:
      return Comparison{"equal", /*isTurned=*/false, /*isNegated=*/true};
    default:
      return std::nullopt;
    }
  return std::nullopt;
}

static Ref constantOf(Values &values, Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return values.constant(number.getValueAsDouble());
  auto number = dyn_cast<IntegerAttr>(value);
  if (!number)
    return values.unknown(nullptr);
  if (number.getType().isInteger(1))
    return values.constant(number.getValue().isZero() ? 0 : 1);
  // A double has not all integers.
  llvm::SmallString<24> text;
  number.getValue().toStringSigned(text);
  return number.getValue().getSignificantBits() <= 53
             ? values.constant(number.getValue().signedRoundToDouble())
             : values.apply(text, {});
}

static Tile constantTile(Values &values, Attribute value, int64_t length,
                         Operation *op) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  if (!elements)
    return makeTile(length, constantOf(values, value));
  if (elements.isSplat())
    return makeTile(length,
                    constantOf(values, elements.getSplatValue<Attribute>()));
  if (length > mostConstants)
    return makeTile(length, values.unknown(op));
  Tile made;
  for (auto [at, element] : llvm::enumerate(elements.getValues<Attribute>()))
    append(made, static_cast<int64_t>(at) + 1, constantOf(values, element));
  return made;
}

static Tile reduceRow(Values &values, RowReduceOp op, const Tile &tile) {
  SmallVector<std::pair<int64_t, Ref>> parts;
  for (const TilePiece &piece : tile)
    parts.emplace_back(piece.end, piece.ref);
  Ref made = values.reduceRow(nameOf(op.getKind()), parts);
  if (op.getKind() == ReductionKind::Avg)
    return divideTile(values, makeTile(1, made),
                      static_cast<double>(lengthOf(tile)),
                      isa<IntegerType>(getElementTypeOrSelf(op.getTile())));
  return makeTile(1, made);
}

/// Elements [begin, begin + length) of a tile.
static Tile partOf(Values &values, const Tile &tile, int64_t begin,
                   int64_t length) {
  Tile made;
  for (const TilePiece &piece : tile) {
    if (piece.end > begin)
      append(made, std::min(piece.end - begin, length),
             values.moved(piece.ref, begin));
    if (piece.end >= begin + length)
      break;
  }
  return made;
}

/// Tiles one behind the other.
static Tile joinTiles(Values &values, ArrayRef<Tile> tiles) {
  Tile made;
  int64_t begin = 0;
  for (const Tile &tile : tiles) {
    for (const TilePiece &piece : tile)
      append(made, begin + piece.end, values.moved(piece.ref, -begin));
    begin += lengthOf(tile);
  }
  return made;
}

Tile mlir::comms::check::evaluateTile(Values &values, Operation *op,
                                      ArrayRef<Tile> operands) {
  Type type = op->getResult(0).getType();
  int64_t length = isa<ShapedType>(type) ? elementsOf(type) : 1;
  auto unknown = [&] {
    return makeTile(std::max<int64_t>(length, 1), values.unknown(op));
  };
  if (length < 0)
    return unknown();
  values.setOrigin(op);
  Attribute value;
  if (matchPattern(op, m_Constant(&value)))
    return constantTile(values, value, length, op);
  if (isa<SplatOp, BroadcastRowOp, tensor::SplatOp>(op))
    return makeTile(length, elementOf(values, operands[0], 0));
  if (isa<IotaOp>(op))
    return makeTile(length, values.number());
  if (auto reduce = dyn_cast<RowReduceOp>(op))
    return reduceRow(values, reduce, operands[0]);
  if (isa<tensor::CastOp>(op))
    return operands[0];
  if (isTileCut(op) && !whyNotCut(op).empty())
    return unknown();
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return partOf(values, operands[0], slice.getStaticOffsets()[0], length);
  if (isa<tensor::ConcatOp>(op))
    return joinTiles(values, operands);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    double chosen = 0;
    if (lengthOf(operands[0]) == 1 &&
        values.isConstant(operands[0].front().ref, chosen))
      return chosen != 0 ? operands[1] : operands[2];
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    double at = 0;
    if (operands.size() == 2 &&
        values.isConstant(operands[1].front().ref, at) && at >= 0)
      return makeTile(1,
                      elementOf(values, operands[0], static_cast<int64_t>(at)));
    return unknown();
  }
  bool alike = op->hasTrait<OpTrait::Elementwise>() && !operands.empty() &&
               llvm::all_of(operands, [&](const Tile &tile) {
                 return lengthOf(tile) == length;
               });
  if (!alike)
    return unknown();
  if (auto comparison = comparisonOf(op))
    return zipTiles(operands, [&](ArrayRef<Ref> refs) {
      SmallVector<Ref, 2> sides(refs);
      if (comparison->isTurned)
        std::swap(sides[0], sides[1]);
      Ref made = values.apply(comparison->name, sides);
      return comparison->isNegated ? values.apply("not", {made}) : made;
    });
  if (isa<arith::SelectOp>(op))
    return zipTiles(operands, [&](ArrayRef<Ref> refs) {
      return values.choose(refs[0], refs[1], refs[2]);
    });
  std::string name = describeOp(op);
  return zipTiles(operands,
                  [&](ArrayRef<Ref> refs) { return values.apply(name, refs); });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Memory::fill(Ref ref) {
  pieces.clear();
  pieces[INT64_MIN] = {ref, nullptr};
}

void Memory::visit(
    int64_t begin, int64_t end,
    llvm::function_ref<void(int64_t, int64_t, const StoredPiece &)> visit)
    const {
  auto it = std::prev(pieces.upper_bound(begin));
  while (begin < end) {
    auto next = std::next(it);
    int64_t until = next == pieces.end() ? end : std::min(end, next->first);
    visit(begin, until, it->second);
    begin = until;
    it = next;
  }
}

Tile Memory::read(const Values &values, int64_t begin, int64_t count) const {
  Tile made;
  visit(begin, begin + count,
        [&](int64_t, int64_t until, const StoredPiece &held) {
          append(made, until - begin, values.moved(held.ref, begin));
        });
  return made;
}

void Memory::write(const Values &values, int64_t begin, const Tile &tile,
                   Operation *by) {
  int64_t end = begin + lengthOf(tile);
  if (begin == end)
    return;
  StoredPiece last = std::prev(pieces.upper_bound(end))->second;
  pieces.erase(pieces.lower_bound(begin), pieces.upper_bound(end));
  int64_t from = begin;
  for (const TilePiece &piece : tile) {
    Ref ref = values.moved(piece.ref, -begin);
    auto before = pieces.lower_bound(from);
    // Neighbors that were made alike are one.
    bool isSame = before != pieces.begin() &&
                  std::prev(before)->second.ref == ref &&
                  std::prev(before)->second.by == by;
    if (!isSame)
      pieces[from] = {ref, by};
    from = begin + piece.end;
  }
  if (!(last.ref == std::prev(pieces.lower_bound(end))->second.ref &&
        last.by == by))
    pieces[end] = last;
}

Memory &Contents::part(int32_t argument, int64_t rank) {
  Memory &memory = parts[{argument, rank}];
  if (memory.isEmpty())
    memory.fill(values.input(argument, rank, 0));
  return memory;
}

Memory &Contents::mail(int32_t argument, int64_t rank) {
  Memory &memory = mails[{argument, rank}];
  if (memory.isEmpty())
    memory.fill(values.unknown(nullptr));
  return memory;
}

Memory &Contents::scratch(int32_t thread, int32_t scratch) {
  Memory &memory = scratches[{thread, scratch}];
  if (memory.isEmpty())
    memory.fill(values.apply("scratch memory that is not written", {}));
  return memory;
}
