//===- Program.cpp - A kernel prepared for fast interpretation ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Program.h"

#include "dialect/Packets.h"
#include "lowering/Accesses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

namespace {

/// Width in bits of an integer that a register can hold; 0: none.
unsigned widthOf(Type type) {
  if (type.isIndex())
    return 64;
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() <= 64 ? integer.getWidth() : 0;
  return 0;
}

int64_t elementsOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (auto window = dyn_cast<WindowType>(type))
    shaped = window.getLocalType();
  if (!shaped || !shaped.hasRank() || !shaped.hasStaticShape())
    return -1;
  int64_t count = 1;
  for (int64_t dim : shaped.getShape())
    if (__builtin_mul_overflow(count, dim, &count))
      return -1;
  return count;
}

/// Ops by which blocks and ranks wait for or release one another.
bool isSync(Operation *op) {
  return isa<SignalOp, PutSignalOp, WaitSignalOp, WaitSignalFromOp,
             ResetSignalOp, WaitCounterOp, ResetCounterOp, BarrierOp,
             BarrierArriveOp, BarrierWaitOp, PacketStoreOp, PacketLoadOp,
             PoisonStoreOp, PoisonLoadOp, PoisonFillOp, BulkCopyOp, BulkWaitOp,
             SendOp, RecvOp, ChannelBarrierOp>(op);
}

bool isAction(Operation *op) {
  return isSync(op) ||
         isa<FenceOp, TileLoadOp, TileStoreOp, PutOp, GetOp, EngineCopyOp,
             MultimemLoadReduceOp, MultimemStoreOp, MultimemReduceOp>(op);
}

bool isUnexpanded(Operation *op) {
  return isa<CollectiveOpInterface, AllToAllVOp, SendRecvOp>(op);
}

/// Region ops whose control flow is followed.
bool isStructured(Operation *op) {
  return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp,
             scf::ExecuteRegionOp, ForPeersOp, RoleOp>(op);
}

std::optional<Code> binaryCode(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Code>>(op)
      .Case<arith::AddIOp>([](auto) { return Code::Add; })
      .Case<arith::SubIOp>([](auto) { return Code::Sub; })
      .Case<arith::MulIOp>([](auto) { return Code::Mul; })
      .Case<arith::DivSIOp>([](auto) { return Code::DivS; })
      .Case<arith::DivUIOp>([](auto) { return Code::DivU; })
      .Case<arith::RemSIOp>([](auto) { return Code::RemS; })
      .Case<arith::RemUIOp>([](auto) { return Code::RemU; })
      .Case<arith::CeilDivSIOp>([](auto) { return Code::CeilDivS; })
      .Case<arith::CeilDivUIOp>([](auto) { return Code::CeilDivU; })
      .Case<arith::FloorDivSIOp>([](auto) { return Code::FloorDivS; })
      .Case<arith::AndIOp>([](auto) { return Code::And; })
      .Case<arith::OrIOp>([](auto) { return Code::Or; })
      .Case<arith::XOrIOp>([](auto) { return Code::Xor; })
      .Case<arith::ShLIOp>([](auto) { return Code::Shl; })
      .Case<arith::ShRSIOp>([](auto) { return Code::ShrS; })
      .Case<arith::ShRUIOp>([](auto) { return Code::ShrU; })
      .Case<arith::MinSIOp>([](auto) { return Code::MinS; })
      .Case<arith::MaxSIOp>([](auto) { return Code::MaxS; })
      .Case<arith::MinUIOp>([](auto) { return Code::MinU; })
      .Case<arith::MaxUIOp>([](auto) { return Code::MaxU; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Ops that a register instruction computes from its operands alone.
bool isEvaluable(Operation *op) {
  return op->getNumResults() == 1 && widthOf(op->getResult(0).getType()) &&
         (binaryCode(op) ||
          isa<arith::CmpIOp, arith::SelectOp, arith::ExtSIOp, arith::ExtUIOp,
              arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp,
              TranslateRankOp>(op));
}

/// The memref that `value` is a view of, when the view keeps the place of the
/// first element.
Value throughViews(Value value) {
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<memref::CastOp, memref::CollapseShapeOp, memref::ExpandShapeOp>(
            op) ||
        !seen.insert(op).second)
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Builds the program in three steps: which region ops matter, which values
/// they need, then the instructions in program order.
class ProgramBuilder {
public:
  explicit ProgramBuilder(KernelOp kernel) { program.kernel = kernel; }
  FailureOr<Program> build();

private:
  LogicalResult survey();
  void live(Operation *op);
  void need(Value value);
  void needOperands(Operation *op);
  void needOf(Value value);
  void needBlockArgument(BlockArgument argument);
  void needResult(OpResult result);

  Register reg(Value value);
  Register optionalReg(Value value) { return value ? reg(value) : noRegister; }
  Register temporary();
  Register constant(int64_t value);
  int32_t here() const { return static_cast<int32_t>(program.code.size()); }
  Instruction &emit(Code code) {
    program.code.push_back(Instruction{code});
    return program.code.back();
  }
  void move(Register from, Register to);
  void moveAll(ValueRange from, ValueRange to);
  void forgetAll(ValueRange values);
  int32_t guard(Operation *op);
  int32_t jump();
  void land(int32_t instruction) { program.code[instruction].target = here(); }

  LogicalResult block(Block &block);
  LogicalResult structured(Operation *op);
  LogicalResult loop(scf::ForOp op);
  LogicalResult branch(scf::IfOp op);
  LogicalResult whileLoop(scf::WhileOp op);
  LogicalResult indexSwitch(scf::IndexSwitchOp op);
  LogicalResult forPeers(ForPeersOp op);
  LogicalResult role(RoleOp op);
  LogicalResult evaluate(Operation *op);

  FailureOr<int32_t> team(Value value, Operation *user);
  FailureOr<int32_t> argument(Value value, Operation *user);
  FailureOr<int32_t> channel(Value value, Operation *user);
  MemoryPlan memory(Value value);
  RangePlan range(Value memref, Value offset, Value valid, Type tile,
                  bool write);
  RangePlan countedRange(Value memref, Value offset, Value count, bool write);
  RangePlan peerRange(Value window, Value offset, Value count, Value peer,
                      int32_t team, bool write);
  LogicalResult action(Operation *op);
  LogicalResult signalAction(Operation *op, Action &action);
  LogicalResult barrierAction(Operation *op, Action &action);
  LogicalResult transferAction(Operation *op, Action &action);
  LogicalResult tileAction(Operation *op, Action &action);
  LogicalResult channelAction(Operation *op, Action &action);
  void share(const Action &action);

  Program program;
  llvm::DenseSet<Operation *> liveOps;
  llvm::DenseMap<Operation *, Operation *> syncInside, spinInside;
  llvm::DenseSet<Value> needed;
  SmallVector<Value> worklist;
  llvm::DenseMap<Value, Register> registers;
  llvm::DenseMap<int64_t, Register> constants;
  llvm::DenseMap<Operation *, int32_t> channelOf;
};

//===----------------------------------------------------------------------===//
// What matters
//===----------------------------------------------------------------------===//

/// Every op around `op` is followed.
void ProgramBuilder::live(Operation *op) {
  while (op && op != program.kernel && liveOps.insert(op).second) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<scf::ForOp>([&](scf::ForOp loop) {
          need(loop.getLowerBound());
          need(loop.getUpperBound());
          need(loop.getStep());
        })
        .Case<scf::IfOp>([&](scf::IfOp branch) { need(branch.getCondition()); })
        .Case<scf::WhileOp>([&](scf::WhileOp loop) {
          need(loop.getConditionOp().getCondition());
        })
        .Case<scf::IndexSwitchOp>(
            [&](scf::IndexSwitchOp choice) { need(choice.getArg()); });
    op = op->getParentOp();
  }
}

void ProgramBuilder::need(Value value) {
  if (value && needed.insert(value).second)
    worklist.push_back(value);
}

void ProgramBuilder::needOperands(Operation *op) {
  for (Value operand : op->getOperands())
    need(operand);
}

void ProgramBuilder::needOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return needBlockArgument(argument);
  needResult(cast<OpResult>(value));
}

void ProgramBuilder::needBlockArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  live(parent);
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    if (number > 0)
      need(loop.getResult(number - 1));
    return;
  }
  auto loop = dyn_cast<scf::WhileOp>(parent);
  if (!loop)
    return;
  if (argument.getOwner() == loop.getBeforeBody()) {
    need(loop.getInits()[number]);
    need(loop.getYieldOp()->getOperand(number));
  } else {
    need(loop.getConditionOp().getArgs()[number]);
  }
}

void ProgramBuilder::needResult(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    live(op);
    need(loop.getInitArgs()[number]);
    need(loop.getRegionIterArgs()[number]);
    need(loop.getBody()->getTerminator()->getOperand(number));
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    live(op);
    need(loop.getConditionOp().getArgs()[number]);
    return;
  }
  if (isStructured(op)) {
    live(op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (block.mightHaveTerminator() &&
            number < block.getTerminator()->getNumOperands())
          need(block.getTerminator()->getOperand(number));
    return;
  }
  if (isEvaluable(op)) {
    live(op->getParentOp());
    needOperands(op);
  }
}

/// Finds the ops that act, what encloses them and the values they need.
LogicalResult ProgramBuilder::survey() {
  bool failed = false;
  auto noteInside = [&](llvm::DenseMap<Operation *, Operation *> &map,
                        Operation *op) {
    for (Operation *up = op->getParentOp(); up && up != program.kernel;
         up = up->getParentOp())
      if (!map.try_emplace(up, op).second)
        break;
  };
  program.kernel.getBody().walk([&](Operation *op) {
    if (isUnexpanded(op)) {
      op->emitOpError("is a whole collective: run comms-expand-collectives "
                      "before comms-check-sync");
      failed = true;
      return;
    }
    if (isa<ReadSignalOp, ReadCounterOp>(op)) {
      // A loop around it may be a wait by hand.
      noteInside(spinInside, op);
      live(op->getParentOp());
    }
    if (auto role = dyn_cast<RoleOp>(op))
      program.roleBlocks =
          std::max<int64_t>(program.roleBlocks, role.getLast());
    if (!isAction(op))
      return;
    if (isSync(op)) {
      program.synchronises = true;
      noteInside(syncInside, op);
    }
    live(op->getParentOp());
    for (Value operand : op->getOperands())
      if (widthOf(operand.getType()) || isa<TokenType>(operand.getType()))
        need(operand);
      else if (auto peer = throughViews(operand).getDefiningOp<PeerOp>())
        need(peer.getPeer());
  });
  while (!worklist.empty())
    needOf(worklist.pop_back_val());
  return failure(failed);
}

//===----------------------------------------------------------------------===//
// Registers and jumps
//===----------------------------------------------------------------------===//

Register ProgramBuilder::temporary() {
  program.initialValues.push_back(0);
  program.initialKnown.push_back(0);
  return static_cast<Register>(program.initialValues.size()) - 1;
}

Register ProgramBuilder::constant(int64_t value) {
  // The map's two reserved keys are left to a register each.
  bool mapped = value < INT64_MAX - 1;
  if (mapped)
    if (auto it = constants.find(value); it != constants.end())
      return it->second;
  Register result = temporary();
  program.initialValues[result] = value;
  program.initialKnown[result] = 1;
  if (mapped)
    constants[value] = result;
  return result;
}

Register ProgramBuilder::reg(Value value) {
  auto it = registers.find(value);
  if (it != registers.end())
    return it->second;
  Register result = noRegister;
  IntegerAttr attr;
  if (auto op = value.getDefiningOp<arith::ConstantOp>())
    attr = dyn_cast<IntegerAttr>(op.getValue());
  unsigned width = widthOf(value.getType());
  if (attr && width)
    result = constant(width == 1 ? attr.getValue().getZExtValue()
                                 : attr.getValue().getSExtValue());
  else
    result = temporary();
  registers[value] = result;
  return result;
}

void ProgramBuilder::move(Register from, Register to) {
  if (from == to)
    return;
  Instruction &instruction = emit(Code::Move);
  instruction.a = from;
  instruction.dst = to;
}

/// Moves in parallel; values that nobody needs are left out.
void ProgramBuilder::moveAll(ValueRange from, ValueRange to) {
  SmallVector<std::pair<Register, Register>> moves;
  for (auto [source, target] : llvm::zip(from, to))
    if (needed.contains(target))
      moves.emplace_back(reg(source), reg(target));
  if (moves.size() > 1)
    for (auto &entry : moves) {
      Register copy = temporary();
      move(entry.first, copy);
      entry.first = copy;
    }
  for (auto [source, target] : moves)
    move(source, target);
}

void ProgramBuilder::forgetAll(ValueRange values) {
  for (Value value : values)
    if (needed.contains(value))
      emit(Code::Forget).dst = reg(value);
}

int32_t ProgramBuilder::guard(Operation *op) {
  Guard result;
  result.op = op;
  result.sync = syncInside.lookup(op);
  if (!result.sync && isa<scf::WhileOp>(op))
    result.sync = spinInside.lookup(op);
  program.guards.push_back(result);
  return static_cast<int32_t>(program.guards.size()) - 1;
}

int32_t ProgramBuilder::jump() {
  emit(Code::Jump);
  return here() - 1;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::block(Block &block) {
  for (Operation &op : block) {
    if (isAction(&op)) {
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
           type.getTileSize(), channel.getPattern(), channel.getReused()});
    } else if (op.getNumRegions() && liveOps.contains(&op)) {
      if (failed(structured(&op)))
        return failure();
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
            o->emitOpError("holds a synchronisation, but comms-check-sync does "
                           "not follow this op");
        diag.attachNote(sync->getLoc()) << "synchronisation is here";
        diag.attachNote() << "use scf.for, scf.if, scf.while, comms.for_peers "
                             "or comms.role";
        return diag;
      });
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
  move(lower, iv);
  moveAll(op.getInitArgs(), op.getRegionIterArgs());
  int32_t head = here();
  Register more = temporary();
  auto width = widthOf(op.getInductionVar().getType());
  Instruction &test = emit(Code::Compare);
  test.dst = more;
  test.a = iv;
  test.b = upper;
  test.width = width;
  test.extra =
      static_cast<int32_t>(op.getUnsignedCmp() ? arith::CmpIPredicate::ult
                                               : arith::CmpIPredicate::slt);
  int32_t leave = here();
  Instruction &exit = emit(Code::Branch);
  exit.a = more;
  exit.extra = guardIndex;
  if (failed(block(*op.getBody())))
    return failure();
  moveAll(op.getBody()->getTerminator()->getOperands(), op.getRegionIterArgs());
  Instruction &advance = emit(Code::Add);
  advance.dst = iv;
  advance.a = iv;
  advance.b = step;
  advance.width = width;
  program.code[jump()].target = head;
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
  int32_t guardIndex = guard(op), test = here();
  Instruction &instruction = emit(Code::Branch);
  instruction.a = condition;
  instruction.extra = guardIndex;
  if (failed(block(*op.thenBlock())))
    return failure();
  moveAll(op.thenYield()->getOperands(), op.getResults());
  int32_t fromThen = jump();
  land(test);
  if (Block *otherwise = op.elseBlock()) {
    if (failed(block(*otherwise)))
      return failure();
    moveAll(op.elseYield()->getOperands(), op.getResults());
  }
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
  int32_t guardIndex = guard(op), test = here();
  Instruction &instruction = emit(Code::Branch);
  instruction.a = more;
  instruction.extra = guardIndex;
  moveAll(condition.getArgs(), op.getAfterArguments());
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
    Register same = temporary(), expected = constant(value);
    Instruction &compare = emit(Code::Compare);
    compare.dst = same;
    compare.a = chosen;
    compare.b = expected;
    compare.extra = static_cast<int32_t>(arith::CmpIPredicate::eq);
    int32_t test = here();
    Instruction &instruction = emit(Code::Branch);
    instruction.a = same;
    instruction.extra = guardIndex;
    if (failed(block(region.front())))
      return failure();
    moveAll(region.front().getTerminator()->getOperands(), op.getResults());
    ends.push_back(jump());
    land(test);
  }
  Block &last = op.getDefaultBlock();
  if (failed(block(last)))
    return failure();
  moveAll(last.getTerminator()->getOperands(), op.getResults());
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
  Instruction &test = emit(Code::Compare);
  test.dst = more;
  test.a = step;
  test.b = size;
  test.extra = static_cast<int32_t>(arith::CmpIPredicate::slt);
  int32_t guardIndex = guard(op), leave = here();
  Instruction &exit = emit(Code::Branch);
  exit.a = more;
  exit.extra = guardIndex;
  Instruction &at = emit(Code::PeerAt);
  at.dst = peer;
  at.a = step;
  at.extra = *index;
  at.width = op.getReversed();
  if (failed(block(op.getBody().front())))
    return failure();
  Instruction &advance = emit(Code::Add);
  advance.dst = step;
  advance.a = step;
  advance.b = one;
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
    Instruction &compare = emit(Code::Compare);
    compare.dst = inside;
    compare.a = id;
    compare.b = bound;
    compare.extra = static_cast<int32_t>(upper ? arith::CmpIPredicate::slt
                                               : arith::CmpIPredicate::sge);
    tests.push_back(here());
    Instruction &instruction = emit(Code::Branch);
    instruction.a = inside;
    instruction.extra = guardIndex;
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

LogicalResult ProgramBuilder::evaluate(Operation *op) {
  Value result = op->getResult(0);
  if (isa<arith::ConstantOp>(op)) {
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
  } else if (isa<arith::SelectOp>(op)) {
    made.code = Code::Select;
    operands(3);
  } else if (isa<arith::ExtUIOp, arith::IndexCastUIOp, arith::ExtSIOp,
                 arith::TruncIOp, arith::IndexCastOp>(op)) {
    made.code = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op) ? Code::ZeroCast
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
  }
  made.dst = reg(result);
  if (made.code != Code::Forget)
    program.code.push_back(made);
  return success();
}

//===----------------------------------------------------------------------===//
// Operands that must be static
//===----------------------------------------------------------------------===//

FailureOr<int32_t> ProgramBuilder::team(Value value, Operation *user) {
  TeamPlan plan;
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (true) {
    Operation *op = value ? value.getDefiningOp() : nullptr;
    if (auto split = dyn_cast_or_null<TeamSplitOp>(op);
        split && seen.insert(op).second) {
      plan.splits.emplace_back(split.getKind(),
                               static_cast<int64_t>(split.getFactor()));
      value = split.getTeam();
      continue;
    }
    auto base = dyn_cast_or_null<TeamOp>(op);
    if (!base)
      return user->emitOpError("has a team that is not made by comms.team and "
                               "comms.team_split alone, which comms-check-sync "
                               "does not follow");
    plan.kind = base.getKind();
    break;
  }
  std::reverse(plan.splits.begin(), plan.splits.end());
  auto *it = llvm::find(program.teams, plan).base();
  if (it == program.teams.data() + program.teams.size()) {
    program.teams.push_back(plan);
    return static_cast<int32_t>(program.teams.size()) - 1;
  }
  return static_cast<int32_t>(it - program.teams.data());
}

FailureOr<int32_t> ProgramBuilder::argument(Value value, Operation *user) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == &program.kernel.getBody().front())
    return static_cast<int32_t>(argument.getArgNumber());
  return user->emitOpError("uses a window, signal or counter that is not an "
                           "argument of the kernel, which comms-check-sync "
                           "does not follow");
}

FailureOr<int32_t> ProgramBuilder::channel(Value value, Operation *user) {
  if (Operation *op = value.getDefiningOp<ChannelOp>())
    if (auto it = channelOf.find(op); it != channelOf.end())
      return it->second;
  return user->emitOpError("uses a channel that is not made by a comms.channel "
                           "before it, which comms-check-sync does not follow");
}

MemoryPlan ProgramBuilder::memory(Value value) {
  MemoryPlan plan;
  plan.limit = elementsOf(value.getType());
  value = throughViews(value);
  if (plan.limit < 0)
    plan.limit = elementsOf(value.getType());
  auto window = [&](Value value, MemoryPlan::Kind kind) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner()->getParentOp() != program.kernel)
      return;
    plan.argument = static_cast<int32_t>(argument.getArgNumber());
    plan.kind = kind;
  };
  if (auto local = value.getDefiningOp<LocalOp>()) {
    window(local.getWindow(), MemoryPlan::Own);
  } else if (auto peer = value.getDefiningOp<PeerOp>()) {
    window(peer.getWindow(), MemoryPlan::Peer);
    auto index = team(peer.getTeam(), peer);
    if (failed(index))
      return MemoryPlan();
    plan.team = *index;
    plan.peer = reg(peer.getPeer());
  } else if (auto all = value.getDefiningOp<MultimemOp>()) {
    window(all.getWindow(), MemoryPlan::Multimem);
    auto index = team(all.getTeam(), all);
    if (failed(index))
      return MemoryPlan();
    plan.team = *index;
  } else if (value.getDefiningOp<ScratchOp>()) {
    plan.kind = MemoryPlan::Scratch;
  } else if (isa<BlockArgument>(value)) {
    window(value, MemoryPlan::Own);
  }
  return plan;
}

RangePlan ProgramBuilder::range(Value memref, Value offset, Value valid,
                                Type tile, bool write) {
  RangePlan plan = countedRange(memref, offset, valid, write);
  plan.fixedCount = elementsOf(tile);
  return plan;
}

RangePlan ProgramBuilder::countedRange(Value memref, Value offset, Value count,
                                       bool write) {
  RangePlan plan;
  plan.memory = memory(memref);
  plan.offset = reg(offset);
  plan.count = optionalReg(count);
  plan.write = write;
  plan.used = true;
  return plan;
}

RangePlan ProgramBuilder::peerRange(Value window, Value offset, Value count,
                                    Value peer, int32_t team, bool write) {
  RangePlan plan;
  plan.memory.limit = elementsOf(window.getType());
  plan.memory.team = team;
  plan.memory.peer = reg(peer);
  if (auto argument = dyn_cast<BlockArgument>(window);
      argument && argument.getOwner()->getParentOp() == program.kernel) {
    plan.memory.kind = MemoryPlan::Peer;
    plan.memory.argument = static_cast<int32_t>(argument.getArgNumber());
  }
  plan.offset = reg(offset);
  plan.count = reg(count);
  plan.write = write;
  plan.used = true;
  return plan;
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::signalAction(Operation *op, Action &action) {
  auto object = [&](Value value) -> LogicalResult {
    auto index = argument(value, op);
    if (failed(index))
      return failure();
    action.object = *index;
    return success();
  };
  auto toPeer = [&](Value team, Value peer) -> LogicalResult {
    auto index = this->team(team, op);
    if (failed(index))
      return failure();
    action.team = *index;
    action.peer = reg(peer);
    return success();
  };
  if (auto signal = dyn_cast<SignalOp>(op)) {
    action.kind = ActionKind::Signal;
    action.signal = signal.getKind();
    action.index = reg(signal.getIndex());
    action.value = optionalReg(signal.getValue());
    action.order = signal.getOrder();
    action.scope = signal.getScope();
    return failure(failed(object(signal.getSignal())) ||
                   failed(toPeer(signal.getTeam(), signal.getPeer())));
  }
  if (auto wait = dyn_cast<WaitSignalOp>(op)) {
    action.kind = ActionKind::WaitSignal;
    action.wait = wait.getKind();
    action.index = reg(wait.getIndex());
    action.value = reg(wait.getValue());
    action.order = wait.getOrder();
    return object(wait.getSignal());
  }
  if (auto wait = dyn_cast<WaitSignalFromOp>(op)) {
    action.kind = ActionKind::WaitSignal;
    action.wait = wait.getKind();
    action.index = reg(wait.getIndex());
    action.value = reg(wait.getValue());
    action.order = wait.getOrder();
    return failure(failed(object(wait.getSignal())) ||
                   failed(toPeer(wait.getTeam(), wait.getPeer())));
  }
  if (auto reset = dyn_cast<ResetSignalOp>(op)) {
    action.kind = ActionKind::ResetSignal;
    action.index = reg(reset.getIndex());
    return object(reset.getSignal());
  }
  if (auto wait = dyn_cast<WaitCounterOp>(op)) {
    action.kind = ActionKind::WaitCounter;
    action.index = reg(wait.getIndex());
    action.value = reg(wait.getValue());
    return object(wait.getCounter());
  }
  auto reset = cast<ResetCounterOp>(op);
  action.kind = ActionKind::ResetCounter;
  action.index = reg(reset.getIndex());
  return object(reset.getCounter());
}

LogicalResult ProgramBuilder::barrierAction(Operation *op, Action &action) {
  if (auto fence = dyn_cast<FenceOp>(op)) {
    action.kind = ActionKind::Fence;
    action.order = fence.getOrder();
    action.scope = fence.getScope();
    return success();
  }
  if (auto wait = dyn_cast<BarrierWaitOp>(op)) {
    action.kind = ActionKind::BarrierWait;
    action.token = reg(wait.getArrived());
    action.order = wait.getOrder();
    return success();
  }
  Value value;
  if (auto barrier = dyn_cast<BarrierOp>(op)) {
    action.kind = ActionKind::Barrier;
    action.extent = barrier.getExtent();
    action.order = barrier.getOrder();
    value = barrier.getTeam();
  } else {
    auto arrive = cast<BarrierArriveOp>(op);
    action.kind = ActionKind::Arrive;
    action.extent = arrive.getExtent();
    action.order = arrive.getOrder();
    action.dst = reg(arrive.getToken());
    value = arrive.getTeam();
  }
  auto index = team(value, op);
  if (failed(index))
    return failure();
  action.team = *index;
  return success();
}

LogicalResult ProgramBuilder::transferAction(Operation *op, Action &action) {
  action.kind = ActionKind::Access;
  auto between = [&](Value local, Value localOffset, Value window, Value offset,
                     Value count, Value peer, Value team,
                     bool put) -> LogicalResult {
    auto index = this->team(team, op);
    if (failed(index))
      return failure();
    action.team = *index;
    action.peer = reg(peer);
    action.ranges[put ? 0 : 1] = countedRange(local, localOffset, count, !put);
    action.ranges[put ? 1 : 0] =
        peerRange(window, offset, count, peer, *index, put);
    return success();
  };
  if (auto put = dyn_cast<PutOp>(op)) {
    if (put.getCounter()) {
      auto index = argument(put.getCounter(), op);
      if (failed(index))
        return failure();
      action.counter = *index;
      action.counterIndex = optionalReg(put.getCounterIndex());
    }
    return between(put.getSource(), put.getSourceOffset(), put.getWindow(),
                   put.getOffset(), put.getCount(), put.getPeer(),
                   put.getTeam(), true);
  }
  if (auto get = dyn_cast<GetOp>(op))
    return between(get.getDest(), get.getDestOffset(), get.getWindow(),
                   get.getOffset(), get.getCount(), get.getPeer(),
                   get.getTeam(), false);
  if (auto copy = dyn_cast<EngineCopyOp>(op))
    return between(copy.getSource(), copy.getSourceOffset(), copy.getWindow(),
                   copy.getOffset(), copy.getCount(), copy.getPeer(),
                   copy.getTeam(), true);
  if (auto put = dyn_cast<PutSignalOp>(op)) {
    auto index = argument(put.getSignal(), op);
    if (failed(index))
      return failure();
    action.kind = ActionKind::Signal;
    action.object = *index;
    action.signal = put.getKind();
    action.index = reg(put.getIndex());
    action.value = optionalReg(put.getValue());
    return between(put.getSource(), put.getSourceOffset(), put.getWindow(),
                   put.getOffset(), put.getCount(), put.getPeer(),
                   put.getTeam(), true);
  }
  if (auto copy = dyn_cast<BulkCopyOp>(op)) {
    action.kind = ActionKind::BulkCopy;
    action.dst = reg(copy.getToken());
    action.ranges[0] = countedRange(copy.getSource(), copy.getSourceOffset(),
                                    copy.getCount(), false);
    action.ranges[1] = countedRange(copy.getDest(), copy.getDestOffset(),
                                    copy.getCount(), true);
    return success();
  }
  action.kind = ActionKind::BulkWait;
  for (Value token : cast<BulkWaitOp>(op).getCopies())
    action.tokens.push_back(reg(token));
  return success();
}

LogicalResult ProgramBuilder::tileAction(Operation *op, Action &action) {
  if (auto fill = dyn_cast<PoisonFillOp>(op)) {
    action.kind = ActionKind::PoisonFill;
    action.ranges[0] =
        countedRange(fill.getMemref(), fill.getOffset(), fill.getCount(), true);
    return success();
  }
  auto tileOp = cast<TileOpInterface>(op);
  Type tile = tileOp.getTileValue().getType();
  action.tileSize = elementsOf(tile);
  if (auto shaped = dyn_cast<ShapedType>(tile);
      shaped && shaped.getElementType().isIntOrFloat())
    action.elementBits = shaped.getElementTypeBitWidth();
  action.valid = optionalReg(tileOp.getValid());
  auto at = [&](auto access, ActionKind kind, bool write) {
    action.kind = kind;
    action.ranges[0] = range(access.getMemref(), access.getOffset(),
                             access.getValid(), tile, write);
  };
  auto packets = [&](auto packet) {
    action.value = reg(packet.getFlag());
    action.assumes = packet.getAssumes();
    int64_t &limit = action.ranges[0].memory.limit;
    if (limit >= 0)
      limit = countUnits(limit, action.assumes);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<TileLoadOp, MultimemLoadReduceOp>(
          [&](auto o) { at(o, ActionKind::Access, false); })
      .Case<TileStoreOp, MultimemStoreOp, MultimemReduceOp>(
          [&](auto o) { at(o, ActionKind::Access, true); })
      .Case<PacketStoreOp>([&](auto o) {
        at(o, ActionKind::PacketStore, true);
        packets(o);
      })
      .Case<PacketLoadOp>([&](auto o) {
        at(o, ActionKind::PacketLoad, false);
        packets(o);
      })
      .Case<PoisonStoreOp>(
          [&](auto o) { at(o, ActionKind::PoisonStore, true); })
      .Case<PoisonLoadOp>(
          [&](auto o) { at(o, ActionKind::PoisonLoad, false); });
  return success();
}

LogicalResult ProgramBuilder::channelAction(Operation *op, Action &action) {
  Value value;
  if (auto send = dyn_cast<SendOp>(op)) {
    action.kind = ActionKind::Send;
    action.index = reg(send.getSlot());
    action.peer = optionalReg(send.getPeer());
    action.valid = optionalReg(send.getValid());
    value = send.getChannel();
  } else if (auto recv = dyn_cast<RecvOp>(op)) {
    action.kind = ActionKind::Recv;
    action.index = reg(recv.getSlot());
    action.peer = reg(recv.getPeer());
    action.valid = optionalReg(recv.getValid());
    value = recv.getChannel();
  } else {
    action.kind = ActionKind::ChannelBarrier;
    value = cast<ChannelBarrierOp>(op).getChannel();
  }
  auto index = channel(value, op);
  if (failed(index))
    return failure();
  action.object = *index;
  action.team = program.channels[*index].team;
  action.tileSize = program.channels[*index].tileSize;
  return success();
}

/// Windows that are reached on a peer have their accesses ordered.
void ProgramBuilder::share(const Action &action) {
  for (const RangePlan &range : action.ranges)
    if (range.used && range.memory.argument >= 0 &&
        (range.memory.kind == MemoryPlan::Peer ||
         range.memory.kind == MemoryPlan::Multimem))
      program.arguments[range.memory.argument].shared = true;
}

LogicalResult ProgramBuilder::action(Operation *op) {
  Action made{};
  made.op = op;
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<SignalOp, WaitSignalOp, WaitSignalFromOp, ResetSignalOp,
                WaitCounterOp, ResetCounterOp>(
              [&](auto) { return signalAction(op, made); })
          .Case<FenceOp, BarrierOp, BarrierArriveOp, BarrierWaitOp>(
              [&](auto) { return barrierAction(op, made); })
          .Case<PutOp, GetOp, EngineCopyOp, PutSignalOp, BulkCopyOp,
                BulkWaitOp>([&](auto) { return transferAction(op, made); })
          .Case<SendOp, RecvOp, ChannelBarrierOp>(
              [&](auto) { return channelAction(op, made); })
          .Default([&](Operation *) { return tileAction(op, made); });
  if (failed(result))
    return failure();
  share(made);
  emit(Code::Act).extra = static_cast<int32_t>(program.actions.size());
  program.actions.push_back(std::move(made));
  return success();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

FailureOr<Program> ProgramBuilder::build() {
  KernelOp kernel = program.kernel;
  if (kernel.getBody().empty())
    return kernel.emitOpError("has no body to check");
  for (BlockArgument argument : kernel.getBody().front().getArguments()) {
    ArgumentPlan plan;
    plan.name = kernel.getArgumentName(argument.getArgNumber());
    if (auto signal = dyn_cast<SignalType>(argument.getType()))
      plan.count = signal.getCount();
    if (auto counter = dyn_cast<CounterType>(argument.getType()))
      plan.count = counter.getCount();
    if (auto window = dyn_cast<WindowType>(argument.getType());
        window && !ShapedType::isDynamicShape(window.getShape())) {
      plan.elements = ShapedType::getNumElements(window.getShape());
      plan.host = bool(kernel.getArgAttr(argument.getArgNumber(), kHostAttr));
    }
    program.arguments.push_back(std::move(plan));
  }
  if (failed(survey()))
    return failure();
  if (!kernel.getBody().hasOneBlock()) {
    if (!program.synchronises) {
      emit(Code::End);
      return std::move(program);
    }
    return kernel.emitOpError("has unstructured control flow (cf.br), which "
                              "comms-check-sync does not follow: use scf or "
                              "check the kernel before it is lowered to cf");
  }
  if (failed(block(kernel.getBody().front())))
    return failure();
  emit(Code::End);
  return std::move(program);
}

} // namespace

FailureOr<Program> Program::build(KernelOp kernel) {
  return ProgramBuilder(kernel).build();
}
