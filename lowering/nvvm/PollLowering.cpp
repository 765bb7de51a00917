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
// stop, every later poll ends at its first look. Neighboring polls of one
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

namespace {

/// The error record of a poll that times out.
struct PollFailure {
  Value kind, site, peer, seen, wanted;
};

/// The loop that a group of polls becomes. What it carries from look to look is
/// how many there were and, from the first question on, when that was; then
/// comes what was loaded.
struct PollLoop {
  ArrayRef<Poll> polls;
  /// For each poll, i32: kind, site and peer for the error record.
  SmallVector<Value> kinds = {}, sites = {}, peers = {};
  /// Pointer to i32: looks before the clock is read.
  Value budget;
  Value zero, one, zero64;
  /// i1 for threads that look together: what holds for all of them.
  llvm::function_ref<Value(Value, ImplicitLocOpBuilder &)> agree;
  /// i64: asks whether to go on, 0 being no; else what to ask with next.
  llvm::function_ref<Value(Value, const PollFailure &, ImplicitLocOpBuilder &)>
      ask;
  /// For each poll, the values of the current iteration.
  SmallVector<SmallVector<Value>> loaded = {};

  SmallVector<Value> emit(ImplicitLocOpBuilder &b);

private:
  Value areReady(ImplicitLocOpBuilder &b);
  PollFailure findMissing(ImplicitLocOpBuilder &b);
  scf::IfOp beginRetry(Value count, Value start, ImplicitLocOpBuilder &b);
  void retryWithoutClock(Value count, Value start, ImplicitLocOpBuilder &b);
  void askOnce(Value count, Value start, Value limit, ImplicitLocOpBuilder &b);
};

} // namespace

/// i1: everything has come.
Value PollLoop::areReady(ImplicitLocOpBuilder &b) {
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

/// Returns the record of the first poll that is not ready.
PollFailure PollLoop::findMissing(ImplicitLocOpBuilder &b) {
  PollFailure missing;
  for (size_t i = polls.size(); i-- > 0;) {
    const Poll &poll = polls[i];
    Value ready = missing.kind ? poll.ready(b, loaded[i]) : Value();
    if (ready && poll.together)
      ready = agree(ready, b);
    auto choose = [&](Value &known, Value mine) {
      known = known ? arith::SelectOp::create(b, ready, known, mine).getResult()
                    : mine;
    };
    choose(missing.kind, kinds[i]);
    choose(missing.site, sites[i]);
    choose(missing.peer, peers[i]);
    choose(missing.seen, poll.seen(b, loaded[i]));
    choose(missing.wanted, poll.wanted);
  }
  return missing;
}

/// Ends a block: asks, and remembers in the budget that all is to end.
void PollLoop::askOnce(Value count, Value start, Value limit,
                       ImplicitLocOpBuilder &b) {
  Value began = ask(start, findMissing(b), b);
  Value goes = agree(
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, began, zero64), b);
  Value kept = arith::SelectOp::create(b, goes, limit, zero);
  LLVM::StoreOp::create(b, kept, budget);
  scf::YieldOp::create(b, ValueRange{goes, count, began});
}

/// Ends a block: a look found nothing, so another one follows, within the
/// budget without a question.
void PollLoop::retryWithoutClock(Value count, Value start,
                                 ImplicitLocOpBuilder &b) {
  Value more = arith::AddIOp::create(b, count, one);
  Value limit = LLVM::LoadOp::create(b, zero.getType(), budget);
  Value isEarly = agree(
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, count, limit), b);
  SmallVector<Type> next{b.getI1Type(), zero.getType(), zero64.getType()};
  auto again = scf::IfOp::create(b, next, isEarly, /*withElseRegion=*/true);
  scf::YieldOp::create(b, again.getResults());
  b.setInsertionPointToEnd(again.thenBlock());
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  scf::YieldOp::create(b, ValueRange{yes, more, start});
  b.setInsertionPointToEnd(again.elseBlock());
  askOnce(count, start, limit, b);
}

/// i1: there is another look; then the count and the start for it.
scf::IfOp PollLoop::beginRetry(Value count, Value start,
                               ImplicitLocOpBuilder &b) {
  Value ready = agree(areReady(b), b);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  SmallVector<Type> next{b.getI1Type(), zero.getType(), zero64.getType()};
  auto branch = scf::IfOp::create(b, next, ready, /*withElseRegion=*/true);
  ImplicitLocOpBuilder in(b.getLoc(), b.getContext());
  in.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(in, ValueRange{no, count, start});
  in.setInsertionPointToEnd(branch.elseBlock());
  retryWithoutClock(count, start, in);
  return branch;
}

SmallVector<Value> PollLoop::emit(ImplicitLocOpBuilder &b) {
  SmallVector<Type> carried{zero.getType(), zero64.getType()};
  for (const Poll &poll : polls)
    llvm::append_range(carried, poll.types);
  auto loop =
      scf::WhileOp::create(b, TypeRange(carried), ValueRange{zero, zero64});
  OpBuilder::InsertionGuard guard(b);
  Block *look =
      b.createBlock(&loop.getBefore(), {}, {zero.getType(), zero64.getType()},
                    {b.getLoc(), b.getLoc()});
  for (const Poll &poll : polls)
    loaded.push_back(poll.load(b));
  scf::IfOp next = beginRetry(look->getArgument(0), look->getArgument(1), b);
  SmallVector<Value> forwarded{next.getResult(1), next.getResult(2)};
  for (ArrayRef<Value> values : loaded)
    llvm::append_range(forwarded, values);
  scf::ConditionOp::create(b, next.getResult(0), forwarded);
  SmallVector<Location> locations(carried.size(), b.getLoc());
  Block *body = b.createBlock(&loop.getAfter(), {}, carried, locations);
  scf::YieldOp::create(b, body->getArguments().take_front(2));
  return SmallVector<Value>(loop.getResults().drop_front(2));
}

SmallVector<Value> KernelLowering::emitPolls(ArrayRef<Poll> polls,
                                             ImplicitLocOpBuilder &b) {
  bool together =
      llvm::any_of(polls, [](const Poll &poll) { return poll.together; });
  // Threads that load together have to agree in what they do next.
  auto agree = [&](Value mine, ImplicitLocOpBuilder &in) {
    return together ? holdsForWarp(mine, in) : mine;
  };
  LLVM::LLVMFuncOp stop = getStopFunction();
  auto ask = [&](Value start, const PollFailure &missing,
                 ImplicitLocOpBuilder &in) -> Value {
    return LLVM::CallOp::create(
               in, stop,
               ValueRange{start, state, recordAddress(in), missing.kind,
                          missing.site, toI32(me.rank, in), toI32(block, in),
                          missing.peer, missing.seen, missing.wanted})
        .getResult();
  };
  PollLoop loop{.polls = polls,
                .budget = budget,
                .zero = constI32(0, b),
                .one = constI32(1, b),
                .zero64 = constI64(0, b),
                .agree = agree,
                .ask = ask};
  // Sites are constants of the entry block: made before the loop is.
  for (const Poll &poll : polls) {
    loop.kinds.push_back(constI32(static_cast<int64_t>(poll.kind), b));
    loop.sites.push_back(siteOf(poll.op, b));
    loop.peers.push_back(poll.peer ? poll.peer : constI32(kNoPeer, b));
  }
  return loop.emit(b);
}

//===----------------------------------------------------------------------===//
// Groups of polls
//===----------------------------------------------------------------------===//

/// The polls from `first` on that stand next to each other, as many as have
/// registers for what they load.
static FailureOr<SmallVector<Operation *>> findGroup(Operation *first) {
  constexpr size_t kMostWords = 96;
  SmallVector<Operation *> group;
  size_t words = 0;
  for (Operation *op = first; isa_and_present<PacketLoadOp, PoisonLoadOp>(op);
       op = op->getNextNode()) {
    FailureOr<VectorType> type =
        getTileType(op, cast<TileOpInterface>(op).getTileValue(), kMostLanes);
    if (failed(type))
      return failure();
    words +=
        llvm::divideCeil(getBytes(*type), 4) * (isa<PacketLoadOp>(op) ? 2 : 1);
    if (!group.empty() && words > kMostWords)
      break;
    group.push_back(op);
  }
  return group;
}

/// The words of the data among those of packets, word, flag, word, flag, …
static SmallVector<Value> dropFlags(ValueRange loaded) {
  SmallVector<Value> data;
  for (size_t i = 0; i < loaded.size(); i += 2)
    data.push_back(loaded[i]);
  return data;
}

/// Polls that stand next to each other become one: all loads, then the checks.
LogicalResult KernelLowering::lowerPollGroup(Operation *first) {
  FailureOr<SmallVector<Operation *>> group = findGroup(first);
  if (failed(group))
    return failure();
  rewriter.setInsertionPoint(first);
  ImplicitLocOpBuilder b(first->getLoc(), rewriter);
  SmallVector<Poll> polls;
  for (Operation *op : *group) {
    auto type = cast<VectorType>(op->getResult(0).getType());
    auto packet = dyn_cast<PacketLoadOp>(op);
    bool lines = packet && areLines(packet.getAssumes());
    if (lines && failed(checkLines(op, packet.getMemref(), type)))
      return failure();
    polls.push_back(!packet ? pollPoison(cast<PoisonLoadOp>(op), type, b)
                    : lines ? pollLines(packet, type, b)
                            : pollPackets(packet, type, b));
  }
  SmallVector<Value> loaded = emitPolls(polls, b);
  ValueRange rest(loaded);
  for (auto [op, poll] : llvm::zip_equal(*group, polls)) {
    b.setInsertionPoint(op);
    ValueRange mine = rest.take_front(poll.types.size());
    rest = rest.drop_front(poll.types.size());
    auto type = cast<VectorType>(op->getResult(0).getType());
    Value tile;
    if (auto packet = dyn_cast<PacketLoadOp>(op))
      tile = clearInvalid(joinWords(areLines(packet.getAssumes())
                                        ? joinLines(mine, b)
                                        : dropFlags(mine),
                                    type, b),
                          packet.getValid(), b);
    else
      tile = joinPoison(mine, type, b);
    done.insert(op);
    rewriter.replaceOp(op, tile);
  }
  return success();
}
