//===- ProgramActions.cpp - Ops that synchronize, as actions --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/ProgramBuilder.h"

#include "lowering/analysis/Accesses.h"

#include "dialect/Packets.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

/// Through an adapter, and in which context of GIN.
static void setContext(Action &action, std::optional<GinAttr> gin) {
  action.gin = gin.has_value();
  action.context = gin ? gin->getContextId() : 0;
}

LogicalResult ProgramBuilder::signalAction(Operation *op, Action &action) {
  auto object = [&](Value value) -> LogicalResult {
    auto index = argument(value, op);
    if (failed(index))
      return failure();
    action.object = *index;
    return success();
  };
  auto toPeer = [&](Value team, Value peer) -> LogicalResult {
    auto index = this->team(team, op);
    if (failed(index))
      return failure();
    action.team = *index;
    action.peer = reg(peer);
    return success();
  };
  if (auto signal = dyn_cast<SignalOp>(op)) {
    action.kind = ActionKind::Signal;
    action.signal = signal.getKind();
    action.index = reg(signal.getIndex());
    action.value = optionalReg(signal.getValue());
    action.order = signal.getOrder();
    action.scope = signal.getScope();
    setContext(action, signal.getGin());
    return failure(failed(object(signal.getSignal())) ||
                   failed(toPeer(signal.getTeam(), signal.getPeer())));
  }
  auto toWait = [&](auto wait) {
    action.kind = ActionKind::WaitSignal;
    action.wait = wait.getKind();
    action.index = reg(wait.getIndex());
    action.value = reg(wait.getValue());
    action.order = wait.getOrder();
    action.scope = wait.getScope();
    return object(wait.getSignal());
  };
  if (auto wait = dyn_cast<WaitSignalOp>(op))
    return toWait(wait);
  if (auto wait = dyn_cast<WaitSignalFromOp>(op))
    return failure(failed(toWait(wait)) ||
                   failed(toPeer(wait.getTeam(), wait.getPeer())));
  if (auto read = dyn_cast<ReadSignalOp>(op)) {
    action.kind = ActionKind::ReadSignal;
    action.index = reg(read.getIndex());
    action.order = read.getOrder();
    action.dst = reg(read.getResult());
    return object(read.getSignal());
  }
  if (auto reset = dyn_cast<ResetSignalOp>(op)) {
    action.kind = ActionKind::ResetSignal;
    action.index = reg(reset.getIndex());
    return object(reset.getSignal());
  }
  if (auto wait = dyn_cast<WaitCounterOp>(op)) {
    action.kind = ActionKind::WaitCounter;
    action.index = reg(wait.getIndex());
    action.value = reg(wait.getValue());
    return object(wait.getCounter());
  }
  auto reset = cast<ResetCounterOp>(op);
  action.kind = ActionKind::ResetCounter;
  action.index = reg(reset.getIndex());
  return object(reset.getCounter());
}

LogicalResult ProgramBuilder::barrierAction(Operation *op, Action &action) {
  if (auto fence = dyn_cast<FenceOp>(op)) {
    action.kind = ActionKind::Fence;
    action.order = fence.getOrder();
    action.scope = fence.getScope();
    action.proxy = fence.getProxy();
    return success();
  }
  if (auto flush = dyn_cast<FlushOp>(op)) {
    action.kind = ActionKind::Flush;
    setContext(action, flush.getGin());
    auto index = team(flush.getTeam(), op);
    if (failed(index))
      return failure();
    action.team = *index;
    return success();
  }
  if (auto wait = dyn_cast<BarrierWaitOp>(op)) {
    action.kind = ActionKind::BarrierWait;
    action.token = reg(wait.getArrived());
    action.order = wait.getOrder();
    return success();
  }
  Value value;
  if (auto barrier = dyn_cast<BarrierOp>(op)) {
    action.kind = ActionKind::Barrier;
    action.extent = barrier.getExtent();
    action.order = barrier.getOrder();
    value = barrier.getTeam();
  } else {
    auto arrive = cast<BarrierArriveOp>(op);
    action.kind = ActionKind::Arrive;
    action.extent = arrive.getExtent();
    action.order = arrive.getOrder();
    action.dst = reg(arrive.getToken());
    value = arrive.getTeam();
  }
  auto index = team(value, op);
  if (failed(index))
    return failure();
  action.team = *index;
  return success();
}

LogicalResult ProgramBuilder::transferAction(Operation *op, Action &action) {
  action.kind = ActionKind::Access;
  auto between = [&](Value local, Value localOffset, Value window, Value offset,
                     Value count, Value peer, Value team,
                     bool put) -> LogicalResult {
    auto index = this->team(team, op);
    if (failed(index))
      return failure();
    action.team = *index;
    action.peer = reg(peer);
    action.ranges[put ? 0 : 1] = countedRange(local, localOffset, count, !put);
    action.ranges[put ? 1 : 0] =
        peerRange(window, offset, count, peer, *index, put);
    return success();
  };
  if (auto put = dyn_cast<PutOp>(op)) {
    action.deferral = Deferral::Put;
    setContext(action, put.getGin());
    if (put.getCounter()) {
      auto index = argument(put.getCounter(), op);
      if (failed(index))
        return failure();
      action.counter = *index;
      action.counterIndex = optionalReg(put.getCounterIndex());
    }
    return between(put.getSource(), put.getSourceOffset(), put.getWindow(),
                   put.getOffset(), put.getCount(), put.getPeer(),
                   put.getTeam(), true);
  }
  if (auto get = dyn_cast<GetOp>(op)) {
    setContext(action, get.getGin());
    if (action.gin)
      action.deferral = Deferral::Get;
    return between(get.getDest(), get.getDestOffset(), get.getWindow(),
                   get.getOffset(), get.getCount(), get.getPeer(),
                   get.getTeam(), false);
  }
  if (auto copy = dyn_cast<EngineCopyOp>(op)) {
    action.kind = ActionKind::EngineCopy;
    return between(copy.getSource(), copy.getSourceOffset(), copy.getWindow(),
                   copy.getOffset(), copy.getCount(), copy.getPeer(),
                   copy.getTeam(), true);
  }
  if (auto put = dyn_cast<PutSignalOp>(op)) {
    auto index = argument(put.getSignal(), op);
    if (failed(index))
      return failure();
    action.kind = ActionKind::Signal;
    action.deferral = Deferral::Put;
    setContext(action, put.getGin());
    action.object = *index;
    action.signal = put.getKind();
    action.index = reg(put.getIndex());
    action.value = optionalReg(put.getValue());
    return between(put.getSource(), put.getSourceOffset(), put.getWindow(),
                   put.getOffset(), put.getCount(), put.getPeer(),
                   put.getTeam(), true);
  }
  if (auto copy = dyn_cast<BulkCopyOp>(op)) {
    action.kind = ActionKind::BulkCopy;
    action.deferral = Deferral::Bulk;
    action.dst = reg(copy.getToken());
    action.ranges[0] = countedRange(copy.getSource(), copy.getSourceOffset(),
                                    copy.getCount(), false);
    action.ranges[1] = countedRange(copy.getDest(), copy.getDestOffset(),
                                    copy.getCount(), true);
    return success();
  }
  action.kind = ActionKind::BulkWait;
  for (Value token : cast<BulkWaitOp>(op).getCopies())
    action.tokens.push_back(reg(token));
  return success();
}

LogicalResult ProgramBuilder::tileAction(Operation *op, Action &action) {
  if (auto fill = dyn_cast<PoisonFillOp>(op)) {
    action.kind = ActionKind::PoisonFill;
    action.ranges[0] =
        countedRange(fill.getMemref(), fill.getOffset(), fill.getCount(), true);
    return success();
  }
  auto tileOp = cast<TileOpInterface>(op);
  Type tile = tileOp.getTileValue().getType();
  action.tileSize = elementsOf(tile);
  if (auto shaped = dyn_cast<ShapedType>(tile);
      shaped && shaped.getElementType().isIntOrFloat())
    action.elementBits = shaped.getElementTypeBitWidth();
  action.valid = optionalReg(tileOp.getValid());
  if (Value stored = storedInteger(op); stored && needed.contains(stored))
    action.stores = reg(stored);
  if (auto stored = storedConstant(op)) {
    action.stores = temporary();
    program.initialValues[action.stores] = Interval::of(*stored);
  }
  // One integer that is loaded as a tile.
  if (isa<TileLoadOp>(op))
    for (Operation *user : op->getUsers())
      if (loadedInteger(user) && needed.contains(user->getResult(0)) &&
          action.loads < 0)
        integerOf[op] = action.loads = temporary();
  auto at = [&](auto access, ActionKind kind, bool write) {
    action.kind = kind;
    action.ranges[0] = range(access.getMemref(), access.getOffset(),
                             access.getValid(), tile, write);
  };
  auto packets = [&](auto packet) {
    action.value = reg(packet.getFlag());
    action.assumes = packet.getAssumes();
    int64_t &limit = action.ranges[0].memory.limit;
    if (limit >= 0)
      limit = countUnits(limit, action.assumes);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<TileLoadOp, MultimemLoadReduceOp>(
          [&](auto o) { at(o, ActionKind::Access, false); })
      .Case<TileStoreOp, MultimemStoreOp, MultimemReduceOp>(
          [&](auto o) { at(o, ActionKind::Access, true); })
      .Case<PacketStoreOp>([&](auto o) {
        at(o, ActionKind::PacketStore, true);
        packets(o);
      })
      .Case<PacketLoadOp>([&](auto o) {
        at(o, ActionKind::PacketLoad, false);
        packets(o);
      })
      .Case<PoisonStoreOp>(
          [&](auto o) { at(o, ActionKind::PoisonStore, true); })
      .Case<PoisonLoadOp>(
          [&](auto o) { at(o, ActionKind::PoisonLoad, false); });
  return success();
}

/// Reads parts of two matrices and writes one of a third. Addends and scales
/// are read by actions of their own, which precede it.
LogicalResult ProgramBuilder::matrixAction(Operation *op, Action &action) {
  action.kind = ActionKind::Access;
  SmallVector<Access> accesses;
  getAccesses(op, accesses);
  // What is written counts, also where it is read before.
  Value written = cast<ContractOp>(op).getAcc();
  llvm::erase_if(accesses, [&](const Access &access) {
    return access.isRead() && access.memory == written;
  });
  ArrayRef<Access> all = accesses;
  constexpr size_t kOperands = std::extent_v<decltype(action.ranges)>;
  for (bool isLhs : {true, false})
    if (OperandScales scales = cast<ContractOp>(op).getScales(isLhs);
        scales.memory && withValues)
      action.scaled[isLhs ? 0 : 1] = {reg(scales.firstTerm),
                                      reg(scales.firstAcross)};
  for (const Access &access : all.drop_front(kOperands)) {
    Action read{};
    read.op = op;
    read.kind = ActionKind::Access;
    read.ranges[0] = matrixRange(access);
    if (failed(append(std::move(read))))
      return failure();
    action.further.push_back(matrixRange(access));
  }
  for (auto [plan, access] :
       llvm::zip_equal(action.ranges, all.take_front(kOperands)))
    plan = matrixRange(access);
  return success();
}

LogicalResult ProgramBuilder::channelAction(Operation *op, Action &action) {
  Value value;
  if (auto send = dyn_cast<SendOp>(op)) {
    action.kind = ActionKind::Send;
    action.index = reg(send.getSlot());
    action.peer = optionalReg(send.getPeer());
    action.valid = optionalReg(send.getValid());
    value = send.getChannel();
  } else if (auto recv = dyn_cast<RecvOp>(op)) {
    action.kind = ActionKind::Recv;
    action.index = reg(recv.getSlot());
    action.peer = reg(recv.getPeer());
    action.valid = optionalReg(recv.getValid());
    value = recv.getChannel();
  } else {
    action.kind = ActionKind::ChannelBarrier;
    value = cast<ChannelBarrierOp>(op).getChannel();
  }
  auto index = channel(value, op);
  if (failed(index))
    return failure();
  action.object = *index;
  action.team = program.channels[*index].team;
  action.tileSize = program.channels[*index].tileSize;
  return success();
}

/// Notes who may meet in the memory that `action` touches.
void ProgramBuilder::share(const Action &action) {
  for (const RangePlan &range : action.ranges) {
    if (!range.used || range.memory.argument < 0)
      continue;
    ArgumentPlan &argument = program.arguments[range.memory.argument];
    argument.shared |= range.memory.kind == MemoryPlan::Peer ||
                       range.memory.kind == MemoryPlan::Multimem;
    argument.isCopied |= action.kind == ActionKind::BulkCopy && !range.write;
    argument.written |= range.write;
    argument.isRead |= action.loads >= 0 && !range.write;
    (isMail(action.kind) ? argument.hasMail : argument.hasData) = true;
  }
}

/// The register of what an op loads or stores.
Register ProgramBuilder::movedTile(Operation *op) {
  Value moved;
  if (auto tileOp = dyn_cast<TileOpInterface>(op))
    moved = tileOp.getTileValue();
  else if ((isPlainAccess(op) || isScratchAccess(op)) &&
           op->getNumResults() == 1)
    moved = op->getResult(0);
  else if (isa<memref::StoreOp, vector::StoreOp>(op))
    moved = op->getOperand(0);
  return moved && (isFollowedValue(moved.getType()) || widthOf(moved.getType()))
             ? reg(moved)
             : noRegister;
}

LogicalResult ProgramBuilder::action(Operation *op) {
  Action made{};
  made.op = op;
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<SignalOp, WaitSignalOp, WaitSignalFromOp, ReadSignalOp,
                ResetSignalOp, WaitCounterOp, ResetCounterOp>(
              [&](auto) { return signalAction(op, made); })
          .Case<FenceOp, FlushOp, BarrierOp, BarrierArriveOp, BarrierWaitOp>(
              [&](auto) { return barrierAction(op, made); })
          .Case<PutOp, GetOp, EngineCopyOp, PutSignalOp, BulkCopyOp,
                BulkWaitOp>([&](auto) { return transferAction(op, made); })
          .Case<SendOp, RecvOp, ChannelBarrierOp>(
              [&](auto) { return channelAction(op, made); })
          .Case<ContractOp>([&](auto) { return matrixAction(op, made); })
          .Default([&](Operation *) {
            return isPlainAccess(op) || isScratchAccess(op)
                       ? plainAction(op, made)
                       : tileAction(op, made);
          });
  if (failed(result))
    return failure();
  if (withValues)
    made.tile = movedTile(op);
  return append(std::move(made));
}

LogicalResult ProgramBuilder::append(Action made) {
  for (const RangePlan &range : made.ranges)
    if (range.used && range.memory.kind == MemoryPlan::Unknown)
      return made.op->emitOpError(
          "touches memory that is chosen while the kernel "
          "runs, which comms-check-sync does not follow: "
          "choose the offset, or branch around two ops");
  share(made);
  emit(Code::Act).extra = static_cast<int32_t>(program.actions.size());
  program.actions.push_back(std::move(made));
  return success();
}
