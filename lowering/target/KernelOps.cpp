//===- KernelOps.cpp - Dispatches ops to a target -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/target/KernelBase.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::target;

//===----------------------------------------------------------------------===//
// Windows and memory of the block
//===----------------------------------------------------------------------===//

LogicalResult KernelBase::lowerWindowOp(Operation *op,
                                        ImplicitLocOpBuilder &b) {
  if (auto scratch = dyn_cast<ScratchOp>(op))
    return lowerScratch(op, cast<MemRefType>(scratch.getResult().getType()), b);
  if (auto alloca = dyn_cast<memref::AllocaOp>(op))
    return lowerAlloca(alloca, b);
  if (isa<MultimemOp>(op)) // Resolved where it is used.
    return success();
  auto type = dyn_cast<MemRefType>(op->getResult(0).getType());
  FailureOr<unsigned> argument = getArgument(op, op->getOperand(0));
  if (failed(argument))
    return failure();
  if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return op->emitOpError(
        "must give a memref of static shape and identity layout; specialize "
        "the kernel to its inputs first");
  Value rank = me.rank;
  if (auto peer = dyn_cast<PeerOp>(op)) {
    FailureOr<Value> world =
        checkedWorldRank(op, peer.getTeam(), peer.getPeer(), b);
    if (failed(world))
      return failure();
    rank = *world;
  }
  rewriter.replaceOp(op, viewPart(type, *argument, rank, b));
  return success();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Returns the memory that a put, a get or a copy by the engine moves.
static Transfer getTransfer(Operation *op) {
  if (auto get = dyn_cast<GetOp>(op))
    return {get.getDest(),   get.getDestOffset(), get.getWindow(),
            get.getOffset(), get.getCount(),      get.getTeam(),
            get.getPeer(),   /*toPeer=*/false};
  return llvm::TypeSwitch<Operation *, Transfer>(op)
      .Case<PutOp, PutSignalOp, EngineCopyOp>([](auto put) -> Transfer {
        return {put.getSource(), put.getSourceOffset(), put.getWindow(),
                put.getOffset(), put.getCount(),        put.getTeam(),
                put.getPeer(),   /*toPeer=*/true};
      });
}

FailureOr<TransferAddresses> KernelBase::findEnds(Operation *op,
                                                  const Transfer &transfer,
                                                  ImplicitLocOpBuilder &b) {
  FailureOr<unsigned> argument = getArgument(op, transfer.window);
  if (failed(argument))
    return failure();
  FailureOr<Value> world =
      checkedWorldRank(op, transfer.team, transfer.peer, b);
  if (failed(world))
    return failure();
  Type element = cast<WindowType>(transfer.window.getType()).getElementType();
  Value mine = elementAddress(transfer.local, transfer.localOffset, b);
  Value part = partAddress(*argument, *world, b);
  Value theirs = addBytes(part, scale(transfer.offset, element, b), b);
  return TransferAddresses{mine, theirs, element};
}

LogicalResult KernelBase::lowerCopyOp(Operation *op, ImplicitLocOpBuilder &b) {
  syncThreads(b); // What threads wrote, and what they have copied, is whole.
  if (isa<BulkWaitOp>(op))
    return replaceToken(op, {}, b), success();
  if (auto bulk = dyn_cast<BulkCopyOp>(op)) {
    lowerBulkCopy(bulk, b);
    return replaceToken(op, {}, b), success();
  }
  if (isa<EngineCopyOp>(op)) {
    // A step of the host, once for a launch: block 0 stands for it.
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block,
                                        constIndex(0, b));
    auto only = scf::IfOp::create(b, first, /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(b.getLoc(), only.thenYield());
    if (failed(lowerTransfer(op, getTransfer(op), inner)))
      return failure();
  } else if (failed(lowerTransfer(op, getTransfer(op), b))) {
    return failure();
  }
  if (isa<GetOp>(op))
    syncThreads(b); // Any thread may read what any has fetched.
  if (auto put = dyn_cast<PutOp>(op); put && put.getCounter()) {
    FailureOr<unsigned> counter = getArgument(op, put.getCounter());
    if (failed(counter))
      return failure();
    count(op, *counter, put.getCounterIndex(), b);
  }
  if (auto put = dyn_cast<PutSignalOp>(op))
    if (failed(lowerSignal(op, put.getSignal(), put.getIndex(), put.getKind(),
                           put.getValue(), put.getTeam(), put.getPeer(),
                           /*release=*/true, b)))
      return failure();
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Synchronization and checks
//===----------------------------------------------------------------------===//

LogicalResult KernelBase::lowerSyncOp(Operation *op, ImplicitLocOpBuilder &b) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<SignalOp>([&](SignalOp o) -> LogicalResult {
        bool release = o.getOrder() == MemoryOrder::Release ||
                       o.getOrder() == MemoryOrder::AcqRel;
        if (failed(lowerSignal(op, o.getSignal(), o.getIndex(), o.getKind(),
                               o.getValue(), o.getTeam(), o.getPeer(), release,
                               b)))
          return failure();
        rewriter.eraseOp(op);
        return success();
      })
      .Case<WaitSignalOp>([&](WaitSignalOp o) {
        return lowerWait(op, o.getSignal(), o.getIndex(), o.getKind(),
                         o.getValue(), {}, {}, b);
      })
      .Case<WaitSignalFromOp>([&](WaitSignalFromOp o) {
        return lowerWait(op, o.getSignal(), o.getIndex(), o.getKind(),
                         o.getValue(), o.getTeam(), o.getPeer(), b);
      })
      .Case<WaitCounterOp>([&](WaitCounterOp o) {
        return lowerWait(op, o.getCounter(), o.getIndex(), WaitKind::Ge,
                         o.getValue(), {}, {}, b);
      })
      .Case<ReadSignalOp, ResetSignalOp>([&](auto o) {
        return lowerCell(op, o.getSignal(), o.getIndex(),
                         isa<ResetSignalOp>(op), b);
      })
      .Case<ReadCounterOp, ResetCounterOp>([&](auto o) {
        return lowerCell(op, o.getCounter(), o.getIndex(),
                         isa<ResetCounterOp>(op), b);
      })
      .Case<FlushOp, FenceOp>([&](auto) {
        lowerFence(op, b);
        rewriter.eraseOp(op);
        return success();
      })
      .Case<BarrierOp>([&](BarrierOp o) -> LogicalResult {
        FailureOr<Value> number = arrive(op, o.getTeam(), o.getExtent(), b);
        if (failed(number) ||
            failed(awaitBarrier(op, {o.getTeam(), o.getExtent(), *number}, b)))
          return failure();
        rewriter.eraseOp(op);
        return success();
      })
      .Case<BarrierArriveOp>([&](BarrierArriveOp o) -> LogicalResult {
        FailureOr<Value> number = arrive(op, o.getTeam(), o.getExtent(), b);
        if (failed(number))
          return failure();
        arrivals[o.getToken()] = {o.getTeam(), o.getExtent(), {}};
        replaceToken(op, *number, b);
        return success();
      })
      .Case<BarrierWaitOp>([&](BarrierWaitOp o) -> LogicalResult {
        Arrival arrival = arrivals.lookup(o.getArrived());
        arrival.number = UnrealizedConversionCastOp::create(
                             b, TypeRange{b.getI64Type()}, o.getArrived())
                             .getResult(0);
        if (failed(awaitBarrier(op, arrival, b)))
          return failure();
        replaceToken(op, {}, b);
        return success();
      });
}

LogicalResult KernelBase::lowerCheckOp(Operation *op, ImplicitLocOpBuilder &b) {
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
    failBounds(op, o.getWhat(), offset, count, limit, inner);
  } else {
    lowerRecord(op, b);
  }
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

LogicalResult KernelBase::refuseOp(Operation *op) {
  return op->emitOpError("cannot be lowered for the ")
         << names.target << ": lower it first, the pipeline " << names.pipeline
         << " has the passes in order";
}

LogicalResult KernelBase::lowerOp(Operation *op) {
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op->getLoc(), rewriter);
  auto replace = [&](Value value) {
    rewriter.replaceOp(op, value);
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<TeamOp, TeamSplitOp, RankOp, SizeOp, TranslateRankOp>(
          [&](auto) { return lowerTeamOp(op, b); })
      .Case<ForPeersOp>([&](auto loop) { return lowerPeerLoop(loop, b); })
      .Case<RoleOp>([&](auto role) { return lowerRole(role, b), success(); })
      .Case<BlockIdOp>([&](auto) { return replace(block); })
      .Case<NumBlocksOp>([&](auto) { return replace(blocks); })
      .Case<EpochOp>([&](auto) { return replace(epoch); })
      .Case<ExtentOp>(
          [&](auto extent) { return replace(bindExtent(extent, b)); })
      .Case<ReturnOp>([&](auto end) { return lowerReturn(end, b), success(); })
      .Case<LocalOp, PeerOp, MultimemOp, ScratchOp, memref::AllocaOp>(
          [&](auto) { return lowerWindowOp(op, b); })
      .Case<PutOp, GetOp, PutSignalOp, EngineCopyOp, BulkCopyOp, BulkWaitOp>(
          [&](auto) { return lowerCopyOp(op, b); })
      .Case<SignalOp, WaitSignalOp, WaitSignalFromOp, ReadSignalOp,
            ResetSignalOp, WaitCounterOp, ReadCounterOp, ResetCounterOp,
            FlushOp, FenceOp, BarrierOp, BarrierArriveOp, BarrierWaitOp>(
          [&](auto) { return lowerSyncOp(op, b); })
      .Case<CheckBoundsOp, RecordAccessOp, RecordSyncOp>(
          [&](auto) { return lowerCheckOp(op, b); })
      .Case<TileLoadOp, TileStoreOp, PacketStoreOp, PacketLoadOp, PoisonStoreOp,
            PoisonLoadOp, PoisonFillOp, MultimemLoadReduceOp, MultimemStoreOp,
            MultimemReduceOp>([&](auto) { return lowerTileOp(op, b); })
      .Case<ContractOp>(
          [&](ContractOp product) { return lowerContract(product, b); })
      .Default([&](Operation *) -> LogicalResult {
        if (isa_and_present<CommsDialect>(op->getDialect()))
          return refuseOp(op);
        return lowerOtherOp(op, b);
      });
}
