//===- Threads.cpp - The threads that share a block's tiles ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Threads.h"

#include "dialect/Packets.h"
#include "lowering/tiles/Stage.h"
#include "lowering/tiles/TileMemory.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Bytes that one access moves, at most.
static constexpr int64_t accessBytes = 16;
/// Lanes that a vector has, at most.
static constexpr int64_t maxLanes = 16;

/// Bits of the memory elements in which `op` keeps its tile.
static int64_t getMemoryBits(TileOpInterface op) {
  Type type = getElementTypeOrSelf(op.getTileValue().getType());
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
}

/// Whether a run of the kernel may reach `op` more than once.
static bool mayRepeat(Operation *op) {
  for (; !isa<KernelOp>(op); op = op->getParentOp())
    if (!op->getParentRegion()->hasOneBlock() ||
        isa<LoopLikeOpInterface, ForPeersOp>(op->getParentOp()))
      return true;
  return false;
}

/// Lanes of vectors of a tile of `length` elements. `most` and `least` give the
/// narrowest and the widest element that memory holds 16 bytes; where the most
/// would leave threads idle, narrow elements move in pieces of less, but no
/// less than the 32 bits of a packet. So do all in a warp that is alone: where
/// none of its threads is idle, none branches, and loads need not wait for what
/// the branch has waited for.
static int64_t chooseLanes(int64_t length, int64_t count, int64_t most,
                           int64_t least) {
  least = count == kWarp ? std::max<int64_t>(most / 4, 1)
                         : std::max(least, most / 4);
  while (most > least && most * count > length)
    most /= 2;
  return most;
}

Threads::Threads(KernelOp kernel, int64_t threads, int64_t cluster,
                 const ThreadTarget &target)
    : kernel(kernel), threads(threads), cluster(cluster), target(target) {
  llvm::DenseMap<int64_t, int64_t> least, ofLines;
  kernel.walk([&](Operation *op) {
    if (auto tileOp = dyn_cast<TileOpInterface>(op)) {
      std::optional<int64_t> length =
          getTileLength(tileOp.getTileValue().getType());
      int64_t bits = std::max<int64_t>(getMemoryBits(tileOp), 8);
      if (length) {
        int64_t wanted =
            std::clamp<int64_t>(accessBytes * 8 / bits, 1, maxLanes);
        int64_t &most = lanes[*length];
        most = std::max(most, wanted);
        int64_t &fewest = least.try_emplace(*length, wanted).first->second;
        fewest = std::min(fewest, wanted);
        if (movesLines(op))
          ofLines[*length] = std::max(ofLines[*length], wanted);
      }
    }
    mayLeave |= isa<CheckBoundsOp>(op);
    if (!isa<RowReduceOp>(op) || !isLongTile(op->getOperand(0).getType()))
      return;
    ++reductions;
    reducesInLoop |= mayRepeat(op);
  });
  for (auto &[length, chosen] : lanes)
    chosen = chooseLanes(length, getCount(), chosen, least[length]);
  // A thread moves 16 bytes of a line, or of several lines.
  for (auto [length, wanted] : ofLines)
    lanes[length] = wanted;
}

int64_t Threads::getLanes(int64_t length) const {
  auto it = lanes.find(length);
  // Tiles that memory never holds: as f32.
  return it == lanes.end() ? accessBytes / 4 : it->second;
}

int64_t Threads::getTrips(int64_t length) const {
  return llvm::divideCeil(length, getStride(length));
}

OpBuilder Threads::atEntry() {
  if (entry)
    return OpBuilder(entry->getBlock(), std::next(entry->getIterator()));
  return OpBuilder::atBlockBegin(&kernel.getBody().front());
}

Value Threads::getNumber() {
  if (number)
    return number;
  OpBuilder builder = atEntry();
  Location loc = kernel.getLoc();
  number = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  if (cluster > 1) {
    Value cta = target.emitClusterCta(builder, loc);
    cta =
        arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), cta);
    Value before = arith::MulIOp::create(builder, loc, cta,
                                         getIndex(builder, loc, threads));
    number = arith::AddIOp::create(builder, loc, before, number);
  }
  entry = number.getDefiningOp();
  return number;
}

Value Threads::getLane() {
  if (lane)
    return lane;
  getNumber();
  OpBuilder builder = atEntry();
  Location loc = kernel.getLoc();
  lane = arith::AndIOp::create(builder, loc, number,
                               getIndex(builder, loc, kWarp - 1));
  entry = lane.getDefiningOp();
  return lane;
}

Value Threads::getFirst(int64_t length) {
  getNumber();
  Value &first = firsts[getLanes(length)];
  if (first)
    return first;
  OpBuilder builder = atEntry();
  Location loc = kernel.getLoc();
  first = arith::MulIOp::create(builder, loc, number,
                                getIndex(builder, loc, getLanes(length)));
  entry = first.getDefiningOp();
  return first;
}

void Threads::emitBarrier(OpBuilder &builder, Location loc) const {
  if (cluster == 1) {
    gpu::BarrierOp::create(builder, loc);
    return;
  }
  target.emitClusterArrive(builder, loc, /*relaxed=*/false);
  target.emitClusterWait(builder, loc);
}

void Threads::emitOnFirst(OpBuilder &builder, Location loc,
                          llvm::function_ref<void(OpBuilder &)> body) {
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        getNumber(), getIndex(builder, loc, 0));
  auto branch =
      scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder inner = OpBuilder::atBlockTerminator(branch.thenBlock());
  body(inner);
}

Value Threads::makePrivate(Location loc, int64_t length, Type elementType) {
  getNumber();
  OpBuilder builder = atEntry();
  auto alloca = memref::AllocaOp::create(
      builder, loc, MemRefType::get({length}, elementType));
  entry = alloca;
  return alloca;
}

Value Threads::makeShared(Location loc, int64_t length, Type elementType) {
  getNumber();
  OpBuilder builder = atEntry();
  auto space = MemorySpaceAttr::get(kernel.getContext(), MemorySpace::Shared);
  auto scratch =
      ScratchOp::create(builder, loc,
                        MemRefType::get({length}, elementType,
                                        MemRefLayoutAttrInterface{}, space));
  entry = scratch;
  return scratch;
}

Value Threads::takeTurn(OpBuilder &builder, Location loc) {
  if (!reducesInLoop)
    return {};
  if (!turn) {
    turn = makePrivate(loc, 1, builder.getIndexType());
    OpBuilder start = atEntry();
    Value zero = getIndex(start, loc, 0);
    auto store =
        memref::StoreOp::create(start, loc, zero, turn, ValueRange(zero));
    entry = store;
  }
  Value zero = getIndex(builder, loc, 0);
  Value now = memref::LoadOp::create(builder, loc, turn, ValueRange(zero));
  Value next =
      arith::XOrIOp::create(builder, loc, now, getIndex(builder, loc, 1));
  memref::StoreOp::create(builder, loc, next, turn, ValueRange(zero));
  return now;
}

/// Whether a barrier may follow `op`, or stand in or for it.
static bool mayHaveBarrier(Operation *op) {
  return op->getNumRegions() || isSynchronization(op) ||
         (touchesTiles(op) && !isMemoryEffectFree(op)) ||
         isa<RowReduceOp>(op) || op->hasTrait<OpTrait::IsTerminator>();
}

int64_t Threads::getWordBytes(Type elementType) {
  bool wide = elementType.isIndex() || elementType.getIntOrFloatBitWidth() > 32;
  return wide ? 8 : 4;
}

/// The number of cell `index` of `cells` (i64) in shared memory: i32.
static Value getCell(ImplicitLocOpBuilder &b, Value cells, int64_t index) {
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, cells);
  Value at = b.createOrFold<arith::AddIOp>(
      start, getIndex(b, b.getLoc(), index * sizeof(int64_t)));
  return arith::IndexCastOp::create(b, b.getI32Type(), at);
}

void Threads::makeArrivals() {
  Location loc = kernel.getLoc();
  arrivals =
      makeShared(loc, reductions, IntegerType::get(kernel.getContext(), 64));
  ImplicitLocOpBuilder b(loc, atEntry());
  Value ofCta = arith::AndIOp::create(b, number, getIndex(b, loc, threads - 1));
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, ofCta,
                                        getIndex(b, loc, 0));
  makesArrivals = arith::ExtUIOp::create(b, b.getI32Type(), isFirst);
  target.emitArrivalsFence(b);
  fence = entry = &*std::prev(b.getInsertionPoint());
}

Value Threads::takeArrival(OpBuilder &builder, Location loc, int64_t bytes) {
  if (!arrivals)
    return {};
  int64_t index = taken++;
  ImplicitLocOpBuilder start(loc, OpBuilder(fence));
  Value expected = arith::ConstantIntOp::create(start, bytes, 32);
  target.emitExpectBytes(start, getCell(start, arrivals, index), expected,
                         makesArrivals);
  ImplicitLocOpBuilder b(loc, builder);
  return getCell(b, arrivals, index);
}

void Threads::awaitCluster(bool countArrivals) {
  if (cluster == 1)
    return;
  getNumber();
  if (countArrivals && !reducesInLoop && !mayLeave)
    makeArrivals();
  Location loc = kernel.getLoc();
  OpBuilder builder = atEntry();
  entry = target.emitClusterArrive(builder, loc, /*relaxed=*/true);
  // What loads and computes until then hides the wait.
  Block &block = kernel.getBody().front();
  Operation *place = &*llvm::find_if(
      llvm::make_range(std::next(entry->getIterator()), block.end()),
      [](Operation &op) { return mayHaveBarrier(&op); });
  builder.setInsertionPoint(place);
  target.emitClusterWait(builder, loc);
}

//===----------------------------------------------------------------------===//
// Alignment
//===----------------------------------------------------------------------===//

static constexpr int64_t maxDivisor = int64_t(1) << 20;

static int64_t getDivisor(Value index, unsigned depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant == 0
               ? maxDivisor
               : std::min<int64_t>(*constant & -*constant, maxDivisor);
  // Enough for what lowering writes; a cycle of a graph ends here too.
  if (depth == 0)
    return 1;
  auto of = [&](Value value) { return getDivisor(value, depth - 1); };
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || loop.getInductionVar() != index)
      return 1;
    return std::min(of(loop.getLowerBound()), of(loop.getStep()));
  }
  Operation *op = index.getDefiningOp();
  if (isa<arith::MulIOp>(op))
    return std::min(of(op->getOperand(0)) * of(op->getOperand(1)), maxDivisor);
  if (isa<arith::AddIOp, arith::SubIOp, arith::RemUIOp, arith::RemSIOp,
          arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp>(op))
    return std::min(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::SelectOp>(op))
    return std::min(of(op->getOperand(1)), of(op->getOperand(2)));
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return of(op->getOperand(0));
  return 1;
}

int64_t tiles::getDivisor(Value index) { return ::getDivisor(index, 16); }

bool tiles::movesLines(Operation *op) {
  if (auto store = dyn_cast<PacketStoreOp>(op))
    return areLines(store.getAssumes());
  auto load = dyn_cast<PacketLoadOp>(op);
  return load && areLines(load.getAssumes());
}
