//===- CollectiveBuilder.cpp - The vocabulary of algorithms ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/collectives/CollectiveBuilder.h"

#include "lowering/analysis/Accesses.h"
#include "lowering/channels/Protocol.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;

CollectiveBuilder::CollectiveBuilder(OpBuilder &builder,
                                     const CollectiveInfo &problem,
                                     StringRef protocol, int64_t &nextChannel)
    : b(builder), theProblem(problem), protocol(protocol),
      nextChannel(nextChannel) {
  myRank = RankOp::create(b, loc(), problem.team);
  myBlock = BlockIdOp::create(b, loc());
  numBlocks = NumBlocksOp::create(b, loc());
  if (auto role = problem.op->getParentOfType<RoleOp>()) {
    int64_t first = role.getFirst();
    myBlock = sub(myBlock, constant(first));
    numBlocks = constant(static_cast<int64_t>(role.getLast()) - first);
  }
  if (problem.rootArgument)
    CheckBoundsOp::create(b, loc(), problem.rootArgument, constant(1),
                          numRanks(), ("root of " + problem.kind->name).str());
  numTiles = constant(problem.tiles);
  if (!problem.isSized())
    return;
  extent = ExtentOp::create(b, loc(), b.getIndexType(), problem.partElements);
  Value size = constant(problem.flat ? problem.tileSize
                                     : problem.inputs.front().tileLength);
  numTiles =
      problem.hasWholeTiles() ? div(extent, size) : divCeil(extent, size);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value CollectiveBuilder::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc(), value);
}
Value CollectiveBuilder::add(Value lhs, Value rhs) {
  return b.createOrFold<arith::AddIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::sub(Value lhs, Value rhs) {
  return b.createOrFold<arith::SubIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::mul(Value lhs, Value rhs) {
  return b.createOrFold<arith::MulIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::div(Value lhs, Value rhs) {
  return b.createOrFold<arith::DivUIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::divCeil(Value lhs, Value rhs) {
  return div(sub(add(lhs, rhs), constant(1)), rhs);
}
Value CollectiveBuilder::mod(Value lhs, Value rhs) {
  return b.createOrFold<arith::RemUIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::min(Value lhs, Value rhs) {
  return b.createOrFold<arith::MinUIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::equal(Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(loc(), arith::CmpIPredicate::eq, lhs,
                                       rhs);
}
Value CollectiveBuilder::less(Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(loc(), arith::CmpIPredicate::ult, lhs,
                                       rhs);
}
Value CollectiveBuilder::both(Value lhs, Value rhs) {
  return b.createOrFold<arith::AndIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::either(Value lhs, Value rhs) {
  return b.createOrFold<arith::OrIOp>(loc(), lhs, rhs);
}
Value CollectiveBuilder::select(Value condition, Value yes, Value no) {
  return b.createOrFold<arith::SelectOp>(loc(), condition, yes, no);
}

std::optional<int64_t> CollectiveBuilder::constantBlocks() const {
  if (std::optional<int64_t> known = getConstantIntValue(numBlocks))
    return known;
  return theProblem.op->getParentOfType<KernelOp>().getBlocks();
}

Value CollectiveBuilder::rankAfter(Value distance) {
  return mod(add(myRank, distance), numRanks());
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

Tiles CollectiveBuilder::loop(Value first, Value end, Value step,
                              ValueRange carried,
                              function_ref<Tiles(Value, ValueRange)> body) {
  auto loop =
      scf::ForOp::create(b, loc(), first, end, step, carried,
                         [&](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Tiles results = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc(), results);
  return Tiles(loop.getResults());
}

void CollectiveBuilder::loop(Value end, function_ref<void(Value)> body) {
  loop(constant(0), end, constant(1), {}, [&](Value i, ValueRange) {
    body(i);
    return Tiles();
  });
}

void CollectiveBuilder::forOwnTiles(function_ref<void(Value)> body) {
  std::optional<int64_t> blocks = constantBlocks();
  if (theProblem.isSized() && blocks && theProblem.tiles <= *blocks)
    return ifThen(less(myBlock, numTiles), [&] { body(myBlock); });
  loop(myBlock, numTiles, numBlocks, {}, [&](Value tile, ValueRange) {
    body(tile);
    return Tiles();
  });
}

void CollectiveBuilder::forRanksRotated(function_ref<void(Value)> body) {
  loop(numRanks(), [&](Value i) { body(rankAfter(add(i, constant(1)))); });
}

void CollectiveBuilder::ifThen(Value condition, function_ref<void()> body) {
  auto branch =
      scf::IfOp::create(b, loc(), condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenYield());
  body();
}

Tiles CollectiveBuilder::ifElse(Value condition, function_ref<Tiles()> yes,
                                function_ref<Tiles()> no) {
  // The types of the results are those that the first branch turns out to give.
  auto branch = [&](function_ref<Tiles()> body) {
    return [&, body](OpBuilder &, Location) {
      Tiles results = body();
      scf::YieldOp::create(b, loc(), results);
    };
  };
  return Tiles(scf::IfOp::create(b, loc(), condition, branch(yes), branch(no))
                   .getResults());
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value CollectiveBuilder::elementOffset(const TileArray &array, Value part,
                                       Value tile) {
  if (array.shared)
    return constant(0);
  Value offset = mul(tile, constant(array.tileLength));
  if (!part)
    return offset;
  Value elements = constant(array.partElements);
  if (theProblem.isSized())
    elements =
        theProblem.flat ? extent : mul(numTiles, constant(array.tileLength));
  return add(mul(part, elements), offset);
}

Value CollectiveBuilder::valid(Value tile) {
  if (tilesAreWhole || theProblem.hasWholeTiles())
    return Value();
  Value all = extent ? extent : constant(theProblem.partElements);
  Value rest = sub(all, mul(tile, constant(theProblem.tileSize)));
  return min(rest, constant(theProblem.tileSize));
}

/// The memref through which this rank reaches its own data.
static Value getMemory(OpBuilder &builder, Location loc, Value data) {
  if (auto window = dyn_cast<WindowType>(data.getType()))
    return LocalOp::create(builder, loc, window.getLocalType(), data);
  return data;
}

Value CollectiveBuilder::load(const TileArray &array, Value offset,
                              Value valid) {
  auto type = RankedTensorType::get({array.tileLength}, array.elementType);
  return TileLoadOp::create(b, loc(), type, getMemory(b, loc(), array.memory),
                            offset, valid,
                            /*after=*/Value());
}

void CollectiveBuilder::store(Value tile, const TileArray &array, Value offset,
                              Value valid) {
  TileStoreOp::create(b, loc(), tile, getMemory(b, loc(), array.memory), offset,
                      valid);
}

/// A constant made for rows, for tiles of type `type`.
static void resizeConstant(Operation *op, RankedTensorType type) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto value = dyn_cast<DenseElementsAttr>(constant.getValue()))
      constant.setValueAttr(value.resizeSplat(type));
}

/// Makes what `copy` gives as long as a flat tile. Flat regions treat each
/// element alone: what they say of a row holds for a tile of any length.
static void resizeResults(Operation *copy, int64_t tileSize) {
  for (Value result : copy->getResults())
    if (auto type = dyn_cast<RankedTensorType>(result.getType())) {
      auto tile = RankedTensorType::get({tileSize}, type.getElementType());
      resizeConstant(copy, tile);
      result.setType(tile);
    }
}

Tiles CollectiveBuilder::inlineRegion(Region &region, ValueRange arguments) {
  IRMapping mapping;
  Block &block = region.front();
  mapping.map(block.getArguments(), arguments);
  auto copy = [&](Operation &op) {
    Operation *copy = b.clone(op, mapping);
    if (theProblem.flat)
      resizeResults(copy, theProblem.tileSize);
  };
  for (Operation &op : block) {
    // Constants may have moved out of the region; they are tiles all the same.
    for (Value operand : op.getOperands())
      if (!mapping.contains(operand) && matchPattern(operand, m_Constant()) &&
          !region.isAncestor(operand.getParentRegion()))
        copy(*operand.getDefiningOp());
    if (!op.hasTrait<OpTrait::IsTerminator>())
      copy(op);
  }
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

Tiles CollectiveBuilder::produce(Value part, Value tile) {
  Tiles tiles;
  for (const TileArray &input : theProblem.inputs)
    tiles.push_back(load(input, elementOffset(input, part, tile), valid(tile)));
  return theProblem.produce ? inlineRegion(*theProblem.produce, tiles) : tiles;
}

Tiles CollectiveBuilder::makeOutputs(ValueRange arrived, Value part,
                                     Value tile) {
  Tiles results(arrived);
  if (theProblem.consume) {
    ArrayRef<BlockArgument> tiles = theProblem.consume->getArguments();
    for (auto [arg, read] :
         llvm::zip_equal(theProblem.args, tiles.drop_front(arrived.size())))
      results.push_back(
          read.use_empty()
              ? Value()
              : load(arg, elementOffset(arg, part, tile), valid(tile)));
    results = inlineRegion(*theProblem.consume, results);
  }
  for (auto [result, output] : llvm::zip_equal(results, theProblem.outputs))
    result = convertTile(b, loc(), result, output.elementType);
  return results;
}

void CollectiveBuilder::storeOutputs(ValueRange outputs, Value part, Value tile,
                                     Value peer) {
  for (auto [value, output] : llvm::zip_equal(outputs, theProblem.outputs)) {
    Value offset = elementOffset(output, part, tile);
    if (!peer) {
      store(value, output, offset, valid(tile));
      continue;
    }
    auto window = cast<WindowType>(output.memory.getType());
    // Other blocks of the kernel have arguments as well.
    auto kernel = theProblem.op->getParentOfType<KernelOp>();
    auto argument = dyn_cast<BlockArgument>(output.memory);
    if (argument && argument.getOwner() == &kernel.getBody().front())
      kernel.setArgAttr(argument.getArgNumber(), kHostAttr, b.getUnitAttr());
    Value memory = PeerOp::create(b, loc(), window.getLocalType(),
                                  output.memory, peer, theProblem.team);
    TileStoreOp::create(b, loc(), value, memory, offset, valid(tile));
  }
}

Tiles CollectiveBuilder::loadOutputs(Value part, Value tile) {
  return llvm::map_to_vector(
      theProblem.outputs, [&](const TileArray &output) -> Value {
        return load(output, elementOffset(output, part, tile), valid(tile));
      });
}

void CollectiveBuilder::consume(ValueRange arrived, Value part, Value tile) {
  storeOutputs(makeOutputs(arrived, part, tile), part, tile);
}

Tiles CollectiveBuilder::extend(ValueRange tiles) {
  return llvm::map_to_vector(tiles, [&](Value tile) {
    return convertTile(b, loc(), tile,
                       getAccumulatorType(getElementTypeOrSelf(tile)));
  });
}

Tiles CollectiveBuilder::combine(ValueRange lhs, ValueRange rhs) {
  Tiles results;
  for (auto [left, right] : llvm::zip_equal(lhs, rhs))
    results.push_back(
        combineTiles(b, loc(), *theProblem.reduction, left, right));
  return results;
}

/// A tile like `type` of one number.
static Value splat(OpBuilder &builder, Location loc, RankedTensorType type,
                   int64_t number) {
  Type elementType = type.getElementType();
  TypedAttr value =
      isa<FloatType>(elementType)
          ? TypedAttr(builder.getFloatAttr(elementType, double(number)))
          : TypedAttr(builder.getIntegerAttr(elementType, number));
  return arith::ConstantOp::create(
      builder, loc, SplatElementsAttr::get(type, Attribute(value)));
}

Tiles CollectiveBuilder::finish(ValueRange accumulators) {
  Tiles results(accumulators);
  if (theProblem.reduction != ReductionKind::Avg)
    return results;
  for (Value &tile : results) {
    auto type = cast<RankedTensorType>(tile.getType());
    Value count = splat(b, loc(), type, theProblem.ranks);
    tile = isa<FloatType>(type.getElementType())
               ? Value(arith::DivFOp::create(b, loc(), tile, count))
               : Value(arith::DivSIOp::create(b, loc(), tile, count));
  }
  return results;
}

Tiles CollectiveBuilder::round(ValueRange accumulators) {
  Tiles results(accumulators);
  for (auto [tile, wire] : llvm::zip_equal(results, theProblem.wires))
    tile = convertTile(b, loc(), tile,
                       theProblem.getPartialType(wire.elementType));
  return results;
}

Tiles CollectiveBuilder::foldRanks(function_ref<Tiles(Value)> get) {
  // Few ranks are unrolled: their sum then stays in registers.
  constexpr int64_t unrolled = 8;
  Tiles sum = extend(get(constant(0)));
  auto step = [&](Value rank, ValueRange sum) {
    return combine(sum, extend(get(rank)));
  };
  if (ranks() <= unrolled)
    for (int64_t rank = 1; rank < ranks(); ++rank)
      sum = step(constant(rank), sum);
  else
    sum = loop(constant(1), numRanks(), constant(1), sum, step);
  return finish(sum);
}

RankedTensorType CollectiveBuilder::wireType(size_t index, Type elementType) {
  return RankedTensorType::get({theProblem.wires[index].length}, elementType);
}

Tiles CollectiveBuilder::zeros(function_ref<Type(Type)> type) {
  Tiles results;
  for (auto [index, wire] : llvm::enumerate(theProblem.wires))
    results.push_back(
        splat(b, loc(), wireType(index, type(wire.elementType)), 0));
  return results;
}

Tiles CollectiveBuilder::zeros(Payload payload) {
  return zeros([&](Type type) {
    return payload == Payload::Wire ? type : theProblem.getPartialType(type);
  });
}

Tiles CollectiveBuilder::zeroAccumulators() {
  return zeros(getAccumulatorType);
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

Channels CollectiveBuilder::channels(ChannelPattern pattern, int64_t slots,
                                     Payload payload, bool reused) {
  Channels results;
  for (const WireTile &wire : theProblem.wires) {
    Type elementType = payload == Payload::Wire
                           ? wire.elementType
                           : theProblem.getPartialType(wire.elementType);
    auto type = ChannelType::get(b.getContext(), b.getStringAttr(protocol),
                                 wire.length, elementType);
    results.push_back(ChannelOp::create(b, loc(), type, theProblem.team,
                                        pattern, std::max<int64_t>(slots, 1),
                                        nextChannel++, reused));
  }
  return results;
}

bool CollectiveBuilder::canReuseSlots() const {
  return findProtocol(protocol)->reusable;
}

void CollectiveBuilder::send(const Channels &channels, ValueRange tiles,
                             Value slot, Value peer, Value tile) {
  for (auto [channel, value] : llvm::zip_equal(channels, tiles))
    SendOp::create(b, loc(), value, channel, slot, peer, valid(tile));
}

Tiles CollectiveBuilder::receive(const Channels &channels, Value slot,
                                 Value peer, Value tile) {
  return llvm::map_to_vector(channels, [&](Value channel) -> Value {
    auto type = cast<ChannelType>(channel.getType()).getTileType();
    return RecvOp::create(b, loc(), type, channel, slot, peer, valid(tile));
  });
}

void CollectiveBuilder::endRound(const Channels &channels) {
  for (Value channel : channels)
    ChannelBarrierOp::create(b, loc(), channel);
}

void CollectiveBuilder::beginCollective() {
  // What is ordered lies in other launches, and fences stand between launches.
  // Between the halves of a barrier there is no other of its team.
  if (!canReuseSlots())
    arrived = BarrierArriveOp::create(
        b, loc(), theProblem.team, BarrierExtent::Block, MemoryOrder::Relaxed);
}

void CollectiveBuilder::endCollective() {
  if (arrived)
    BarrierWaitOp::create(b, loc(), arrived, MemoryOrder::Relaxed);
  else
    barrier();
}

void CollectiveBuilder::barrier(MemoryOrder order) {
  BarrierOp::create(b, loc(), theProblem.team, BarrierExtent::Block, order);
}
