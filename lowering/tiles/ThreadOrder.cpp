//===- ThreadOrder.cpp - Barriers between a block's threads ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/ThreadOrder.h"

#include "lowering/tiles/ThreadTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

bool tiles::isMeeting(Operation *op) {
  if (isa<PacketLoadOp, PacketStoreOp, PoisonLoadOp, PoisonStoreOp,
          PoisonFillOp>(op))
    return false;
  return isSynchronization(op) || isa<ContractOp, gpu::BarrierOp>(op) ||
         llvm::any_of(getThreadTargets(), [&](const ThreadTarget *target) {
           return target->isClusterWait(op);
         });
}

/// Adds the memory that the ops in `op` access.
static void addTouches(Operation *op, SmallVectorImpl<Touch> &touches) {
  op->walk([&](Operation *inner) {
    if (inner->hasAttr(kStaleAttr))
      return;
    for (const Touch &touch : getTouches(inner))
      // Memory of a thread alone needs no order.
      if (touch.root.kind != MemoryRoot::Scratch ||
          isa_and_nonnull<ScratchOp>(touch.root.value.getDefiningOp()))
        touches.push_back(touch);
  });
}

/// Whether an offset is a multiple of `length` for certain: two such offsets
/// name the same elements, or none in common.
static bool isTileOffset(Value offset, int64_t length, unsigned depth = 8) {
  if (!offset)
    return true;
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return *constant % length == 0;
  Operation *op = offset.getDefiningOp();
  if (!op || depth == 0)
    return false;
  auto is = [&](unsigned i) {
    return isTileOffset(op->getOperand(i), length, depth - 1);
  };
  if (isa<arith::MulIOp>(op))
    return is(0) || is(1);
  return isa<arith::AddIOp, arith::SubIOp>(op) && is(0) && is(1);
}

/// Whether every element that both touch has one owner among the threads. In
/// one iteration, one value is one offset.
static bool haveOneOwner(const Touch &a, const Touch &b, bool oneIteration) {
  int64_t length = a.access.staticCount;
  if (length <= 1 || b.access.staticCount != length || !areAlike(a, b))
    return false;
  if (oneIteration && isElementwise(a, b))
    return true;
  return isTileOffset(a.access.offset, length) &&
         isTileOffset(b.access.offset, length);
}

static bool isFill(const Touch &touch) {
  return touch.access.synchronizes && touch.access.isWrite() &&
         touch.access.staticCount < 0;
}

static bool conflict(const Touch &a, const Touch &b, bool oneIteration) {
  if (a.access.isRead() && b.access.isRead())
    return false;
  if ((a.access.synchronizes || b.access.synchronizes) && !isFill(a) &&
      !isFill(b))
    return false;
  return !areDisjoint(a, b) && !haveOneOwner(a, b, oneIteration);
}

bool ThreadOrder::needsBarrierBefore(ArrayRef<Operation *> ops) {
  SmallVector<Touch> touches;
  for (Operation *op : ops)
    addTouches(op, touches);
  bool found = llvm::any_of(touches, [&](const Touch &touch) {
    return llvm::any_of(pending, [&](const Pending &before) {
      return conflict(before.touch, touch, /*oneIteration=*/true);
    });
  });
  if (found)
    meet();
  for (const Touch &touch : touches)
    pending.push_back({numbers++, touch});
  return found;
}

void ThreadOrder::join(const ThreadOrder &other) {
  SmallVector<Pending> both;
  std::set_union(
      other.pending.begin(), other.pending.end(), pending.begin(),
      pending.end(), std::back_inserter(both),
      [](const Pending &a, const Pending &b) { return a.number < b.number; });
  pending = std::move(both);
}

bool ThreadOrder::needsBarrierInside(Operation *loop) {
  SmallVector<Touch> touches;
  addTouches(loop, touches);
  for (const Touch &a : touches)
    for (const Touch &b : touches)
      if (conflict(a, b, /*oneIteration=*/false))
        return true;
  return false;
}
