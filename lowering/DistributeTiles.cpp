//===- DistributeTiles.cpp - Tiles become loops over vectors --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each block of a kernel is planned (tiles/Stage.h: which ops share a loop) and
// then rewritten from its first op to its last. Tiles that control flow carries
// live in scratch memory; tiles of one element are scalars.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"

#include "lowering/tiles/Canonical.h"
#include "lowering/tiles/FoldLoops.h"
#include "lowering/tiles/GatherRows.h"
#include "lowering/tiles/Loops.h"
#include "lowering/tiles/Stage.h"
#include "lowering/tiles/StageEmitter.h"
#include "lowering/tiles/ThreadOrder.h"
#include "lowering/tiles/Threads.h"
#include "lowering/tiles/TileMemory.h"
#include "lowering/tiles/TileValues.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::comms {
#define GEN_PASS_DEF_DISTRIBUTETILES
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Lanes of a vector after this pass, at most.
static constexpr int64_t maxLanes = 16;
/// Elements of a tile, at most: its scratch memory has to stay addressable.
static constexpr int64_t maxTileLength = int64_t(1) << 28;

namespace {

/// Rewrites one kernel.
class Distributor {
public:
  /// `threads` is null where a block is one thread.
  Distributor(KernelOp kernel, int64_t lanes, Threads *threads)
      : kernel(kernel), threads(threads), memory(kernel, lanes, threads),
        values(memory) {}

  LogicalResult run();

private:
  /// What a block owes to ops around it: the copies at its end.
  LogicalResult emitBlock(Block &block, ArrayRef<Copy> atEnd);
  LogicalResult emitStage(const BlockPlan &plan, unsigned position);
  LogicalResult emitOp(const BlockPlan &plan, unsigned position);

  LogicalResult emitFor(const BlockPlan &plan, unsigned position,
                        scf::ForOp loop);
  LogicalResult emitIf(const BlockPlan &plan, unsigned position,
                       scf::IfOp branch);
  LogicalResult emitRegions(Operation *op);
  /// Rewrites a region's block whose yield carries tiles: long ones are written
  /// to the buffers of `targets`, others become the operands of a new yield.
  LogicalResult emitYieldingBlock(Block &block, ValueRange targets);

  LogicalResult emitConstant(arith::ConstantOp op);
  LogicalResult emitScalarOp(Operation *op);
  void emitScalarElementwise(Operation *op);
  void emitScalarLoad(TileLoadOp op);
  void emitScalarStore(TileStoreOp op);
  void emitVectorOfOne(Operation *op);

  Value takeForKept(const BlockPlan &plan, unsigned position, Value tile);
  /// Buffer of a result of scf.for or scf.if, made at its first use.
  Value getOrMakeBuffer(const BlockPlan &plan, unsigned position, Value tile);
  /// The buffer is free after the last item of `plan` that reads `tile`.
  void expireAfterLastUse(const BlockPlan &plan, unsigned position, Value tile,
                          Value buffer);

  /// Lets the threads meet before `place` where the ops of an item, or an op
  /// between two, need it.
  void orderBefore(Operation *place, ArrayRef<Operation *> ops);
  void orderItem(const Item &item);
  void orderLoop(Operation *loop);
  /// `body` on one thread of the block.
  void emitOnce(OpBuilder &builder, Location loc,
                llvm::function_ref<void(OpBuilder &)> body);

  KernelOp kernel;
  Threads *threads;
  TileMemory memory;
  TileValues values;
  ThreadOrder order;
  /// Ops that are replaced; erased when nothing refers to them.
  SmallVector<Operation *> dead;
  /// Buffers to give back, by plan and position in it.
  llvm::DenseMap<std::pair<const BlockPlan *, unsigned>, SmallVector<Value>>
      expiring;
};

} // namespace

//===----------------------------------------------------------------------===//
// Blocks and stages
//===----------------------------------------------------------------------===//

LogicalResult Distributor::run() {
  for (Block &block : kernel.getBody())
    if (failed(emitBlock(block, {})))
      return failure();
  for (Operation *op : dead)
    op->dropAllReferences();
  for (Operation *op : dead) {
    op->dropAllUses();
    op->erase();
  }
  return success();
}

LogicalResult Distributor::emitBlock(Block &block, ArrayRef<Copy> atEnd) {
  BlockPlan plan = planBlock(block, atEnd);
  // What is there now, without what is emitted.
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  ArrayRef<Operation *> rest = ops;
  for (unsigned position = 0; position < plan.items.size(); ++position) {
    if (threads) {
      while (rest.front() != plan.items[position].op) {
        if (!plan.itemOf.contains(rest.front()))
          orderBefore(rest.front(), rest.front());
        rest = rest.drop_front();
      }
      orderItem(plan.items[position]);
    }
    LogicalResult result = plan.items[position].stage
                               ? emitStage(plan, position)
                               : emitOp(plan, position);
    if (failed(result))
      return failure();
    auto it = expiring.find({&plan, position});
    if (it == expiring.end())
      continue;
    for (Value buffer : it->second)
      memory.give(buffer);
    expiring.erase(it);
  }
  if (threads)
    for (Operation *op : rest)
      if (!plan.itemOf.contains(op))
        orderBefore(op, op);
  return success();
}

void Distributor::orderBefore(Operation *place, ArrayRef<Operation *> ops) {
  if (llvm::any_of(ops, isMeeting))
    return order.meet();
  if (!order.mustMeetBefore(ops))
    return;
  OpBuilder builder(place);
  threads->emitBarrier(builder, place->getLoc());
}

void Distributor::orderItem(const Item &item) {
  if (item.stage)
    return orderBefore(item.op, item.stage->ops);
  if (item.op->getNumRegions() == 0)
    return orderBefore(item.op, item.op);
  // Ops in regions are ordered one by one.
  if (isa<LoopLikeOpInterface, ForPeersOp>(item.op))
    orderLoop(item.op);
}

void Distributor::orderLoop(Operation *loop) {
  if (!ThreadOrder::mustMeetInside(loop))
    return;
  for (Region &region : loop->getRegions()) {
    OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
    threads->emitBarrier(builder, loop->getLoc());
  }
}

void Distributor::emitOnce(OpBuilder &builder, Location loc,
                           llvm::function_ref<void(OpBuilder &)> body) {
  if (threads)
    threads->emitOnFirst(builder, loc, body);
  else
    body(builder);
}

/// Whether a use by a loop's start or a yield is met by a copy of the stage.
static bool isCopiedBy(const Stage &stage, OpOperand &use) {
  return llvm::any_of(stage.copies, [&](const Copy &copy) {
    return copy.source == use.get() && copy.user == use.getOwner();
  });
}

/// Tiles that the stage makes and ops outside it read.
static SmallVector<Value> getKeptTiles(const Stage &stage) {
  SmallVector<Value> kept;
  for (Operation *op : stage.ops)
    for (Value result : op->getResults())
      if (isLongTile(result.getType()) &&
          llvm::any_of(result.getUses(), [&](OpOperand &use) {
            return !stage.members.contains(use.getOwner()) &&
                   !isCopiedBy(stage, use);
          }))
        kept.push_back(result);
  return kept;
}

void Distributor::expireAfterLastUse(const BlockPlan &plan, unsigned position,
                                     Value tile, Value buffer) {
  Block *block = tile.getParentBlock();
  unsigned last = position;
  for (Operation *user : tile.getUsers()) {
    Operation *inBlock = block->findAncestorOpInBlock(*user);
    auto it = inBlock ? plan.itemOf.find(inBlock) : plan.itemOf.end();
    // Read by the terminator or in another block: never free.
    if (it == plan.itemOf.end())
      return;
    last = std::max(last, it->second);
  }
  expiring[{&plan, last}].push_back(buffer);
}

Value Distributor::getOrMakeBuffer(const BlockPlan &plan, unsigned position,
                                   Value tile) {
  if (Value buffer = values.getBuffer(tile))
    return buffer;
  auto type = cast<ShapedType>(tile.getType());
  Value buffer =
      memory.take(tile.getLoc(), type.getNumElements(), type.getElementType());
  values.setBuffer(tile, buffer);
  auto owner = plan.itemOf.find(tile.getDefiningOp());
  if (owner != plan.itemOf.end())
    expireAfterLastUse(plan, std::max(position, owner->second), tile, buffer);
  return buffer;
}

/// A stage writes what it keeps after it has read the same elements: a buffer
/// that it is the last to read may hold what it keeps.
Value Distributor::takeForKept(const BlockPlan &plan, unsigned position,
                               Value tile) {
  auto type = cast<ShapedType>(tile.getType());
  auto bufferType =
      memory.getBufferType(type.getNumElements(), type.getElementType());
  auto it = expiring.find({&plan, position});
  if (it != expiring.end()) {
    auto *free = llvm::find_if(it->second, [&](Value buffer) {
      return buffer.getType() == bufferType;
    });
    if (free != it->second.end()) {
      Value buffer = *free;
      it->second.erase(free);
      return buffer;
    }
  }
  return memory.take(tile.getLoc(), type.getNumElements(),
                     type.getElementType());
}

LogicalResult Distributor::emitStage(const BlockPlan &plan, unsigned position) {
  const Item &item = plan.items[position];
  const Stage &stage = *item.stage;
  OpBuilder builder(item.op);
  SmallVector<std::pair<Value, Value>> kept;
  bool inRegisters = threads && staysInRegisters(stage, *threads);
  for (Value tile : getKeptTiles(stage)) {
    if (inRegisters) {
      kept.push_back({tile, Value()});
      continue;
    }
    Value buffer = takeForKept(plan, position, tile);
    values.setBuffer(tile, buffer);
    kept.push_back({tile, buffer});
  }
  for (const Copy &copy : stage.copies)
    getOrMakeBuffer(plan, position, copy.target);
  if (failed(StageEmitter(builder, stage, values, kept).emit()))
    return failure();
  // Only now: buffers of this stage must not be taken by its own reductions.
  for (auto [tile, buffer] : kept)
    if (buffer)
      expireAfterLastUse(plan, position, tile, buffer);
  // A reduction ends where all threads have met.
  if (llvm::any_of(stage.ops,
                   [](Operation *op) { return isa<RowReduceOp>(op); }))
    order.meet();
  dead.append(stage.ops.begin(), stage.ops.end());
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult Distributor::emitOp(const BlockPlan &plan, unsigned position) {
  Operation *op = plan.items[position].op;
  if (op->getNumRegions()) {
    // Regions may be skipped: what was touched before them still is.
    ThreadOrder before = order;
    auto loop = dyn_cast<scf::ForOp>(op);
    auto branch = dyn_cast<scf::IfOp>(op);
    LogicalResult result = loop     ? emitFor(plan, position, loop)
                           : branch ? emitIf(plan, position, branch)
                                    : emitRegions(op);
    order.join(before);
    return result;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return emitConstant(constant);
  return emitScalarOp(op);
}

LogicalResult Distributor::emitRegions(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  bool carries = llvm::any_of(op->getResultTypes(), isTensor) ||
                 llvm::any_of(op->getOperandTypes(), isTensor);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      carries |= llvm::any_of(block.getArgumentTypes(), isTensor);
  if (carries)
    return op->emitOpError(
        "carries a tile: only scf.for and scf.if can; keep the tile in memory "
        "with comms.tile_store and comms.tile_load instead");
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>())
        return op->emitOpError(
            "holds tiles in a block without a terminator; such regions are "
            "not known to comms-distribute-tiles");
      if (failed(emitBlock(block, {})))
        return failure();
    }
  return success();
}

LogicalResult Distributor::emitYieldingBlock(Block &block, ValueRange targets) {
  auto yield = cast<scf::YieldOp>(block.getTerminator());
  if (failed(emitBlock(block, getCopies(yield, yield.getOperands(), targets))))
    return failure();
  SmallVector<Value> operands;
  for (Value operand : yield.getOperands())
    if (!isLongTile(operand.getType()))
      operands.push_back(values.getScalar(operand));
  OpBuilder builder(yield);
  scf::YieldOp::create(builder, yield.getLoc(), operands);
  yield.erase();
  return success();
}

/// The type that a carried value has afterwards; null for a long tile.
static Type getCarriedType(Type type) {
  if (isLongTile(type))
    return {};
  return getTileLength(type) ? cast<ShapedType>(type).getElementType() : type;
}

LogicalResult Distributor::emitFor(const BlockPlan &plan, unsigned position,
                                   scf::ForOp loop) {
  if (llvm::none_of(loop.getResultTypes(),
                    [](Type type) { return isa<TensorType>(type); })) {
    return emitBlock(*loop.getBody(), {});
  }
  OpBuilder builder(loop);
  SmallVector<Value> inits;
  for (Value init : loop.getInitArgs())
    if (getCarriedType(init.getType()))
      inits.push_back(values.getScalar(init));
  auto made = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                                 loop.getUpperBound(), loop.getStep(), inits);
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = made.getBody();
  if (!body->empty())
    body->back().erase();
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(made.getInductionVar());

  unsigned next = 0;
  for (auto [arg, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
    if (isLongTile(arg.getType())) {
      values.setBuffer(arg, getOrMakeBuffer(plan, position, result));
      continue;
    }
    Value newArg = made.getRegionIterArgs()[next],
          newResult = made.getResult(next);
    ++next;
    if (isa<TensorType>(arg.getType())) {
      values.setScalar(arg, newArg);
      values.setScalar(result, newResult);
      continue;
    }
    arg.replaceAllUsesWith(newArg);
    result.replaceAllUsesWith(newResult);
  }
  if (failed(emitYieldingBlock(*body, loop.getResults())))
    return failure();
  dead.push_back(loop);
  return success();
}

LogicalResult Distributor::emitIf(const BlockPlan &plan, unsigned position,
                                  scf::IfOp branch) {
  if (llvm::none_of(branch.getResultTypes(),
                    [](Type type) { return isa<TensorType>(type); }))
    return emitRegions(branch);
  SmallVector<Type> types;
  for (Type type : branch.getResultTypes())
    if (Type carried = getCarriedType(type))
      types.push_back(carried);
  OpBuilder builder(branch);
  auto made =
      scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition(),
                        /*addThenBlock=*/false, /*addElseBlock=*/false);
  made->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (Value result : branch.getResults())
    if (isLongTile(result.getType()))
      getOrMakeBuffer(plan, position, result);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), made->getRegions())) {
    if (failed(emitYieldingBlock(from.front(), branch.getResults())))
      return failure();
    to.takeBody(from);
  }
  unsigned next = 0;
  for (Value result : branch.getResults()) {
    if (isLongTile(result.getType()))
      continue;
    Value newResult = made.getResult(next++);
    if (isa<TensorType>(result.getType()))
      values.setScalar(result, newResult);
    else
      result.replaceAllUsesWith(newResult);
  }
  dead.push_back(branch);
  return success();
}

//===----------------------------------------------------------------------===//
// Constants and tiles of one element
//===----------------------------------------------------------------------===//

/// Where `op` is in the source. What folding has made of several constants has
/// no place of its own; its first user has.
static Location placeOf(Operation *op) {
  for (Operation *user : op->getUsers())
    if (isa<UnknownLoc>(op->getLoc()) && !isa<UnknownLoc>(user->getLoc()))
      return user->getLoc();
  return op->getLoc();
}

/// A long constant that is no splat is written to scratch memory, vector by
/// vector, at the start of the kernel.
LogicalResult Distributor::emitConstant(arith::ConstantOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  dead.push_back(op);
  if (!isLongTile(type)) {
    auto elements = cast<DenseElementsAttr>(op.getValue());
    OpBuilder builder(op);
    auto scalar = cast<TypedAttr>(*elements.getValues<Attribute>().begin());
    values.setScalar(op,
                     arith::ConstantOp::create(builder, op.getLoc(), scalar));
    return success();
  }
  if (isRecomputed(op))
    return success();
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError(
        "is no dense constant: a tile's constant has to be dense");
  if (threads)
    return emitError(placeOf(op))
           << "'arith.constant' op is a tile of different numbers, which "
              "threads cannot share yet: load it from memory, or compute it "
              "from comms.iota";
  int64_t lanes = memory.getLanes(), length = type.getNumElements();
  Value buffer = memory.takeNew(op.getLoc(), length, type.getElementType());
  values.setBuffer(op, buffer);
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  builder.setInsertionPointAfterValue(buffer);
  SmallVector<Attribute> all(elements.getValues<Attribute>());
  for (int64_t first = 0; first < length; first += lanes) {
    int64_t count = std::min(lanes, length - first);
    auto part =
        DenseElementsAttr::get(VectorType::get({count}, type.getElementType()),
                               ArrayRef(all).slice(first, count));
    Value vector = arith::ConstantOp::create(builder, op.getLoc(), part);
    TileMemory::write(builder, op.getLoc(), vector, buffer,
                      getIndex(builder, op.getLoc(), first));
  }
  return success();
}

LogicalResult Distributor::emitScalarOp(Operation *op) {
  dead.push_back(op);
  // Long tiles that are made again at each use need nothing here.
  if (isRecomputed(op) && isLongTile(op->getResult(0).getType()))
    return success();
  OpBuilder builder(op);
  if (auto load = dyn_cast<TileLoadOp>(op))
    emitScalarLoad(load);
  else if (auto store = dyn_cast<TileStoreOp>(op))
    emitScalarStore(store);
  else if (isa<TileOpInterface>(op) && !isa<SendOp, RecvOp>(op))
    emitVectorOfOne(op);
  else if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    extract.getResult().replaceAllUsesWith(
        values.getScalar(extract.getTensor()));
  else if (isa<SplatOp, BroadcastRowOp, RowReduceOp>(op))
    values.setScalar(op->getResult(0), values.getScalar(op->getOperand(0)));
  else if (isa<IotaOp>(op)) {
    Type type = cast<ShapedType>(op->getResult(0).getType()).getElementType();
    values.setScalar(op->getResult(0),
                     arith::ConstantOp::create(builder, op->getLoc(),
                                               builder.getZeroAttr(type)));
  } else if (op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0)
    emitScalarElementwise(op);
  else
    return op->emitOpError(
        "is not known to comms-distribute-tiles: of ops on tensors it knows "
        "tiles (rank 1, static length), their memory ops, row_reduce, splat, "
        "broadcast_row, iota, tensor.extract of a tile of 1 and elementwise "
        "arith and math; channel ops have to be lowered first, by "
        "comms-lower-channels");
  return success();
}

void Distributor::emitScalarElementwise(Operation *op) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, values.getScalar(operand));
  OpBuilder builder(op);
  Operation *copy = builder.clone(*op, mapping);
  for (auto [tile, scalar] :
       llvm::zip_equal(op->getResults(), copy->getResults())) {
    scalar.setType(cast<ShapedType>(tile.getType()).getElementType());
    values.setScalar(tile, scalar);
  }
}

/// Whether a tile of one element exists: valid > 0. Null: always.
static Value getExists(OpBuilder &builder, Location loc, Value valid) {
  if (!valid)
    return {};
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, valid,
                               getIndex(builder, loc, 0));
}

void Distributor::emitScalarLoad(TileLoadOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value memref = getFlatView(builder, loc, op.getMemref());
  auto load = [&](OpBuilder &b) -> Value {
    return memref::LoadOp::create(b, loc, memref, ValueRange(op.getOffset()));
  };
  Value exists = getExists(builder, loc, op.getValid());
  if (!exists)
    return values.setScalar(op.getTile(), load(builder));
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  auto branch = scf::IfOp::create(
      builder, loc, exists,
      [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, load(b)); },
      [&](OpBuilder &b, Location) {
        Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
        scf::YieldOp::create(b, loc, zero);
      });
  values.setScalar(op.getTile(), branch.getResult(0));
}

void Distributor::emitScalarStore(TileStoreOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value memref = getFlatView(builder, loc, op.getMemref());
  Value scalar = canonicalizeNaN(builder, loc, values.getScalar(op.getTile()),
                                 op.getTile());
  if (Value exists = getExists(builder, loc, op.getValid())) {
    auto branch =
        scf::IfOp::create(builder, loc, exists, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
  }
  emitOnce(builder, loc, [&](OpBuilder &b) {
    memref::StoreOp::create(b, loc, scalar, memref, ValueRange(op.getOffset()));
  });
}

void Distributor::emitVectorOfOne(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto tileOp = cast<TileOpInterface>(op);
  Value tile = tileOp.getTileValue();
  VectorPart part{TileValues::getVectorType(tile, 1), Value(), Value(),
                  tileOp.getValid()};
  if (op->getNumResults() == 0) {
    Value scalar = canonicalizeNaN(builder, loc, values.getScalar(tile), tile);
    part.vector = vector::BroadcastOp::create(builder, loc, part.type, scalar);
    return emitOnce(builder, loc,
                    [&](OpBuilder &b) { (void)moveVector(b, op, part); });
  }
  if (Value vector = moveVector(builder, op, part))
    values.setScalar(tile, vector::ExtractOp::create(builder, loc, vector, 0));
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Every tensor is a tile: rank 1, at least one element, of numbers.
static LogicalResult checkTile(Operation *op, Type type) {
  if (!isa<TensorType>(type))
    return success();
  std::optional<int64_t> length = getTileLength(type);
  if (!length || *length < 1 ||
      !cast<ShapedType>(type).getElementType().isIntOrIndexOrFloat())
    return op->emitOpError()
           << "has a value of type " << type
           << ": a tile is a tensor of rank 1 with a static length of at least "
              "1; give the array a static shape";
  if (*length > maxTileLength)
    return op->emitOpError()
           << "has a tile of " << *length << " elements, more than the "
           << maxTileLength << " that a tile may have; cut it into tiles";
  return success();
}

static LogicalResult checkMemory(Operation *op) {
  auto tileOp = dyn_cast<TileOpInterface>(op);
  if (!tileOp)
    return success();
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<MemRefType>(operand.getType()))
      if (!type.getLayout().isIdentity())
        return op->emitOpError()
               << "addresses memory of type " << type
               << ": a tile's memory has to be contiguous, without a layout";
  return success();
}

/// The average of integers divides by a number that its type has to hold.
static LogicalResult checkReduction(Operation *op) {
  auto reduce = dyn_cast<RowReduceOp>(op);
  if (!reduce)
    return success();
  auto type = cast<ShapedType>(reduce.getTile().getType());
  auto integer = dyn_cast<IntegerType>(type.getElementType());
  if (reduce.getKind() != ReductionKind::Avg || !integer ||
      integer.getWidth() > 62)
    return success();
  if (type.getNumElements() < (int64_t(1) << (integer.getWidth() - 1)))
    return success();
  return op->emitOpError()
         << "averages " << type.getNumElements() << " elements of " << integer
         << ", which cannot hold that number; extend the tile first";
}

/// Tiles pass between blocks by scf alone: an edge of a control-flow graph has
/// no place to keep one.
static LogicalResult checkFlow(Operation *op) {
  for (Value operand : op->getOperands()) {
    if (!isa<TensorType>(operand.getType()) ||
        operand.getParentBlock()->findAncestorOpInBlock(*op))
      continue;
    return op->emitOpError(
        "uses a tile of another block; keep it in memory with "
        "comms.tile_store and comms.tile_load, or use scf.for and scf.if");
  }
  if (isa<scf::ForOp>(op))
    return success();
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (isa<TensorType>(type))
          return op->emitOpError(
              "carries a tile: only scf.for and scf.if can; keep the tile in "
              "memory with comms.tile_store and comms.tile_load instead");
  return success();
}

static LogicalResult checkOp(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (failed(checkTile(op, type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(checkTile(op, type)))
      return failure();
  return success(succeeded(checkMemory(op)) && succeeded(checkReduction(op)) &&
                 succeeded(checkFlow(op)));
}

/// What has no meaning where a block is many threads.
static LogicalResult checkForThreads(Operation *op) {
  if (isa<memref::StoreOp>(op))
    return op->emitOpError(
        "stores from a block of many threads, where each has this memory for "
        "itself or its elements are no row of numbers: use comms.tile_store of "
        "a tile of one element, which one thread stores");
  auto reduce = dyn_cast<RowReduceOp>(op);
  Type type =
      reduce ? getElementTypeOrSelf(reduce.getTile().getType()) : Type();
  if (type && type.isIntOrFloat() && type.getIntOrFloatBitWidth() > 64)
    return op->emitOpError() << "combines elements of " << type
                             << ", but threads exchange 64 bits at most";
  return success();
}

/// Number of the element that `store` writes, in row-major order.
static Value getFlatIndex(OpBuilder &builder, memref::StoreOp store) {
  Location loc = store.getLoc();
  Value flat = getIndex(builder, loc, 0);
  for (auto [position, index] : llvm::enumerate(store.getIndices())) {
    if (position == 0) {
      flat = index;
      continue;
    }
    Value extent =
        memref::DimOp::create(builder, loc, store.getMemref(), position);
    Value before = arith::MulIOp::create(builder, loc, flat, extent);
    flat = arith::AddIOp::create(builder, loc, before, index);
  }
  return flat;
}

/// A store of one element becomes that of a tile of one: of many threads, one
/// stores it. Not where every thread has memory of its own.
static void storeTilesOfOne(KernelOp kernel) {
  SmallVector<memref::StoreOp> stores;
  kernel.walk([&](memref::StoreOp store) { stores.push_back(store); });
  for (memref::StoreOp store : stores) {
    MemRefType type = store.getMemRefType();
    Operation *source = store.getMemref().getDefiningOp();
    bool shared = source ? isa<CommsDialect>(source->getDialect())
                         : llvm::is_contained(kernel.getBody().getArguments(),
                                              store.getMemref());
    if (!shared)
      continue;
    if (!type.getLayout().isIdentity() ||
        !type.getElementType().isSignlessIntOrFloat())
      continue;
    OpBuilder builder(store);
    Value tile = SplatOp::create(
        builder, store.getLoc(),
        RankedTensorType::get({1}, type.getElementType()), store.getValue());
    TileStoreOp::create(builder, store.getLoc(), tile, store.getMemref(),
                        getFlatIndex(builder, store), /*valid=*/Value());
    store.erase();
  }
}

/// What this pass promises: no tensor, no long vector.
static LogicalResult checkDistributed(Operation *op) {
  auto isWrong = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return isa<TensorType>(type) ||
           (vector && vector.getNumElements() > maxLanes);
  };
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                SmallVector<Type>(op->getResultTypes())))
    if (isWrong(type))
      return op->emitOpError()
             << "still has a value of type " << type
             << " after comms-distribute-tiles: tensors are gone by then, and "
                "vectors have at most "
             << maxLanes << " elements";
  return success();
}

static LogicalResult walkAll(KernelOp kernel,
                             LogicalResult (*check)(Operation *)) {
  return failure(kernel
                     .walk([&](Operation *op) {
                       return failed(check(op)) ? WalkResult::interrupt()
                                                : WalkResult::advance();
                     })
                     .wasInterrupted());
}

namespace {
struct DistributeTilesPass
    : comms::impl::DistributeTilesBase<DistributeTilesPass> {
  using DistributeTilesBase::DistributeTilesBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (lanes < 1 || lanes > maxLanes || !llvm::isPowerOf2_64(lanes)) {
      kernel.emitError() << "comms-distribute-tiles: lanes = "
                         << lanes.getValue() << " is not 1, 2, 4, 8 or 16";
      return signalPassFailure();
    }
    if (failed(checkThreads(kernel)))
      return signalPassFailure();
    if (kernel.getBody().empty())
      return;
    // Code that nothing reaches may use what is not there yet.
    IRRewriter rewriter(&getContext());
    (void)eraseUnreachableBlocks(rewriter, kernel->getRegions());
    storeTilesOfOne(kernel);
    if (failed(walkAll(kernel, checkOp)))
      return signalPassFailure();
    unrollFoldLoops(kernel);
    std::optional<Threads> block;
    if (threads > 0) {
      if (failed(walkAll(kernel, checkForThreads)))
        return signalPassFailure();
      gatherRows(kernel);
      block.emplace(kernel, threads, cluster);
      if (block->reduces())
        block->awaitCluster(countArrivals);
      Builder builder(&getContext());
      kernel->setAttr(kThreadsAttr, builder.getI64IntegerAttr(threads));
      kernel->setAttr(kClusterAttr, builder.getI64IntegerAttr(cluster));
    }
    // Whole i64 of lines: eight elements have eight bytes or more.
    constexpr int64_t lanesOfLines = 8;
    bool lines = kernel
                     .walk([](Operation *op) {
                       return movesLines(op) ? WalkResult::interrupt()
                                             : WalkResult::advance();
                     })
                     .wasInterrupted();
    int64_t most = lines ? std::max<int64_t>(lanes, lanesOfLines) : lanes;
    if (failed(Distributor(kernel, most, block ? &*block : nullptr).run()) ||
        failed(walkAll(kernel, checkDistributed)))
      signalPassFailure();
  }

private:
  LogicalResult checkThreads(KernelOp kernel) {
    if (threads == 0 && cluster == 1)
      return success();
    if (threads < kWarp || threads > 1024 || !llvm::isPowerOf2_64(threads))
      return kernel.emitError()
             << "comms-distribute-tiles: threads = " << threads.getValue()
             << " is not 32, 64, 128, 256, 512 or 1024";
    if (cluster < 1 || cluster > 16 || !llvm::isPowerOf2_64(cluster))
      return kernel.emitError()
             << "comms-distribute-tiles: cluster = " << cluster.getValue()
             << " is not 1, 2, 4, 8 or 16";
    return success();
  }
};
} // namespace
