//===- OneSidedOps.cpp - Puts, gets, signals, counters, fences --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers in the errors are those of docs/Spec.md, chapter One-sided
// operations.
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/OpChecks.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::checks;

//===----------------------------------------------------------------------===//
// Puts and gets
//===----------------------------------------------------------------------===//

/// C1 to C4, which `put`, `get` and `put_signal` share: element types, plain
/// memory on this side, ranges on both, the peer.
template <typename TransferOp>
static LogicalResult verifyTransfer(TransferOp op, Value memory, StringRef name,
                                    Value memoryOffset) {
  std::optional<int64_t> count = getConstant(op.getCount());
  if (failed(sameElement(op, "C1", memory, name, op.getWindow(), "window")) ||
      failed(verifyPlainMemory(op, "C2", memory.getType(), name)) ||
      failed(isCount(op, "C3", op.getCount())) ||
      failed(inRange(op, "C3", memory, name, memoryOffset, count)) ||
      failed(
          inRange(op, "C3", op.getWindow(), "window", op.getOffset(), count)))
    return failure();
  return isPeer(op, "C4", op.getPeer(), op.getTeam());
}

LogicalResult PutOp::verify() {
  if (failed(verifyTransfer(*this, getSource(), "source", getSourceOffset())))
    return failure();
  if (static_cast<bool>(getCounter()) != static_cast<bool>(getCounterIndex()))
    return emitOpError(
        "C5: a counter comes with the index of its cell, and an index with its "
        "counter; write counted %counter[%index]");
  if (getCounter() &&
      failed(isIndex(*this, "C6", getCounterIndex(),
                     cast<CounterType>(getCounter().getType()).getCount(),
                     "counter cell")))
    return failure();
  if (failed(isGin(*this, "C7", "C8", getGinAttr())))
    return failure();
  return isRegistered(*this, "C9", getGinAttr(), getSource(), "source");
}

LogicalResult GetOp::verify() {
  if (failed(
          verifyTransfer(*this, getDest(), "destination", getDestOffset())) ||
      failed(isGin(*this, "C5", "C6", getGinAttr())))
    return failure();
  return isRegistered(*this, "C7", getGinAttr(), getDest(), "destination");
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

static LogicalResult isCell(Operation *op, StringRef constraint, Value signal,
                            Value index) {
  return isIndex(op, constraint, index,
                 cast<SignalType>(signal.getType()).getCount(), "signal cell");
}

/// `set` and `add` come with a value, `inc` without.
static LogicalResult hasItsValue(Operation *op, StringRef constraint,
                                 SignalKind kind, Value value) {
  if ((kind == SignalKind::Inc) != static_cast<bool>(value))
    return success();
  if (value)
    return op->emitOpError()
           << constraint << ": inc adds one and takes no value; use add";
  return op->emitOpError() << constraint << ": " << stringifySignalKind(kind)
                           << " needs a value; write value %v";
}

/// A network adapter adds to a cell; it cannot overwrite one in order.
static LogicalResult isGinSignal(Operation *op, StringRef constraint,
                                 GinAttr gin, SignalKind kind) {
  if (!gin || kind != SignalKind::Set)
    return success();
  return op->emitOpError()
         << constraint
         << ": GIN has no signal that sets a cell; use inc or add";
}

/// Whether `peer` is this rank itself, as far as SSA tells.
static bool isOwnRank(Value peer, Value team) {
  auto rank = peer.getDefiningOp<RankOp>();
  return (rank && areSameTeam(rank.getTeam(), team)) ||
         getStaticTeamSize(team) == 1;
}

/// A cell is seen by blocks of one GPU at least; that of another rank only at
/// system scope.
static LogicalResult isSignalScope(Operation *op, StringRef constraint,
                                   MemoryScope scope) {
  if (scope == MemoryScope::Gpu || scope == MemoryScope::Sys)
    return success();
  return op->emitOpError()
         << constraint << ": a signal crosses blocks; its scope is sys, or gpu "
         << "between blocks of one rank, not " << stringifyMemoryScope(scope);
}

/// Scope gpu is only for signals of a rank to itself.
static LogicalResult reachesPeer(Operation *op, StringRef constraint,
                                 MemoryScope scope, Value peer, Value team) {
  if (scope != MemoryScope::Gpu || isOwnRank(peer, team))
    return success();
  return op->emitOpError()
         << constraint
         << ": the peer may be another rank, which scope gpu does "
         << "not reach; use scope sys, or comms.rank of the team as peer";
}

LogicalResult PutSignalOp::verify() {
  if (failed(verifyTransfer(*this, getSource(), "source", getSourceOffset())) ||
      failed(isCell(*this, "C5", getSignal(), getIndex())) ||
      failed(hasItsValue(*this, "C6", getKind(), getValue())) ||
      failed(isCellValue(*this, "C7", getValue())) ||
      failed(isGin(*this, "C8", "C9", getGinAttr())) ||
      failed(isRegistered(*this, "C10", getGinAttr(), getSource(), "source")))
    return failure();
  return isGinSignal(*this, "C11", getGinAttr(), getKind());
}

LogicalResult SignalOp::verify() {
  if (failed(isCell(*this, "C1", getSignal(), getIndex())) ||
      failed(hasItsValue(*this, "C2", getKind(), getValue())) ||
      failed(isCellValue(*this, "C3", getValue())) ||
      failed(isPeer(*this, "C4", getPeer(), getTeam())) ||
      failed(isOrder(*this, "C5", getOrder(), MemoryOrder::Release)) ||
      failed(isSignalScope(*this, "C6", getScope())) ||
      failed(reachesPeer(*this, "C7", getScope(), getPeer(), getTeam())) ||
      failed(isGin(*this, "C8", "C9", getGinAttr())))
    return failure();
  return isGinSignal(*this, "C10", getGinAttr(), getKind());
}

LogicalResult WaitSignalOp::verify() {
  if (failed(isCell(*this, "C1", getSignal(), getIndex())) ||
      failed(isCellValue(*this, "C2", getValue())) ||
      failed(isOrder(*this, "C3", getOrder(), MemoryOrder::Acquire)))
    return failure();
  return isSignalScope(*this, "C4", getScope());
}

LogicalResult WaitSignalFromOp::verify() {
  if (failed(isCell(*this, "C1", getSignal(), getIndex())) ||
      failed(isCellValue(*this, "C2", getValue())) ||
      failed(isPeer(*this, "C3", getPeer(), getTeam())) ||
      failed(isOrder(*this, "C4", getOrder(), MemoryOrder::Acquire)) ||
      failed(isSignalScope(*this, "C5", getScope())))
    return failure();
  return reachesPeer(*this, "C6", getScope(), getPeer(), getTeam());
}

LogicalResult ReadSignalOp::verify() {
  if (failed(isCell(*this, "C1", getSignal(), getIndex())))
    return failure();
  return isOrder(*this, "C2", getOrder(), MemoryOrder::Acquire);
}

LogicalResult ResetSignalOp::verify() {
  return isCell(*this, "C1", getSignal(), getIndex());
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

static LogicalResult isCounterCell(Operation *op, Value counter, Value index) {
  return isIndex(op, "C1", index,
                 cast<CounterType>(counter.getType()).getCount(),
                 "counter cell");
}

LogicalResult WaitCounterOp::verify() {
  if (failed(isCounterCell(*this, getCounter(), getIndex())))
    return failure();
  return isCellValue(*this, "C2", getValue());
}

LogicalResult ReadCounterOp::verify() {
  return isCounterCell(*this, getCounter(), getIndex());
}

LogicalResult ResetCounterOp::verify() {
  return isCounterCell(*this, getCounter(), getIndex());
}

//===----------------------------------------------------------------------===//
// Flush and fence
//===----------------------------------------------------------------------===//

LogicalResult FlushOp::verify() {
  return isGin(*this, "C1", "C2", getGinAttr());
}

LogicalResult FenceOp::verify() {
  if (getOrder() == MemoryOrder::Relaxed)
    return emitOpError(
        "C1: a relaxed fence orders nothing; use acquire, release or acq_rel");
  if (getProxy() == Proxy::CopyEngine)
    return emitOpError("C2: no fence of a kernel orders the copy engine, whose "
                       "copies are steps "
                       "of the host; use generic, async or alias");
  return success();
}
