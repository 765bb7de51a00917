//===- TileLowering.cpp - Tiles, packets, poison and multimem -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles are vectors of at most 16 lanes here. A packet or poisoned tile is read
// inline; only when something is missing does the runtime come in, which parks
// the block until all of it is there.
//
//===----------------------------------------------------------------------===//

#include "dialect/Packets.h"

#include "lowering/cpu/KernelLowering.h"
#include "lowering/target/Vectors.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::cpu;
using namespace mlir::comms::target;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

static VectorType withElement(VectorType type, Type element) {
  return VectorType::get(type.getShape(), element);
}

static Value splat(Value scalar, int64_t lanes, ImplicitLocOpBuilder &b) {
  return vector::BroadcastOp::create(
      b, VectorType::get({lanes}, scalar.getType()), scalar);
}

static Value splatConstant(VectorType type, const APInt &value,
                           ImplicitLocOpBuilder &b) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value));
}

static Value splatConstant(VectorType type, uint64_t value,
                           ImplicitLocOpBuilder &b) {
  return splatConstant(type, APInt(type.getElementTypeBitWidth(), value), b);
}

/// Lane i is on when i < count.
Value KernelLowering::laneMask(VectorType type, Value count,
                               ImplicitLocOpBuilder &b) {
  int64_t lanes = type.getNumElements();
  auto lanesType = VectorType::get({lanes}, b.getI32Type());
  SmallVector<int32_t> numbers(lanes);
  for (int64_t i = 0; i < lanes; ++i)
    numbers[i] = static_cast<int32_t>(i);
  Value lane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(lanesType, ArrayRef(numbers)));
  // Clamped first: a count may have more than 32 bits.
  Value some = countLanes(count, lanes, b);
  Value narrow = arith::TruncIOp::create(b, b.getI32Type(), some);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane,
                               splat(narrow, lanes, b));
}

/// The number of elements of `lanes` that exist, as i64: `count`, clamped;
/// null: all.
Value KernelLowering::countLanes(Value count, int64_t lanes,
                                 ImplicitLocOpBuilder &b) {
  Value all = constI64(lanes, b);
  if (!count)
    return all;
  Value some = arith::MinSIOp::create(b, toI64(count, b), all);
  return arith::MaxSIOp::create(b, some, constI64(0, b));
}

/// The tile with zeros (of all bits) from lane `valid` on; null: all valid.
Value KernelLowering::clearInvalid(Value tile, Value valid,
                                   ImplicitLocOpBuilder &b) {
  if (!valid)
    return tile;
  auto type = cast<VectorType>(tile.getType());
  auto integers = asIntegers(type);
  Value cleared =
      arith::SelectOp::create(b, laneMask(type, valid, b), toIntegers(tile, b),
                              splatConstant(integers, 0, b));
  return bitcast(cleared, type, b);
}

Value KernelLowering::loadLanes(VectorType type, Value address, Value count,
                                bool isVolatile, ImplicitLocOpBuilder &b) {
  auto integers = asIntegers(type);
  unsigned align = type.getElementTypeBitWidth() / 8;
  if (!count)
    return bitcast(
        LLVM::LoadOp::create(b, integers, address, align, isVolatile), type, b);
  Value zero = splatConstant(integers, 0, b);
  Value loaded =
      LLVM::MaskedLoadOp::create(b, integers, address, laneMask(type, count, b),
                                 zero, b.getI32IntegerAttr(align));
  return bitcast(loaded, type, b);
}

void KernelLowering::storeLanes(Value vector, Value address, Value count,
                                bool isVolatile, ImplicitLocOpBuilder &b) {
  auto type = cast<VectorType>(vector.getType());
  unsigned align = type.getElementTypeBitWidth() / 8;
  Value integers = toIntegers(vector, b);
  if (!count)
    LLVM::StoreOp::create(b, integers, address, align, isVolatile);
  else
    LLVM::MaskedStoreOp::create(b, integers, address, laneMask(type, count, b),
                                b.getI32IntegerAttr(align));
}

/// `first` when the i1 vector `complete` is all ones; else what `wait` gives.
Value KernelLowering::whenMissing(Value complete, Value first,
                                  llvm::function_ref<Value()> wait,
                                  ImplicitLocOpBuilder &b) {
  int64_t lanes = cast<VectorType>(complete.getType()).getNumElements();
  auto bits = VectorType::get({1}, b.getIntegerType(lanes));
  Value mask = vector::ExtractOp::create(
      b, vector::BitCastOp::create(b, bits, complete), 0);
  Value all = arith::ConstantOp::create(
      b, b.getIntegerAttr(b.getIntegerType(lanes), APInt::getAllOnes(lanes)));
  Value missing = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, mask, all);
  auto branch = scf::IfOp::create(b, TypeRange{first.getType()}, missing,
                                  /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  Value again = wait();
  scf::YieldOp::create(b, again);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, first);
  return branch.getResult(0);
}

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

void KernelLowering::lowerPacketStore(PacketStoreOp op, VectorType type,
                                      ImplicitLocOpBuilder &b) {
  Value words = packWords(clearInvalid(op.getTile(), op.getValid(), b), b);
  int64_t lanes = cast<VectorType>(words.getType()).getNumElements();
  auto packets = VectorType::get({lanes}, b.getI64Type());
  Value data = arith::ExtUIOp::create(b, packets, words);
  Value flag = arith::ExtUIOp::create(b, b.getI64Type(), op.getFlag());
  Value high = arith::ShLIOp::create(b, flag, constI64(32, b));
  Value all = arith::OrIOp::create(b, data, splat(high, lanes, b));
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  Value count = countWords(type, op.getValid(), b);
  storeLanes(all, address, count, /*isVolatile=*/true, b);
  Value number = countLanes(count, lanes, b);
  callRuntime(b, "stored",
              {address, arith::MulIOp::create(b, number, constI64(8, b))});
  rewriter.eraseOp(op);
}

void KernelLowering::lowerPacketLoad(PacketLoadOp op, VectorType type,
                                     ImplicitLocOpBuilder &b) {
  int64_t lanes = llvm::divideCeil(
      type.getNumElements() * type.getElementTypeBitWidth(), 32);
  auto packets = VectorType::get({lanes}, b.getI64Type());
  auto words = VectorType::get({lanes}, b.getI32Type());
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  Value count = countWords(type, op.getValid(), b);
  Value first = loadLanes(packets, address, count, /*isVolatile=*/true, b);
  Value high = splatConstant(packets, 32, b);
  Value flags =
      arith::TruncIOp::create(b, words, arith::ShRUIOp::create(b, first, high));
  Value fresh = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, flags,
                                      splat(op.getFlag(), lanes, b));
  if (count) { // Lanes that do not exist need no flag.
    Value ones = arith::ConstantOp::create(
        b,
        DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), true));
    Value absent = arith::XOrIOp::create(b, laneMask(packets, count, b), ones);
    fresh = arith::OrIOp::create(b, fresh, absent);
  }
  Value loaded = whenMissing(
      fresh, first,
      [&] {
        Value number = countLanes(count, lanes, b);
        callRuntime(b, "wait_packets",
                    {siteOf(op, b), address, number, op.getFlag()});
        return loadLanes(packets, address, count, /*isVolatile=*/true, b);
      },
      b);
  Value tile = unpackWords(arith::TruncIOp::create(b, words, loaded), type, b);
  rewriter.replaceOp(op, clearInvalid(tile, op.getValid(), b));
}

//===----------------------------------------------------------------------===//
// Lines of packets
//===----------------------------------------------------------------------===//

static_assert(kLineBytes == 8 * kLineUnits && kRestBytes == 8 * kRestUnits);

/// Vectors are parts of one line each.
LogicalResult KernelLowering::checkLines(Operation *op, VectorType type) {
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  if (bits % 64 == 0 && kLineBits % bits == 0)
    return success();
  return op->emitOpError("moves ")
         << bits / 8 << " bytes of a line, not 8, 16, 32, 64 or 128: run "
         << "comms-distribute-tiles first";
}

/// Returns the address of `units` i64 of a line, from `offset` on.
LinePart KernelLowering::findLine(Value memref, Value offset, int64_t units,
                                  ImplicitLocOpBuilder &b) {
  LinePart part;
  auto index = [&](int64_t value) { return constIndex(value, b); };
  Value line = arith::DivUIOp::create(b, offset, index(kLineUnits));
  Value first = arith::MulIOp::create(b, line, index(kLineUnits));
  part.first = elementAddress(memref, offset, b);
  part.last = addBytes(part.first, 8 * (units - 1), b);
  part.flag = elementAddress(
      memref, arith::AddIOp::create(b, first, index(kLineUnits - 1)), b);
  int64_t elements = cast<MemRefType>(memref.getType()).getNumElements();
  Value rest = arith::MulIOp::create(b, line, index(kRestUnits));
  rest = arith::AddIOp::create(
      b, rest, index(countUnits(elements, Assumption::Store128Whole)));
  part.rest = elementAddress(memref, rest, b);
  Value end = arith::AddIOp::create(b, arith::SubIOp::create(b, offset, first),
                                    index(units));
  part.isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, end,
                                      index(kLineUnits));
  return part;
}

/// The data comes before the flags: the rest's, and the line's, which alone is
/// waited for. Vectors of a line are stored in order, so the last has the flag.
LogicalResult KernelLowering::lowerLineStore(PacketStoreOp op, VectorType type,
                                             ImplicitLocOpBuilder &b) {
  if (failed(checkLines(op, type)))
    return failure();
  int64_t units = type.getNumElements() * type.getElementTypeBitWidth() / 64;
  auto words = VectorType::get({units}, b.getI64Type());
  Value data = bitcast(
      toIntegers(clearInvalid(op.getTile(), op.getValid(), b), b), words, b);
  LinePart part = findLine(op.getMemref(), op.getOffset(), units, b);
  if (units > 1)
    storeLanes(data, part.first, constIndex(units - 1, b), /*isVolatile=*/true,
               b);
  Value last = vector::ExtractOp::create(b, data, units - 1);
  Value flag = arith::ExtUIOp::create(b, b.getI64Type(), op.getFlag());
  flag = arith::OrIOp::create(b, flag,
                              arith::ShLIOp::create(b, flag, constI64(32, b)));
  auto branch = scf::IfOp::create(b, part.isLast, /*withElseRegion=*/true);
  ImplicitLocOpBuilder yes(b.getLoc(), branch.thenYield());
  LLVM::StoreOp::create(yes, last, part.rest, 8, /*isVolatile=*/true);
  for (Value address : {addBytes(part.rest, 8, yes), part.flag})
    LLVM::StoreOp::create(yes, flag, address, 8, /*isVolatile=*/true,
                          /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                          LLVM::AtomicOrdering::release);
  ImplicitLocOpBuilder no(b.getLoc(), branch.elseYield());
  LLVM::StoreOp::create(no, last, part.last, 8, /*isVolatile=*/true);
  callRuntime(b, "stored", {part.first, constI64(8 * units, b)});
  rewriter.eraseOp(op);
  return success();
}

LogicalResult KernelLowering::lowerLineLoad(PacketLoadOp op, VectorType type,
                                            ImplicitLocOpBuilder &b) {
  if (failed(checkLines(op, type)))
    return failure();
  int64_t units = type.getNumElements() * type.getElementTypeBitWidth() / 64;
  auto words = VectorType::get({units}, b.getI64Type());
  LinePart part = findLine(op.getMemref(), op.getOffset(), units, b);
  Value found = LLVM::LoadOp::create(
      b, b.getI64Type(), part.flag, 8, /*isVolatile=*/true,
      /*isNonTemporal=*/false, /*isInvariant=*/false,
      /*isInvariantGroup=*/false, LLVM::AtomicOrdering::acquire);
  Value high = arith::ShRUIOp::create(b, found, constI64(32, b));
  Value missing = arith::CmpIOp::create(
      b, arith::CmpIPredicate::ne,
      arith::TruncIOp::create(b, b.getI32Type(), high), op.getFlag());
  auto wait = scf::IfOp::create(b, missing, /*withElseRegion=*/false);
  ImplicitLocOpBuilder inner(b.getLoc(), wait.thenYield());
  callRuntime(inner, "wait_line", {siteOf(op, b), part.flag, op.getFlag()});
  Value from = arith::SelectOp::create(b, part.isLast, part.rest, part.last);
  Value last =
      LLVM::LoadOp::create(b, b.getI64Type(), from, 8, /*isVolatile=*/true);
  Value data;
  if (units > 1) {
    data = loadLanes(words, part.first, constIndex(units - 1, b),
                     /*isVolatile=*/true, b);
    data = vector::InsertOp::create(b, last, data, units - 1);
  } else {
    data = vector::BroadcastOp::create(b, words, last);
  }
  Value tile = bitcast(bitcast(data, asIntegers(type), b), type, b);
  rewriter.replaceOp(op, clearInvalid(tile, op.getValid(), b));
  return success();
}

//===----------------------------------------------------------------------===//
// Poison
//===----------------------------------------------------------------------===//

/// Bits of +infinity and of the canonical NaN.
static std::pair<uint64_t, uint64_t> getNaNBits(Type element) {
  if (element.isF32())
    return {0x7F800000, 0x7FC00000};
  if (element.isBF16())
    return {0x7F80, 0x7FC0};
  return {0x7C00, 0x7E00};
}

void KernelLowering::lowerPoisonStore(PoisonStoreOp op, VectorType type,
                                      ImplicitLocOpBuilder &b) {
  auto integers = asIntegers(type);
  auto [infinity, nan] = getNaNBits(type.getElementType());
  Value bits = toIntegers(op.getTile(), b);
  uint64_t sign = uint64_t(1) << (type.getElementTypeBitWidth() - 1);
  Value magnitude =
      arith::AndIOp::create(b, bits, splatConstant(integers, sign - 1, b));
  Value isNaN = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, magnitude,
                                      splatConstant(integers, infinity, b));
  Value clean =
      arith::SelectOp::create(b, isNaN, splatConstant(integers, nan, b), bits);
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  storeLanes(clean, address, op.getValid(), /*isVolatile=*/true, b);
  Value number = countLanes(op.getValid(), type.getNumElements(), b);
  Value size = constI64(type.getElementTypeBitWidth() / 8, b);
  callRuntime(b, "stored", {address, arith::MulIOp::create(b, number, size)});
  rewriter.eraseOp(op);
}

void KernelLowering::lowerPoisonLoad(PoisonLoadOp op, VectorType type,
                                     ImplicitLocOpBuilder &b) {
  auto integers = asIntegers(type);
  int64_t lanes = type.getNumElements(), width = type.getElementTypeBitWidth();
  Value address = elementAddress(op.getMemref(), op.getOffset(), b);
  // Lanes that do not exist load as zero, which is not poison.
  Value first =
      loadLanes(integers, address, op.getValid(), /*isVolatile=*/true, b);
  Value poison =
      splatConstant(integers, width == 32 ? kPoison32 : kPoison16, b);
  Value fresh =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, first, poison);
  Value loaded = whenMissing(
      fresh, first,
      [&] {
        Value number = countLanes(op.getValid(), lanes, b);
        callRuntime(b, "wait_poison",
                    {siteOf(op, b), address, number, constI64(width / 8, b)});
        return loadLanes(integers, address, op.getValid(), /*isVolatile=*/true,
                         b);
      },
      b);
  rewriter.replaceOp(op, bitcast(loaded, type, b));
}

//===----------------------------------------------------------------------===//
// Multimem
//===----------------------------------------------------------------------===//

/// The element that arithmetic on narrow floats is made in: f32, by integer
/// operations, for no target may round a bf16 in its own way.
Value KernelLowering::widen(Value tile, ImplicitLocOpBuilder &b) {
  auto type = cast<VectorType>(tile.getType());
  auto wide = withElement(type, b.getF32Type());
  if (type.getElementType().isF16())
    return arith::ExtFOp::create(b, wide, tile);
  if (!type.getElementType().isBF16())
    return tile;
  auto words = withElement(type, b.getI32Type());
  Value bits = arith::ExtUIOp::create(b, words, toIntegers(tile, b));
  return bitcast(arith::ShLIOp::create(b, bits, splatConstant(words, 16, b)),
                 wide, b);
}

Value KernelLowering::narrow(Value tile, Type element,
                             ImplicitLocOpBuilder &b) {
  auto type = cast<VectorType>(tile.getType());
  if (type.getElementType() == element)
    return tile;
  auto result = withElement(type, element);
  if (element.isF16())
    return arith::TruncFOp::create(b, result, tile);
  // To nearest, ties to even; NaN stays NaN.
  auto words = withElement(type, b.getI32Type());
  Value bits = toIntegers(tile, b);
  Value sixteen = splatConstant(words, 16, b), one = splatConstant(words, 1, b);
  Value odd =
      arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, sixteen), one);
  Value bias = arith::AddIOp::create(b, odd, splatConstant(words, 0x7FFF, b));
  Value rounded =
      arith::ShRUIOp::create(b, arith::AddIOp::create(b, bits, bias), sixteen);
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, tile, tile);
  Value chosen = arith::SelectOp::create(
      b, isNaN, splatConstant(words, 0x7FC0, b), rounded);
  auto half = withElement(type, b.getIntegerType(16));
  return bitcast(arith::TruncIOp::create(b, half, chosen), result, b);
}

Value KernelLowering::combine(ReductionKind kind, Value x, Value y,
                              ImplicitLocOpBuilder &b) {
  bool isFloat = isa<FloatType>(cast<VectorType>(x.getType()).getElementType());
  switch (kind) {
  case ReductionKind::Sum:
    return isFloat ? arith::AddFOp::create(b, x, y).getResult()
                   : arith::AddIOp::create(b, x, y).getResult();
  case ReductionKind::Min:
    return isFloat ? arith::MinimumFOp::create(b, x, y).getResult()
                   : arith::MinSIOp::create(b, x, y).getResult();
  case ReductionKind::Max:
    return isFloat ? arith::MaximumFOp::create(b, x, y).getResult()
                   : arith::MaxSIOp::create(b, x, y).getResult();
  case ReductionKind::And:
    return arith::AndIOp::create(b, x, y);
  case ReductionKind::Or:
    return arith::OrIOp::create(b, x, y);
  case ReductionKind::Xor:
    return arith::XOrIOp::create(b, x, y);
  case ReductionKind::Prod:
  case ReductionKind::Avg:
    break;
  }
  llvm_unreachable(
      "the verifier rejects reductions that a switch does not support");
}

/// A switch is not there: each part is read or written in turn, in rank order.
LogicalResult KernelLowering::lowerMultimem(Operation *op,
                                            ImplicitLocOpBuilder &b) {
  auto [load, store, reduce, memref, offset, valid, tile] =
      getMultimemAccess(op);
  FailureOr<VectorType> type = getTileType(op, tile);
  if (failed(type))
    return failure();
  auto view = memref.getDefiningOp<MultimemOp>();
  if (!view)
    return op->emitOpError(
        "needs the result of comms.multimem itself, not a view of it");
  FailureOr<unsigned> argument = getArgument(op, view.getWindow());
  FailureOr<TeamNumbers> team = getTeam(view.getTeam());
  if (failed(argument) || failed(team))
    return failure();
  Type element = type->getElementType();
  Value bytes = scale(offset, element, b);
  auto addressOf = [&](Value rank, ImplicitLocOpBuilder &at) {
    Value world = arith::AddIOp::create(
        at, team->first, arith::MulIOp::create(at, rank, team->stride));
    return addBytes(partAddress(*argument, world, at), bytes, at);
  };
  Value zero = constIndex(0, b), one = constIndex(1, b);
  if (load) {
    ReductionKind kind = load.getKind();
    Value first =
        widen(loadLanes(*type, addressOf(zero, b), valid, false, b), b);
    auto loop = scf::ForOp::create(b, one, team->size, one, ValueRange{first});
    ImplicitLocOpBuilder in(op->getLoc(), loop.getBody(),
                            loop.getBody()->end());
    Value next = loadLanes(*type, addressOf(loop.getInductionVar(), in), valid,
                           false, in);
    scf::YieldOp::create(
        in, combine(kind, loop.getRegionIterArg(0), widen(next, in), in));
    Value sum = loop.getResult(0);
    rewriter.replaceOp(op, clearInvalid(narrow(sum, element, b), valid, b));
    return success();
  }
  auto loop = scf::ForOp::create(b, zero, team->size, one);
  ImplicitLocOpBuilder in(op->getLoc(), loop.getBody(),
                          loop.getBody()->begin());
  Value address = addressOf(loop.getInductionVar(), in);
  Value data = tile;
  if (reduce) { // Atomic: several blocks may reduce into one place.
    callRuntime(in, "lock", {});
    Value old = widen(loadLanes(*type, address, valid, false, in), in);
    data = narrow(combine(reduce.getKind(), old, widen(tile, in), in), element,
                  in);
  }
  storeLanes(data, address, valid, false, in);
  if (reduce)
    callRuntime(in, "unlock", {});
  Value number = countLanes(valid, type->getNumElements(), in);
  callRuntime(in, "stored", {address, scale(number, element, in)});
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerTileOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  if (isa<MultimemLoadReduceOp, MultimemStoreOp, MultimemReduceOp>(op))
    return lowerMultimem(op, b);
  if (auto fill = dyn_cast<PoisonFillOp>(op)) {
    Type element =
        cast<MemRefType>(fill.getMemref().getType()).getElementType();
    Value address = elementAddress(fill.getMemref(), fill.getOffset(), b);
    callRuntime(b, "fill_poison",
                {address, scale(fill.getCount(), element, b)});
    rewriter.eraseOp(op);
    return success();
  }
  FailureOr<VectorType> type =
      getTileType(op, cast<TileOpInterface>(op).getTileValue());
  if (failed(type))
    return failure();
  if (auto load = dyn_cast<TileLoadOp>(op)) {
    Value address = elementAddress(load.getMemref(), load.getOffset(), b);
    rewriter.replaceOp(op,
                       loadLanes(*type, address, load.getValid(), false, b));
  } else if (auto store = dyn_cast<TileStoreOp>(op)) {
    Value address = elementAddress(store.getMemref(), store.getOffset(), b);
    storeLanes(store.getTile(), address, store.getValid(), false, b);
    rewriter.eraseOp(op);
  } else if (auto packet = dyn_cast<PacketStoreOp>(op)) {
    if (areLines(packet.getAssumes()))
      return lowerLineStore(packet, *type, b);
    lowerPacketStore(packet, *type, b);
  } else if (auto packet = dyn_cast<PacketLoadOp>(op)) {
    if (areLines(packet.getAssumes()))
      return lowerLineLoad(packet, *type, b);
    lowerPacketLoad(packet, *type, b);
  } else if (auto poison = dyn_cast<PoisonStoreOp>(op)) {
    lowerPoisonStore(poison, *type, b);
  } else {
    lowerPoisonLoad(cast<PoisonLoadOp>(op), *type, b);
  }
  return success();
}
