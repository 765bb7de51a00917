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
  Value address =
      cellAddress(*argument, isCounter ? Value() : me.rank, index, b);
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
  Value address =
      cellAddress(*argument, isCounter ? Value() : me.rank, index, b);
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
  FailureOr<Value> everywhere = broadcast(seen, b);
  if (failed(everywhere))
    return failure();
  rewriter.replaceOp(op, *everywhere);
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
Value KernelLowering::barrierCell(Value worldRank, unsigned team,
                                  BarrierExtent extent, Value source,
                                  ImplicitLocOpBuilder &b) {
  Value base = partAddress(barrierArgument, worldRank, b);
  int64_t first = team * (kBarrierRows + target.blocks);
  Value row = extent == BarrierExtent::Grid
                  ? constIndex(first, b)
                  : b.createOrFold<arith::AddIOp>(
                        block, constIndex(first + kBarrierRows, b));
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
  unsigned number = barrierTeam(team);
  if (extent == BarrierExtent::Block) {
    threadBarrier(b);
    Value generation = generations[number];
    Value passed = LLVM::LoadOp::create(b, i32, generation);
    Value wanted = arith::AddIOp::create(b, passed, one);
    LLVM::StoreOp::create(b, wanted, generation);
    forEachMember(*numbers, b, [&](Value member, ImplicitLocOpBuilder &in) {
      emit(in, ordersMemory(op) ? Ptx::Release32 : Ptx::Store32,
           {barrierCell(member, number, extent, me.rank, in), wanted});
    });
    return arith::ExtUIOp::create(b, b.getI64Type(), wanted).getResult();
  }
  // The own cell cannot move before this block has come.
  Value passed = emitOne(
      b, Ptx::Load32, {barrierCell(me.rank, number, extent, me.rank, b)}, i32);
  Value wanted = arith::AddIOp::create(b, passed, one);
  threadBarrier(b);
  ifLeader(b, [&](ImplicitLocOpBuilder &in) {
    arriveInGrid(*numbers, number, wanted, in);
  });
  return arith::ExtUIOp::create(b, b.getI64Type(), wanted).getResult();
}

/// The last block of the rank to come tells all members.
void KernelLowering::arriveInGrid(const TeamNumbers &team, unsigned number,
                                  Value wanted, ImplicitLocOpBuilder &b) {
  Value base = partAddress(barrierArgument, me.rank, b);
  int64_t row = number * (kBarrierRows + target.blocks) + 1;
  Value counter = addBytes(base, 4 * row * ranks, b);
  Value before =
      emitOne(b, Ptx::FetchAdd32, {counter, constI32(1, b)}, b.getI32Type());
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before,
                                       constI32(target.blocks - 1, b));
  auto last = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  ImplicitLocOpBuilder end(b.getLoc(), last.thenYield());
  emit(end, Ptx::Store32, {counter, constI32(0, end)});
  auto loop = scf::ForOp::create(end, constIndex(0, end), team.size,
                                 constIndex(1, end));
  ImplicitLocOpBuilder tell(b.getLoc(), loop.getBody(),
                            loop.getBody()->begin());
  Value offset =
      arith::MulIOp::create(tell, loop.getInductionVar(), team.stride);
  Value member = arith::AddIOp::create(tell, team.first, offset);
  emit(tell, Ptx::Release32,
       {barrierCell(member, number, BarrierExtent::Grid, me.rank, tell),
        wanted});
}

LogicalResult KernelLowering::awaitBarrier(Operation *op,
                                           const target::Arrival &arrival,
                                           ImplicitLocOpBuilder &b) {
  if (!arrival.team)
    return op->emitOpError("takes a token that is not the result of "
                           "comms.barrier_arrive itself: pass it directly");
  FailureOr<TeamNumbers> numbers = getTeam(arrival.team);
  if (failed(numbers))
    return failure();
  unsigned number = barrierTeam(arrival.team);
  Value wanted = toI32(arrival.number, b);
  forEachMember(*numbers, b, [&](Value member, ImplicitLocOpBuilder &in) {
    Value cell = barrierCell(me.rank, number, arrival.extent, member, in);
    Poll poll;
    poll.kind = PollKind::Barrier;
    poll.op = op;
    poll.peer = toI32(member, in);
    poll.wanted = arrival.number;
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
// Fences
//===----------------------------------------------------------------------===//

/// Whoever signals after a release orders with its own fence what all threads
/// did before: they meet first. What a thread does after an acquire may rest on
/// another's load: they meet again. What a chip before sm_90 does not have
/// falls to what it has.
void KernelLowering::lowerFence(Operation *op, ImplicitLocOpBuilder &b) {
  auto fence = dyn_cast<FenceOp>(op);
  if (fence && fence.getOrder() != MemoryOrder::Acquire)
    threadBarrier(b);
  if (!fence) // A flush.
    emitFence(b, MemoryScope::Sys);
  else if (fence.getScope() == MemoryScope::Cluster && target.sm < 90)
    emitFence(b, MemoryScope::Gpu, fence.getProxy());
  else if (fence.getProxy() == Proxy::Async && target.sm < 90)
    emitFence(b, fence.getScope());
  else
    emitFence(b, fence.getScope(), fence.getProxy());
  threadBarrier(b);
}
