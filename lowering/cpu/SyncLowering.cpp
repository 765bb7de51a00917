//===- SyncLowering.cpp - Signals, counters, barriers and checks ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/cpu/KernelLowering.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::cpu;

LogicalResult KernelLowering::lowerSignal(Operation *op, Value signal,
                                          Value index, SignalKind kind,
                                          Value value, Value team, Value peer,
                                          bool release,
                                          ImplicitLocOpBuilder &b) {
  FailureOr<unsigned> argument = getArgument(op, signal);
  if (failed(argument))
    return failure();
  FailureOr<Value> world = checkedWorldRank(op, team, peer, b);
  if (failed(world))
    return failure();
  callRuntime(b, "signal",
              {siteOf(op, b), constI64(*argument, b), toI64(index, b),
               constI64(static_cast<int64_t>(kind), b),
               value ? value : constI64(1, b), toI64(*world, b)});
  return success();
}

LogicalResult KernelLowering::lowerWait(Operation *op, Value cells, Value index,
                                        WaitKind kind, Value value, Value team,
                                        Value peer, ImplicitLocOpBuilder &b) {
  FailureOr<unsigned> argument = getArgument(op, cells);
  if (failed(argument))
    return failure();
  Value from = constI64(-1, b);
  if (peer) {
    FailureOr<Value> world = worldRank(team, peer, b);
    if (failed(world))
      return failure();
    from = toI64(*world, b);
  }
  callRuntime(b, "wait_cell",
              {siteOf(op, b), constI64(*argument, b), toI64(index, b),
               constI64(static_cast<int64_t>(kind), b), value, from});
  replaceToken(op, {}, b);
  return success();
}

LogicalResult KernelLowering::lowerCell(Operation *op, Value cells, Value index,
                                        bool reset, ImplicitLocOpBuilder &b) {
  FailureOr<unsigned> argument = getArgument(op, cells);
  if (failed(argument))
    return failure();
  SmallVector<Value> operands{siteOf(op, b), constI64(*argument, b),
                              toI64(index, b)};
  if (reset) {
    callRuntime(b, "reset_cell", operands);
    rewriter.eraseOp(op);
  } else {
    rewriter.replaceOp(op,
                       callRuntime(b, "read_cell", operands, b.getI64Type()));
  }
  return success();
}

FailureOr<Value> KernelLowering::arrive(Operation *op, Value team,
                                        BarrierExtent extent,
                                        ImplicitLocOpBuilder &b) {
  FailureOr<TeamNumbers> numbers = getTeam(team);
  if (failed(numbers))
    return failure();
  return callRuntime(b, "arrive",
                     {siteOf(op, b), toI64(numbers->first, b),
                      toI64(numbers->stride, b), toI64(numbers->size, b),
                      constI64(extent == BarrierExtent::Grid, b)},
                     b.getI64Type());
}

LogicalResult KernelLowering::awaitBarrier(Operation *op,
                                           const target::Arrival &arrival,
                                           ImplicitLocOpBuilder &b) {
  callRuntime(b, "barrier_wait", {siteOf(op, b), arrival.number});
  return success();
}

void KernelLowering::lowerFence(Operation *op, ImplicitLocOpBuilder &b) {
  callRuntime(b, "fence", {siteOf(op, b)});
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void KernelLowering::failBounds(Operation *op, StringRef what, Value offset,
                                Value count, Value limit,
                                ImplicitLocOpBuilder &b) {
  callRuntime(b, "out_of_bounds",
              {siteOf(op, b, what), toI64(offset, b), toI64(count, b),
               toI64(limit, b)});
}

void KernelLowering::lowerRecord(Operation *op, ImplicitLocOpBuilder &b) {
  if (auto record = dyn_cast<RecordSyncOp>(op)) {
    callRuntime(b, "record_sync", {siteOf(op, b, record.getWhat())});
    return;
  }
  auto record = cast<RecordAccessOp>(op);
  // A multimem view is no address of this process; its parts are not recorded.
  if (record.getMemref().getDefiningOp<MultimemOp>())
    return;
  auto type = cast<MemRefType>(record.getMemref().getType());
  callRuntime(b, "record_access",
              {siteOf(op, b),
               constI64(static_cast<int64_t>(record.getKind()), b),
               elementAddress(record.getMemref(), record.getOffset(), b),
               scale(record.getCount(), type.getElementType(), b)});
}
