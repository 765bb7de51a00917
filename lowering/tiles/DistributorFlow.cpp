//===- DistributorFlow.cpp - Tiles that control flow carries --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Distributor.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

LogicalResult Distributor::emitOp(const BlockPlan &plan, unsigned position) {
  Operation *op = plan.items[position].op;
  if (op->getNumRegions()) {
    // Regions may be skipped.
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

LogicalResult
Distributor::emitPaths(Operation *op,
                       llvm::function_ref<LogicalResult(Region &)> emit) {
  ThreadOrder before = order, after = order;
  for (Region &region : op->getRegions()) {
    // Of scf.while, one region follows the other, and the first is the last.
    if (!isa<scf::WhileOp>(op))
      order.restart(before);
    if (failed(emit(region)))
      return failure();
    after.join(order);
  }
  order.join(after);
  return success();
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
  return emitPaths(op, [&](Region &region) -> LogicalResult {
    for (Block &block : region) {
      if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>())
        return op->emitOpError(
            "holds tiles in a block without a terminator; such regions are "
            "not known to comms-distribute-tiles");
      if (failed(emitBlock(block, {})))
        return failure();
    }
    return success();
  });
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

/// `loop` without the long tiles that it carries, around the same body. Its
/// first results and arguments are those of `loop` that stay.
static scf::ForOp makeLoop(scf::ForOp loop, ArrayRef<Value> inits) {
  OpBuilder builder(loop);
  auto made = scf::ForOp::create(
      builder, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
      loop.getStep(), inits, /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = made.getBody();
  if (!body->empty())
    body->back().erase();
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(made.getInductionVar());
  return made;
}

LogicalResult Distributor::emitFor(const BlockPlan &plan, unsigned position,
                                   scf::ForOp loop) {
  if (llvm::none_of(loop.getResultTypes(),
                    [](Type type) { return isa<TensorType>(type); })) {
    return emitBlock(*loop.getBody(), {});
  }
  SmallVector<Value> inits;
  for (Value init : loop.getInitArgs())
    if (getCarriedType(init.getType()))
      inits.push_back(values.getScalar(init));
  scf::ForOp made = makeLoop(loop, inits);
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
  if (failed(emitYieldingBlock(*made.getBody(), loop.getResults())))
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
  auto emit = [&](Region &region) {
    return emitYieldingBlock(region.front(), branch.getResults());
  };
  if (failed(emitPaths(branch, emit)))
    return failure();
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), made->getRegions()))
    to.takeBody(from);
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
