//===- SyncLowering.cpp - Signals, counters, barriers and checks ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

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
  // A release of one thread covers what it has learned of at the barrier.
  threadBarrier(b);
  ifLeader(b, [&](ImplicitLocOpBuilder &in) {
    Value cell = cellAddress(*argument, *world, index, in);
    Value number = value ? value : constI64(1, in);
    if (kind == SignalKind::Set)
      emit(in, release ? Ptx::Release64 : Ptx::Store64, {cell, number});
    else
      emit(in, release ? Ptx::AddRelease64 : Ptx::Add64, {cell, number});
  });
  return success();
}

LogicalResult KernelLowering::lowerWait(Operation *op, Value cells, Value index,
                                        WaitKind kind, Value value, Value team,
                                        Value peer, ImplicitLocOpBuilder &b) {
  FailureOr<unsigned> argument = getArgument(op, cells);
  if (failed(argument))
    return failure();
  Value from;
  if (peer) {
    FailureOr<Value> world = worldRank(team, peer, b);
    if (failed(world))
      return failure();
    from = toI32(*world, b);
  }
  bool isCounter = isa<CounterType>(cells.getType());
  Value address = cellAddress(*argument, isCounter ? Value() : rank, index, b);
  threadBarrier(b); // What threads did before the wait comes before it.
  ifLeader(b, [&](ImplicitLocOpBuilder &in) {
    Poll poll;
    poll.kind = isCounter ? PollKind::Counter : PollKind::Signal;
    poll.op = op;
    poll.peer = from;
    poll.wanted = value;
    poll.types = {in.getI64Type()};
    poll.load = [&](ImplicitLocOpBuilder &at) {
      return emit(at, Ptx::Acquire64, {address}, at.getI64Type());
    };
    poll.ready = [&](ImplicitLocOpBuilder &at, ValueRange loaded) -> Value {
      auto predicate = kind == WaitKind::Eq ? arith::CmpIPredicate::eq
                                            : arith::CmpIPredicate::uge;
      return arith::CmpIOp::create(at, predicate, loaded.front(), value);
    };
    poll.seen = [](ImplicitLocOpBuilder &, ValueRange loaded) {
      return loaded.front();
    };
    emitPolls(poll, in);
  });
  threadBarrier(b);
  replaceToken(op, {}, b);
  return success();
}

LogicalResult KernelLowering::lowerCell(Operation *op, Value cells, Value index,
                                        bool reset, ImplicitLocOpBuilder &b) {
  FailureOr<unsigned> argument = getArgument(op, cells);
  if (failed(argument))
    return failure();
  bool isCounter = isa<CounterType>(cells.getType());
  Value address = cellAddress(*argument, isCounter ? Value() : rank, index, b);
  if (reset) {
    threadBarrier(b);
    ifLeader(b, [&](ImplicitLocOpBuilder &in) {
      emit(in, Ptx::Store64, {address, constI64(0, in)});
    });
    threadBarrier(b);
    rewriter.eraseOp(op);
    return success();
  }
  // Threads that each looked might see different values and part ways.
  Value seen = emitOne(b, Ptx::Acquire64, {address}, b.getI64Type());
  rewriter.replaceOp(op, broadcast(seen, b));
  return success();
}

//===----------------------------------------------------------------------===//
// Barriers across ranks
//===----------------------------------------------------------------------===//

/// Runs `body` for the world rank of every member, spread over the threads.
void KernelLowering::forEachMember(
    const TeamNumbers &team, ImplicitLocOpBuilder &b,
    llvm::function_ref<void(Value, ImplicitLocOpBuilder &)> body) {
  Value thread = threadNumber(b);
  int64_t threads = target.threads * target.cluster;
  auto run = [&](Value member, ImplicitLocOpBuilder &in) {
    Value offset = in.createOrFold<arith::MulIOp>(member, team.stride);
    body(in.createOrFold<arith::AddIOp>(team.first, offset), in);
  };
  APInt size;
  if (matchPattern(team.size, m_ConstantInt(&size)) && size.sle(threads)) {
    Value inside =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread, team.size);
    auto only = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
    ImplicitLocOpBuilder in(b.getLoc(), only.thenYield());
    run(thread, in);
    return;
  }
  auto loop = scf::ForOp::create(b, thread, team.size, constIndex(threads, b));
  ImplicitLocOpBuilder in(b.getLoc(), loop.getBody(), loop.getBody()->begin());
  run(loop.getInductionVar(), in);
}

/// Address of the cell that `source` writes at rank `worldRank`.
Value KernelLowering::barrierCell(Value worldRank, BarrierExtent extent,
                                  Value source, ImplicitLocOpBuilder &b) {
  Value base = partAddress(barrierArgument, worldRank, b);
  Value row =
      extent == BarrierExtent::Block ? block : constIndex(target.blocks, b);
  Value cell = b.createOrFold<arith::AddIOp>(
      b.createOrFold<arith::MulIOp>(row, constIndex(ranks, b)), source);
  return addBytes(base, scale(cell, b.getI32Type(), b), b);
}

/// Whether an arrival or a wait orders memory. A relaxed one saves a fence.
static bool ordersMemory(Operation *op) {
  if (auto barrier = dyn_cast<BarrierOp>(op))
    return barrier.getOrder() != MemoryOrder::Relaxed;
  if (auto arrival = dyn_cast<BarrierArriveOp>(op))
    return arrival.getOrder() != MemoryOrder::Relaxed;
  return cast<BarrierWaitOp>(op).getOrder() != MemoryOrder::Relaxed;
}

/// Says that this block has come; the generation that it waits for, as i64.
FailureOr<Value> KernelLowering::arrive(Operation *op, Value team,
                                        BarrierExtent extent,
                                        ImplicitLocOpBuilder &b) {
  FailureOr<TeamNumbers> numbers = getTeam(team);
  if (failed(numbers))
    return failure();
  Type i32 = b.getI32Type();
  Value one = constI32(1, b);
  if (extent == BarrierExtent::Block) {
    threadBarrier(b);
    Value passed = LLVM::LoadOp::create(b, i32, generation);
    Value wanted = arith::AddIOp::create(b, passed, one);
    LLVM::StoreOp::create(b, wanted, generation);
    forEachMember(*numbers, b, [&](Value member, ImplicitLocOpBuilder &in) {
      emit(in, ordersMemory(op) ? Ptx::Release32 : Ptx::Store32,
           {barrierCell(member, extent, rank, in), wanted});
    });
    return arith::ExtUIOp::create(b, b.getI64Type(), wanted).getResult();
  }
  // The own cell cannot move before this block has come.
  Value passed =
      emitOne(b, Ptx::Load32, {barrierCell(rank, extent, rank, b)}, i32);
  Value wanted = arith::AddIOp::create(b, passed, one);
  threadBarrier(b);
  ifLeader(b, [&](ImplicitLocOpBuilder &in) {
    Value base = partAddress(barrierArgument, rank, in);
    Value counter = addBytes(base, 4 * (target.blocks + 1) * ranks, in);
    Value before =
        emitOne(in, Ptx::FetchAdd32, {counter, constI32(1, in)}, i32);
    Value isLast = arith::CmpIOp::create(in, arith::CmpIPredicate::eq, before,
                                         constI32(target.blocks - 1, in));
    auto last = scf::IfOp::create(in, isLast, /*withElseRegion=*/false);
    ImplicitLocOpBuilder end(in.getLoc(), last.thenYield());
    emit(end, Ptx::Store32, {counter, constI32(0, end)});
    auto loop = scf::ForOp::create(end, constIndex(0, end), numbers->size,
                                   constIndex(1, end));
    ImplicitLocOpBuilder tell(in.getLoc(), loop.getBody(),
                              loop.getBody()->begin());
    Value offset =
        arith::MulIOp::create(tell, loop.getInductionVar(), numbers->stride);
    Value member = arith::AddIOp::create(tell, numbers->first, offset);
    emit(tell, Ptx::Release32,
         {barrierCell(member, extent, rank, tell), wanted});
  });
  return arith::ExtUIOp::create(b, b.getI64Type(), wanted).getResult();
}

LogicalResult KernelLowering::awaitBarrier(Operation *op, Value team,
                                           BarrierExtent extent,
                                           Value generation,
                                           ImplicitLocOpBuilder &b) {
  FailureOr<TeamNumbers> numbers = getTeam(team);
  if (failed(numbers))
    return failure();
  Value wanted = toI32(generation, b);
  forEachMember(*numbers, b, [&](Value member, ImplicitLocOpBuilder &in) {
    Value cell = barrierCell(rank, extent, member, in);
    Poll poll;
    poll.kind = PollKind::Barrier;
    poll.op = op;
    poll.peer = toI32(member, in);
    poll.wanted = generation;
    poll.types = {in.getI32Type()};
    poll.load = [&](ImplicitLocOpBuilder &at) {
      return emit(at, ordersMemory(op) ? Ptx::Acquire32 : Ptx::Load32, {cell},
                  at.getI32Type());
    };
    // Generations wrap: the difference has a sign.
    poll.ready = [&](ImplicitLocOpBuilder &at, ValueRange loaded) -> Value {
      Value ahead = arith::SubIOp::create(at, loaded.front(), wanted);
      return arith::CmpIOp::create(at, arith::CmpIPredicate::sge, ahead,
                                   constI32(0, at));
    };
    poll.seen = [](ImplicitLocOpBuilder &at, ValueRange loaded) -> Value {
      return arith::ExtUIOp::create(at, at.getI64Type(), loaded.front());
    };
    emitPolls(poll, in);
  });
  threadBarrier(b);
  return success();
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerSyncOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  if (auto o = dyn_cast<SignalOp>(op)) {
    bool release = o.getOrder() == MemoryOrder::Release ||
                   o.getOrder() == MemoryOrder::AcqRel;
    if (failed(lowerSignal(op, o.getSignal(), o.getIndex(), o.getKind(),
                           o.getValue(), o.getTeam(), o.getPeer(), release, b)))
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
  if (isa<FlushOp>(op)) {
    emitFence(b, MemoryScope::Sys);
    threadBarrier(b);
    rewriter.eraseOp(op);
    return success();
  }
  if (auto o = dyn_cast<FenceOp>(op)) {
    if (o.getScope() == MemoryScope::Cluster && target.sm < 90)
      emitFence(b, MemoryScope::Gpu, o.getProxy());
    else if (o.getProxy() == Proxy::Async && target.sm < 90)
      emitFence(b, o.getScope());
    else
      emitFence(b, o.getScope(), o.getProxy());
    threadBarrier(b);
    rewriter.eraseOp(op);
    return success();
  }
  if (auto o = dyn_cast<BarrierOp>(op)) {
    FailureOr<Value> handle = arrive(op, o.getTeam(), o.getExtent(), b);
    if (failed(handle) ||
        failed(awaitBarrier(op, o.getTeam(), o.getExtent(), *handle, b)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
  if (auto o = dyn_cast<BarrierArriveOp>(op)) {
    FailureOr<Value> handle = arrive(op, o.getTeam(), o.getExtent(), b);
    if (failed(handle))
      return failure();
    arrivals[o.getToken()] = {o.getTeam(), o.getExtent()};
    replaceToken(op, *handle, b);
    return success();
  }
  auto o = cast<BarrierWaitOp>(op);
  auto arrival = arrivals.find(o.getArrived());
  if (arrival == arrivals.end())
    return op->emitOpError("takes a token that is not the result of "
                           "comms.barrier_arrive itself: pass it directly");
  auto [team, extent] = arrival->second;
  Value handle = UnrealizedConversionCastOp::create(
                     b, TypeRange{b.getI64Type()}, o.getArrived())
                     .getResult(0);
  if (failed(awaitBarrier(op, team, extent, handle, b)))
    return failure();
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
    fail(op, o.getWhat(), toI64(offset, inner), toI64(limit, inner), inner);
  }
  // Records are for the race detector of the CPU world.
  rewriter.eraseOp(op);
  return success();
}
