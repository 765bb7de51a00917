//===- ThreadLowering.cpp - Threads of a block, and how they end ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// All threads of the block have come, and see what all have written.
void KernelLowering::threadBarrier(ImplicitLocOpBuilder &b, bool ordersMemory) {
  if (isAlone())
    return;
  if (target.cluster == 1) {
    NVVM::Barrier0Op::create(b);
    return;
  }
  // One that orders memory waits for every store, those to peers too.
  if (ordersMemory)
    NVVM::ClusterArriveOp::create(b, b.getUnitAttr());
  else
    NVVM::ClusterArriveRelaxedOp::create(b, b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, b.getUnitAttr());
}

void KernelLowering::ifLeader(
    ImplicitLocOpBuilder &b,
    llvm::function_ref<void(ImplicitLocOpBuilder &)> body) {
  if (isAlone())
    return body(b);
  auto only = scf::IfOp::create(b, leader, /*withElseRegion=*/false);
  ImplicitLocOpBuilder inner(b.getLoc(), only.thenYield());
  body(inner);
}

/// This thread's number in its block: an index.
Value KernelLowering::threadNumber(ImplicitLocOpBuilder &b) {
  if (isAlone())
    return constIndex(0, b);
  Type i32 = b.getI32Type();
  Value thread = NVVM::ThreadIdXOp::create(b, i32);
  if (target.cluster > 1) {
    Value cta = NVVM::ClusterId::create(b, i32);
    thread = arith::AddIOp::create(
        b, thread, arith::MulIOp::create(b, cta, constI32(target.threads, b)));
  }
  return toIndex(thread, b);
}

/// The leader's value (i64) in every thread.
FailureOr<Value> KernelLowering::broadcast(Value fromLeader,
                                           ImplicitLocOpBuilder &b) {
  if (isAlone())
    return fromLeader;
  auto slot = MemRefType::get({1}, b.getI64Type());
  auto scratch = ScratchOp::create(b, slot);
  int64_t at = sharedBytes;
  if (failed(lowerScratch(scratch, slot, b)))
    return failure();
  Value base = LLVM::AddressOfOp::create(b, shared, sharedMemory.getSymName());
  Value address = addBytes(base, at, b);
  threadBarrier(b); // What was here before has been read.
  ifLeader(b, [&](ImplicitLocOpBuilder &in) {
    if (target.cluster == 1) {
      LLVM::StoreOp::create(in, fromLeader, address, 8);
      return;
    }
    Value number = LLVM::PtrToIntOp::create(in, in.getI32Type(), address);
    for (int64_t cta = 0; cta < target.cluster; ++cta)
      emit(in, Ptx::StoreShared64, {number, constI32(cta, in), fromLeader});
  });
  threadBarrier(b);
  return Value(LLVM::LoadOp::create(b, b.getI64Type(), address, 8,
                                    /*isVolatile=*/true));
}

/// The mask of the lanes that exist.
Value KernelLowering::getLanes(ImplicitLocOpBuilder &b) {
  return constI32(
      target.threads >= 32 ? -1 : (int64_t(1) << target.threads) - 1, b);
}

/// Returns redux.sync's name for an operation on i32.
static std::optional<NVVM::ReduxKind>
getReduxKind(gpu::AllReduceOperation operation) {
  switch (operation) {
  case gpu::AllReduceOperation::ADD:
    return NVVM::ReduxKind::ADD;
  case gpu::AllReduceOperation::AND:
    return NVVM::ReduxKind::AND;
  case gpu::AllReduceOperation::OR:
    return NVVM::ReduxKind::OR;
  case gpu::AllReduceOperation::XOR:
    return NVVM::ReduxKind::XOR;
  case gpu::AllReduceOperation::MAXSI:
    return NVVM::ReduxKind::MAX;
  case gpu::AllReduceOperation::MINSI:
    return NVVM::ReduxKind::MIN;
  case gpu::AllReduceOperation::MAXUI:
    return NVVM::ReduxKind::UMAX;
  case gpu::AllReduceOperation::MINUI:
    return NVVM::ReduxKind::UMIN;
  default:
    return std::nullopt;
  }
}

LogicalResult KernelLowering::lowerSubgroupReduce(gpu::SubgroupReduceOp op,
                                                  ImplicitLocOpBuilder &b) {
  std::optional<NVVM::ReduxKind> kind = getReduxKind(op.getOp());
  if (!kind || !op.getType().isInteger(32) || op.getClusterSize())
    return op.emitOpError(
        "cannot be lowered for the GPU: whole warps combine i32, by "
        "add, and, or, xor, min and max");
  rewriter.replaceOpWithNewOp<NVVM::ReduxOp>(op, op.getType(), op.getValue(),
                                             *kind, getLanes(b));
  return success();
}

LogicalResult KernelLowering::lowerGpuOp(Operation *op,
                                         ImplicitLocOpBuilder &b) {
  Type i32 = b.getI32Type();
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op);
      id && id.getDimension() == gpu::Dimension::x) {
    rewriter.replaceOp(op, toIndex(NVVM::ThreadIdXOp::create(b, i32), b));
    return success();
  }
  if (isa<gpu::LaneIdOp>(op)) {
    Value thread = NVVM::ThreadIdXOp::create(b, i32);
    rewriter.replaceOp(
        op, toIndex(arith::AndIOp::create(b, thread, constI32(31, b)), b));
    return success();
  }
  if (isa<gpu::BarrierOp>(op)) {
    NVVM::Barrier0Op::create(b);
    rewriter.eraseOp(op);
    return success();
  }
  if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
    Value value = shuffle.getValue();
    if (!value.getType().isInteger(32) && !value.getType().isF32())
      return op->emitOpError("moves a ")
             << value.getType() << ": the GPU shuffles i32 and f32";
    NVVM::ShflKind kind = NVVM::ShflKind::bfly;
    switch (shuffle.getMode()) {
    case gpu::ShuffleMode::XOR:
      break;
    case gpu::ShuffleMode::UP:
      kind = NVVM::ShflKind::up;
      break;
    case gpu::ShuffleMode::DOWN:
      kind = NVVM::ShflKind::down;
      break;
    case gpu::ShuffleMode::IDX:
      kind = NVVM::ShflKind::idx;
      break;
    }
    Value mask = getLanes(b);
    // Segments of `width` lanes.
    Value width = shuffle.getWidth();
    Value segment = arith::ShLIOp::create(
        b, arith::SubIOp::create(b, constI32(32, b), width), constI32(8, b));
    Value last = arith::SubIOp::create(b, width, constI32(1, b));
    Value clamp = kind == NVVM::ShflKind::up
                      ? segment
                      : arith::OrIOp::create(b, segment, last).getResult();
    Type pair = LLVM::LLVMStructType::getLiteral(
        b.getContext(), {value.getType(), b.getI1Type()});
    Value both = NVVM::ShflOp::create(b, pair, mask, value, shuffle.getOffset(),
                                      clamp, kind, b.getUnitAttr());
    rewriter.replaceOp(op, {LLVM::ExtractValueOp::create(b, both, 0),
                            LLVM::ExtractValueOp::create(b, both, 1)});
    return success();
  }
  if (auto reduce = dyn_cast<gpu::SubgroupReduceOp>(op))
    return lowerSubgroupReduce(reduce, b);
  return op->emitOpError("cannot be used in a comms kernel, which supports "
                         "thread_id x, lane_id, barrier, shuffle and "
                         "subgroup_reduce");
}

//===----------------------------------------------------------------------===//
// Out of line
//===----------------------------------------------------------------------===//

constexpr const char kStop[] = "commsir_stop";
constexpr const char kRecord[] = "commsir_record";

/// A function of the module that is not inlined.
static LLVM::LLVMFuncOp makeHelper(OpBuilder &builder, Location loc,
                                   StringRef name, Type result,
                                   ArrayRef<Type> operands) {
  auto type = LLVM::LLVMFunctionType::get(result, operands);
  auto function = LLVM::LLVMFuncOp::create(builder, loc, name, type,
                                           LLVM::Linkage::Internal);
  function->setAttr("passthrough", builder.getStrArrayAttr({"cold"}));
  function.setNoInline(true);
  return function;
}

/// void(state, record, kind, site, rank, block, peer, seen, wanted): stops the
/// kernel; the first to do so writes the record. One of 0 is the state's.
static LLVM::LLVMFuncOp getRecordFunction(ModuleOp module,
                                          LLVM::LLVMPointerType global) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(kRecord))
    return known;
  OpBuilder top(module.getBody(), module.getBody()->begin());
  Location loc = module.getLoc();
  Type i32 = top.getI32Type(), i64 = top.getI64Type();
  auto function =
      makeHelper(top, loc, kRecord, LLVM::LLVMVoidType::get(top.getContext()),
                 {global, i64, i32, i32, i32, i32, i32, i64, i64});
  Block *entry = function.addEntryBlock(top);
  Block *write = function.addBlock(), *end = function.addBlock();
  ImplicitLocOpBuilder b(loc, top);
  auto at = [&](Value base, int64_t offset) -> Value {
    return LLVM::GEPOp::create(b, global, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  };
  b.setInsertionPointToStart(entry);
  Value state = entry->getArgument(0);
  Value zero = LLVM::ConstantOp::create(b, i64, 0);
  Value one = LLVM::ConstantOp::create(b, i64, 1);
  Value old = emitOne(b, Ptx::Exchange64, {at(state, kAbortOffset), one}, i64);
  Value own = entry->getArgument(1);
  Value record = LLVM::SelectOp::create(
      b, LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, own, zero), own,
      LLVM::LoadOp::create(b, i64, at(state, kRecordOffset), 8));
  Value isFirst = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, old, zero);
  Value exists = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, record, zero);
  Value both = LLVM::AndOp::create(b, isFirst, exists);
  LLVM::CondBrOp::create(b, both, write, end);
  b.setInsertionPointToStart(write);
  Value base = LLVM::IntToPtrOp::create(b, global, record);
  const int64_t fields[] = {
      offsetof(ErrorRecord, kind),  offsetof(ErrorRecord, site),
      offsetof(ErrorRecord, rank),  offsetof(ErrorRecord, block),
      offsetof(ErrorRecord, peer),  offsetof(ErrorRecord, seen),
      offsetof(ErrorRecord, wanted)};
  for (auto [index, offset] : llvm::enumerate(fields)) {
    Value value = entry->getArgument(index + 2);
    emit(b, value.getType() == i32 ? Ptx::Store32 : Ptx::Store64,
         {at(base, offset), value});
  }
  Value clock = emitOne(b, Ptx::Clock, {}, i64);
  emit(b, Ptx::Store64, {at(base, offsetof(ErrorRecord, clock)), clock});
  Value valid = LLVM::ConstantOp::create(b, i32, 1);
  emit(b, Ptx::Release32, {at(base, offsetof(ErrorRecord, valid)), valid});
  LLVM::BrOp::create(b, end);
  b.setInsertionPointToStart(end);
  LLVM::ReturnOp::create(b, ValueRange{});
  return function;
}

/// i64(start, state, record, kind, site, rank, block, peer, seen, wanted): 0:
/// stop;
/// else the time at which the wait began, to be given at the next call.
LLVM::LLVMFuncOp KernelLowering::getStopFunction() {
  auto module = function->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(kStop))
    return known;
  LLVM::LLVMFuncOp record = getRecordFunction(module, global);
  OpBuilder top(module.getContext());
  top.setInsertionPointAfter(record);
  Location loc = module.getLoc();
  Type i32 = top.getI32Type(), i64 = top.getI64Type();
  auto stop = makeHelper(top, loc, kStop, i64,
                         {i64, global, i64, i32, i32, i32, i32, i32, i64, i64});
  Block *entry = stop.addEntryBlock(top);
  Block *look = stop.addBlock(), *first = stop.addBlock(),
        *later = stop.addBlock(), *late = stop.addBlock(),
        *go = stop.addBlock(), *end = stop.addBlock();
  ImplicitLocOpBuilder b(loc, top);
  b.setInsertionPointToStart(entry);
  Value start = entry->getArgument(0), state = entry->getArgument(1);
  Value zero = LLVM::ConstantOp::create(b, i64, 0);
  auto at = [&](int64_t offset) -> Value {
    return LLVM::GEPOp::create(b, global, b.getI8Type(), state,
                               ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  };
  auto compare = [&](LLVM::ICmpPredicate predicate, Value x, Value y) -> Value {
    return LLVM::ICmpOp::create(b, predicate, x, y);
  };
  Value abort = emitOne(b, Ptx::Load64, {at(kAbortOffset)}, i64);
  LLVM::CondBrOp::create(b, compare(LLVM::ICmpPredicate::ne, abort, zero), end,
                         look);
  b.setInsertionPointToStart(look);
  Value now = emitOne(b, Ptx::Clock, {}, i64);
  LLVM::CondBrOp::create(b, compare(LLVM::ICmpPredicate::eq, start, zero),
                         first, later);
  b.setInsertionPointToStart(first); // Never 0: that would say stop.
  Value one = LLVM::ConstantOp::create(b, i64, 1);
  LLVM::ReturnOp::create(b, LLVM::OrOp::create(b, now, one).getResult());
  b.setInsertionPointToStart(later);
  Value limit = LLVM::LoadOp::create(b, i64, at(kTimeoutOffset), 8);
  Value over = compare(LLVM::ICmpPredicate::ugt,
                       LLVM::SubOp::create(b, now, start), limit);
  // The clock may lie before a start that was rounded up.
  Value isAfter = compare(LLVM::ICmpPredicate::ugt, now, start);
  Value limited = compare(LLVM::ICmpPredicate::ne, limit, zero);
  Value isLate =
      LLVM::AndOp::create(b, LLVM::AndOp::create(b, over, limited), isAfter);
  LLVM::CondBrOp::create(b, isLate, late, go);
  b.setInsertionPointToStart(late);
  LLVM::CallOp::create(b, record, entry->getArguments().drop_front());
  LLVM::BrOp::create(b, end);
  b.setInsertionPointToStart(go);
  LLVM::ReturnOp::create(b, start);
  b.setInsertionPointToStart(end);
  LLVM::ReturnOp::create(b, zero);
  return stop;
}

/// Address of the record of this kernel's failures, where its state is not its
/// own; else 0.
Value KernelLowering::recordAddress(ImplicitLocOpBuilder &b) {
  return isShared ? parameter(offsetof(Launch, record), b.getI64Type(), b)
                  : constI64(0, b);
}

/// Writes the record of a failure that no peer is waited for in.
void KernelLowering::record(PollKind kind, Value site, Value seen, Value wanted,
                            ImplicitLocOpBuilder &b) {
  LLVM::LLVMFuncOp function =
      getRecordFunction(this->function->getParentOfType<ModuleOp>(), global);
  LLVM::CallOp::create(b, function,
                       ValueRange{state, recordAddress(b),
                                  constI32(static_cast<int64_t>(kind), b), site,
                                  toI32(me.rank, b), toI32(block, b),
                                  constI32(kNoPeer, b), seen, wanted});
}

/// Writes the record and ends the thread: what follows must not be done.
void KernelLowering::failBounds(Operation *op, StringRef what, Value offset,
                                Value, Value limit, ImplicitLocOpBuilder &b) {
  record(PollKind::Bounds, siteOf(op, b, what), toI64(offset, b),
         toI64(limit, b), b);
  emit(b, Ptx::Exit, {});
}
