//===- KernelLowering.cpp - One kernel becomes one LLVM function ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/rocdl/KernelLowering.h"

#include "lowering/analysis/Attributes.h"
#include "lowering/rocdl/Abi.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::rocdl;

/// Threads that a kernel was distributed over, as comms-distribute-tiles says.
static int64_t getThreads(KernelOp kernel) {
  auto attribute = kernel->getAttrOfType<IntegerAttr>("comms.threads");
  return attribute ? attribute.getInt() : 1;
}

KernelLowering::KernelLowering(KernelOp kernel, const LLVMTypeConverter &types,
                               StringRef chip)
    : KernelBase(kernel, types, {"ROCDL", "a ROCDL kernel", "comms-to-rocdl"}),
      chip(chip), threads(getThreads(kernel)) {}

LogicalResult KernelLowering::refuse(Operation *op) {
  refused = true;
  return op->emitOpError(
      "is not lowered for AMD GPUs yet: this target is a skeleton "
      "(docs/AddATarget.md)");
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

Value KernelLowering::loadNumber(int64_t offset, ImplicitLocOpBuilder &b) {
  Value number =
      LLVM::LoadOp::create(b, b.getI64Type(), addBytes(context, offset, b));
  return arith::IndexCastOp::create(b, b.getIndexType(), number);
}

Value KernelLowering::loadPointer(Value from, Value index,
                                  ImplicitLocOpBuilder &b) {
  Value bytes = b.createOrFold<arith::MulIOp>(toI64(index, b), constI64(8, b));
  return LLVM::LoadOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                              addBytes(from, bytes, b));
}

void KernelLowering::readContext(ImplicitLocOpBuilder &b) {
  auto pointerAt = [&](int64_t offset) -> Value {
    return LLVM::LoadOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                                addBytes(context, offset, b));
  };
  auto known = [&](std::optional<uint64_t> value, int64_t offset) {
    return value ? constIndex(int64_t(*value), b) : loadNumber(offset, b);
  };
  me.rank = loadNumber(offsetof(Context, rank), b);
  me.ranks = known(kernel.getRanks(), offsetof(Context, ranks));
  me.lsaSize =
      known(kernel.getLsaSize() ? kernel.getLsaSize() : kernel.getRanks(),
            offsetof(Context, lsaSize));
  blocks = known(kernel.getBlocks(), offsetof(Context, blocks));
  epoch = loadNumber(offsetof(Context, epoch), b);
  parts = pointerAt(offsetof(Context, parts));
  barriers = pointerAt(offsetof(Context, barriers));
  Value number = ROCDL::BlockIdXOp::create(b, b.getI32Type());
  block = arith::IndexCastUIOp::create(b, b.getIndexType(), number);
}

LogicalResult KernelLowering::makeFunction() {
  Location loc = kernel.getLoc();
  if (kernel.getBody().empty())
    return kernel.emitOpError("has no body: a ROCDL kernel needs one");
  MLIRContext *mlir = kernel.getContext();
  auto pointer = LLVM::LLVMPointerType::get(mlir);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(mlir), {pointer});
  rewriter.setInsertionPointAfter(kernel);
  function = LLVM::LLVMFuncOp::create(rewriter, loc, kernel.getSymName(), type);
  function->setAttr("rocdl.kernel", rewriter.getUnitAttr());
  function->setAttr("rocdl.flat_work_group_size",
                    rewriter.getStringAttr("1," + std::to_string(threads)));
  function.setTargetCpu(chip);
  function.getBody().takeBody(kernel.getBody());
  Block &entry = function.getBody().front();
  context = entry.insertArgument(0u, pointer, loc);
  rewriter.setInsertionPointToStart(&entry);
  ImplicitLocOpBuilder b(loc, rewriter);
  readContext(b);
  return bindArguments(entry, b);
}

Value KernelLowering::bindMemory(unsigned index, MemRefType type,
                                 ImplicitLocOpBuilder &b) {
  return viewPart(type, index, me.rank, b);
}

Value KernelLowering::bindScalar(unsigned index, Type type,
                                 ImplicitLocOpBuilder &b) {
  Type converted = types.convertType(type);
  Value scalar =
      LLVM::LoadOp::create(b, converted, partAddress(index, me.rank, b));
  if (converted == type)
    return scalar;
  return UnrealizedConversionCastOp::create(b, TypeRange{type}, scalar)
      .getResult(0);
}

void KernelLowering::lowerReturn(ReturnOp op, ImplicitLocOpBuilder &b) {
  rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange{});
}

Value KernelLowering::partAddress(unsigned argument, Value worldRank,
                                  ImplicitLocOpBuilder &b) {
  return loadPointer(loadPointer(parts, constIndex(argument, b), b), worldRank,
                     b);
}

Value KernelLowering::viewPart(MemRefType type, unsigned argument,
                               Value worldRank, ImplicitLocOpBuilder &b) {
  Value address = partAddress(argument, worldRank, b);
  Value descriptor =
      MemRefDescriptor::fromStaticShape(b, b.getLoc(), types, type, address);
  return UnrealizedConversionCastOp::create(b, TypeRange{type}, descriptor)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value KernelLowering::threadId(ImplicitLocOpBuilder &b) {
  Value number = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
  return arith::IndexCastUIOp::create(b, b.getIndexType(), number);
}

Value KernelLowering::isFirstThread(ImplicitLocOpBuilder &b) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, threadId(b),
                               constIndex(0, b));
}

void KernelLowering::syncThreads(ImplicitLocOpBuilder &b) {
  LLVM::FenceOp::create(b, LLVM::AtomicOrdering::release, "workgroup");
  ROCDL::SBarrierOp::create(b);
  LLVM::FenceOp::create(b, LLVM::AtomicOrdering::acquire, "workgroup");
}

LogicalResult KernelLowering::lowerOtherOp(Operation *op,
                                           ImplicitLocOpBuilder &b) {
  if (!isa_and_present<gpu::GPUDialect>(op->getDialect()))
    return success();
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op);
      id && id.getDimension() == gpu::Dimension::x) {
    rewriter.replaceOp(op, threadId(b));
    return success();
  }
  if (!isa<gpu::BarrierOp>(op))
    return refuse(op);
  syncThreads(b);
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

Value KernelLowering::barrierCell(Value world, BarrierExtent extent,
                                  bool counts, ImplicitLocOpBuilder &b) {
  Value index = extent == BarrierExtent::Grid ? blocks : block;
  if (counts) {
    Value cells = arith::AddIOp::create(b, blocks, constIndex(1, b));
    index = arith::AddIOp::create(b, index, cells);
  }
  Value bytes = arith::MulIOp::create(b, toI64(index, b), constI64(8, b));
  return addBytes(loadPointer(barriers, world, b), bytes, b);
}

/// Thread 0 adds 1 to a cell of each rank, for the system to see.
FailureOr<Value> KernelLowering::arrive(Operation *op, Value team,
                                        BarrierExtent extent,
                                        ImplicitLocOpBuilder &b) {
  auto made = team.getDefiningOp<TeamOp>();
  if (!made || made.getKind() != TeamKind::World)
    return refuse(op);
  syncThreads(b);
  auto branch =
      scf::IfOp::create(b, TypeRange{b.getI64Type()}, isFirstThread(b),
                        /*withElseRegion=*/true);
  {
    ImplicitLocOpBuilder then(op->getLoc(), rewriter);
    then.setInsertionPointToStart(branch.thenBlock());
    Value one = constI64(1, then);
    Value counter = barrierCell(me.rank, extent, /*counts=*/true, then);
    Value before = LLVM::LoadOp::create(then, then.getI64Type(), counter);
    Value number = arith::AddIOp::create(then, before, one);
    LLVM::StoreOp::create(then, number, counter);
    auto loop = scf::ForOp::create(then, constIndex(0, then), me.ranks,
                                   constIndex(1, then));
    ImplicitLocOpBuilder body(op->getLoc(), rewriter);
    body.setInsertionPointToStart(loop.getBody());
    LLVM::AtomicRMWOp::create(
        body, LLVM::AtomicBinOp::add,
        barrierCell(loop.getInductionVar(), extent, /*counts=*/false, body),
        one, LLVM::AtomicOrdering::release);
    Value each = toI64(me.ranks, then);
    if (extent == BarrierExtent::Grid)
      each = arith::MulIOp::create(then, each, toI64(blocks, then));
    scf::YieldOp::create(then,
                         ValueRange{arith::MulIOp::create(then, number, each)});
    then.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(then, ValueRange{constI64(0, then)});
  }
  return branch.getResult(0);
}

/// Thread 0 polls its rank's cell until all have come.
LogicalResult KernelLowering::awaitBarrier(Operation *op,
                                           const target::Arrival &arrival,
                                           ImplicitLocOpBuilder &b) {
  auto branch =
      scf::IfOp::create(b, isFirstThread(b), /*withElseRegion=*/false);
  ImplicitLocOpBuilder then(op->getLoc(), rewriter);
  then.setInsertionPointToStart(branch.thenBlock());
  Value cell = barrierCell(me.rank, arrival.extent, /*counts=*/false, then);
  scf::WhileOp::create(
      then, op->getLoc(), TypeRange{}, ValueRange{},
      [&](OpBuilder &builder, Location loc, ValueRange) {
        Value seen = LLVM::LoadOp::create(
            builder, loc, builder.getI64Type(), cell, /*alignment=*/8,
            /*isVolatile=*/false, /*isNonTemporal=*/false,
            /*isInvariant=*/false, /*isInvariantGroup=*/false,
            LLVM::AtomicOrdering::acquire);
        Value waits = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::slt, seen, arrival.number);
        scf::ConditionOp::create(builder, loc, waits, ValueRange{});
      },
      [&](OpBuilder &builder, Location loc, ValueRange) {
        scf::YieldOp::create(builder, loc);
      });
  syncThreads(b);
  return success();
}

void KernelLowering::lowerFence(Operation *op, ImplicitLocOpBuilder &b) {
  LLVM::FenceOp::create(b, LLVM::AtomicOrdering::acq_rel);
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerBody() {
  // What is lowered may add ops, never comms ops. Parents come before what is
  // in them, so a loop's peer is known to its body.
  SmallVector<Operation *> ops;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<YieldOp, scf::ForOp, scf::WhileOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops)
    if (failed(lowerOp(op)) || refused)
      return failure();
  return success();
}

LogicalResult KernelLowering::run() {
  if (failed(makeFunction()) || failed(lowerBody()) || failed(eraseNames()))
    return failure();
  eraseDead();
  kernel.erase();
  return success();
}
