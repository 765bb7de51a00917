//===- Program.cpp - A kernel prepared for fast interpretation ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/ProgramBuilder.h"

#include "lowering/check/Arithmetic.h"

#include "dialect/Assumptions.h"
#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Width in bits of an integer that a register can hold; 0: none.
unsigned mlir::comms::check::widthOf(Type type) {
  if (type.isIndex())
    return 64;
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() <= 64 ? integer.getWidth() : 0;
  return 0;
}

int64_t mlir::comms::check::elementsOf(Type type) {
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

bool mlir::comms::check::isFollowedValue(Type type) {
  return isa<FloatType, RankedTensorType, VectorType>(type);
}

bool mlir::comms::check::isOfTiles(Operation *op) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         widthOf(op->getResult(0).getType()) != 0 && isPure(op) &&
         llvm::any_of(op->getOperandTypes(), isFollowedValue);
}

/// Ops by which blocks and ranks wait for or release one another.
bool mlir::comms::check::isSync(Operation *op) {
  return isa<SignalOp, PutSignalOp, WaitSignalOp, WaitSignalFromOp,
             ResetSignalOp, WaitCounterOp, ResetCounterOp, BarrierOp,
             BarrierArriveOp, BarrierWaitOp, PacketStoreOp, PacketLoadOp,
             PoisonStoreOp, PoisonLoadOp, PoisonFillOp, BulkCopyOp, BulkWaitOp,
             SendOp, RecvOp, ChannelBarrierOp, EngineCopyOp>(op);
}

bool mlir::comms::check::isAction(Operation *op) {
  return isSync(op) ||
         isa<FenceOp, FlushOp, TileLoadOp, TileStoreOp, ContractOp, PutOp,
             GetOp, MultimemLoadReduceOp, MultimemStoreOp, MultimemReduceOp>(
             op) ||
         isPlainAccess(op);
}

static bool isUnexpanded(Operation *op) {
  return isa<CollectiveOpInterface, AllToAllVOp, SendRecvOp>(op);
}

/// Region ops whose control flow is followed.
static bool isStructured(Operation *op) {
  return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp,
             scf::ExecuteRegionOp, ForPeersOp, RoleOp>(op);
}

std::optional<Code> mlir::comms::check::binaryCode(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Code>>(op)
      .Case<arith::AddIOp, index::AddOp>([](auto) { return Code::Add; })
      .Case<arith::SubIOp, index::SubOp>([](auto) { return Code::Sub; })
      .Case<arith::MulIOp, index::MulOp>([](auto) { return Code::Mul; })
      .Case<arith::DivSIOp, index::DivSOp>([](auto) { return Code::DivS; })
      .Case<arith::DivUIOp, index::DivUOp>([](auto) { return Code::DivU; })
      .Case<arith::RemSIOp, index::RemSOp>([](auto) { return Code::RemS; })
      .Case<arith::RemUIOp, index::RemUOp>([](auto) { return Code::RemU; })
      .Case<arith::CeilDivSIOp, index::CeilDivSOp>(
          [](auto) { return Code::CeilDivS; })
      .Case<arith::CeilDivUIOp, index::CeilDivUOp>(
          [](auto) { return Code::CeilDivU; })
      .Case<arith::FloorDivSIOp, index::FloorDivSOp>(
          [](auto) { return Code::FloorDivS; })
      .Case<arith::AndIOp, index::AndOp>([](auto) { return Code::And; })
      .Case<arith::OrIOp, index::OrOp>([](auto) { return Code::Or; })
      .Case<arith::XOrIOp, index::XOrOp>([](auto) { return Code::Xor; })
      .Case<arith::ShLIOp, index::ShlOp>([](auto) { return Code::Shl; })
      .Case<arith::ShRSIOp, index::ShrSOp>([](auto) { return Code::ShrS; })
      .Case<arith::ShRUIOp, index::ShrUOp>([](auto) { return Code::ShrU; })
      .Case<arith::MinSIOp, index::MinSOp>([](auto) { return Code::MinS; })
      .Case<arith::MaxSIOp, index::MaxSOp>([](auto) { return Code::MaxS; })
      .Case<arith::MinUIOp, index::MinUOp>([](auto) { return Code::MinU; })
      .Case<arith::MaxUIOp, index::MaxUOp>([](auto) { return Code::MaxU; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Ops that a register instruction computes from its operands alone.
static bool isEvaluable(Operation *op) {
  return op->getNumResults() == 1 && widthOf(op->getResult(0).getType()) &&
         (binaryCode(op) ||
          isa<arith::CmpIOp, arith::SelectOp, arith::ExtSIOp, arith::ExtUIOp,
              arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp,
              index::CmpOp, index::CastSOp, index::CastUOp, TranslateRankOp>(
              op));
}

/// The memref that `value` is a view of, when the view keeps the place of the
/// first element.
Value mlir::comms::check::throughViews(Value value) {
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

Value mlir::comms::check::storedInteger(Operation *op) {
  Value value;
  if (auto store = dyn_cast<memref::StoreOp>(op))
    value = store.getValueToStore();
  else if (auto store = dyn_cast<TileStoreOp>(op))
    if (auto splat = store.getTile().getDefiningOp<SplatOp>())
      value = splat.getOperand();
  return value && widthOf(value.getType()) ? value : Value();
}

std::optional<int64_t> mlir::comms::check::storedConstant(Operation *op) {
  auto store = dyn_cast<TileStoreOp>(op);
  SplatElementsAttr all;
  if (!store || !matchPattern(store.getTile(), m_Constant(&all)) ||
      !widthOf(all.getElementType()))
    return std::nullopt;
  return normalize(all.getSplatValue<APInt>().getSExtValue(),
                   widthOf(all.getElementType()));
}

TileLoadOp mlir::comms::check::loadedInteger(Operation *op) {
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  auto load =
      extract ? extract.getTensor().getDefiningOp<TileLoadOp>() : TileLoadOp();
  bool isOne = load && !load.getValid() && elementsOf(load.getType()) == 1 &&
               widthOf(extract.getType());
  return isOne ? load : TileLoadOp();
}

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

/// What says where the view `memory` begins, and on which rank.
void ProgramBuilder::needView(Value memory) {
  if (Value peer = getMemoryRoot(memory).peer)
    need(peer);
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>()) {
    if (!seen.insert(view).second)
      break;
    for (Value operand : view->getOperands())
      if (widthOf(operand.getType()))
        need(operand);
    memory = view.getViewSource();
  }
}

void ProgramBuilder::needOf(Value value) {
  // What a check says of it, which is nothing new of a constant.
  if (!matchPattern(value, m_Constant()))
    for (Operation *user : value.getUsers())
      if (isa<CheckBoundsOp>(user))
        needOperands(user);
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
  if (isa<ReadSignalOp>(op) || isFollowedValue(result.getType()) ||
      (withValues && isOfTiles(op)))
    needOperands(op);
  // What is read is what was stored.
  Value read;
  if (auto load = dyn_cast<memref::LoadOp>(op))
    read = load.getMemref();
  else if (auto load = loadedInteger(op))
    read = load.getMemref();
  if (read)
    for (Value stored : storedTo.lookup(getMemoryRoot(read).value))
      need(stored);
}

/// Tiles and floats are needed, each of them.
void ProgramBuilder::collectNeededValues(Operation *op) {
  for (Value result : op->getResults())
    if (isFollowedValue(result.getType())) {
      need(result);
      live(op->getParentOp());
    }
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || acts(op))
    return;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  for (const auto &effect : instances)
    if (Value memory = effect.getValue();
        memory && isa<MemoryEffects::Write>(effect.getEffect()) &&
        isa<BaseMemRefType>(memory.getType()))
      unfollowedScratch.insert(getMemoryRoot(memory).value);
}

/// Finds the ops that act, what encloses them and the values they need.
LogicalResult ProgramBuilder::collectOps() {
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
    if (withValues)
      collectNeededValues(op);
    if (auto role = dyn_cast<RoleOp>(op))
      program.roleBlocks =
          std::max<int64_t>(program.roleBlocks, role.getLast());
    if (!acts(op))
      return;
    if (Value stored = storedInteger(op))
      storedTo[getMemoryRoot(op->getOperand(1)).value].push_back(stored);
    noteInside(touchInside, op);
    if (isSync(op)) {
      program.synchronizes = true;
      noteInside(syncInside, op);
    }
    live(op->getParentOp());
    for (Value operand : op->getOperands())
      if (isa<TokenType>(operand.getType()) ||
          (widthOf(operand.getType()) && operand != storedInteger(op)) ||
          (withValues && isFollowedValue(operand.getType())))
        need(operand);
      else if (Operation *mask = operand.getDefiningOp<vector::CreateMaskOp>())
        needOperands(mask);
      else
        needView(operand);
  });
  while (!worklist.empty()) {
    if (!isFollowedValue(worklist.back().getType()))
      program.values.push_back(worklist.back());
    needOf(worklist.pop_back_val());
  }
  return failure(failed);
}

//===----------------------------------------------------------------------===//
// Registers and jumps
//===----------------------------------------------------------------------===//

Register ProgramBuilder::temporary() {
  program.initialValues.emplace_back();
  return static_cast<Register>(program.initialValues.size()) - 1;
}

Register ProgramBuilder::constant(int64_t value) {
  // The map's two reserved keys are left to a register each.
  bool mapped = value < INT64_MAX - 1;
  if (mapped)
    if (auto it = constants.find(value); it != constants.end())
      return it->second;
  Register result = temporary();
  program.initialValues[result] = Interval::of(value);
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
  matchPattern(value, m_Constant(&attr));
  unsigned width = widthOf(value.getType());
  if (attr && width)
    result = constant(width == 1 ? attr.getValue().getZExtValue()
                                 : attr.getValue().getSExtValue());
  else
    result = temporary();
  registers[value] = result;
  return result;
}

void ProgramBuilder::binary(Code code, Register dst, Register a, Register b,
                            unsigned width) {
  Instruction &instruction = emit(code);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.width = width;
}

void ProgramBuilder::compare(arith::CmpIPredicate predicate, Register dst,
                             Register a, Register b, unsigned width) {
  binary(Code::Compare, dst, a, b, width);
  program.code.back().extra = static_cast<int32_t>(predicate);
}

int32_t ProgramBuilder::branchOn(Register condition, int32_t guard) {
  Instruction &instruction = emit(Code::Branch);
  instruction.a = condition;
  instruction.extra = guard;
  return here() - 1;
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
  result.touches = touchInside.contains(op);
  program.guards.push_back(result);
  return static_cast<int32_t>(program.guards.size()) - 1;
}

/// A loop's values that are unknown once its end is.
void ProgramBuilder::carry(int32_t guard, ValueRange values) {
  for (Value value : values)
    if (needed.contains(value))
      program.guards[guard].carried.push_back(reg(value));
}

/// Ends a region that others of the same choice follow.
int32_t ProgramBuilder::regionEnd(int32_t guard) {
  emit(Code::RegionEnd).extra = guard;
  program.code.back().other = here();
  return here() - 1;
}

int32_t ProgramBuilder::jump() {
  emit(Code::Jump);
  return here() - 1;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

FailureOr<Program> ProgramBuilder::build() {
  KernelOp kernel = program.kernel;
  if (kernel.getBody().empty())
    return kernel.emitOpError("has no body to check");
  program.followsChains = statesAssumption(kernel, kPacketsCumulative);
  for (BlockArgument argument : kernel.getBody().front().getArguments()) {
    ArgumentPlan plan;
    plan.name = kernel.getArgumentName(argument.getArgNumber());
    if (auto signal = dyn_cast<SignalType>(argument.getType()))
      plan.count = signal.getCount();
    if (auto counter = dyn_cast<CounterType>(argument.getType())) {
      plan.count = counter.getCount();
      plan.isCounter = true;
    }
    if (auto window = dyn_cast<WindowType>(argument.getType());
        window && !ShapedType::isDynamicShape(window.getShape())) {
      plan.elements = ShapedType::getNumElements(window.getShape());
      plan.host = bool(kernel.getArgAttr(argument.getArgNumber(), kHostAttr));
    }
    auto init = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    "comms.init");
    plan.isPoisoned = init && init.getValue() == "poison";
    program.arguments.push_back(std::move(plan));
  }
  if (failed(collectOps()))
    return failure();
  if (!kernel.getBody().hasOneBlock()) {
    if (!program.synchronizes) {
      emit(Code::End);
      return std::move(program);
    }
    return kernel.emitOpError("has unstructured control flow (cf.br), which "
                              "comms-check-sync does not follow: use scf or "
                              "check the kernel before it is lowered to cf");
  }
  BlockArgument root = findRootArgument(kernel);
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    if (needed.contains(argument) && argument == root)
      program.roots.push_back(reg(argument));
    else if (needed.contains(argument) && (widthOf(argument.getType()) ||
                                           isa<FloatType>(argument.getType())))
      (isa<FloatType>(argument.getType()) ? program.floats : program.scalars)
          .emplace_back(reg(argument),
                        static_cast<int32_t>(argument.getArgNumber()));
  if (failed(block(kernel.getBody().front())))
    return failure();
  program.usesProxies = llvm::any_of(program.actions, [](const Action &action) {
    return action.kind == ActionKind::BulkCopy ||
           llvm::any_of(action.ranges, [](const RangePlan &range) {
             return range.used && range.memory.kind == MemoryPlan::Multimem;
           });
  });
  for (auto [root, scratch] : scratchOf)
    if (unfollowedScratch.contains(root))
      program.unfollowedScratch.insert(scratch);
  emit(Code::End);
  for (auto [at, plan] : llvm::enumerate(program.arguments))
    plan.isSame = !plan.written && !plan.shared &&
                  statesAssumption(kernel, sameOnRanks(plan.name));
  return std::move(program);
}

bool Program::hasSameIntegers() const {
  return !scalars.empty() ||
         llvm::any_of(arguments,
                      [](const ArgumentPlan &plan) { return plan.isSame; });
}

bool Program::meetsInWorldOnly() const {
  return llvm::all_of(actions, [&](const Action &action) {
    switch (action.kind) {
    case ActionKind::Access:
    case ActionKind::Fence:
    case ActionKind::BarrierWait:
    case ActionKind::BulkCopy:
    case ActionKind::BulkWait:
      return true;
    case ActionKind::ReadSignal:
      return false;
    case ActionKind::Barrier:
    case ActionKind::Arrive:
      return teams[action.team].kind == TeamKind::World &&
             teams[action.team].splits.empty();
    default:
      return false;
    }
  });
}

FailureOr<Program> Program::build(KernelOp kernel, bool withValues) {
  return ProgramBuilder(kernel, withValues).build();
}
