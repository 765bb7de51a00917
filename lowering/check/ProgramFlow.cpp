//===- ProgramFlow.cpp - Control flow and arithmetic as instructions ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Launches.h"
#include "lowering/check/ProgramBuilder.h"

#include "dialect/Assumptions.h"
#include "lowering/analysis/Accesses.h"
#include "lowering/channels/Protocol.h"

#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Whether receivers write the slots of such channels, too.
static bool isCleared(ChannelType type) {
  const Protocol *protocol = findProtocol(type.getProtocol().getValue());
  return protocol && protocol->assumes == kPacketsCumulative;
}

/// From here on, the operands of a check are what has passed it.
void ProgramBuilder::narrow(CheckBoundsOp check, Narrowed &before) {
  const std::pair<Value, Value> pairs[] = {
      {check.getOffset(), check.getCount()},
      {check.getCount(), check.getOffset()}};
  for (auto [value, other] : pairs) {
    if (!needed.contains(value) || matchPattern(value, m_Constant()))
      continue;
    Register found = temporary();
    binary(Code::Checked, found, reg(value), reg(other));
    program.code.back().c = reg(check.getLimit());
    before.emplace_back(value, std::exchange(registers[value], found));
  }
}

/// The condition that decides whether a check passes, and how: its offset is
/// one of two constants.
static std::optional<std::pair<Value, bool>> deciding(CheckBoundsOp check) {
  auto choice = check.getOffset().getDefiningOp<arith::SelectOp>();
  IntegerAttr yes, no, count, limit;
  if (!choice || !matchPattern(choice.getTrueValue(), m_Constant(&yes)) ||
      !matchPattern(choice.getFalseValue(), m_Constant(&no)) ||
      !matchPattern(check.getCount(), m_Constant(&count)) ||
      !matchPattern(check.getLimit(), m_Constant(&limit)))
    return std::nullopt;
  auto passes = [&](IntegerAttr offset) {
    return offset.getInt() >= 0 && count.getInt() >= 0 &&
           offset.getInt() <= limit.getInt() - count.getInt();
  };
  if (passes(yes) == passes(no))
    return std::nullopt;
  return std::pair(choice.getCondition(), passes(yes));
}

/// Whether data or the host may decide an integer.
static bool mayBeUnknown(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<KernelOp>(argument.getOwner()->getParentOp());
  Operation *op = value.getDefiningOp();
  if (isa<memref::LoadOp, tensor::ExtractOp, ReadSignalOp>(op))
    return true;
  bool isComputed =
      binaryCode(op) || isa<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp,
                            arith::IndexCastUIOp, arith::TruncIOp>(op);
  return isComputed && llvm::any_of(op->getOperands(), mayBeUnknown);
}

void ProgramBuilder::assumeOf(arith::CmpIPredicate predicate, Value value,
                              Value other, Narrowed &before) {
  unsigned width = widthOf(value.getType());
  if (width <= 1 || !needed.contains(value) || !mayBeUnknown(value))
    return;
  Register found = temporary();
  Instruction &made = emit(Code::Assume);
  made.dst = found;
  made.a = reg(value);
  made.b = reg(other);
  made.width = width;
  made.extra = static_cast<int32_t>(predicate);
  before.emplace_back(value, std::exchange(registers[value], found));
}

/// The predicate of b and a that says the same.
static arith::CmpIPredicate swapped(arith::CmpIPredicate predicate) {
  using Predicate = arith::CmpIPredicate;
  switch (predicate) {
  case Predicate::slt:
    return Predicate::sgt;
  case Predicate::sle:
    return Predicate::sge;
  case Predicate::sgt:
    return Predicate::slt;
  case Predicate::sge:
    return Predicate::sle;
  case Predicate::ult:
    return Predicate::ugt;
  case Predicate::ule:
    return Predicate::uge;
  case Predicate::ugt:
    return Predicate::ult;
  case Predicate::uge:
    return Predicate::ule;
  default:
    return predicate;
  }
}

void ProgramBuilder::assume(Value condition, bool holds, Narrowed &before) {
  Operation *op = condition.getDefiningOp();
  if (!op)
    return;
  bool isJoined = holds ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op);
  if (isJoined)
    for (Value part : op->getOperands())
      assume(part, holds, before);
  if (isa<arith::XOrIOp>(op) && matchPattern(op->getOperand(1), m_One()))
    assume(op->getOperand(0), !holds, before);
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return;
  arith::CmpIPredicate predicate =
      holds ? compare.getPredicate()
            : arith::invertPredicate(compare.getPredicate());
  assumeOf(predicate, compare.getLhs(), compare.getRhs(), before);
  assumeOf(swapped(predicate), compare.getRhs(), compare.getLhs(), before);
}

/// A region that is run if `condition` is as `holds` says.
LogicalResult ProgramBuilder::region(Block &body, Value condition, bool holds) {
  Narrowed before;
  assume(condition, holds, before);
  LogicalResult result = block(body);
  for (auto [value, old] : llvm::reverse(before))
    registers[value] = old;
  return result;
}

LogicalResult ProgramBuilder::block(Block &block) {
  Narrowed before;
  // Behind the block it is not known that a check of it has been made.
  llvm::scope_exit widen([&] {
    for (auto [value, old] : llvm::reverse(before))
      registers[value] = old;
  });
  for (Operation &op : block) {
    if (auto check = dyn_cast<CheckBoundsOp>(op)) {
      narrow(check, before);
      if (auto decided = deciding(check))
        assume(decided->first, decided->second, before);
    } else if (acts(&op) ||
               (isa<ReadSignalOp>(op) && needed.contains(op.getResult(0)))) {
      if (failed(action(&op)))
        return failure();
    } else if (auto channel = dyn_cast<ChannelOp>(op)) {
      auto index = team(channel.getTeam(), channel);
      if (failed(index))
        return failure();
      channelOf[channel] = static_cast<int32_t>(program.channels.size());
      auto type = channel.getChannel().getType();
      program.channels.push_back(
          {channel, *index, static_cast<int64_t>(channel.getSlots()),
           type.getTileSize(), channel.getPattern(), channel.getReused(),
           channel->hasAttr(kCountsAgreeAttr), isCleared(type)});
      program.followsChains |= program.channels.back().isCleared;
    } else if (op.getNumRegions() && liveOps.contains(&op)) {
      if (failed(structured(&op)))
        return failure();
    } else if (op.getNumResults() == 1 && loadedInteger(&op) &&
               integerOf.contains(loadedInteger(&op))) {
      if (needed.contains(op.getResult(0)))
        move(integerOf[loadedInteger(&op)], reg(op.getResult(0)));
    } else if (withValues && op.getNumResults() == 1 &&
               (isFollowedValue(op.getResult(0).getType()) || isOfTiles(&op))) {
      computeTile(&op);
    } else if (op.getNumResults() == 1 && needed.contains(op.getResult(0))) {
      if (failed(evaluate(&op)))
        return failure();
    }
  }
  return success();
}

LogicalResult ProgramBuilder::structured(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::ForOp>([&](auto o) { return loop(o); })
      .Case<scf::IfOp>([&](auto o) { return branch(o); })
      .Case<scf::WhileOp>([&](auto o) { return whileLoop(o); })
      .Case<scf::IndexSwitchOp>([&](auto o) { return indexSwitch(o); })
      .Case<ForPeersOp>([&](auto o) { return forPeers(o); })
      .Case<RoleOp>([&](auto o) { return role(o); })
      .Case<scf::ExecuteRegionOp>([&](scf::ExecuteRegionOp o) -> LogicalResult {
        if (!o.getRegion().hasOneBlock())
          return o.emitOpError("has unstructured control flow, which "
                               "comms-check-sync does not follow");
        Block &body = o.getRegion().front();
        if (failed(block(body)))
          return failure();
        moveAll(body.getTerminator()->getOperands(), o.getResults());
        return success();
      })
      .Default([&](Operation *o) -> LogicalResult {
        Operation *sync = syncInside.lookup(o);
        if (!sync)
          return success();
        InFlightDiagnostic diag =
            o->emitOpError("holds a synchronization, but comms-check-sync does "
                           "not follow this op");
        diag.attachNote(sync->getLoc()) << "synchronization is here";
        diag.attachNote() << "use scf.for, scf.if, scf.while, comms.for_peers "
                             "or comms.role";
        return diag;
      });
}

int32_t ProgramBuilder::repeatsAfter(scf::ForOp loop) {
  if (llvm::any_of(loop.getRegionIterArgs(),
                   [&](Value carried) { return needed.contains(carried); }))
    return 0;
  auto walked = loop.getBody()->walk([](Operation *op) {
    bool orders =
        isSync(op) && !isa<BarrierOp, BarrierArriveOp, BarrierWaitOp>(op);
    return orders || isa<ReadSignalOp, ReadCounterOp>(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return 0;
  return findLoopPeriod(loop,
                        [&](Value value) { return needed.contains(value); });
}

LogicalResult ProgramBuilder::loop(scf::ForOp op) {
  Register lower = reg(op.getLowerBound()), upper = reg(op.getUpperBound()),
           step = reg(op.getStep()), iv = reg(op.getInductionVar());
  int32_t guardIndex = guard(op);
  Instruction &enter = emit(Code::LoopEnter);
  enter.a = lower;
  enter.b = upper;
  enter.c = step;
  enter.extra = guardIndex;
  enter.dst = op.getUnsignedCmp() ? noRegister : iv;
  move(lower, iv);
  moveAll(op.getInitArgs(), op.getRegionIterArgs());
  int32_t head = here();
  Register more = temporary();
  auto width = widthOf(op.getInductionVar().getType());
  compare(op.getUnsignedCmp() ? arith::CmpIPredicate::ult
                              : arith::CmpIPredicate::slt,
          more, iv, upper, width);
  int32_t leave = branchOn(more, guardIndex);
  carry(guardIndex, op.getRegionIterArgs());
  program.guards[guardIndex].carried.push_back(iv);
  program.guards[guardIndex].body = here();
  program.guards[guardIndex].repeatsAfter = repeatsAfter(op);
  if (failed(block(*op.getBody())))
    return failure();
  moveAll(op.getBody()->getTerminator()->getOperands(), op.getRegionIterArgs());
  binary(Code::Add, iv, iv, step, width);
  Instruction &back = emit(Code::Back);
  back.extra = guardIndex;
  back.target = head;
  land(leave);
  moveAll(op.getRegionIterArgs(), op.getResults());
  int32_t over = jump();
  program.guards[guardIndex].skip = here();
  forgetAll(op.getResults());
  land(over);
  return success();
}

LogicalResult ProgramBuilder::branch(scf::IfOp op) {
  Register condition = reg(op.getCondition());
  int32_t guardIndex = guard(op), test = branchOn(condition, guardIndex);
  if (failed(region(*op.thenBlock(), op.getCondition(), true)))
    return failure();
  moveAll(op.thenYield()->getOperands(), op.getResults());
  int32_t fromThen = regionEnd(guardIndex);
  land(test);
  if (Block *otherwise = op.elseBlock()) {
    if (failed(region(*otherwise, op.getCondition(), false)))
      return failure();
    moveAll(op.elseYield()->getOperands(), op.getResults());
  }
  emit(Code::ChoiceEnd).extra = guardIndex;
  int32_t fromElse = jump();
  program.guards[guardIndex].skip = here();
  forgetAll(op.getResults());
  land(fromThen);
  land(fromElse);
  return success();
}

LogicalResult ProgramBuilder::whileLoop(scf::WhileOp op) {
  moveAll(op.getInits(), op.getBeforeArguments());
  int32_t head = here();
  if (failed(block(*op.getBeforeBody())))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  Register more = reg(condition.getCondition());
  moveAll(condition.getArgs(), op.getResults());
  int32_t guardIndex = guard(op), test = branchOn(more, guardIndex);
  moveAll(condition.getArgs(), op.getAfterArguments());
  carry(guardIndex, op.getAfterArguments());
  carry(guardIndex, op.getBeforeArguments());
  program.guards[guardIndex].body = here();
  if (failed(block(*op.getAfterBody())))
    return failure();
  moveAll(op.getYieldOp()->getOperands(), op.getBeforeArguments());
  program.code[jump()].target = head;
  program.guards[guardIndex].skip = here();
  forgetAll(op.getResults());
  land(test);
  return success();
}

LogicalResult ProgramBuilder::indexSwitch(scf::IndexSwitchOp op) {
  Register chosen = reg(op.getArg());
  int32_t guardIndex = guard(op);
  SmallVector<int32_t> ends;
  for (auto [value, region] : llvm::zip(op.getCases(), op.getCaseRegions())) {
    Register same = temporary();
    compare(arith::CmpIPredicate::eq, same, chosen, constant(value));
    int32_t test = branchOn(same, guardIndex);
    if (failed(block(region.front())))
      return failure();
    moveAll(region.front().getTerminator()->getOperands(), op.getResults());
    ends.push_back(regionEnd(guardIndex));
    land(test);
  }
  Block &last = op.getDefaultBlock();
  if (failed(block(last)))
    return failure();
  moveAll(last.getTerminator()->getOperands(), op.getResults());
  emit(Code::ChoiceEnd).extra = guardIndex;
  ends.push_back(jump());
  program.guards[guardIndex].skip = here();
  forgetAll(op.getResults());
  for (int32_t end : ends)
    land(end);
  return success();
}

LogicalResult ProgramBuilder::forPeers(ForPeersOp op) {
  auto index = team(op.getTeam(), op);
  if (failed(index))
    return failure();
  Register step = temporary(), size = temporary(), more = temporary();
  Register one = constant(1);
  Register peer = op.getBody().getNumArguments()
                      ? reg(op.getBody().getArgument(0))
                      : temporary();
  move(one, step);
  Instruction &count = emit(Code::Size);
  count.dst = size;
  count.extra = *index;
  int32_t head = here();
  compare(arith::CmpIPredicate::slt, more, step, size);
  int32_t guardIndex = guard(op), leave = branchOn(more, guardIndex);
  Instruction &at = emit(Code::PeerAt);
  at.dst = peer;
  at.a = step;
  at.extra = *index;
  at.width = op.getReversed();
  if (failed(block(op.getBody().front())))
    return failure();
  binary(Code::Add, step, step, one);
  program.code[jump()].target = head;
  land(leave);
  program.guards[guardIndex].skip = here();
  return success();
}

LogicalResult ProgramBuilder::role(RoleOp op) {
  Register id = temporary(), inside = temporary();
  int32_t guardIndex = guard(op);
  emit(Code::BlockId).dst = id;
  SmallVector<int32_t, 2> tests;
  for (bool upper : {false, true}) {
    Register bound =
        constant(static_cast<int64_t>(upper ? op.getLast() : op.getFirst()));
    compare(upper ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge,
            inside, id, bound);
    tests.push_back(branchOn(inside, guardIndex));
  }
  if (failed(block(op.getBody().front())))
    return failure();
  for (int32_t test : tests)
    land(test);
  program.guards[guardIndex].skip = here();
  return success();
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Loads of memory that is this block's alone are not actions: what they read
/// is not known.
void ProgramBuilder::computeTile(Operation *op) {
  TileOp made{op, {}};
  for (Value operand : op->getOperands())
    made.operands.push_back(widthOf(operand.getType()) ||
                                    isFollowedValue(operand.getType())
                                ? reg(operand)
                                : noRegister);
  Instruction &instruction = emit(Code::Compute);
  instruction.extra = static_cast<int32_t>(program.tileOps.size());
  instruction.dst = reg(op->getResult(0));
  program.tileOps.push_back(std::move(made));
}

LogicalResult ProgramBuilder::evaluate(Operation *op) {
  Value result = op->getResult(0);
  if (op->hasTrait<OpTrait::ConstantLike>()) {
    reg(result);
    return success();
  }
  Instruction made{Code::Forget};
  made.width = widthOf(result.getType());
  if (!made.width)
    return success();
  auto operands = [&](unsigned count) {
    Register *into[] = {&made.a, &made.b, &made.c};
    for (unsigned i = 0; i < count; ++i)
      *into[i] = reg(op->getOperand(i));
  };
  auto teamOperand = [&](Value value, int32_t &into) -> LogicalResult {
    auto index = team(value, op);
    if (failed(index))
      return failure();
    into = *index;
    return success();
  };
  if (auto code = binaryCode(op)) {
    made.code = *code;
    operands(2);
  } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    made.width = widthOf(compare.getLhs().getType());
    if (!made.width)
      return success();
    made.code = Code::Compare;
    made.extra = static_cast<int32_t>(compare.getPredicate());
    operands(2);
  } else if (auto compare = dyn_cast<index::CmpOp>(op)) {
    made.width = 64;
    made.code = Code::Compare;
    made.extra = static_cast<int32_t>(*arith::symbolizeCmpIPredicate(
        index::stringifyIndexCmpPredicate(compare.getPred())));
    operands(2);
  } else if (isa<arith::SelectOp>(op)) {
    made.code = Code::Select;
    operands(3);
  } else if (isa<arith::ExtUIOp, arith::IndexCastUIOp, index::CastUOp,
                 arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp,
                 index::CastSOp>(op)) {
    made.code = isa<arith::ExtUIOp, arith::IndexCastUIOp, index::CastUOp>(op)
                    ? Code::ZeroCast
                    : Code::SignCast;
    made.extra = static_cast<int32_t>(widthOf(op->getOperand(0).getType()));
    if (!made.extra)
      return success();
    operands(1);
  } else if (auto rank = dyn_cast<RankOp>(op)) {
    made.code = Code::Rank;
    if (failed(teamOperand(rank.getTeam(), made.extra)))
      return failure();
  } else if (auto size = dyn_cast<SizeOp>(op)) {
    made.code = Code::Size;
    if (failed(teamOperand(size.getTeam(), made.extra)))
      return failure();
  } else if (auto translate = dyn_cast<TranslateRankOp>(op)) {
    made.code = Code::Translate;
    made.a = reg(translate.getRank());
    if (failed(teamOperand(translate.getFrom(), made.extra)) ||
        failed(teamOperand(translate.getTo(), made.target)))
      return failure();
  } else if (isa<BlockIdOp>(op)) {
    made.code = Code::BlockId;
  } else if (isa<NumBlocksOp>(op)) {
    made.code = Code::NumBlocks;
  } else if (isa<EpochOp>(op)) {
    made.code = Code::Epoch;
  } else if (auto extent = dyn_cast<ExtentOp>(op)) {
    // Followed as a constant, once for each value that is tried.
    program.extents.push_back(reg(result));
    program.mostExtent = extent.getMost();
    return success();
  }
  made.dst = reg(result);
  if (made.code == Code::Forget && !isa<TokenType>(result.getType())) {
    made.code = Code::Opaque;
    made.extra = static_cast<int32_t>(program.opaque.size());
    program.opaque.push_back(op);
  }
  program.code.push_back(made);
  return success();
}
