//===- Accesses.cpp - Every memory access that an op makes ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/Accesses.h"

#include "dialect/Packets.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;

BlockArgument mlir::comms::findRootArgument(KernelOp kernel) {
  if (!kernel || kernel.getBody().empty())
    return {};
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    if (kernel.getArgAttr(argument.getArgNumber(), kRunTimeRootAttr))
      return argument;
  return {};
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

/// The memref that `op` is a view of, or null when it is no view.
static Value getViewSource(Operation *op) {
  if (auto view = dyn_cast<ViewLikeOpInterface>(op))
    return view.getViewSource();
  return {};
}

/// The root of memory that no view leads away from.
static MemoryRoot classify(Value memory) {
  MemoryRoot root;
  root.value = memory;
  if (auto argument = dyn_cast<BlockArgument>(memory)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (isa_and_nonnull<KernelOp>(owner) && argument.getOwner()->isEntryBlock())
      root.kind = isa<WindowType>(memory.getType()) ? MemoryRoot::Window
                                                    : MemoryRoot::Argument;
    return root;
  }
  Operation *op = memory.getDefiningOp();
  if (isa<WindowType>(memory.getType()))
    root.kind = MemoryRoot::Window;
  else if (isa<ScratchOp, memref::AllocaOp, memref::AllocOp>(op))
    root.kind = MemoryRoot::Scratch;
  return root;
}

MemoryRoot mlir::comms::getMemoryRoot(Value memory) {
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (Operation *op = memory.getDefiningOp()) {
    // A graph region may hold a view of itself.
    if (!seen.insert(op).second)
      break;
    MemoryRoot root;
    root.kind = MemoryRoot::Window;
    if (auto local = dyn_cast<LocalOp>(op)) {
      root.value = local.getWindow();
      return root;
    }
    if (auto peer = dyn_cast<PeerOp>(op)) {
      root.value = peer.getWindow();
      root.peer = peer.getPeer();
      root.team = peer.getTeam();
      return root;
    }
    if (auto multimem = dyn_cast<MultimemOp>(op)) {
      root.value = multimem.getWindow();
      root.team = multimem.getTeam();
      root.multimem = true;
      return root;
    }
    Value source = getViewSource(op);
    if (!source)
      break;
    memory = source;
  }
  return classify(memory);
}

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

MemoryRoot Access::getRoot() const {
  MemoryRoot root = getMemoryRoot(memory);
  if (peer) {
    root.peer = peer;
    root.team = team;
  }
  return root;
}

std::optional<int64_t> Access::toUnits(int64_t tileElements) const {
  int64_t bits;
  if (tileElements < 0 ||
      __builtin_mul_overflow(tileElements, int64_t(tileBits), &bits) ||
      __builtin_add_overflow(bits, int64_t(unitBits) - 1, &bits))
    return std::nullopt;
  return bits / int64_t(unitBits);
}

std::optional<int64_t> Access::getConstantCount() const {
  if (dynamicCount) {
    std::optional<int64_t> constant = getConstantIntValue(dynamicCount);
    return constant ? toUnits(*constant) : std::nullopt;
  }
  if (staticCount >= 0)
    return toUnits(staticCount);
  return getStaticElements(memory.getType());
}

std::optional<int64_t> Access::getMaximumCount() const {
  if (std::optional<int64_t> constant = getConstantCount())
    return constant;
  return staticCount >= 0 ? toUnits(staticCount) : std::nullopt;
}

std::optional<int64_t> Access::getConstantOffset() const {
  return offset ? getConstantIntValue(offset) : std::optional<int64_t>(0);
}

std::optional<int64_t> Access::getLimit() const {
  std::optional<int64_t> elements = getStaticElements(memory.getType());
  return elements && inLines ? countUnits(*elements, Assumption::Store128Whole)
                             : elements;
}

/// Emits the number of elements of a memref, multiplying dynamic dimensions.
static Value materializeElements(OpBuilder &builder, Location loc,
                                 Value memory) {
  if (isa<WindowType>(memory.getType()))
    memory = LocalOp::create(builder, loc,
                             cast<WindowType>(memory.getType()).getLocalType(),
                             memory);
  auto type = cast<BaseMemRefType>(memory.getType());
  if (std::optional<int64_t> elements = getStaticElements(type))
    return arith::ConstantIndexOp::create(builder, loc, *elements);
  Value product = arith::ConstantIndexOp::create(builder, loc, 1);
  int64_t rank = type.hasRank() ? type.getRank() : 0;
  for (int64_t i = 0; i < rank; ++i) {
    Value dim = memref::DimOp::create(builder, loc, memory, i);
    product = arith::MulIOp::create(builder, loc, product, dim);
  }
  return product;
}

Value Access::materializeCount(OpBuilder &builder, Location loc) const {
  if (dynamicCount && tileBits == unitBits)
    return dynamicCount;
  if (std::optional<int64_t> constant = getConstantCount())
    return arith::ConstantIndexOp::create(builder, loc, *constant);
  if (!dynamicCount)
    return materializeElements(builder, loc, memory);
  if (tileBits > unitBits && tileBits % unitBits == 0) {
    Value factor =
        arith::ConstantIndexOp::create(builder, loc, tileBits / unitBits);
    return arith::MulIOp::create(builder, loc, dynamicCount, factor);
  }
  // Rounded up: the last memory element is padded.
  Value bits = arith::ConstantIndexOp::create(builder, loc, tileBits);
  Value unit = arith::ConstantIndexOp::create(builder, loc, unitBits);
  Value round = arith::ConstantIndexOp::create(builder, loc, unitBits - 1);
  Value total = arith::MulIOp::create(builder, loc, dynamicCount, bits);
  total = arith::AddIOp::create(builder, loc, total, round);
  return arith::DivUIOp::create(builder, loc, total, unit);
}

Value Access::materializeOffset(OpBuilder &builder, Location loc) const {
  return offset ? offset : arith::ConstantIndexOp::create(builder, loc, 0);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

std::optional<int64_t> mlir::comms::getStaticElements(Type memoryType) {
  ArrayRef<int64_t> shape;
  if (auto window = dyn_cast<WindowType>(memoryType))
    shape = window.getShape();
  else if (auto memref = dyn_cast<MemRefType>(memoryType))
    shape = memref.getShape();
  else
    return std::nullopt;
  int64_t elements = 1;
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements))
      return std::nullopt;
  return elements;
}

int64_t mlir::comms::getMatrixColumns(Type memoryType) {
  return cast<MemRefType>(memoryType).getShape().back();
}

int64_t mlir::comms::getMatrixRows(Type memoryType) {
  // Not its elements by its columns, of which there may be none.
  int64_t rows = 1;
  for (int64_t dim : cast<MemRefType>(memoryType).getShape().drop_back())
    rows *= dim;
  return rows;
}

/// Ranks of the team `world`, or of a split of depth 0.
static std::optional<int64_t> getKindSize(TeamKind kind, KernelOp kernel) {
  std::optional<uint64_t> ranks = kernel.getRanks();
  if (!ranks || int64_t(*ranks) < 1)
    return std::nullopt;
  int64_t world = *ranks, reach = world;
  if (std::optional<uint64_t> lsa = kernel.getLsaSize())
    reach = *lsa;
  if (reach < 1 || world % reach != 0)
    return std::nullopt;
  switch (kind) {
  case TeamKind::World:
    return world;
  case TeamKind::Lsa:
    return reach;
  case TeamKind::Rail:
    return world / reach;
  }
  return std::nullopt;
}

std::optional<int64_t> mlir::comms::getConstantTeamSize(Value team) {
  // Splits from the innermost out; a cycle in a graph region ends the search.
  SmallVector<TeamSplitOp> splits;
  llvm::SmallPtrSet<Operation *, 4> seen;
  while (team) {
    Operation *op = team.getDefiningOp();
    if (!op || !seen.insert(op).second)
      return std::nullopt;
    if (auto split = dyn_cast<TeamSplitOp>(op)) {
      splits.push_back(split);
      team = split.getTeam();
      continue;
    }
    auto base = dyn_cast<TeamOp>(op);
    auto kernel = op->getParentOfType<KernelOp>();
    if (!base || !kernel)
      return std::nullopt;
    std::optional<int64_t> size = getKindSize(base.getKind(), kernel);
    for (TeamSplitOp split : llvm::reverse(splits)) {
      int64_t factor = split.getFactor();
      if (!size || factor < 1 || *size % factor != 0)
        return std::nullopt;
      size = split.getKind() == SplitKind::Inner ? factor : *size / factor;
    }
    return size;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Accesses of each op
//===----------------------------------------------------------------------===//

/// Element type of a memref or window.
static Type getElementType(Value memory) {
  if (auto window = dyn_cast<WindowType>(memory.getType()))
    return window.getElementType();
  return cast<BaseMemRefType>(memory.getType()).getElementType();
}

namespace {
/// Appends accesses to a list.
class Collector {
public:
  explicit Collector(SmallVectorImpl<Access> &accesses) : accesses(accesses) {}

  /// `count` elements at `offset`.
  Access &range(AccessKind kind, Value memory, Value offset, Value count) {
    Access access;
    access.kind = kind;
    access.memory = memory;
    access.offset = offset;
    access.dynamicCount = count;
    Type element = getElementType(memory);
    if (element.isIntOrFloat())
      access.tileBits = access.unitBits = element.getIntOrFloatBitWidth();
    accesses.push_back(access);
    return accesses.back();
  }

  /// A tile, or its first `valid` elements.
  Access &tile(AccessKind kind, Value tile, Value memory, Value offset,
               Value valid) {
    Access &access = range(kind, memory, offset, valid);
    auto type = cast<ShapedType>(tile.getType());
    if (type.hasStaticShape())
      access.staticCount = type.getNumElements();
    return access;
  }

  /// All of the memory.
  void whole(AccessKind kind, Value memory) { range(kind, memory, {}, {}); }

  /// A part of a matrix.
  void matrix(AccessKind kind, Value memory, const MatrixPart &part) {
    range(kind, memory, {}, {}).matrix = part;
  }

  /// A tile in packets: 32 bits of tile in each i64 of memory, or in lines.
  void packets(AccessKind kind, Value tileValue, Value memory, Value offset,
               Value valid, Assumption assumes) {
    Access &access = tile(kind, tileValue, memory, offset, valid);
    access.tileBits =
        cast<ShapedType>(tileValue.getType()).getElementTypeBitWidth();
    access.unitBits = getUnitBits(assumes);
    access.inLines = areLines(assumes);
    access.synchronizes = true;
  }

  /// Elements of a peer's part of a window.
  Access &remote(AccessKind kind, Value window, Value offset, Value count,
                 Value peer, Value team) {
    Access &access = range(kind, window, offset, count);
    access.peer = peer;
    access.team = team;
    return access;
  }

private:
  SmallVectorImpl<Access> &accesses;
};
} // namespace

/// One element of a memref of rank 0 or 1; of others, any element.
static void addElement(Collector &collector, AccessKind kind, Value memory,
                       OperandRange indices) {
  if (indices.size() > 1)
    return collector.whole(kind, memory);
  Access &access = collector.range(
      kind, memory, indices.empty() ? Value() : indices.front(), {});
  access.staticCount = 1;
}

/// Elements one behind the other of a memref of rank 1; of others, any.
static void addVector(Collector &collector, AccessKind kind, Value memory,
                      OperandRange indices, VectorType type) {
  if (indices.size() != 1 || type.isScalable())
    return collector.whole(kind, memory);
  Access &access = collector.range(kind, memory, indices.front(), {});
  access.staticCount = type.getNumElements();
}

/// A put or a get: the local side and the peer's.
template <typename OpT>
static void addTransfer(Collector &collector, OpT op, Value local,
                        Value localOffset, bool writesPeer) {
  AccessKind here = writesPeer ? AccessKind::Read : AccessKind::Write;
  AccessKind there = writesPeer ? AccessKind::Write : AccessKind::Read;
  collector.range(here, local, localOffset, op.getCount()).deferred = true;
  collector
      .remote(there, op.getWindow(), op.getOffset(), op.getCount(),
              op.getPeer(), op.getTeam())
      .deferred = true;
}

/// The scales of an operand of a matrix product: those of the part's rows
/// (columns) where each has its own, else all.
static void addScales(Collector &collector, ContractOp op, bool isLhs) {
  OperandScales scales = op.getScales(isLhs);
  if (!scales.memory)
    return;
  MatrixPart part;
  part.staticRows = getMatrixRows(scales.memory.getType());
  part.staticColumns = getMatrixColumns(scales.memory.getType());
  if (scales.across == 1) {
    (scales.termsAreRows ? part.column : part.row) = scales.firstAcross;
    (scales.termsAreRows ? part.columns : part.rows) =
        isLhs ? op.getRows() : op.getColumns();
    (scales.termsAreRows ? part.staticColumns : part.staticRows) =
        isLhs ? op.getTileRows() : op.getTileColumns();
  }
  collector.matrix(AccessKind::Read, scales.memory, part);
}

/// The operands of a matrix product, its result, its addends, and the scales.
static void addContract(Collector &collector, ContractOp op) {
  int64_t m = op.getTileRows(), n = op.getTileColumns();
  MatrixPart lhs{
      op.getLhsRow(), op.getLhsColumn(), op.getRows(), op.getDepth(), m, -1};
  MatrixPart rhs{
      op.getRhsRow(), op.getRhsColumn(), op.getDepth(), op.getColumns(), -1, n};
  MatrixPart acc{
      op.getAccRow(), op.getAccColumn(), op.getRows(), op.getColumns(), m, n};
  auto transpose = [](MatrixPart &part) {
    std::swap(part.rows, part.columns);
    std::swap(part.staticRows, part.staticColumns);
  };
  if (op.getTransposeLhs())
    transpose(lhs);
  if (op.getTransposeRhs())
    transpose(rhs);
  collector.matrix(AccessKind::Read, op.getLhs(), lhs);
  collector.matrix(AccessKind::Read, op.getRhs(), rhs);
  if (op.getAccumulate())
    collector.matrix(AccessKind::Read, op.getAcc(), acc);
  collector.matrix(AccessKind::Write, op.getAcc(), acc);
  for (auto [memory, row, column] : llvm::zip_equal(
           op.getAddends(), op.getAddendRows(), op.getAddendColumns()))
    collector.matrix(AccessKind::Read, memory,
                     {row, column, op.getRows(), op.getColumns(), m, n});
  addScales(collector, op, /*isLhs=*/true);
  addScales(collector, op, /*isLhs=*/false);
}

void mlir::comms::getAccesses(Operation *op,
                              SmallVectorImpl<Access> &accesses) {
  Collector collector(accesses);
  constexpr AccessKind read = AccessKind::Read, write = AccessKind::Write;
  llvm::TypeSwitch<Operation *>(op)
      .Case<TileLoadOp, MultimemLoadReduceOp>([&](auto o) {
        collector.tile(read, o.getTile(), o.getMemref(), o.getOffset(),
                       o.getValid());
      })
      .Case<TileStoreOp, MultimemStoreOp>([&](auto o) {
        collector.tile(write, o.getTile(), o.getMemref(), o.getOffset(),
                       o.getValid());
      })
      .Case<MultimemReduceOp>([&](auto o) {
        collector.tile(read, o.getTile(), o.getMemref(), o.getOffset(),
                       o.getValid());
        collector.tile(write, o.getTile(), o.getMemref(), o.getOffset(),
                       o.getValid());
      })
      .Case<PacketLoadOp>([&](auto o) {
        collector.packets(read, o.getTile(), o.getMemref(), o.getOffset(),
                          o.getValid(), o.getAssumes());
      })
      .Case<PacketStoreOp>([&](auto o) {
        collector.packets(write, o.getTile(), o.getMemref(), o.getOffset(),
                          o.getValid(), o.getAssumes());
      })
      .Case<PoisonLoadOp>([&](auto o) {
        collector
            .tile(read, o.getTile(), o.getMemref(), o.getOffset(), o.getValid())
            .synchronizes = true;
      })
      .Case<PoisonStoreOp>([&](auto o) {
        collector
            .tile(write, o.getTile(), o.getMemref(), o.getOffset(),
                  o.getValid())
            .synchronizes = true;
      })
      .Case<PoisonFillOp>([&](auto o) {
        collector.range(write, o.getMemref(), o.getOffset(), o.getCount())
            .synchronizes = true;
      })
      .Case<ContractOp>([&](auto o) { addContract(collector, o); })
      .Case<PutOp, PutSignalOp>([&](auto o) {
        addTransfer(collector, o, o.getSource(), o.getSourceOffset(),
                    /*writesPeer=*/true);
      })
      .Case<EngineCopyOp>([&](auto o) {
        addTransfer(collector, o, o.getSource(), o.getSourceOffset(),
                    /*writesPeer=*/true);
      })
      .Case<GetOp>([&](auto o) {
        addTransfer(collector, o, o.getDest(), o.getDestOffset(),
                    /*writesPeer=*/false);
      })
      .Case<BulkCopyOp>([&](auto o) {
        collector.range(read, o.getSource(), o.getSourceOffset(), o.getCount())
            .deferred = true;
        collector.range(write, o.getDest(), o.getDestOffset(), o.getCount())
            .deferred = true;
      })
      .Case<memref::LoadOp>([&](auto o) {
        addElement(collector, read, o.getMemRef(), o.getIndices());
      })
      .Case<memref::StoreOp>([&](auto o) {
        addElement(collector, write, o.getMemRef(), o.getIndices());
      })
      .Case<vector::LoadOp>([&](auto o) {
        addVector(collector, read, o.getBase(), o.getIndices(),
                  o.getVectorType());
      })
      .Case<vector::StoreOp>([&](auto o) {
        addVector(collector, write, o.getBase(), o.getIndices(),
                  o.getVectorType());
      })
      .Case<memref::CopyOp>([&](auto o) {
        collector.whole(read, o.getSource());
        collector.whole(write, o.getTarget());
      })
      .Case<CollectiveOpInterface>([&](auto o) {
        for (Value input : o.getInputs())
          collector.whole(read, input);
        for (Value arg : o.getArgs())
          collector.whole(read, arg);
        for (Value output : o.getOutputs())
          collector.whole(write, output);
      })
      .Case<AllToAllVOp>([&](auto o) {
        collector.whole(read, o.getInput());
        collector.whole(read, o.getSendRows());
        collector.whole(read, o.getRecvRows());
        collector.whole(write, o.getOutput());
      })
      .Case<SendRecvOp>([&](auto o) {
        collector.whole(read, o.getInput());
        collector.whole(write, o.getOutput());
      });
}

bool mlir::comms::isSynchronization(Operation *op) {
  if (isa<CollectiveOpInterface>(op))
    return true;
  return isa<BarrierOp, BarrierArriveOp, BarrierWaitOp, SignalOp, PutSignalOp,
             WaitSignalOp, WaitSignalFromOp, ReadSignalOp, ResetSignalOp,
             WaitCounterOp, ReadCounterOp, ResetCounterOp, FlushOp, FenceOp,
             PacketLoadOp, PacketStoreOp, PoisonLoadOp, PoisonStoreOp,
             PoisonFillOp, BulkWaitOp, SendOp, RecvOp, ChannelBarrierOp,
             AllToAllVOp, SendRecvOp>(op);
}
