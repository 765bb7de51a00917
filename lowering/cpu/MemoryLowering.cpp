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

Value KernelLowering::viewPart(MemRefType type, unsigned argument,
                               Value worldRank, ImplicitLocOpBuilder &b) {
  return makeMemRef(type, partAddress(argument, worldRank, b), b);
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

LogicalResult KernelLowering::lowerAlloca(memref::AllocaOp op,
                                          ImplicitLocOpBuilder &b) {
  return lowerScratch(op, op.getType(), b);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerTransfer(Operation *op,
                                            const target::Transfer &transfer,
                                            ImplicitLocOpBuilder &b) {
  FailureOr<target::TransferAddresses> ends = findEnds(op, transfer, b);
  if (failed(ends))
    return failure();
  auto [mine, theirs, element] = *ends;
  Value bytes = scale(transfer.count, element, b);
  callRuntime(b, "copy",
              {siteOf(op, b), transfer.toPeer ? mine : theirs,
               transfer.toPeer ? theirs : mine, bytes});
  return success();
}

/// Made when it is started: there is nothing to wait for.
void KernelLowering::lowerBulkCopy(BulkCopyOp op, ImplicitLocOpBuilder &b) {
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  callRuntime(b, "copy",
              {siteOf(op, b),
               elementAddress(op.getSource(), op.getSourceOffset(), b),
               elementAddress(op.getDest(), op.getDestOffset(), b),
               scale(op.getCount(), element, b)});
}

void KernelLowering::count(Operation *op, unsigned counter, Value index,
                           ImplicitLocOpBuilder &b) {
  callRuntime(b, "count",
              {siteOf(op, b), constI64(counter, b), toI64(index, b)});
}
