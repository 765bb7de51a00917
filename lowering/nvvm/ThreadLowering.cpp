//===- ThreadLowering.cpp - Threads of a block, and polls -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A poll looks `spin` times with nothing but its own loads. Then each look also
// asks the function commsir_stop, out of line, which reads the abort word and
// the clock; on a timeout it writes the error record. Once the kernel is to
// stop, every later poll ends at its first look.
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
    // Lanes that exist; segments of `width` lanes.
    Value mask = constI32(
        target.threads >= 32 ? -1 : (int64_t(1) << target.threads) - 1, b);
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
  return op->emitOpError("has no form in a kernel of comms: thread_id x, "
                         "lane_id, barrier and shuffle have");
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

/// void(state, kind, site, rank, block, peer, seen, wanted): stops the kernel;
/// the first to do so writes the record.
static LLVM::LLVMFuncOp getRecordFunction(ModuleOp module,
                                          LLVM::LLVMPointerType global) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(kRecord))
    return known;
  OpBuilder top(module.getBody(), module.getBody()->begin());
  Location loc = module.getLoc();
  Type i32 = top.getI32Type(), i64 = top.getI64Type();
  auto function =
      makeHelper(top, loc, kRecord, LLVM::LLVMVoidType::get(top.getContext()),
                 {global, i32, i32, i32, i32, i32, i64, i64});
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
  Value record = LLVM::LoadOp::create(b, i64, at(state, kRecordOffset), 8);
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
    Value value = entry->getArgument(index + 1);
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

/// i64(start, state, kind, site, rank, block, peer, seen, wanted): 0: stop;
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
                         {i64, global, i32, i32, i32, i32, i32, i64, i64});
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

/// Writes the record of a failure that no peer is waited for in.
void KernelLowering::record(PollKind kind, Value site, Value seen, Value wanted,
                            ImplicitLocOpBuilder &b) {
  LLVM::LLVMFuncOp function =
      getRecordFunction(this->function->getParentOfType<ModuleOp>(), global);
  LLVM::CallOp::create(b, function,
                       ValueRange{state,
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

//===----------------------------------------------------------------------===//
// Polls
//===----------------------------------------------------------------------===//

Value KernelLowering::holdsForWarp(Value mine, ImplicitLocOpBuilder &b) {
  return NVVM::VoteSyncOp::create(b, b.getI1Type(), constI32(-1, b), mine,
                                  NVVM::VoteSyncKind::all);
}

/// i1: everything has come.
static Value areReady(ArrayRef<Poll> polls, ArrayRef<SmallVector<Value>> loaded,
                      ImplicitLocOpBuilder &b) {
  Value all, most;
  for (auto [poll, values] : llvm::zip_equal(polls, loaded)) {
    if (poll.most) {
      Value mine = poll.most(b, values);
      most = most ? arith::MaxUIOp::create(b, most, mine).getResult() : mine;
      continue;
    }
    Value ready = poll.ready(b, values);
    all = all ? arith::AndIOp::create(b, all, ready).getResult() : ready;
  }
  if (!most)
    return all;
  Value none = holdsNoPoison(most, b);
  return all ? arith::AndIOp::create(b, all, none).getResult() : none;
}

SmallVector<Value> KernelLowering::emitPolls(ArrayRef<Poll> polls,
                                             ImplicitLocOpBuilder &b) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  SmallVector<Type> carried{i32, i64};
  for (const Poll &poll : polls)
    llvm::append_range(carried, poll.types);
  Value zero = constI32(0, b), zero64 = constI64(0, b);
  // Sites are constants of the entry block: made before the loop is.
  SmallVector<Value> site;
  for (const Poll &poll : polls)
    site.push_back(siteOf(poll.op, b));
  LLVM::LLVMFuncOp stop = getStopFunction();
  auto loop =
      scf::WhileOp::create(b, TypeRange(carried), ValueRange{zero, zero64});
  OpBuilder::InsertionGuard guard(b);
  Block *look = b.createBlock(&loop.getBefore(), {}, {i32, i64},
                              {b.getLoc(), b.getLoc()});
  Value count = look->getArgument(0), start = look->getArgument(1);
  SmallVector<SmallVector<Value>> loaded;
  for (const Poll &poll : polls)
    loaded.push_back(poll.load(b));
  Value all = areReady(polls, loaded, b);
  // Threads that load together have to agree in what they do next.
  bool together =
      llvm::any_of(polls, [](const Poll &poll) { return poll.together; });
  auto agree = [&](Value mine, ImplicitLocOpBuilder &at) {
    return together ? holdsForWarp(mine, at) : mine;
  };
  all = agree(all, b);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  SmallVector<Type> next{b.getI1Type(), i32, i64};
  auto branch = scf::IfOp::create(b, next, all, /*withElseRegion=*/true);
  {
    ImplicitLocOpBuilder in(b.getLoc(), b.getContext());
    in.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(in, ValueRange{no, count, start});
    in.setInsertionPointToEnd(branch.elseBlock());
    Value more = arith::AddIOp::create(in, count, constI32(1, in));
    Value limit = LLVM::LoadOp::create(in, i32, budget);
    Value isEarly = agree(
        arith::CmpIOp::create(in, arith::CmpIPredicate::ult, count, limit), in);
    auto again = scf::IfOp::create(in, next, isEarly, /*withElseRegion=*/true);
    scf::YieldOp::create(in, again.getResults());
    in.setInsertionPointToEnd(again.thenBlock());
    scf::YieldOp::create(in, ValueRange{yes, more, start});
    in.setInsertionPointToEnd(again.elseBlock());
    // What is missing: the first that is.
    Value kind, where, peer, seen, wanted;
    for (size_t i = polls.size(); i-- > 0;) {
      const Poll &poll = polls[i];
      Value ready = kind ? poll.ready(in, loaded[i]) : Value();
      if (ready && poll.together)
        ready = holdsForWarp(ready, in);
      auto choose = [&](Value &known, Value mine) {
        known =
            known ? arith::SelectOp::create(in, ready, known, mine).getResult()
                  : mine;
      };
      choose(kind, constI32(static_cast<int64_t>(poll.kind), in));
      choose(where, site[i]);
      choose(peer, poll.peer ? poll.peer : constI32(kNoPeer, in));
      choose(seen, poll.seen(in, loaded[i]));
      choose(wanted, poll.wanted);
    }
    Value began = LLVM::CallOp::create(
                      in, stop,
                      ValueRange{start, state, kind, where, toI32(me.rank, in),
                                 toI32(block, in), peer, seen, wanted})
                      .getResult();
    Value goes = agree(
        arith::CmpIOp::create(in, arith::CmpIPredicate::ne, began, zero64), in);
    Value kept = arith::SelectOp::create(in, goes, limit, zero);
    LLVM::StoreOp::create(in, kept, budget);
    scf::YieldOp::create(in, ValueRange{goes, count, began});
  }
  SmallVector<Value> forwarded{branch.getResult(1), branch.getResult(2)};
  for (ArrayRef<Value> values : loaded)
    llvm::append_range(forwarded, values);
  scf::ConditionOp::create(b, branch.getResult(0), forwarded);
  SmallVector<Location> locations(carried.size(), b.getLoc());
  Block *body = b.createBlock(&loop.getAfter(), {}, carried, locations);
  scf::YieldOp::create(b, body->getArguments().take_front(2));
  return SmallVector<Value>(loop.getResults().drop_front(2));
}
