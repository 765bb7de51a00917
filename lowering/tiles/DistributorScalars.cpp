//===- DistributorScalars.cpp - Constants, and tiles of one ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Distributor.h"

#include "lowering/tiles/Canonical.h"
#include "lowering/tiles/Loops.h"
#include "lowering/tiles/StageEmitter.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Returns the source location of `op`. A constant that folding created has
/// none, so the location of its first user is used.
static Location placeOf(Operation *op) {
  for (Operation *user : op->getUsers())
    if (isa<UnknownLoc>(op->getLoc()) && !isa<UnknownLoc>(user->getLoc()))
      return user->getLoc();
  return op->getLoc();
}

/// Writes the elements to `buffer`, vector by vector.
static void writeElements(OpBuilder &builder, Location loc,
                          DenseElementsAttr elements, Value buffer,
                          int64_t lanes) {
  SmallVector<Attribute> all(elements.getValues<Attribute>());
  int64_t length = elements.getNumElements();
  for (int64_t first = 0; first < length; first += lanes) {
    int64_t count = std::min(lanes, length - first);
    auto part = DenseElementsAttr::get(
        VectorType::get({count}, elements.getElementType()),
        ArrayRef(all).slice(first, count));
    Value vector = arith::ConstantOp::create(builder, loc, part);
    TileMemory::write(builder, loc, vector, buffer,
                      getIndex(builder, loc, first));
  }
}

/// A long constant that is no splat is written to scratch memory at the start
/// of the kernel.
LogicalResult Distributor::emitConstant(arith::ConstantOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  dead.push_back(op);
  if (isLongTile(type) && isRecomputed(op))
    return success();
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError(
        "is not a dense constant: a tile's constant must be dense");
  if (!isLongTile(type)) {
    OpBuilder builder(op);
    auto scalar = cast<TypedAttr>(*elements.getValues<Attribute>().begin());
    values.setScalar(op,
                     arith::ConstantOp::create(builder, op.getLoc(), scalar));
    return success();
  }
  if (threads)
    return emitError(placeOf(op))
           << "'arith.constant' op is a tile of different numbers, which "
              "threads cannot share yet: load it from memory, or compute it "
              "from comms.iota";
  Value buffer =
      memory.takeNew(op.getLoc(), type.getNumElements(), type.getElementType());
  values.setBuffer(op, buffer);
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  builder.setInsertionPointAfterValue(buffer);
  writeElements(builder, op.getLoc(), elements, buffer, memory.getLanes());
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
                                 op.getTile(), op);
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
    Value scalar =
        canonicalizeNaN(builder, loc, values.getScalar(tile), tile, op);
    part.vector = vector::BroadcastOp::create(builder, loc, part.type, scalar);
    return emitOnce(builder, loc,
                    [&](OpBuilder &b) { (void)moveVector(b, op, part); });
  }
  if (Value vector = moveVector(builder, op, part))
    values.setScalar(tile, vector::ExtractOp::create(builder, loc, vector, 0));
}
