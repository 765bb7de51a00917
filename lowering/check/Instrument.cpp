//===- Instrument.cpp - Record accesses and synchronizations --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts records before the ops that touch memory which other ranks can see, and
// before those that synchronize. An op that does both (a packet, a put with a
// signal) has the record of its synchronization first, then its accesses, then
// the op itself; a detector that meets them in that order knows that the
// accesses are part of the synchronization.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::comms {
#define GEN_PASS_DEF_INSTRUMENT
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

/// The memref that `access` touches: its own, or a view of the window.
static Value getMemref(OpBuilder &builder, Location loc, const Access &access) {
  auto window = dyn_cast<WindowType>(access.memory.getType());
  if (!window)
    return access.memory;
  if (!access.peer)
    return LocalOp::create(builder, loc, window.getLocalType(), access.memory);
  return PeerOp::create(builder, loc, window.getLocalType(), access.memory,
                        access.peer, access.team);
}

/// What identifies a synchronization beside its name: the cell and the peer of
/// a signal, the first element of a packet or of poison.
static SmallVector<Value> getIdentity(Operation *op) {
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<SignalOp, PutSignalOp, WaitSignalFromOp>(
          [](auto o) { return SmallVector<Value>{o.getIndex(), o.getPeer()}; })
      .Case<WaitSignalOp, ReadSignalOp, ResetSignalOp, WaitCounterOp,
            ReadCounterOp, ResetCounterOp>(
          [](auto o) { return SmallVector<Value>{o.getIndex()}; })
      .Case<PacketLoadOp, PacketStoreOp, PoisonLoadOp, PoisonStoreOp,
            PoisonFillOp>(
          [](auto o) { return SmallVector<Value>{o.getOffset()}; })
      .Default([](Operation *) { return SmallVector<Value>(); });
}

/// Records a part of a matrix, row by row.
static void recordMatrix(OpBuilder &builder, Location loc, Value memref,
                         const Access &access) {
  const MatrixPart &part = *access.matrix;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto count = [&](Value given, int64_t all) {
    return given ? given : constant(all);
  };
  Value rows = count(part.rows, part.staticRows),
        columns = count(part.columns, part.staticColumns),
        stride = constant(getMatrixColumns(access.memory.getType()));
  auto loop = scf::ForOp::create(builder, loc, constant(0), rows, constant(1));
  OpBuilder inner = OpBuilder::atBlockTerminator(loop.getBody());
  Value row =
      arith::AddIOp::create(inner, loc, part.row, loop.getInductionVar());
  Value before = arith::MulIOp::create(inner, loc, row, stride);
  Value offset = arith::AddIOp::create(inner, loc, before, part.column);
  RecordAccessOp::create(inner, loc, access.kind, memref, offset, columns);
}

/// Records the accesses of `op` to memory that peers can see.
static void recordAccesses(Operation *op) {
  SmallVector<Access, 2> accesses;
  getAccesses(op, accesses);
  OpBuilder builder(op);
  for (const Access &access : accesses) {
    if (!access.getRoot().isVisibleToPeers())
      continue;
    Value memref = getMemref(builder, op->getLoc(), access);
    if (access.matrix) {
      recordMatrix(builder, op->getLoc(), memref, access);
      continue;
    }
    RecordAccessOp::create(builder, op->getLoc(), access.kind, memref,
                           access.materializeOffset(builder, op->getLoc()),
                           access.materializeCount(builder, op->getLoc()));
  }
}

namespace {
struct Instrument : mlir::comms::impl::InstrumentBase<Instrument> {
  void getDependentDialects(DialectRegistry &registry) const override {
    InstrumentBase::getDependentDialects(registry);
    registry.insert<scf::SCFDialect>();
  }

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      instrument(op);
  }

  static void instrument(Operation *op) {
    if (isSynchronization(op)) {
      OpBuilder builder(op);
      // Without the dialect's prefix: `barrier`, `packet_load`.
      StringRef what = op->getName().stripDialect();
      RecordSyncOp::create(builder, op->getLoc(), what, getIdentity(op));
    }
    recordAccesses(op);
  }
};
} // namespace
