//===- MemoryLowering.cpp - Windows, scratch memory and copies ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/cpu/KernelLowering.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::cpu;
using mlir::comms::target::getElementBytes;

Value KernelLowering::partAddress(unsigned argument, Value worldRank,
                                  ImplicitLocOpBuilder &b) {
  auto [base, stride] = parts[argument];
  Value bytes = b.createOrFold<arith::MulIOp>(toI64(worldRank, b), stride);
  return addBytes(base, bytes, b);
}

Value KernelLowering::makeMemRef(MemRefType type, Value address,
                                 ImplicitLocOpBuilder &b) {
  Value descriptor =
      MemRefDescriptor::fromStaticShape(b, b.getLoc(), types, type, address);
  return UnrealizedConversionCastOp::create(b, TypeRange{type}, descriptor)
      .getResult(0);
}

FailureOr<int64_t> KernelLowering::reserveArena(Operation *op,
                                                MemRefType type) {
  int64_t bytes = getElementBytes(type.getElementType());
  bool tooLarge = false;
  for (int64_t dim : type.getShape())
    tooLarge |= dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes);
  int64_t offset = arenaBytes;
  // A block's scratch memory exists ranks × blocks times.
  constexpr int64_t kLimit = int64_t(1) << 30;
  if (tooLarge || bytes > kLimit || arenaBytes + bytes > kLimit)
    return op->emitOpError(
        "needs scratch memory of more than 1 GiB a block or of a size that is "
        "not known: give it a static and smaller shape");
  arenaBytes += llvm::alignTo(bytes, kAlignment);
  return offset;
}

LogicalResult KernelLowering::lowerScratch(Operation *op, MemRefType type,
                                           ImplicitLocOpBuilder &b) {
  if (!type.getLayout().isIdentity())
    return op->emitOpError("needs an identity layout");
  FailureOr<int64_t> offset = reserveArena(op, type);
  if (failed(offset))
    return failure();
  Value address = addBytes(field(Field::Arena), constI64(*offset, b), b);
  rewriter.replaceOp(op, makeMemRef(type, address, b));
  return success();
}

LogicalResult KernelLowering::lowerWindowOp(Operation *op,
                                            ImplicitLocOpBuilder &b) {
  if (auto scratch = dyn_cast<ScratchOp>(op))
    return lowerScratch(op, cast<MemRefType>(scratch.getResult().getType()), b);
  if (auto alloca = dyn_cast<memref::AllocaOp>(op))
    return lowerScratch(op, alloca.getType(), b);
  if (isa<MultimemOp>(op)) // Resolved where it is used.
    return success();
  Value window = op->getOperand(0);
  auto type = dyn_cast<MemRefType>(op->getResult(0).getType());
  FailureOr<unsigned> argument = getArgument(op, window);
  if (failed(argument))
    return failure();
  if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return op->emitOpError(
        "must give a memref of static shape and identity layout; specialise "
        "the kernel to its inputs first");
  Value rank = field(Field::Rank);
  if (auto peer = dyn_cast<PeerOp>(op)) {
    FailureOr<Value> world =
        checkedWorldRank(op, peer.getTeam(), peer.getPeer(), b);
    if (failed(world))
      return failure();
    rank = *world;
  }
  rewriter.replaceOp(op, makeMemRef(type, partAddress(*argument, rank, b), b));
  return success();
}

LogicalResult KernelLowering::lowerTransfer(Operation *op, Value local,
                                            Value localOffset, Value window,
                                            Value offset, Value count,
                                            Value team, Value peer, bool toPeer,
                                            ImplicitLocOpBuilder &b) {
  FailureOr<unsigned> argument = getArgument(op, window);
  if (failed(argument))
    return failure();
  FailureOr<Value> world = checkedWorldRank(op, team, peer, b);
  if (failed(world))
    return failure();
  Type element = cast<WindowType>(window.getType()).getElementType();
  Value mine = elementAddress(local, localOffset, b);
  Value theirs =
      addBytes(partAddress(*argument, *world, b), scale(offset, element, b), b);
  Value bytes = scale(count, element, b);
  callRuntime(
      b, "copy",
      {siteOf(op, b), toPeer ? mine : theirs, toPeer ? theirs : mine, bytes});
  return success();
}

LogicalResult KernelLowering::lowerCopyOp(Operation *op,
                                          ImplicitLocOpBuilder &b) {
  if (auto put = dyn_cast<PutOp>(op)) {
    if (failed(lowerTransfer(op, put.getSource(), put.getSourceOffset(),
                             put.getWindow(), put.getOffset(), put.getCount(),
                             put.getTeam(), put.getPeer(), true, b)))
      return failure();
    if (put.getCounter()) {
      FailureOr<unsigned> counter = getArgument(op, put.getCounter());
      if (failed(counter))
        return failure();
      callRuntime(b, "count",
                  {siteOf(op, b), constI64(*counter, b),
                   toI64(put.getCounterIndex(), b)});
    }
  } else if (auto get = dyn_cast<GetOp>(op)) {
    if (failed(lowerTransfer(op, get.getDest(), get.getDestOffset(),
                             get.getWindow(), get.getOffset(), get.getCount(),
                             get.getTeam(), get.getPeer(), false, b)))
      return failure();
  } else if (auto put = dyn_cast<PutSignalOp>(op)) {
    if (failed(lowerTransfer(op, put.getSource(), put.getSourceOffset(),
                             put.getWindow(), put.getOffset(), put.getCount(),
                             put.getTeam(), put.getPeer(), true, b)) ||
        failed(lowerSignal(op, put.getSignal(), put.getIndex(), put.getKind(),
                           put.getValue(), put.getTeam(), put.getPeer(), b)))
      return failure();
  } else if (auto copy = dyn_cast<EngineCopyOp>(op)) {
    // A step of the host, once for a launch: block 0 stands for it.
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        field(Field::Block), constIndex(0, b));
    auto only = scf::IfOp::create(b, first, /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(b.getLoc(), only.thenYield());
    if (failed(lowerTransfer(op, copy.getSource(), copy.getSourceOffset(),
                             copy.getWindow(), copy.getOffset(),
                             copy.getCount(), copy.getTeam(), copy.getPeer(),
                             true, inner)))
      return failure();
  } else if (auto bulk = dyn_cast<BulkCopyOp>(op)) {
    Type element =
        cast<MemRefType>(bulk.getSource().getType()).getElementType();
    callRuntime(b, "copy",
                {siteOf(op, b),
                 elementAddress(bulk.getSource(), bulk.getSourceOffset(), b),
                 elementAddress(bulk.getDest(), bulk.getDestOffset(), b),
                 scale(bulk.getCount(), element, b)});
    replaceToken(op, {}, b);
    return success();
  } else { // bulk_wait: every copy was made when it was started.
    replaceToken(op, {}, b);
    return success();
  }
  rewriter.eraseOp(op);
  return success();
}
