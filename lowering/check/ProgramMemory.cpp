//===- ProgramMemory.cpp - Teams, arguments and memory of a program
//---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/ProgramBuilder.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

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
