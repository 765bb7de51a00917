//===- NcclWindows.cpp - NCCL's windows, teams and barriers ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/NcclCaller.h"

#include "lowering/nvvm/Abi.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// Whether a team is the ranks in load/store reach, of which alone NCCL has
/// barriers without an adapter, and one address.
bool NcclCaller::isReachTeam(TeamOp team) {
  return team.getKind() == TeamKind::Lsa ||
         (team.getKind() == TeamKind::World &&
          kernel.getLsaSize().value_or(*kernel.getRanks()) ==
              kernel.getRanks());
}

LogicalResult NcclCaller::lower(LocalOp op) {
  return lowerPart(op, op.getWindow(), {}, {});
}

LogicalResult NcclCaller::lower(PeerOp op) {
  return lowerPart(op, op.getWindow(), op.getTeam(), op.getPeer());
}

LogicalResult NcclCaller::lowerPart(Operation *op, Value window, Value team,
                                    Value peer) {
  if (op->use_empty())
    return op->erase(), success();
  auto type = cast<MemRefType>(op->getResult(0).getType());
  if (!isArgument(window) || !type.hasStaticShape())
    return op->emitOpError("needs a window of static shape that is an argument "
                           "of the kernel");
  SmallVector<Value> operands = {handle(window), offset(window)};
  if (peer)
    operands.push_back(worldRank(team, peer));
  Value address =
      call(peer ? "peer_pointer" : "local_pointer", operands, pointer);
  op->getResult(0).replaceAllUsesWith(view(address, type));
  op->erase();
  return success();
}

/// A memref at `address`, which is aligned as all arguments are, and in global
/// memory: LLVM would fold a mere cast there and back.
Value NcclCaller::view(Value address, MemRefType type) {
  Value word = LLVM::PtrToIntOp::create(*b, b->getI64Type(), address);
  auto global = LLVM::LLVMPointerType::get(b->getContext(), 1);
  address = LLVM::AddrSpaceCastOp::create(
      *b, pointer, LLVM::IntToPtrOp::create(*b, global, word));
  Value descriptor =
      MemRefDescriptor::fromStaticShape(*b, b->getLoc(), types, type, address);
  auto memref =
      UnrealizedConversionCastOp::create(*b, TypeRange{type}, descriptor);
  memref->setAttr(kAlignmentAttr, builder.getI64IntegerAttr(kAlignment));
  return memref.getResult(0);
}

/// The accesses themselves stay: the lowering of tiles finds their address in
/// the cast.
LogicalResult NcclCaller::lower(MultimemOp op) {
  auto known = op.getTeam().getDefiningOp<TeamOp>();
  if (!known || !isReachTeam(known))
    return op->emitOpError("needs the team lsa: NCCL has a multicast address "
                           "only for the ranks in load/store reach");
  if (!isArgument(op.getWindow()))
    return op->emitOpError("needs a window that is an argument of the kernel");
  usesMultimem = true;
  Value address =
      call("multimem_pointer",
           {handle(op.getWindow()), offset(op.getWindow()), comm()}, pointer);
  Value word = LLVM::PtrToIntOp::create(*b, b->getI64Type(), address);
  auto memref = UnrealizedConversionCastOp::create(
      *b, TypeRange{op.getResult().getType()}, word);
  op.getResult().replaceAllUsesWith(memref.getResult(0));
  op->erase();
  return success();
}

/// This rank's number in a team, or the team's size.
void NcclCaller::lowerNumber(Operation *op, TeamKind kind, StringRef what) {
  StringRef name = kind == TeamKind::World ? "world_"
                   : kind == TeamKind::Lsa ? "lsa_"
                                           : "rail_";
  knowsReach |= kind != TeamKind::World;
  Value number = call((name + what).str(), {comm()}, b->getI32Type());
  Value index =
      arith::IndexCastUIOp::create(*b, b->getIndexType(), number).getResult();
  op->getResult(0).replaceAllUsesWith(index);
  op->erase();
}

LogicalResult NcclCaller::lowerBarrier(Operation *op, Value team,
                                       BarrierExtent extent, MemoryOrder order,
                                       StringRef suffix) {
  if (extent == BarrierExtent::Grid)
    return op->emitOpError("is a barrier of the whole grid, which NCCL does "
                           "not have: make it one of blocks, or leave "
                           "impl=nccl out");
  auto known = team.getDefiningOp<TeamOp>();
  if (!known)
    return op->emitOpError("is a barrier of a part of a team, which NCCL does "
                           "not have: use world, lsa or rail");
  bool isNear = isReachTeam(known);
  if (!isNear && !suffix.empty())
    return op->emitOpError(
        "is half of a barrier through a network adapter, which NCCL "
        "does not have: use comms.barrier");
  std::string name = isNear                               ? "lsa_barrier"
                     : known.getKind() == TeamKind::World ? "world_barrier"
                                                          : "rail_barrier";
  Value block = toI32(BlockIdOp::create(*b, b->getIndexType()));
  Value orders =
      arith::ConstantIntOp::create(*b, order != MemoryOrder::Relaxed, 32);
  usesLsaBarrier |= name != "rail_barrier";
  usesRailBarrier |= !isNear;
  knowsReach |= !isNear || known.getKind() == TeamKind::Lsa;
  call(name + suffix.str(), {comm(), block, orders});
  replaceToken(op);
  return success();
}

LogicalResult NcclCaller::lower(BarrierOp op) {
  return lowerBarrier(op, op.getTeam(), op.getExtent(), op.getOrder(), "");
}

LogicalResult NcclCaller::lower(BarrierArriveOp op) {
  return lowerBarrier(op, op.getTeam(), op.getExtent(), op.getOrder(),
                      "_arrive");
}

LogicalResult NcclCaller::lower(BarrierWaitOp op) {
  auto arrival = op.getArrived().getDefiningOp<BarrierArriveOp>();
  if (!arrival)
    return op.emitOpError("takes a token that is not the result of "
                          "comms.barrier_arrive itself: pass it directly");
  return lowerBarrier(op, arrival.getTeam(), arrival.getExtent(), op.getOrder(),
                      "_wait");
}
