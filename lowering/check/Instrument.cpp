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
// With `everything` every op that accesses memory has such a record before its
// accesses, which says what the memory model needs of the op.
//
//===----------------------------------------------------------------------===//

#include "dialect/Assumptions.h"
#include "lowering/Passes.h"
#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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

/// What identifies a synchronization in addition to its name: the cell and the
/// peer of a signal, the first element of a packet or of poison.
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

//===----------------------------------------------------------------------===//
// What the memory model needs of an op
//===----------------------------------------------------------------------===//

/// " gin 2": the GIN context of an op that goes over GIN, else nothing.
static std::string describeGin(std::optional<GinAttr> gin) {
  return gin && *gin ? " gin " + std::to_string(gin->getContextId()) : "";
}

/// Barriers that NCCL makes of GIN end what went over GIN: those of a rail, and
/// of a world beyond load/store reach.
static std::string describeBarrier(Operation *op, Value team,
                                   MemoryOrder order) {
  std::string text = " " + stringifyMemoryOrder(order).str();
  while (auto split = team.getDefiningOp<TeamSplitOp>())
    team = split.getTeam();
  auto base = team.getDefiningOp<TeamOp>();
  auto kernel = op->getParentOfType<KernelOp>();
  if (!base || base.getKind() == TeamKind::Lsa)
    return text;
  bool isBeyondReach = kernel.getLsaSize() && kernel.getRanks() &&
                       *kernel.getLsaSize() < *kernel.getRanks();
  return base.getKind() == TeamKind::Rail || isBeyondReach ? text + " gin all"
                                                           : text;
}

/// " 3": which bulk copy of the kernel it is.
static std::string describeCopies(Operation *op) {
  llvm::SmallPtrSet<Operation *, 4> copies;
  if (isa<BulkCopyOp>(op))
    copies.insert(op);
  else
    for (Value token : op->getOperands()) {
      Operation *copy = token.getDefiningOp<BulkCopyOp>();
      if (!copy) // Of a loop: any of them.
        return "";
      copies.insert(copy);
    }
  std::string text;
  int64_t number = 0;
  op->getParentOfType<KernelOp>().walk([&](BulkCopyOp copy) {
    if (copies.contains(copy))
      text += " " + std::to_string(number);
    ++number;
  });
  return text;
}

/// Whether writes of packets and poison rest on packets_cumulative.
static std::string describeChains(Operation *op) {
  bool isStated =
      statesAssumption(op->getParentOfType<KernelOp>(), kPacketsCumulative);
  return isStated ? (" " + kPacketsCumulative).str() : "";
}

/// The op's name without the dialect's prefix, and its order, scope, proxy, GIN
/// context and assumption: "signal release sys gin 0".
static std::string describe(Operation *op) {
  auto ordered = [](auto o) {
    return (" " + stringifyMemoryOrder(o.getOrder()) + " " +
            stringifyMemoryScope(o.getScope()))
        .str();
  };
  std::string rest =
      llvm::TypeSwitch<Operation *, std::string>(op)
          .Case<SignalOp>([&](auto o) {
            return ordered(o) + describeGin(o.getGin()) + describeChains(o);
          })
          .Case<PutSignalOp, PutOp, GetOp, FlushOp>(
              [&](auto o) { return describeGin(o.getGin()); })
          .Case<WaitSignalOp, WaitSignalFromOp>(ordered)
          .Case<ReadSignalOp>([](auto o) {
            return (" " + stringifyMemoryOrder(o.getOrder()) + " sys").str();
          })
          .Case<FenceOp>([&](auto o) {
            return ordered(o) + " " + stringifyProxy(o.getProxy()).str();
          })
          .Case<BarrierOp, BarrierArriveOp>([](auto o) {
            return describeBarrier(o, o.getTeam(), o.getOrder());
          })
          .Case<BarrierWaitOp>([](auto o) {
            return " " + stringifyMemoryOrder(o.getOrder()).str();
          })
          .Case<PacketStoreOp, PacketLoadOp>([](auto o) {
            return " " + stringifyAssumption(o.getAssumes()).str() +
                   describeChains(o);
          })
          .Case<PoisonStoreOp, PoisonFillOp, ResetSignalOp>(describeChains)
          .Case<BulkCopyOp, BulkWaitOp>(
              [](auto o) { return describeCopies(o); })
          .Default([](Operation *) { return ""; });
  return op->getName().stripDialect().str() + rest;
}

//===----------------------------------------------------------------------===//
// Records of accesses
//===----------------------------------------------------------------------===//

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
  Value row = loop.getInductionVar();
  if (part.row)
    row = arith::AddIOp::create(inner, loc, part.row, row);
  Value offset = arith::MulIOp::create(inner, loc, row, stride);
  if (part.column)
    offset = arith::AddIOp::create(inner, loc, offset, part.column);
  RecordAccessOp::create(inner, loc, access.kind, memref, offset, columns);
}

/// The element that a load or store of several indices touches; null: it cannot
/// be said without the sizes.
static Value findElement(OpBuilder &builder, Operation *op) {
  Value memref;
  ValueRange indices;
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    memref = load.getMemRef();
    indices = load.getIndices();
  } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
    memref = store.getMemRef();
    indices = store.getIndices();
  } else {
    return {};
  }
  int64_t start = 0;
  SmallVector<int64_t> strides;
  auto type = cast<MemRefType>(memref.getType());
  if (failed(type.getStridesAndOffset(strides, start)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return {};
  Location loc = op->getLoc();
  Value sum = arith::ConstantIndexOp::create(builder, loc, 0);
  for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
    Value by = arith::ConstantIndexOp::create(builder, loc, stride);
    Value part = arith::MulIOp::create(builder, loc, index, by);
    sum = arith::AddIOp::create(builder, loc, sum, part);
  }
  return sum;
}

/// Records all of a view whose elements do not lie one behind the other: each
/// row, or, where those do not either, each element.
static void recordView(OpBuilder &builder, Location loc, AccessKind kind,
                       Value memref, ArrayRef<int64_t> strides) {
  auto type = cast<MemRefType>(memref.getType());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  int64_t rank = type.getRank();
  bool hasRows = rank > 0 && strides.back() == 1;
  Value offset = constant(0), one = constant(1);
  OpBuilder::InsertionGuard guard(builder);
  for (int64_t dim = 0; dim < rank - (hasRows ? 1 : 0); ++dim) {
    Value end = memref::DimOp::create(builder, loc, memref, dim);
    auto loop = scf::ForOp::create(builder, loc, constant(0), end, one);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    Value step = arith::MulIOp::create(builder, loc, loop.getInductionVar(),
                                       constant(strides[dim]));
    offset = arith::AddIOp::create(builder, loc, offset, step);
  }
  Value count = one;
  if (hasRows)
    count = memref::DimOp::create(builder, loc, memref, rank - 1);
  RecordAccessOp::create(builder, loc, kind, memref, offset, count);
}

/// Records an access to all of a view with gaps. Returns whether it is one.
static bool recordGaps(OpBuilder &builder, Location loc, const Access &access) {
  auto type = dyn_cast<MemRefType>(access.memory.getType());
  int64_t start = 0;
  SmallVector<int64_t> strides;
  if (!type || type.getLayout().isIdentity() || !access.isWhole() ||
      failed(type.getStridesAndOffset(strides, start)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return false;
  recordView(builder, loc, access.kind, access.memory, strides);
  return true;
}

/// Records an access through a multimem view at each rank of its team.
static void recordParts(OpBuilder &builder, Location loc, MultimemOp view,
                        const Access &access) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
        one = arith::ConstantIndexOp::create(builder, loc, 1),
        size = SizeOp::create(builder, loc, view.getTeam()),
        offset = access.materializeOffset(builder, loc),
        count = access.materializeCount(builder, loc);
  auto loop = scf::ForOp::create(builder, loc, zero, size, one);
  OpBuilder inner = OpBuilder::atBlockTerminator(loop.getBody());
  auto window = cast<WindowType>(view.getWindow().getType());
  Value part =
      PeerOp::create(inner, loc, window.getLocalType(), view.getWindow(),
                     loop.getInductionVar(), view.getTeam());
  RecordAccessOp::create(inner, loc, access.kind, part, offset, count);
}

/// The accesses of `op` to memory that peers can see; `everything`: to all
/// memory, or, without `blocks`, to all but the block's own.
static SmallVector<Access, 2> findAccesses(Operation *op, bool everything,
                                           bool blocks) {
  SmallVector<Access, 2> accesses;
  getAccesses(op, accesses);
  llvm::erase_if(accesses, [&](const Access &access) {
    MemoryRoot root = access.getRoot();
    return everything ? !blocks && !root.isVisibleToBlocks()
                      : !root.isVisibleToPeers();
  });
  return accesses;
}

static void recordAccesses(Operation *op, ArrayRef<Access> accesses,
                           bool everything) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  for (const Access &access : accesses) {
    if (everything)
      if (auto view = access.memory.getDefiningOp<MultimemOp>()) {
        recordParts(builder, loc, view, access);
        continue;
      }
    Value memref = getMemref(builder, loc, access);
    if (access.matrix) {
      recordMatrix(builder, loc, memref, access);
      continue;
    }
    if (everything && recordGaps(builder, loc, access))
      continue;
    Value offset, count;
    if (everything)
      offset = findElement(builder, op);
    if (offset) {
      count = arith::ConstantIndexOp::create(builder, loc, 1);
    } else {
      offset = access.materializeOffset(builder, loc);
      count = access.materializeCount(builder, loc);
    }
    RecordAccessOp::create(builder, loc, access.kind, memref, offset, count);
  }
}

/// Records that the host uses windows between two launches, at the start of the
/// kernel.
static void recordHost(KernelOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Location loc = kernel.getLoc();
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    auto window = dyn_cast<WindowType>(argument.getType());
    if (!window || !kernel.getArgAttr(argument.getArgNumber(), kHostAttr))
      continue;
    RecordSyncOp::create(builder, loc, "host", ValueRange());
    Value own = LocalOp::create(builder, loc, window.getLocalType(), argument);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
          all = arith::ConstantIndexOp::create(builder, loc,
                                               *getStaticElements(window));
    RecordAccessOp::create(builder, loc, AccessKind::Write, own, zero, all);
  }
}

namespace {
struct Instrument : mlir::comms::impl::InstrumentBase<Instrument> {
  using InstrumentBase::InstrumentBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    InstrumentBase::getDependentDialects(registry);
    registry.insert<scf::SCFDialect, memref::MemRefDialect>();
  }

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    bool transfers = false;
    getOperation().walk([&](Operation *op) {
      ops.push_back(op);
      transfers |= isa<BulkCopyOp, PutOp, PutSignalOp, GetOp>(op);
    });
    for (Operation *op : ops)
      instrument(op, transfers);
    if (everything)
      recordHost(getOperation());
  }

  void instrument(Operation *op, bool blocks) const {
    SmallVector<Access, 2> accesses = findAccesses(op, everything, blocks);
    if (isSynchronization(op) || (everything && !accesses.empty())) {
      OpBuilder builder(op);
      // Without the dialect's prefix: `barrier`, `packet_load`.
      std::string what =
          everything ? describe(op) : op->getName().stripDialect().str();
      RecordSyncOp::create(builder, op->getLoc(), what, getIdentity(op));
    }
    recordAccesses(op, accesses, everything);
  }
};
} // namespace
