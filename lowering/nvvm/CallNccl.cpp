//===- CallNccl.cpp - Operations become calls into NCCL -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The calls are to the functions of lowering/nvvm/device/NcclDevice.cu. What
// they take of the host (the communicator, windows, first signals and counters)
// are further, hidden arguments of the kernel; what a communicator must have
// for them is the attribute comms.nccl (lowering/nvvm/Abi.h).
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/nvvm/Abi.h"
#include "lowering/nvvm/NcclCaller.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mlir::comms {
#define GEN_PASS_DEF_CALLNCCL
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

namespace {

struct CallNccl : comms::impl::CallNcclBase<CallNccl> {
  using CallNcclBase::CallNcclBase;
  void runOnOperation() override;
};

} // namespace

/// Finds what becomes calls, and refuses cells that both an adapter and stores
/// would change.
LogicalResult NcclCaller::collect() {
  WalkResult known = kernel.getBody().walk([&](Operation *op) {
    auto gin = op->getAttrOfType<GinAttr>("gin");
    if (!gin)
      return WalkResult::advance();
    for (Value operand : op->getOperands()) {
      if (!isa<SignalType, CounterType>(operand.getType()))
        continue;
      int64_t context = gin.getContextId();
      auto [entry, isNew] = overGin.insert({operand, context});
      if (isNew || entry->second == context)
        continue;
      op->emitOpError("changes by GIN context ")
          << context << " cells that another operation changes by context "
          << entry->second
          << ": NCCL has cells of its own for each. Take one context, or two "
             "arguments";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (known.wasInterrupted())
    return failure();
  WalkResult result = kernel.getBody().walk([&](Operation *op) {
    bool isOfCells = llvm::any_of(op->getOperands(), [&](Value value) {
      return overGin.contains(value);
    });
    bool isGin = op->hasAttr("gin") || isOfCells;
    if (isOfCells && !op->hasAttr("gin") &&
        isa<PutOp, PutSignalOp, SignalOp>(op)) {
      op->emitOpError("changes by a store what other operations of the kernel "
                      "change by GIN: give all of them `gin`, or take two "
                      "arguments");
      return WalkResult::interrupt();
    }
    bool isNccl = !onlyGin && isa<LocalOp, PeerOp, MultimemOp, BarrierOp,
                                  BarrierArriveOp, BarrierWaitOp>(op);
    // Those of other teams are computed from NCCL's by generated code.
    bool isNumber = !onlyGin && isa<RankOp, SizeOp>(op) &&
                    op->getOperand(0).getDefiningOp<TeamOp>();
    if (isGin || isNccl || isNumber)
      ops.push_back(op);
    if (isa<BarrierWaitOp>(op))
      waits.insert(op);
    if (isa<LocalOp, PeerOp>(op))
      parts.insert(op);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult NcclCaller::checkShape() {
  if (!kernel.getRanks() || !kernel.getBlocks())
    return kernel.emitOpError("needs known numbers of ranks and blocks: give "
                              "the pipeline the options ranks=N and blocks=N");
  auto cluster = kernel->getAttrOfType<IntegerAttr>("comms.cluster");
  if (cluster && cluster.getInt() > 1)
    return kernel.emitOpError("calls NCCL's device library, whose barriers and "
                              "waits are of one CTA, in clusters of ")
           << cluster.getInt() << ": set cluster=1";
  return success();
}

LogicalResult NcclCaller::lowerOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<PutOp, PutSignalOp, SignalOp, GetOp, FlushOp>(
          [&](auto transfer) { return lower(transfer); })
      .Case<LocalOp, PeerOp, MultimemOp, BarrierOp, BarrierArriveOp,
            BarrierWaitOp>([&](auto near) { return lower(near); })
      .Case<WaitSignalOp, WaitSignalFromOp>([&](auto wait) {
        return lowerWait(op, wait.getSignal(), wait.getIndex(), wait.getValue(),
                         wait.getKind() == WaitKind::Eq);
      })
      .Case<WaitCounterOp>([&](WaitCounterOp wait) {
        return lowerWait(op, wait.getCounter(), wait.getIndex(),
                         wait.getValue(), /*isEqual=*/false);
      })
      .Case<ReadSignalOp, ResetSignalOp>([&](auto access) {
        return lowerCell(op, access.getSignal(), access.getIndex(),
                         isa<ResetSignalOp>(op));
      })
      .Case<ReadCounterOp, ResetCounterOp>([&](auto access) {
        return lowerCell(op, access.getCounter(), access.getIndex(),
                         isa<ResetCounterOp>(op));
      })
      .Case<RankOp, SizeOp>([&](auto number) {
        auto team = number.getTeam().template getDefiningOp<TeamOp>();
        lowerNumber(op, team.getKind(), isa<RankOp>(op) ? "rank" : "size");
        return success();
      })
      .Default([&](Operation *) {
        return op->emitOpError(
            "is not supported over GIN: NCCL's device library "
            "has no function for it");
      });
}

/// Says of the kernel what its communicator must have.
void NcclCaller::recordRequirements() {
  int64_t signals = 0, counters = 0;
  for (auto [i, argument] : llvm::enumerate(kernel.getBody().getArguments())) {
    std::string name = kernel.getArgumentName(i);
    if (!arguments.contains(kNcclFirst + name))
      continue;
    if (auto cells = dyn_cast<SignalType>(argument.getType()))
      signals += cells.getCount();
    if (auto cells = dyn_cast<CounterType>(argument.getType()))
      counters += cells.getCount();
  }
  // Block b of every rank meets in barrier b.
  int64_t blocks = kernel.getBlocks().value_or(0);
  auto number = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  // NCCL numbers signals and counters from 0 on, argument after argument.
  SmallVector<NamedAttribute> needs = {
      number("lsa_barriers", usesLsaBarrier ? blocks : 0),
      number("rail_barriers", usesRailBarrier ? blocks : 0),
      number("contexts", contexts), number("signals", signals),
      number("counters", counters)};
  if (knowsReach)
    needs.push_back(
        number("reach", kernel.getLsaSize().value_or(*kernel.getRanks())));
  if (usesMultimem)
    needs.push_back(builder.getNamedAttr("multimem", builder.getUnitAttr()));
  kernel->setAttr(kNcclAttr, builder.getDictionaryAttr(needs));
}

LogicalResult NcclCaller::run() {
  if (kernel.getBody().empty() || failed(collect()))
    return failure(!kernel.getBody().empty());
  if (ops.empty())
    return success();
  if (failed(checkShape()))
    return failure();
  // Waits find the team at the arrival, puts the window at its part: these go
  // after them.
  auto turn = [&](Operation *op) {
    return waits.contains(op) ? 0 : parts.contains(op) ? 2 : 1;
  };
  for (int now : {0, 1, 2})
    for (Operation *op : ops) {
      if (turn(op) != now)
        continue;
      ImplicitLocOpBuilder at(op->getLoc(), op);
      b = &at;
      if (failed(lowerOp(op)))
        return failure();
    }
  recordRequirements();
  return success();
}

void CallNccl::runOnOperation() {
  // Functions are declared next to the kernels: a pass on one kernel may not.
  for (KernelOp kernel : llvm::to_vector(getOperation().getOps<KernelOp>()))
    if (failed(NcclCaller(kernel, onlyGin).run()))
      return signalPassFailure();
}
