//===- AssertBounds.cpp - Checks of offsets that cannot be proven ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each access the pass tries to prove
//   0 <= count <= tile size,  0 <= offset,  offset + count <= elements,
// checks at run time what it cannot prove, and refuses what cannot hold.
//
// The proofs are bounds/Prover.h's.
//
//===----------------------------------------------------------------------===//

#include "lowering/Passes.h"
#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/UncheckedOps.h"
#include "lowering/check/bounds/Prover.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

namespace mlir::comms {
#define GEN_PASS_DEF_ASSERTBOUNDS
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;
using bounds::Prover;
using bounds::Sum;

/// What users call the memory: an argument's name, or what kind it is.
static std::string describe(Value memory) {
  MemoryRoot root = getMemoryRoot(memory);
  auto argument = dyn_cast<BlockArgument>(root.value);
  auto kernel =
      argument ? dyn_cast_or_null<KernelOp>(argument.getOwner()->getParentOp())
               : KernelOp();
  if (kernel)
    return kernel.getArgumentName(argument.getArgNumber());
  return root.kind == MemoryRoot::Scratch ? "scratch memory" : "memory";
}

/// The access that `record` tells of.
static Access getRecorded(RecordAccessOp record) {
  Access access;
  access.kind = record.getKind();
  access.memory = record.getMemref();
  access.offset = record.getOffset();
  access.dynamicCount = record.getCount();
  return access;
}

namespace {
/// A range [offset, offset + count) that has to lie in [0, limit). Where a
/// value is null the constant counts.
struct Bound {
  Operation *op;
  std::string what;
  Value offset, count, limit;
  int64_t constantOffset = 0, constantCount = 0, constantLimit = 0;
};

struct AssertBounds : mlir::comms::impl::AssertBoundsBase<AssertBounds> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Prover prover;
    if (failed(prover.analyze(kernel)))
      return signalPassFailure();
    SmallVector<Operation *> ops;
    kernel.walk([&](Operation *op) { ops.push_back(op); });
    bool ok = true;
    for (Operation *op : ops)
      ok &= succeeded(refuseUnchecked(op));
    if (!ok)
      return signalPassFailure();
    for (Operation *op : ops)
      ok &= succeeded(visit(prover, op));
    if (!ok)
      signalPassFailure();
  }

  /// All accesses and cells of one op.
  LogicalResult visit(Prover &prover, Operation *op) {
    SmallVector<Access, 2> accesses;
    getAccesses(op, accesses);
    // What is told of an access has to be checked before it is told.
    if (auto record = dyn_cast<RecordAccessOp>(op))
      accesses.push_back(getRecorded(record));
    for (const Access &access : accesses)
      if (failed(visitAccess(prover, op, access)))
        return failure();
    return success(
        succeeded(visitElement(prover, op)) &&
        succeeded(visitScales(prover, op)) &&
        succeeded(visitVector(prover, op)) &&
        succeeded(visitView(prover, op)) && succeeded(visitCopy(prover, op)) &&
        succeeded(visitLoop(prover, op)) && succeeded(visitCell(prover, op)));
  }

  LogicalResult visitAccess(Prover &prover, Operation *op,
                            const Access &access);
  LogicalResult visitMatrix(Prover &prover, Operation *op,
                            const Access &access);
  LogicalResult visitElement(Prover &prover, Operation *op);
  LogicalResult visitScales(Prover &prover, Operation *op);
  LogicalResult visitVector(Prover &prover, Operation *op);
  LogicalResult visitView(Prover &prover, Operation *op);
  LogicalResult visitCopy(Prover &prover, Operation *op);
  LogicalResult visitLoop(Prover &prover, Operation *op);
  LogicalResult visitCell(Prover &prover, Operation *op);
};
} // namespace

/// Emits the check of `bound`.
static void emitCheck(const Bound &bound) {
  OpBuilder builder(bound.op);
  Location loc = bound.op->getLoc();
  auto index = [&](Value value, int64_t constant) -> Value {
    return value ? value
                 : arith::ConstantIndexOp::create(builder, loc, constant);
  };
  Value offset = index(bound.offset, bound.constantOffset);
  Value count = index(bound.count, bound.constantCount);
  Value limit = index(bound.limit, bound.constantLimit);
  CheckBoundsOp::create(builder, loc, offset, count, limit, bound.what);
}

namespace {
/// The sums of a bound, as they are where its op runs.
struct BoundSums {
  BoundSums(Prover &prover, const Bound &bound)
      : offset(bound.offset ? prover.getSum(bound.offset)
                            : Sum::of(bound.constantOffset)),
        count(bound.count ? prover.getSum(bound.count)
                          : Sum::of(bound.constantCount)),
        end(offset) {
    end.add(count, 1);
  }
  Sum offset, count, end;
};
} // namespace

/// Whether `bound`, whose limit is a constant, holds for certain.
static bool isProven(Prover &prover, const Bound &bound) {
  for (bool whole : {true, false}) {
    prover.enter(bound.op, whole);
    BoundSums sums(prover, bound);
    if (prover.isAtLeast(sums.offset, 0) && prover.isAtLeast(sums.count, 0) &&
        prover.isAtMost(sums.end, bound.constantLimit))
      return true;
  }
  return false;
}

/// Refuses `bound` if it cannot hold.
static LogicalResult checkPossible(Prover &prover, const Bound &bound) {
  int64_t limit = bound.constantLimit;
  prover.enter(bound.op, /*whole=*/true);
  BoundSums sums(prover, bound);
  bool negative =
      prover.isAtMost(sums.offset, -1) || prover.isAtMost(sums.count, -1);
  bool beyond = limit < std::numeric_limits<int64_t>::max() &&
                prover.isAtLeast(sums.end, limit + 1) &&
                !prover.isAtMost(sums.count, 0);
  if (!prover.isExact(sums.offset) || !prover.isExact(sums.count) ||
      !(negative || beyond))
    return success();
  InFlightDiagnostic error = bound.op->emitOpError()
                             << bound.what << " out of bounds: ";
  if (sums.offset.isConstant())
    error << "offset " << sums.offset.constant;
  else
    error << "every offset that is possible";
  if (sums.count.isConstant())
    error << ", count " << sums.count.constant;
  return error << ", limit " << limit;
}

/// Refuses, proves or checks `bound`, whose limit is a constant.
static LogicalResult resolveBound(Prover &prover, const Bound &bound) {
  if (isProven(prover, bound))
    return success();
  // A record stands before the op that is refused.
  if (!isa<RecordAccessOp>(bound.op) && failed(checkPossible(prover, bound)))
    return failure();
  emitCheck(bound);
  return success();
}

/// Whether the number of tile elements lies in [0, tile size].
static LogicalResult resolveValidCount(Prover &prover, Operation *op,
                                       const Access &access) {
  if (!access.dynamicCount || access.staticCount < 0)
    return success();
  Bound bound;
  bound.op = op;
  bound.count = access.dynamicCount;
  bound.constantLimit = access.staticCount;
  bound.what = "`valid` of a tile";
  return resolveBound(prover, bound);
}

/// How far the elements of a view with gaps reach in memory, in which what is
/// recorded of them counts; none: it has no gaps, or its strides are not known.
static std::optional<int64_t> getReach(Value memory) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  SmallVector<int64_t> strides;
  int64_t start = 0, reach = 1;
  if (!type || type.getLayout().isIdentity() || !type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, start)))
    return std::nullopt;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
    int64_t last = 0;
    if (size == 0 || ShapedType::isDynamic(stride) ||
        __builtin_mul_overflow(size - 1, stride, &last) ||
        __builtin_add_overflow(reach, last, &reach))
      return std::nullopt;
  }
  return reach;
}

LogicalResult AssertBounds::visitAccess(Prover &prover, Operation *op,
                                        const Access &access) {
  if (access.matrix)
    return visitMatrix(prover, op, access);
  if (access.isWhole())
    return success();
  if (failed(resolveValidCount(prover, op, access)))
    return failure();

  Bound bound;
  bound.op = op;
  bound.what =
      (access.isRead() ? "read of " : "write of ") + describe(access.memory);
  bound.offset = access.offset;
  std::optional<int64_t> limit = access.getLimit();
  if (isa<RecordAccessOp>(op))
    if (std::optional<int64_t> reach = getReach(access.memory))
      limit = reach;
  bound.constantLimit = limit.value_or(0);
  // Often a whole tile fits, and always where slots are as large as tiles.
  std::optional<int64_t> most = access.getMaximumCount();
  bound.constantCount = most.value_or(0);
  if (limit && most && isProven(prover, bound))
    return success();

  OpBuilder builder(op);
  if (!access.getConstantCount())
    bound.count = access.materializeCount(builder, op->getLoc());
  if (limit)
    return resolveBound(prover, bound);
  Access all;
  all.memory = access.memory;
  bound.limit = all.materializeCount(builder, op->getLoc());
  emitCheck(bound);
  return success();
}

/// A part of a matrix: its rows and its columns have a bound each, and are no
/// more than a tile has.
LogicalResult AssertBounds::visitMatrix(Prover &prover, Operation *op,
                                        const Access &access) {
  const MatrixPart &part = *access.matrix;
  Type type = access.memory.getType();
  std::string what =
      (access.isRead() ? "read of " : "write of ") + describe(access.memory);
  auto visit = [&](Value first, Value count, int64_t most, int64_t limit,
                   StringRef name) -> LogicalResult {
    Bound bound;
    bound.op = op;
    bound.count = count;
    bound.constantCount = bound.constantLimit = most;
    bound.what = (name + " of a tile").str();
    if (count && most >= 0 && failed(resolveBound(prover, bound)))
      return failure();
    bound.offset = first;
    bound.constantLimit = limit;
    bound.what = (what + ", counted by " + name).str();
    return resolveBound(prover, bound);
  };
  return success(succeeded(visit(part.row, part.rows, part.staticRows,
                                 getMatrixRows(type), "rows")) &&
                 succeeded(visit(part.column, part.columns, part.staticColumns,
                                 getMatrixColumns(type), "columns")));
}

/// The parts of a product with block scales begin where blocks do: what is left
/// of their first term's number, divided by a block's, is 0.
LogicalResult AssertBounds::visitScales(Prover &prover, Operation *op) {
  auto product = dyn_cast<ContractOp>(op);
  if (!product)
    return success();
  for (bool isLhs : {true, false}) {
    OperandScales scales = product.getScales(isLhs);
    if (!scales.memory || scales.terms == 0 ||
        bounds::getDivisor(scales.firstTerm) % OperandScales::kBlock == 0)
      continue;
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Bound bound;
    bound.op = op;
    bound.offset = arith::RemUIOp::create(
        builder, loc, scales.firstTerm,
        arith::ConstantIndexOp::create(builder, loc, OperandScales::kBlock));
    bound.what = "first term in its block of the " +
                 std::string(isLhs ? "left" : "right") + " operand's scales";
    if (failed(resolveBound(prover, bound)))
      return failure();
  }
  return success();
}

/// Elements of memory of several dimensions, each of which has its own bound:
/// their accesses count as those of the whole memory.
LogicalResult AssertBounds::visitElement(Prover &prover, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<memref::LoadOp, memref::StoreOp>([&](auto access) -> LogicalResult {
        MemRefType type = access.getMemRefType();
        if (type.getRank() < 2)
          return success();
        for (auto [dimension, index] : llvm::enumerate(access.getIndices())) {
          Bound bound;
          bound.op = op;
          bound.what =
              ((isa<memref::LoadOp>(op) ? "read of " : "write of ") +
               describe(access.getMemRef()) + ", dimension " + Twine(dimension))
                  .str();
          bound.offset = index;
          bound.constantCount = 1;
          if (type.isDynamicDim(dimension)) {
            OpBuilder builder(op);
            bound.limit = memref::DimOp::create(builder, op->getLoc(),
                                                access.getMemRef(), dimension);
            emitCheck(bound);
            continue;
          }
          bound.constantLimit = type.getDimSize(dimension);
          if (failed(resolveBound(prover, bound)))
            return failure();
        }
        return success();
      })
      .Default([](Operation *) { return success(); });
}

/// Masked loads and stores of vectors, as if all lanes were on. Others are
/// accesses.
LogicalResult AssertBounds::visitVector(Prover &prover, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<vector::LoadOp, vector::StoreOp>([&](auto access) -> LogicalResult {
        if (!access.getVectorType().isScalable())
          return success();
        return op->emitOpError("its size is not known, so its bounds cannot "
                               "be checked");
      })
      .Case<vector::MaskedLoadOp, vector::MaskedStoreOp>(
          [&](auto access) -> LogicalResult {
            Bound bound;
            bound.op = op;
            bound.what =
                (isa<vector::MaskedLoadOp>(op) ? "read of " : "write of ") +
                describe(access.getBase());
            bound.offset = access.getIndices().front();
            VectorType type = access.getVectorType();
            std::optional<int64_t> limit =
                getStaticElements(access.getBase().getType());
            if (type.isScalable() || !limit)
              return op->emitOpError(
                  "its size is not known, so its bounds cannot "
                  "be checked");
            bound.constantCount = type.getNumElements();
            bound.constantLimit = *limit;
            return resolveBound(prover, bound);
          })
      .Default([](Operation *) { return success(); });
}

/// The size of a dimension: a constant, or a value that is made before `op`.
static std::pair<Value, int64_t> getSize(Operation *op, Value memory,
                                         int64_t dimension) {
  auto type = cast<MemRefType>(memory.getType());
  if (!type.isDynamicDim(dimension))
    return {Value(), type.getDimSize(dimension)};
  OpBuilder builder(op);
  return {memref::DimOp::create(builder, op->getLoc(), memory, dimension), 0};
}

/// Elements from the first to the last of a slice; nullopt: more than 64 bits
/// hold.
static std::optional<int64_t> getExtent(int64_t size, int64_t stride) {
  int64_t extent = 0;
  if (size > 0 && (__builtin_mul_overflow(size - 1, stride, &extent) ||
                   __builtin_add_overflow(extent, 1, &extent)))
    return std::nullopt;
  return extent;
}

/// A view by constants lies in what it is a view of.
LogicalResult AssertBounds::visitView(Prover &prover, Operation *op) {
  auto view = dyn_cast<memref::SubViewOp>(op);
  if (!view)
    return success();
  for (int64_t i = 0, e = view.getSourceType().getRank(); i < e; ++i) {
    std::optional<int64_t> extent =
        getExtent(view.getStaticSizes()[i], view.getStaticStrides()[i]);
    if (!extent)
      return op->emitOpError("its sizes and strides leave 64 bits");
    Bound bound;
    bound.op = op;
    bound.what =
        ("view of " + describe(view.getSource()) + ", dimension " + Twine(i))
            .str();
    bound.constantOffset = view.getStaticOffsets()[i];
    bound.constantCount = *extent;
    std::tie(bound.limit, bound.constantLimit) =
        getSize(op, view.getSource(), i);
    if (bound.limit)
      emitCheck(bound);
    else if (failed(resolveBound(prover, bound)))
      return failure();
  }
  return success();
}

/// A copy is between arrays of one shape: each size is at most the other.
LogicalResult AssertBounds::visitCopy(Prover &prover, Operation *op) {
  auto copy = dyn_cast<memref::CopyOp>(op);
  if (!copy)
    return success();
  auto from = dyn_cast<MemRefType>(copy.getSource().getType()),
       to = dyn_cast<MemRefType>(copy.getTarget().getType());
  if (!from || !to)
    return op->emitOpError("its size is not known, so its bounds cannot be "
                           "checked");
  for (int64_t i = 0; i < from.getRank(); ++i) {
    if (!from.isDynamicDim(i) && from.getDimSize(i) == to.getDimSize(i))
      continue;
    for (auto [of, within] : {std::pair(copy.getSource(), copy.getTarget()),
                              std::pair(copy.getTarget(), copy.getSource())}) {
      Bound bound;
      bound.op = op;
      bound.what = ("copy of " + describe(copy.getSource()) + " to " +
                    describe(copy.getTarget()) + ", dimension " + Twine(i))
                       .str();
      std::tie(bound.count, bound.constantCount) = getSize(op, of, i);
      std::tie(bound.limit, bound.constantLimit) = getSize(op, within, i);
      emitCheck(bound);
    }
  }
  return success();
}

/// The step of a loop is positive, and the last one does not wrap around: it is
/// at most what is left of the type behind the upper bound.
LogicalResult AssertBounds::visitLoop(Prover &prover, Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || prover.staysInBounds(loop))
    return success();
  if (loop.getUnsignedCmp())
    return op->emitOpError(
        "compares unsigned: run comms-strip-fast-math before");
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Type type = loop.getInductionVar().getType(), index = builder.getIndexType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, value));
  };
  auto toIndex = [&](Value value) -> Value {
    return type.isIndex()
               ? value
               : arith::IndexCastOp::create(builder, loc, index, value);
  };
  Value upper = arith::MaxSIOp::create(builder, loc, loop.getUpperBound(),
                                       constant(APInt(width, 1)));
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value left = arith::SubIOp::create(
      builder, loc, constant(APInt::getSignedMaxValue(width)),
      arith::SubIOp::create(builder, loc, upper, constant(APInt(width, 1))));
  Bound bound;
  bound.op = op;
  bound.what = "step of a loop, counted from 1,";
  bound.offset =
      arith::SubIOp::create(builder, loc, toIndex(loop.getStep()), one);
  bound.constantCount = 1;
  bound.limit = toIndex(left);
  emitCheck(bound);
  return success();
}

/// The cells and the index of `op`, if it is of signals or counters.
static std::pair<Value, Value> getCell(Operation *op) {
  using Cell = std::pair<Value, Value>;
  return llvm::TypeSwitch<Operation *, Cell>(op)
      .Case<SignalOp, PutSignalOp, WaitSignalOp, WaitSignalFromOp, ReadSignalOp,
            ResetSignalOp>(
          [](auto o) { return Cell{o.getSignal(), o.getIndex()}; })
      .Case<WaitCounterOp, ReadCounterOp, ResetCounterOp>(
          [](auto o) { return Cell{o.getCounter(), o.getIndex()}; })
      .Case<PutOp>(
          [](PutOp o) { return Cell{o.getCounter(), o.getCounterIndex()}; })
      .Default([](Operation *) { return Cell(); });
}

LogicalResult AssertBounds::visitCell(Prover &prover, Operation *op) {
  auto [cells, index] = getCell(op);
  if (!cells || !index)
    return success();
  Bound bound;
  bound.op = op;
  bound.what = "cell of " + describe(cells);
  bound.offset = index;
  bound.constantCount = 1;
  auto signal = dyn_cast<SignalType>(cells.getType());
  bound.constantLimit = signal ? signal.getCount()
                               : cast<CounterType>(cells.getType()).getCount();
  return resolveBound(prover, bound);
}
