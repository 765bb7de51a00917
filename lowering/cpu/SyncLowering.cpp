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

LogicalResult KernelLowering::lowerSyncOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  if (auto o = dyn_cast<SignalOp>(op)) {
    if (failed(lowerSignal(op, o.getSignal(), o.getIndex(), o.getKind(),
                           o.getValue(), o.getTeam(), o.getPeer(), b)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
  if (auto o = dyn_cast<WaitSignalOp>(op))
    return lowerWait(op, o.getSignal(), o.getIndex(), o.getKind(), o.getValue(),
                     {}, {}, b);
  if (auto o = dyn_cast<WaitSignalFromOp>(op))
    return lowerWait(op, o.getSignal(), o.getIndex(), o.getKind(), o.getValue(),
                     o.getTeam(), o.getPeer(), b);
  if (auto o = dyn_cast<WaitCounterOp>(op))
    return lowerWait(op, o.getCounter(), o.getIndex(), WaitKind::Ge,
                     o.getValue(), {}, {}, b);
  if (auto o = dyn_cast<ReadSignalOp>(op))
    return lowerCell(op, o.getSignal(), o.getIndex(), false, b);
  if (auto o = dyn_cast<ResetSignalOp>(op))
    return lowerCell(op, o.getSignal(), o.getIndex(), true, b);
  if (auto o = dyn_cast<ReadCounterOp>(op))
    return lowerCell(op, o.getCounter(), o.getIndex(), false, b);
  if (auto o = dyn_cast<ResetCounterOp>(op))
    return lowerCell(op, o.getCounter(), o.getIndex(), true, b);
  if (isa<FlushOp, FenceOp>(op)) {
    callRuntime(b, "fence", {siteOf(op, b)});
    rewriter.eraseOp(op);
    return success();
  }
  if (auto o = dyn_cast<BarrierOp>(op)) {
    FailureOr<Value> handle = arrive(op, o.getTeam(), o.getExtent(), b);
    if (failed(handle))
      return failure();
    callRuntime(b, "barrier_wait", {siteOf(op, b), *handle});
    rewriter.eraseOp(op);
    return success();
  }
  if (auto o = dyn_cast<BarrierArriveOp>(op)) {
    FailureOr<Value> handle = arrive(op, o.getTeam(), o.getExtent(), b);
    if (failed(handle))
      return failure();
    replaceToken(op, *handle, b);
    return success();
  }
  auto o = cast<BarrierWaitOp>(op);
  Value handle = UnrealizedConversionCastOp::create(
                     b, TypeRange{b.getI64Type()}, o.getArrived())
                     .getResult(0);
  callRuntime(b, "barrier_wait", {siteOf(op, b), handle});
  replaceToken(op, {}, b);
  return success();
}

LogicalResult KernelLowering::lowerCheckOp(Operation *op,
                                           ImplicitLocOpBuilder &b) {
  if (auto o = dyn_cast<CheckBoundsOp>(op)) {
    // Unsigned: a negative offset or count is out of bounds too.
    Value offset = o.getOffset(), count = o.getCount(), limit = o.getLimit();
    auto above = arith::CmpIPredicate::ugt;
    Value late = arith::CmpIOp::create(b, above, offset, limit);
    Value rest = b.createOrFold<arith::SubIOp>(limit, offset);
    Value longer = arith::CmpIOp::create(b, above, count, rest);
    Value outside = arith::OrIOp::create(b, late, longer);
    auto check = scf::IfOp::create(b, outside, /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(b.getLoc(), check.thenYield());
    callRuntime(inner, "out_of_bounds",
                {siteOf(op, inner, o.getWhat()), toI64(offset, inner),
                 toI64(count, inner), toI64(limit, inner)});
  } else if (auto o = dyn_cast<RecordAccessOp>(op)) {
    auto type = cast<MemRefType>(o.getMemref().getType());
    // A multimem view is no address of this process; its parts are not
    // recorded.
    if (!o.getMemref().getDefiningOp<MultimemOp>())
      callRuntime(b, "record_access",
                  {siteOf(op, b),
                   constI64(static_cast<int64_t>(o.getKind()), b),
                   elementAddress(o.getMemref(), o.getOffset(), b),
                   scale(o.getCount(), type.getElementType(), b)});
  } else {
    auto record = cast<RecordSyncOp>(op);
    callRuntime(b, "record_sync", {siteOf(op, b, record.getWhat())});
  }
  rewriter.eraseOp(op);
  return success();
}
