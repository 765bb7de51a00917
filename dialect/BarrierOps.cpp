//===- BarrierOps.cpp - Barriers, whole and split ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/OpChecks.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

LogicalResult BarrierOp::verify() {
  return isOutsideRole(*this, "C1", getExtent());
}

/// The wait that the token goes to, if that is its one use.
static BarrierWaitOp getOnlyWait(BarrierArriveOp arrive) {
  Value token = arrive.getToken();
  return token.hasOneUse() ? dyn_cast<BarrierWaitOp>(*token.user_begin())
                           : BarrierWaitOp();
}

/// Whether `op` is a barrier, or half of one, of the same team and extent.
static bool isSameBarrier(Operation *op, BarrierArriveOp arrive) {
  auto matches = [&](Value team, BarrierExtentAttr extent) {
    return extent == arrive.getExtentAttr() &&
           areSameTeam(team, arrive.getTeam());
  };
  if (auto barrier = dyn_cast<BarrierOp>(op))
    return matches(barrier.getTeam(), barrier.getExtentAttr());
  if (auto other = dyn_cast<BarrierArriveOp>(op))
    return matches(other.getTeam(), other.getExtentAttr());
  return false;
}

LogicalResult BarrierArriveOp::verify() {
  if (failed(isOutsideRole(*this, "C1", getExtent())) ||
      failed(isOrder(*this, "C2", getOrder(), MemoryOrder::Release)))
    return failure();
  BarrierWaitOp wait = getOnlyWait(*this);
  if (!wait)
    return emitOpError("C3: exactly one comms.barrier_wait must use the token, "
                       "and no other op");
  // Operations before the wait; a wait that does not follow is an error of
  // dominance, which is reported after this.
  for (Operation *op = (*this)->getNextNode(); op && op != wait;
       op = op->getNextNode()) {
    WalkResult found = op->walk([&](Operation *inner) {
      return isSameBarrier(inner, *this) ? WalkResult::interrupt()
                                         : WalkResult::advance();
    });
    if (found.wasInterrupted())
      return emitOpError("C4: another barrier of this team and extent begins "
                         "before the wait for "
                         "this one; wait first")
                 .attachNote(op->getLoc())
             << "the other barrier is here";
  }
  return success();
}

LogicalResult BarrierWaitOp::verify() {
  auto arrive = getArrived().getDefiningOp<BarrierArriveOp>();
  if (!arrive)
    return emitOpError(
        "C1: the token must be the result of a comms.barrier_arrive");
  if (arrive->getBlock() != (*this)->getBlock())
    return emitOpError("C2: the arrive and its wait must stand in the same "
                       "block of operations, so "
                       "that each is run as often as the other");
  return isOrder(*this, "C3", getOrder(), MemoryOrder::Acquire);
}
