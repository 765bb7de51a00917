//===- ProgramMemory.cpp - Teams, arguments and memory of a program -------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/ProgramBuilder.h"

#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// Whether an effect is one on memory that other blocks may see.
static bool isVisible(const MemoryEffects::EffectInstance &effect) {
  return isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect()) &&
         effect.getValue() &&
         isa<BaseMemRefType>(effect.getValue().getType()) &&
         getMemoryRoot(effect.getValue()).kind != MemoryRoot::Scratch;
}

bool mlir::comms::check::isPlainAccess(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || op->getNumRegions() > 0 ||
      isa_and_nonnull<CommsDialect>(op->getDialect()))
    return false;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  return llvm::any_of(instances, isVisible);
}

bool mlir::comms::check::isScratchAccess(Operation *op) {
  Value memory = llvm::TypeSwitch<Operation *, Value>(op)
                     .Case<memref::LoadOp, memref::StoreOp>(
                         [](auto access) { return access.getMemRef(); })
                     .Case<vector::LoadOp, vector::StoreOp>(
                         [](auto access) { return access.getBase(); })
                     .Default(Value());
  return memory && getMemoryRoot(memory).kind == MemoryRoot::Scratch;
}

/// What `value` is a view of.
static Value viewSource(Value value) {
  auto view = value.getDefiningOp<ViewLikeOpInterface>();
  return view ? view.getViewSource() : Value();
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
      return user->emitOpError(
          "has a team that is not made only by comms.team and "
          "comms.team_split, which comms-check-sync does not follow");
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

/// Where it cannot be said which memory it is, `kind` is Unknown.
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
  } else if (isa<BlockArgument>(value)) {
    window(value, MemoryPlan::Own);
  } else if (MemoryRoot root = getMemoryRoot(value);
             root.kind == MemoryRoot::Scratch) {
    if (root.value != value)
      return viewed(value);
    plan.kind = MemoryPlan::Scratch;
    plan.scratch =
        scratchOf
            .try_emplace(root.value, static_cast<int32_t>(scratchOf.size()))
            .first->second;
  } else if (root.kind != MemoryRoot::Unknown) {
    return viewed(value);
  }
  return plan;
}

/// The memory of a view that moves the first element.
MemoryPlan ProgramBuilder::viewed(Value value) {
  MemoryPlan plan = memory(viewSource(value));
  std::optional<Register> start = viewStart(value.getDefiningOp());
  if (start && !plan.moved) {
    plan.start = plan.start < 0 ? *start : sum(plan.start, *start);
    return plan;
  }
  // Such a view may begin anywhere.
  plan.moved = true;
  plan.limit = -1;
  return plan;
}

/// Strides of a memref that are all known, in elements.
static std::optional<SmallVector<int64_t>> knownStrides(Type type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || failed(memref.getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return std::nullopt;
  return strides;
}

Register ProgramBuilder::sum(Register a, Register b) {
  Register result = temporary();
  binary(Code::Add, result, a, b);
  return result;
}

Register ProgramBuilder::product(Register a, int64_t factor) {
  if (factor == 1)
    return a;
  Register result = temporary();
  binary(Code::Mul, result, a, constant(factor));
  return result;
}

std::optional<Register> ProgramBuilder::viewStart(Operation *op) {
  auto view = dyn_cast<OffsetSizeAndStrideOpInterface>(op);
  if (!view || !isa<memref::SubViewOp, memref::ReinterpretCastOp>(op))
    return std::nullopt;
  auto strides = knownStrides(op->getOperand(0).getType());
  bool isSubView = isa<memref::SubViewOp>(op);
  if (isSubView && !strides)
    return std::nullopt;
  // Its offset counts from the buffer's first element.
  if (!isSubView && !isa<BlockArgument>(throughViews(op->getOperand(0))))
    return std::nullopt;
  Register start = constant(0);
  for (auto [at, offset] : llvm::enumerate(view.getMixedOffsets())) {
    Register term = isa<Value>(offset) ? reg(cast<Value>(offset))
                                       : constant(*getConstantIntValue(offset));
    start = sum(start, product(term, isSubView ? (*strides)[at] : 1));
  }
  return start;
}

/// The place of an element in memory, in elements; absent: not known.
Register ProgramBuilder::elementOffset(Value memory, ValueRange indices) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  if (!type || type.getRank() != static_cast<int64_t>(indices.size()))
    return noRegister;
  auto strides = knownStrides(type);
  if (!strides)
    return noRegister;
  Register result = noRegister;
  for (auto [index, stride] : llvm::zip(indices, *strides)) {
    Register part = product(reg(index), stride);
    result = result < 0 ? part : sum(result, part);
  }
  return result < 0 ? constant(0) : result;
}

/// All elements of a memref of static shape: those that lie one behind the
/// other are one piece. Where they are not like that, they may be anywhere.
RangePlan ProgramBuilder::whole(Value memref, bool write) {
  RangePlan plan;
  plan.memory = memory(memref);
  plan.write = write;
  plan.used = true;
  plan.fixedCount = -1;
  auto type = dyn_cast<MemRefType>(memref.getType());
  auto strides = knownStrides(type);
  if (!strides || !type.hasStaticShape())
    return plan;
  // From the last dimension on: one piece, then pieces at one distance.
  int64_t count = 1, rows = 1, stride = 0;
  for (int64_t i = type.getRank() - 1; i >= 0; --i) {
    int64_t size = type.getDimSize(i), step = (*strides)[i];
    if (size == 1)
      continue;
    if (rows == 1 && step == count)
      count *= size;
    else if (rows == 1)
      rows = size, stride = step;
    else if (step == rows * stride)
      rows *= size;
    else
      return plan;
  }
  plan.fixedCount = count;
  plan.rows = rows;
  plan.stride = stride;
  plan.offset = plan.memory.start >= 0 ? plan.memory.start : constant(0);
  return plan;
}

/// The lanes that a mask turns on, if those are the first ones; absent: others
/// may be.
std::optional<Register> ProgramBuilder::maskedLanes(Value mask) {
  int64_t lanes = elementsOf(mask.getType());
  SplatElementsAttr all;
  if (matchPattern(mask, m_Constant(&all)))
    return constant(all.getSplatValue<bool>() ? lanes : 0);
  if (auto known = mask.getDefiningOp<vector::ConstantMaskOp>())
    return constant(known.getMaskDimSizes().front());
  auto made = mask.getDefiningOp<vector::CreateMaskOp>();
  if (!made)
    return std::nullopt;
  Register positive = temporary(), result = temporary();
  binary(Code::MaxS, positive, reg(made.getOperand(0)), constant(0));
  binary(Code::MinS, result, positive, constant(lanes));
  return result;
}

/// A load, a store or a copy of another dialect. Where it is not known which
/// elements it touches, it touches all of the memory.
LogicalResult ProgramBuilder::plainAction(Operation *op, Action &action) {
  action.kind = ActionKind::Access;
  SmallVector<RangePlan, 2> ranges;
  auto add = [&](Value memref, Register offset, int64_t count, bool write) {
    RangePlan &plan = ranges.emplace_back();
    plan.memory = memory(memref);
    plan.offset = offset >= 0 && plan.memory.start >= 0
                      ? sum(plan.memory.start, offset)
                      : offset;
    plan.fixedCount = count;
    plan.write = write;
    plan.used = true;
  };
  auto element = [&](auto access, bool write, int64_t count) {
    Value memref = access.getOperand(write ? 1 : 0);
    add(memref, elementOffset(memref, access.getIndices()), count, write);
  };
  auto masked = [&](auto access, bool write) {
    Value memref = access.getBase();
    add(memref, elementOffset(memref, access.getIndices()),
        elementsOf(access.getMask().getType()), write);
    RangePlan &plan = ranges.back();
    if (auto lanes = maskedLanes(access.getMask()))
      plan.count = *lanes;
    else
      plan.rowCount = temporary(); // Which lanes are on is not known.
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<vector::MaskedLoadOp>([&](auto o) { masked(o, false); })
      .Case<vector::MaskedStoreOp>([&](auto o) { masked(o, true); })
      .Case<memref::LoadOp>([&](auto o) { element(o, false, 1); })
      .Case<memref::StoreOp>([&](auto o) { element(o, true, 1); })
      .Case<vector::LoadOp>(
          [&](auto o) { element(o, false, elementsOf(o.getVectorType())); })
      .Case<vector::StoreOp>(
          [&](auto o) { element(o, true, elementsOf(o.getVectorType())); })
      .Default([&](Operation *o) {
        SmallVector<MemoryEffects::EffectInstance> effects;
        cast<MemoryEffectOpInterface>(o).getEffects(effects);
        for (const auto &effect : effects)
          if (isVisible(effect) || isa<memref::CopyOp>(o))
            ranges.push_back(whole(effect.getValue(), isa<MemoryEffects::Write>(
                                                          effect.getEffect())));
      });
  auto load = dyn_cast<memref::LoadOp>(op);
  if (load && needed.contains(load.getResult()))
    action.loads = reg(load.getResult());
  if (Value stored = storedInteger(op); stored && needed.contains(stored))
    action.stores = reg(stored);
  if (ranges.size() > std::size(action.ranges))
    return op->emitOpError("touches memory in more places than "
                           "comms-check-sync follows: use memref.load and "
                           "memref.store");
  llvm::copy(ranges, action.ranges);
  return success();
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
  // Elements of such a memref are counted one behind the other.
  auto strides = knownStrides(memref.getType());
  if (strides && !strides->empty() && strides->back() != 1)
    plan.memory.moved = true;
  plan.offset = plan.memory.start >= 0 ? sum(plan.memory.start, reg(offset))
                                       : reg(offset);
  plan.count = optionalReg(count);
  plan.write = write;
  plan.used = true;
  return plan;
}

RangePlan ProgramBuilder::matrixRange(const Access &access) {
  const MatrixPart &part = *access.matrix;
  RangePlan plan;
  plan.memory = memory(access.memory);
  plan.stride = getMatrixColumns(access.memory.getType());
  auto first = [&](Value given) { return given ? reg(given) : constant(0); };
  plan.column = first(part.column);
  plan.offset = sum(product(first(part.row), plan.stride), plan.column);
  if (plan.memory.start >= 0)
    plan.offset = sum(plan.memory.start, plan.offset);
  plan.count = optionalReg(part.columns);
  plan.fixedCount = std::max<int64_t>(part.staticColumns, 0);
  plan.rowCount = optionalReg(part.rows);
  plan.rows = part.staticRows;
  plan.write = access.isWrite();
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
