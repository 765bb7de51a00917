//===- StageEmitter.cpp - The loop of one stage ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/StageEmitter.h"

#include "dialect/Packets.h"
#include "lowering/tiles/Canonical.h"
#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// The number of leading elements that a memory op moves, or null: all.
static Value getValid(Operation *op) {
  auto tileOp = dyn_cast<TileOpInterface>(op);
  Value valid = tileOp ? tileOp.getValid() : Value();
  if (!valid)
    return {};
  std::optional<int64_t> constant = getConstantIntValue(valid);
  bool whole =
      constant && *constant >= *getTileLength(tileOp.getTileValue().getType());
  return whole ? Value() : valid;
}

/// Packets and poison: their ops keep whole vectors and say how many lanes
/// exist.
static bool isPolled(Operation *op) {
  return isa<PacketLoadOp, PacketStoreOp, PoisonLoadOp, PoisonStoreOp>(op);
}

/// Ops other than tile_load and tile_store that stay, on vectors.
static bool isMoved(Operation *op) {
  return isPolled(op) ||
         isa<MultimemLoadReduceOp, MultimemStoreOp, MultimemReduceOp>(op);
}

Location StageEmitter::getLoc() const {
  return stage.ops.empty() ? stage.copies.front().source.getLoc()
                           : stage.ops.front()->getLoc();
}

int64_t StageEmitter::getTogether() const {
  int64_t widest = 0;
  for (Operation *op : stage.ops)
    if (movesLines(op)) {
      Type tile = cast<TileOpInterface>(op).getTileValue().getType();
      widest = std::max(
          widest, kLineBits / cast<ShapedType>(tile).getElementTypeBitWidth());
    }
  if (widest == 0)
    return lanes;
  return threads ? kWarp * lanes : widest;
}

/// Memory elements before tile element `index`: packets hold 32 bits each,
/// lines 64.
static Value getUnitIndex(OpBuilder &b, Location loc, Operation *op,
                          const VectorPart &part) {
  Value index = part.index;
  if (!index || !isa<PacketLoadOp, PacketStoreOp>(op))
    return index;
  int64_t bits = part.type.getElementTypeBitWidth();
  auto constant = [&](int64_t value) { return getIndex(b, loc, value); };
  auto scaled = [&](Value elements, int64_t unitBits) -> Value {
    if (bits == unitBits)
      return elements;
    if (bits > unitBits)
      return arith::MulIOp::create(b, loc, elements, constant(bits / unitBits));
    return arith::DivUIOp::create(b, loc, elements, constant(unitBits / bits));
  };
  if (!movesLines(op))
    return scaled(index, 32);
  int64_t lanes = part.type.getNumElements();
  if (!part.spread || lanes * bits == kLineBits / kLineThreads)
    return scaled(index, 64);
  // A thread with several times 16 bytes moves a part of as many lines, so that
  // in each access the threads of a line are neighbors: thread t of eight has
  // the t-th 16 bytes of each of their lines.
  int64_t shared = kLineThreads * lanes;
  Value first = arith::AndIOp::create(b, loc, index, constant(-shared));
  Value rest = arith::SubIOp::create(b, loc, index, first);
  Value thread = arith::DivUIOp::create(b, loc, rest, constant(lanes));
  Value within = arith::MulIOp::create(b, loc, thread,
                                       constant(kLineUnits / kLineThreads));
  return arith::AddIOp::create(b, loc, scaled(first, 64), within);
}

Value tiles::moveVector(OpBuilder &b, Operation *op, const VectorPart &part) {
  Location loc = op->getLoc();
  VectorType type = part.type;
  auto at = [&](Value offset) -> Value {
    Value index = getUnitIndex(b, loc, op, part);
    return index ? arith::AddIOp::create(b, loc, offset, index) : offset;
  };
  if (auto o = dyn_cast<PacketStoreOp>(op)) {
    PacketStoreOp::create(b, loc, part.vector, o.getMemref(), at(o.getOffset()),
                          o.getFlag(), part.count, o.getAssumes());
    return {};
  }
  if (auto o = dyn_cast<PoisonStoreOp>(op)) {
    PoisonStoreOp::create(b, loc, part.vector, o.getMemref(), at(o.getOffset()),
                          part.count);
    return {};
  }
  if (auto o = dyn_cast<MultimemStoreOp>(op)) {
    MultimemStoreOp::create(b, loc, part.vector, o.getMemref(),
                            at(o.getOffset()), part.count);
    return {};
  }
  if (auto o = dyn_cast<MultimemReduceOp>(op)) {
    MultimemReduceOp::create(b, loc, o.getKind(), part.vector, o.getMemref(),
                             at(o.getOffset()), part.count);
    return {};
  }
  if (auto o = dyn_cast<PacketLoadOp>(op))
    return PacketLoadOp::create(b, loc, type, o.getMemref(), at(o.getOffset()),
                                o.getFlag(), part.count, o.getAssumes());
  if (auto o = dyn_cast<PoisonLoadOp>(op))
    return PoisonLoadOp::create(b, loc, type, o.getMemref(), at(o.getOffset()),
                                part.count);
  auto o = cast<MultimemLoadReduceOp>(op);
  return MultimemLoadReduceOp::create(b, loc, type, o.getKind(), o.getMemref(),
                                      at(o.getOffset()), part.count);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult StageEmitter::emit() {
  if (threads) {
    emitThreads();
    return failure(failedStep);
  }
  for (Operation *op : stage.ops)
    if (auto reduce = dyn_cast<RowReduceOp>(op))
      reductions.insert({op, RowReduction(reduce, values.getMemory())});
  for (auto &entry : reductions)
    entry.second.begin(builder);

  bool masks = llvm::any_of(stage.ops, [&](Operation *op) {
    return getValid(op) || (isMoved(op) && hasOpenTail());
  });
  if (masks)
    emitMasked();
  else
    emitUnmasked();
  for (auto &entry : reductions)
    values.setScalar(entry.first->getResult(0), entry.second.finish(builder));
  return failure(failedStep);
}

void StageEmitter::emitUnmasked() {
  int64_t full = stage.length / lanes * lanes;
  Location loc = getLoc();
  Value zero = getIndex(builder, loc, 0);
  if (full == lanes)
    failedStep |= failed(emitStep(builder, zero, lanes, /*masked=*/false));
  else if (full > 0)
    emitLoop(builder, loc, zero, getIndex(builder, loc, full), lanes,
             [&](OpBuilder &inner, Value index) {
               failedStep |=
                   failed(emitStep(inner, index, lanes, /*masked=*/false));
             });
  if (int64_t rest = stage.length - full)
    failedStep |= failed(emitStep(builder, getIndex(builder, loc, full), rest,
                                  /*masked=*/false));
}

Value StageEmitter::clampToTile(Value valid, Location loc) {
  Value length = getIndex(builder, loc, stage.length);
  if (!valid)
    return length;
  Value atMost = arith::MinSIOp::create(builder, loc, valid, length);
  return arith::MaxSIOp::create(builder, loc, atMost,
                                getIndex(builder, loc, 0));
}

bool StageEmitter::reachesTileEnd() const {
  if (!kept.empty() || !stage.copies.empty())
    return true;
  return llvm::any_of(stage.ops, [](Operation *op) {
    if (isa<RowReduceOp>(op))
      return true;
    return isa<TileOpInterface>(op) && !getValid(op) &&
           (isPolled(op) || op->getNumResults() == 0);
  });
}

void StageEmitter::emitMasked() {
  Location loc = getLoc();
  // Null stands for the tile's own end, where its last vector is not full.
  llvm::SetVector<Value> ends;
  for (Operation *op : stage.ops)
    if (Value valid = getValid(op))
      ends.insert(valid);
  Value last = reachesTileEnd() || ends.empty()
                   ? getIndex(builder, loc, stage.length)
                   : Value();
  if (hasOpenTail() || ends.empty())
    ends.insert(Value());

  Value shortest, longest;
  for (Value end : ends) {
    Value clamped = clampToTile(end, loc);
    shortest = shortest
                   ? arith::MinSIOp::create(builder, loc, shortest, clamped)
                   : clamped;
    if (end)
      longest = longest ? arith::MaxSIOp::create(builder, loc, longest, clamped)
                        : clamped;
  }
  // Lanes are a power of two.
  Value full = arith::AndIOp::create(builder, loc, shortest,
                                     getIndex(builder, loc, -together));
  // A loop that never runs would hold accesses beyond the end of the memory.
  std::optional<int64_t> known = getConstantIntValue(shortest);
  if (!known || *known >= together)
    emitLoop(builder, loc, getIndex(builder, loc, 0), full, lanes,
             [&](OpBuilder &inner, Value index) {
               failedStep |=
                   failed(emitStep(inner, index, lanes, /*masked=*/false));
             });
  if (failedStep)
    return;
  if (!last && together != lanes) { // To the end of the last line.
    Value up = arith::AddIOp::create(builder, loc, longest,
                                     getIndex(builder, loc, together - 1));
    longest = arith::AndIOp::create(builder, loc, up,
                                    getIndex(builder, loc, -together));
  }
  emitLoop(builder, loc, full, last ? last : longest, lanes,
           [&](OpBuilder &inner, Value index) {
             failedStep |=
                 failed(emitStep(inner, index, lanes, /*masked=*/true));
           });
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// Whether any op of `stage` moves less than its tile.
static bool hasValid(const Stage &stage) {
  return llvm::any_of(stage.ops,
                      [](Operation *op) { return bool(getValid(op)); });
}

bool tiles::staysInRegisters(const Stage &stage, const Threads &threads) {
  return threads.areUnrolled(stage.length) && !hasValid(stage) &&
         stage.length % threads.getStride(stage.length) == 0;
}

void StageEmitter::emitThreads() {
  Location loc = getLoc();
  bool direct = staysInRegisters(stage, *threads);
  SmallVector<RowReduceOp> rows;
  for (Operation *op : stage.ops)
    if (auto reduce = dyn_cast<RowReduceOp>(op))
      rows.push_back(reduce);
  if (!rows.empty()) {
    exchange.emplace(rows, *threads);
    exchange->begin(builder, direct);
  }

  int64_t trips = threads->getTrips(stage.length);
  int64_t wholeTrips =
      hasValid(stage) ? 0 : stage.length / threads->getStride(stage.length);
  auto trip = [&](bool whole) {
    return [this, whole](OpBuilder &inner, Value number) {
      emitTrip(inner, number, whole);
    };
  };
  if (threads->areUnrolled(stage.length)) {
    for (int64_t k = 0; k < trips; ++k)
      emitTrip(builder, getIndex(builder, loc, k), k < wholeTrips);
  } else {
    Value between = getIndex(builder, loc, wholeTrips);
    if (wholeTrips > 0)
      emitLoop(builder, loc, getIndex(builder, loc, 0), between, 1, trip(true));
    if (wholeTrips < trips)
      emitLoop(builder, loc, between, getIndex(builder, loc, trips), 1,
               trip(false));
  }
  if (exchange)
    exchange->finish(builder, [&](RowReduceOp row, Value combined) {
      values.setScalar(row.getResult(), combined);
    });
}

void StageEmitter::emitTrip(OpBuilder &b, Value trip, bool whole) {
  Location loc = getLoc();
  Value before = b.createOrFold<arith::MulIOp>(
      loc, trip, getIndex(b, loc, threads->getStride(stage.length)));
  Value index = b.createOrFold<arith::AddIOp>(
      loc, threads->getFirst(stage.length), before);
  auto step = [&, own = index](OpBuilder &inner, bool masked) {
    failedStep |= failed(emitStep(inner, own, lanes, masked, trip));
  };
  if (whole)
    return step(b, /*masked=*/false);

  // Vectors before `shortest` are full; from `longest` on, nothing happens.
  Value tileEnd = getIndex(b, loc, stage.length);
  Value shortest = tileEnd, longest;
  llvm::SetVector<Value> valids;
  for (Operation *op : stage.ops)
    if (Value valid = getValid(op))
      valids.insert(valid);
  for (Value valid : valids) {
    shortest = b.createOrFold<arith::MinSIOp>(loc, shortest, valid);
    longest =
        longest ? b.createOrFold<arith::MaxSIOp>(loc, longest, valid) : valid;
  }
  bool ragged = longest || hasOpenTail();
  longest = reachesTileEnd() || !longest
                ? tileEnd
                : b.createOrFold<arith::MinSIOp>(loc, longest, tileEnd);
  auto onlyIf = [&](OpBuilder &at, Value left, Value right, bool withElse) {
    Value condition =
        arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, left, right);
    return scf::IfOp::create(at, loc, condition, withElse);
  };
  // Threads that share lines are all here or none is.
  if (together != lanes) {
    Value all = getIndex(b, loc, -together);
    index = arith::AndIOp::create(b, loc, index, all);
  }
  Value last =
      arith::AddIOp::create(b, loc, index, getIndex(b, loc, together - 1));
  auto full = onlyIf(b, last, shortest, /*withElse=*/ragged);
  OpBuilder inner = OpBuilder::atBlockTerminator(full.thenBlock());
  step(inner, /*masked=*/false);
  if (!ragged)
    return;
  OpBuilder otherwise = OpBuilder::atBlockTerminator(full.elseBlock());
  auto some = onlyIf(otherwise, index, longest, /*withElse=*/false);
  inner = OpBuilder::atBlockTerminator(some.thenBlock());
  step(inner, /*masked=*/true);
}

/// Loads whose latency others hide come first, then all polls together, so that
/// their latencies overlap.
SmallVector<Operation *> StageEmitter::getOrder() const {
  SmallVector<Operation *> loads, polls, others;
  llvm::SmallPtrSet<Value, 4> written;
  for (Operation *op : stage.ops) {
    if (threads && isa<TileLoadOp>(op)) {
      MemoryRoot root = getMemoryRoot(cast<TileLoadOp>(op).getMemref());
      bool isFree = root.kind != MemoryRoot::Unknown &&
                    !written.contains(root.value) && !written.contains({});
      (isFree ? loads : others).push_back(op);
    } else if (threads && isa<PacketLoadOp, PoisonLoadOp>(op)) {
      polls.push_back(op);
    } else {
      for (const Touch &touch : getTouches(op))
        if (touch.access.isWrite())
          written.insert(touch.root.kind == MemoryRoot::Unknown
                             ? Value()
                             : touch.root.value);
      others.push_back(op);
    }
  }
  loads.append(polls);
  loads.append(others);
  return loads;
}

//===----------------------------------------------------------------------===//
// One iteration
//===----------------------------------------------------------------------===//

LogicalResult StageEmitter::emitStep(OpBuilder &inner, Value index,
                                     int64_t count, bool masked, Value trip) {
  Value place = index;
  if (trip)
    place = inner.createOrFold<arith::MulIOp>(getLoc(), trip,
                                              getIndex(inner, getLoc(), lanes));
  Step step{inner, index, count, masked, place, trip};
  for (Operation *op : getOrder())
    if (failed(emitOp(step, op)))
      return failure();
  keep(step);
  return success();
}

void StageEmitter::keep(Step &step) {
  // All that is read comes before all that is kept: copies may exchange tiles.
  SmallVector<std::pair<Value, Value>> writes;
  for (auto [tile, buffer] : kept) {
    Value vector = getVector(step, tile, tile.getLoc());
    if (buffer)
      writes.push_back({vector, buffer});
    else
      values.setRegister(tile, *getConstantIntValue(step.trip), vector);
  }
  for (const Copy &copy : stage.copies)
    writes.push_back({getVector(step, copy.source, copy.source.getLoc()),
                      values.getBuffer(copy.target)});
  for (auto [vector, buffer] : writes)
    TileMemory::write(step.builder, getLoc(), vector, buffer, step.place);
}

LogicalResult StageEmitter::emitOp(Step &step, Operation *op) {
  if (auto load = dyn_cast<TileLoadOp>(op))
    emitTileLoad(step, load);
  else if (auto store = dyn_cast<TileStoreOp>(op))
    emitTileStore(step, store);
  else if (auto reduce = dyn_cast<RowReduceOp>(op))
    emitRowReduce(step, reduce);
  else if (isMoved(op))
    return emitMoved(step, op);
  else if (op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0)
    emitElementwise(step, op);
  else
    return op->emitOpError(
        "has no meaning for one vector of a tile: comms-distribute-tiles knows "
        "tile memory ops, row_reduce and elementwise ops (of tiles of length 1 "
        "also tensor.extract)");
  return success();
}

Value StageEmitter::getVector(Step &step, Value tile, Location loc) {
  Value &vector = step.vectors[tile];
  if (vector)
    return vector;
  Value made =
      values.recompute(step.builder, loc, tile, step.index, step.count);
  std::optional<int64_t> trip =
      step.trip ? getConstantIntValue(step.trip) : std::nullopt;
  if (!made && trip)
    made = values.getRegister(tile, *trip);
  if (!made)
    made = TileMemory::read(
        step.builder, loc, values.getBuffer(tile), step.place, step.count,
        TileValues::getVectorType(tile, step.count).getElementType());
  return step.vectors[tile] = made;
}

Value StageEmitter::getCount(Step &step, Value valid, Location loc) {
  Value &count = step.counts[valid];
  if (count)
    return count;
  OpBuilder &b = step.builder;
  Value end = valid ? valid : getIndex(b, loc, stage.length);
  if (valid && hasOpenTail())
    end = arith::MinSIOp::create(b, loc, end, getIndex(b, loc, stage.length));
  Value rest = arith::SubIOp::create(b, loc, end, step.index);
  rest = arith::MinSIOp::create(b, loc, rest, getIndex(b, loc, step.count));
  return count = arith::MaxSIOp::create(b, loc, rest, getIndex(b, loc, 0));
}

Value StageEmitter::getMask(Step &step, Value valid, Location loc) {
  Value &mask = step.masks[valid];
  if (mask)
    return mask;
  OpBuilder &b = step.builder;
  auto type = VectorType::get({step.count}, b.getI32Type());
  SmallVector<int32_t> numbers(step.count);
  for (int64_t i = 0; i < step.count; ++i)
    numbers[i] = i;
  Value count = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                           getCount(step, valid, loc));
  Value limits = vector::BroadcastOp::create(b, loc, type, count);
  Value lane = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, ArrayRef(numbers)));
  return mask = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lane,
                                      limits);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value StageEmitter::getFlat(Value memref, Location loc) {
  Value &view = flat[memref];
  if (!view)
    view = getFlatView(builder, loc, memref);
  return view;
}

/// Bytes to which element `index` of an array is aligned, as far as a GPU can
/// use it; none without threads: the processor does not care.
llvm::MaybeAlign StageEmitter::getAlignment(VectorType type,
                                            Value index) const {
  if (!threads || !type.getElementType().isIntOrFloat())
    return {};
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  if (!llvm::isPowerOf2_64(bytes))
    return {};
  return llvm::Align(std::min<int64_t>(getDivisor(index) * bytes, 16));
}

void StageEmitter::emitTileLoad(Step &step, TileLoadOp op) {
  OpBuilder &b = step.builder;
  Location loc = op.getLoc();
  Value memref = getFlat(op.getMemref(), loc);
  Value index = arith::AddIOp::create(b, loc, op.getOffset(), step.index);
  VectorType type = TileValues::getVectorType(op.getTile(), step.count);
  Value &vector = step.vectors[op.getTile()];
  if (!step.masked || (!getValid(op) && !hasOpenTail())) {
    vector = vector::LoadOp::create(b, loc, type, memref, ValueRange(index),
                                    /*nontemporal=*/false,
                                    getAlignment(type, index));
    return;
  }
  Value mask = getMask(step, getValid(op), loc);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  step.vectors[op.getTile()] = vector::MaskedLoadOp::create(
      b, loc, type, memref, ValueRange(index), mask, zero);
}

void StageEmitter::emitTileStore(Step &step, TileStoreOp op) {
  OpBuilder &b = step.builder;
  Location loc = op.getLoc();
  Value vector = canonicalizeNaN(b, loc, getVector(step, op.getTile(), loc),
                                 op.getTile(), op);
  Value memref = getFlat(op.getMemref(), loc);
  Value index = arith::AddIOp::create(b, loc, op.getOffset(), step.index);
  if (!step.masked || (!getValid(op) && !hasOpenTail()))
    vector::StoreOp::create(
        b, loc, vector, memref, ValueRange(index), /*nontemporal=*/false,
        getAlignment(cast<VectorType>(vector.getType()), index));
  else
    vector::MaskedStoreOp::create(b, loc, memref, ValueRange(index),
                                  getMask(step, getValid(op), loc), vector);
}

void StageEmitter::emitRowReduce(Step &step, RowReduceOp op) {
  Value vector = getVector(step, op.getTile(), op.getLoc());
  Value mask;
  if (step.masked && hasOpenTail())
    mask = getMask(step, Value(), op.getLoc());
  if (threads)
    return exchange->add(step.builder, op, vector, step.trip, mask);
  reductions.find(op)->second.add(step.builder, vector, step.index, mask);
}

/// Lines have their places, which vectors must not leave.
static LogicalResult checkLines(Operation *op) {
  Value offset = isa<PacketStoreOp>(op) ? cast<PacketStoreOp>(op).getOffset()
                                        : cast<PacketLoadOp>(op).getOffset();
  if (getDivisor(offset) % kLineUnits == 0)
    return success();
  return op->emitOpError("begins at an offset that is not known to be a "
                         "multiple of ")
         << kLineUnits << ": lines of packets begin there; multiply by a "
         << "constant, or use packets of 8 bytes";
}

/// One thread: moves a vector where its line holds anything valid.
Value StageEmitter::moveIfLine(Step &step, Operation *op,
                               const VectorPart &part, Value valid) {
  OpBuilder &b = step.builder;
  Location loc = op->getLoc();
  int64_t line = kLineBits / part.type.getElementTypeBitWidth();
  Value first =
      arith::AndIOp::create(b, loc, step.index, getIndex(b, loc, -line));
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, first, valid);
  if (op->getNumResults() == 0) {
    auto branch = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
    OpBuilder inner = OpBuilder::atBlockTerminator(branch.thenBlock());
    return moveVector(inner, op, part);
  }
  auto branch = scf::IfOp::create(
      b, loc, exists,
      [&](OpBuilder &inner, Location) {
        scf::YieldOp::create(inner, loc, moveVector(inner, op, part));
      },
      [&](OpBuilder &inner, Location) {
        Value zero =
            arith::ConstantOp::create(inner, loc, inner.getZeroAttr(part.type));
        scf::YieldOp::create(inner, loc, zero);
      });
  return branch.getResult(0);
}

LogicalResult StageEmitter::emitMoved(Step &step, Operation *op) {
  OpBuilder &b = step.builder;
  Location loc = op->getLoc();
  Value tile = cast<TileOpInterface>(op).getTileValue(), valid = getValid(op);
  bool cut = step.masked && (valid || hasOpenTail());
  VectorPart part{TileValues::getVectorType(tile, step.count), Value(),
                  step.index, cut ? getCount(step, valid, loc) : Value(),
                  bool(threads)};
  if (movesLines(op) && failed(checkLines(op)))
    return failure();
  if (op->getNumResults() == 0)
    part.vector = canonicalizeNaN(b, loc, getVector(step, tile, loc), tile, op);
  Value vector = movesLines(op) && valid && cut && !threads
                     ? moveIfLine(step, op, part, valid)
                     : moveVector(b, op, part);
  if (op->getNumResults())
    step.vectors[tile] = vector;
  return success();
}

void StageEmitter::emitElementwise(Step &step, Operation *op) {
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    if (isLongTile(operand.getType()))
      mapping.map(operand, getVector(step, operand, op->getLoc()));
    else
      mapping.map(operand, values.getScalar(operand));
  }
  if (OpOperand *seen = getSeenOperand(op))
    mapping.map(seen->get(),
                canonicalizeNaN(step.builder, op->getLoc(),
                                mapping.lookup(seen->get()), seen->get()));
  Operation *copy = step.builder.clone(*op, mapping);
  for (auto [tile, vector] :
       llvm::zip_equal(op->getResults(), copy->getResults())) {
    vector.setType(TileValues::getVectorType(tile, step.count));
    step.vectors[tile] = vector;
  }
}
