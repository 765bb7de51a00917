//===- PollLowering.cpp - Waiting for what peers send ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A poll looks `spin` times with nothing but its own loads. Then each look also
// asks the function commsir_stop, out of line, which reads the abort word and
// the clock; on a timeout it writes the error record. Once the kernel is to
// stop, every later poll ends at its first look. Neighbouring polls of one
// block of IR are one poll.
//
//===----------------------------------------------------------------------===//

#include "dialect/Packets.h"

#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/Tiles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;
using namespace mlir::comms::target;

//===----------------------------------------------------------------------===//
// One poll
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

//===----------------------------------------------------------------------===//
// Groups of polls
//===----------------------------------------------------------------------===//

/// Polls that stand next to each other become one: all loads, then the checks.
LogicalResult KernelLowering::lowerPollGroup(Operation *first) {
  // At most so many words in flight, for the registers that they take.
  constexpr size_t kMostWords = 96;
  SmallVector<Operation *> group;
  SmallVector<Poll> polls;
  size_t words = 0;
  rewriter.setInsertionPoint(first);
  ImplicitLocOpBuilder b(first->getLoc(), rewriter);
  for (Operation *op = first; isa_and_present<PacketLoadOp, PoisonLoadOp>(op);
       op = op->getNextNode()) {
    FailureOr<VectorType> type =
        getTileType(op, cast<TileOpInterface>(op).getTileValue(), kMostLanes);
    if (failed(type))
      return failure();
    size_t more =
        llvm::divideCeil(getBytes(*type), 4) * (isa<PacketLoadOp>(op) ? 2 : 1);
    if (!group.empty() && words + more > kMostWords)
      break;
    words += more;
    group.push_back(op);
    auto packet = dyn_cast<PacketLoadOp>(op);
    bool lines = packet && areLines(packet.getAssumes());
    if (lines && failed(checkLines(op, packet.getMemref(), *type)))
      return failure();
    if (packet)
      polls.push_back(lines ? pollLines(packet, *type, b)
                            : pollPackets(packet, *type, b));
    else
      polls.push_back(pollPoison(cast<PoisonLoadOp>(op), *type, b));
  }
  SmallVector<Value> loaded = emitPolls(polls, b);
  ValueRange rest(loaded);
  for (auto [op, poll] : llvm::zip_equal(group, polls)) {
    b.setInsertionPoint(op);
    ValueRange mine = rest.take_front(poll.types.size());
    rest = rest.drop_front(poll.types.size());
    auto type = cast<VectorType>(op->getResult(0).getType());
    Value tile;
    if (auto packet = dyn_cast<PacketLoadOp>(op)) {
      SmallVector<Value> data;
      if (areLines(packet.getAssumes()))
        data = joinLines(mine, b);
      else
        for (size_t i = 0; i < mine.size(); i += 2)
          data.push_back(mine[i]);
      tile = clearInvalid(joinWords(data, type, b), packet.getValid(), b);
    } else {
      tile = joinPoison(mine, type, b);
    }
    done.insert(op);
    rewriter.replaceOp(op, tile);
  }
  return success();
}
