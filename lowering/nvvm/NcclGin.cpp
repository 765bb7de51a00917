//===- NcclGin.cpp - Calls of NCCL's GIN ----------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/NcclCaller.h"

#include "lowering/nvvm/Abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// i32: number of the signal or counter that a cell is for NCCL.
FailureOr<Value> NcclCaller::cell(Operation *op, Value cells, Value index) {
  if (!isArgument(cells))
    return op->emitOpError(
        "uses cells that are not an argument of the kernel: use "
        "the argument itself");
  unsigned number = cast<BlockArgument>(cells).getArgNumber();
  Value first = extra(kNcclFirst + kernel.getArgumentName(number));
  return toI32(arith::AddIOp::create(*b, first, toI64(index)));
}

Value NcclCaller::context(Attribute gin) {
  int64_t number = cast<GinAttr>(gin).getContextId();
  contexts = std::max(contexts, number + 1);
  return arith::ConstantIntOp::create(*b, number, 32);
}

/// i32: the context of what changes the cells, where NCCL has them.
Value NcclCaller::contextOf(Value cells) {
  return arith::ConstantIntOp::create(*b, overGin.lookup(cells), 32);
}

Value NcclCaller::bytes(Value elements, Type element) {
  int64_t size = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  Value factor = arith::ConstantIntOp::create(*b, size, 64);
  return b->createOrFold<arith::MulIOp>(toI64(elements), factor);
}

LogicalResult NcclCaller::lowerTransfer(Operation *op, Value source,
                                        Value sourceOffset, Value window,
                                        Value offset, Value count, Value team,
                                        Value peer, StringRef name,
                                        ValueRange more) {
  auto local = source.getDefiningOp<LocalOp>();
  if (!local || !isArgument(local.getWindow()) || !isArgument(window))
    return op->emitOpError(
        "travels by GIN between windows that are not arguments of the kernel: "
        "use the arguments themselves");
  Type element = cast<WindowType>(window.getType()).getElementType();
  auto inWindow = [&](Value whole, Value elements) -> Value {
    return arith::AddIOp::create(*b, this->offset(whole),
                                 bytes(elements, element));
  };
  SmallVector<Value> operands = {comm(),
                                 context(op->getAttr("gin")),
                                 worldRank(team, peer),
                                 handle(window),
                                 inWindow(window, offset),
                                 handle(local.getWindow()),
                                 inWindow(local.getWindow(), sourceOffset),
                                 bytes(count, element)};
  llvm::append_range(operands, more);
  byLeader([&] { call(name, operands); }, /*fenced=*/true);
  op->erase();
  return success();
}

LogicalResult NcclCaller::lower(PutOp op) {
  SmallVector<Value> more;
  if (op.getCounter()) {
    FailureOr<Value> number = cell(op, op.getCounter(), op.getCounterIndex());
    if (failed(number))
      return failure();
    more.push_back(*number);
  }
  return lowerTransfer(op, op.getSource(), op.getSourceOffset(), op.getWindow(),
                       op.getOffset(), op.getCount(), op.getTeam(),
                       op.getPeer(),
                       more.empty() ? "gin_put" : "gin_put_counted", more);
}

LogicalResult NcclCaller::lower(PutSignalOp op) {
  FailureOr<Value> number = cell(op, op.getSignal(), op.getIndex());
  if (failed(number))
    return failure();
  SmallVector<Value> more = {*number};
  bool isAdd = op.getKind() == SignalKind::Add;
  if (isAdd)
    more.push_back(op.getValue());
  return lowerTransfer(op, op.getSource(), op.getSourceOffset(), op.getWindow(),
                       op.getOffset(), op.getCount(), op.getTeam(),
                       op.getPeer(), isAdd ? "gin_put_add" : "gin_put_inc",
                       more);
}

LogicalResult NcclCaller::lower(SignalOp op) {
  FailureOr<Value> number = cell(op, op.getSignal(), op.getIndex());
  if (failed(number))
    return failure();
  bool isAdd = op.getKind() == SignalKind::Add;
  SmallVector<Value> operands = {comm(), context(op.getGinAttr()),
                                 worldRank(op.getTeam(), op.getPeer()),
                                 *number};
  if (isAdd)
    operands.push_back(op.getValue());
  byLeader([&] { call(isAdd ? "gin_signal_add" : "gin_signal_inc", operands); },
           /*fenced=*/true);
  op->erase();
  return success();
}

LogicalResult NcclCaller::lower(GetOp op) {
  return op.emitOpError("travels by GIN, whose device API has no get in "
                        "NCCL 2.28: let the owner put the data, or drop "
                        "`gin` for peers in load/store reach");
}

LogicalResult NcclCaller::lower(FlushOp op) {
  Value communicator = comm(), number = context(op.getGinAttr());
  byLeader([&] { call("gin_flush", {communicator, number}); });
  gpu::BarrierOp::create(*b);
  op->erase();
  return success();
}

LogicalResult NcclCaller::lowerWait(Operation *op, Value cells, Value index,
                                    Value least, bool isEqual) {
  if (isEqual)
    return op->emitOpError("waits for one value of a signal that travels by "
                           "GIN, of which NCCL can only wait for the least: "
                           "use `ge`");
  FailureOr<Value> number = cell(op, cells, index);
  if (failed(number))
    return failure();
  bool isCounter = isa<CounterType>(cells.getType());
  Value communicator = comm(), context = contextOf(cells);
  byLeader([&] {
    call(isCounter ? "gin_wait_counter" : "gin_wait_signal",
         {communicator, context, *number, least});
  });
  gpu::BarrierOp::create(*b);
  replaceToken(op);
  return success();
}

LogicalResult NcclCaller::lowerCell(Operation *op, Value cells, Value index,
                                    bool isReset) {
  FailureOr<Value> number = cell(op, cells, index);
  if (failed(number))
    return failure();
  std::string what = isa<CounterType>(cells.getType()) ? "counter" : "signal";
  Value communicator = comm(), context = contextOf(cells);
  if (isReset) {
    byLeader(
        [&] { call("gin_reset_" + what, {communicator, context, *number}); });
    gpu::BarrierOp::create(*b);
    op->erase();
    return success();
  }
  // Threads that each looked might see different values and part ways.
  auto shared = MemRefType::get(
      {1}, b->getI64Type(), MemRefLayoutAttrInterface(),
      MemorySpaceAttr::get(b->getContext(), MemorySpace::Shared));
  Value place = ScratchOp::create(*b, shared);
  Value zero = arith::ConstantIndexOp::create(*b, 0);
  byLeader([&] {
    Value seen = call("gin_read_" + what, {communicator, context, *number},
                      b->getI64Type());
    memref::StoreOp::create(*b, seen, place, zero);
  });
  gpu::BarrierOp::create(*b);
  Value seen = memref::LoadOp::create(*b, place, zero);
  op->getResult(0).replaceAllUsesWith(seen);
  op->erase();
  return success();
}
