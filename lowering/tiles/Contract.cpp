//===- Contract.cpp - Matrix products as loops ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Contract.h"

#include "lowering/analysis/Accesses.h"
#include "lowering/tiles/Canonical.h"
#include "lowering/tiles/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

/// Rows whose sums stay in registers together: each vector of the right operand
/// is used so often.
static constexpr int64_t kRows = 4;

namespace {
/// A matrix in flat memory.
struct Matrix {
  Matrix(OpBuilder &b, Value memory, Value row, Value column, bool transposed)
      : flat(getFlatView(b, memory.getLoc(), memory)), row(row), column(column),
        stride(getMatrixColumns(memory.getType())), transposed(transposed),
        element(cast<MemRefType>(memory.getType()).getElementType()) {}

  /// The number of element (i, j), counted from the part's first.
  Value at(ImplicitLocOpBuilder &b, Value i, Value j) const {
    if (transposed)
      std::swap(i, j);
    Value line = b.createOrFold<arith::AddIOp>(row, i);
    Value before =
        b.createOrFold<arith::MulIOp>(line, getIndex(b, b.getLoc(), stride));
    Value place = b.createOrFold<arith::AddIOp>(column, j);
    return b.createOrFold<arith::AddIOp>(before, place);
  }

  Value flat, row, column;
  int64_t stride;
  bool transposed;
  Type element;
};

/// The scales of an operand.
struct Scales {
  Scales(ImplicitLocOpBuilder &b, ContractOp op, bool isLhs)
      : how(op.getScales(isLhs)) {
    if (!how.memory)
      return;
    Value zero = getIndex(b, b.getLoc(), 0);
    memory.emplace(b, how.memory, zero, zero, how.termsAreRows);
  }

  /// The scale of row (column) `i` of the product and of term `k`, as f32.
  Value load(ImplicitLocOpBuilder &b, Value i, Value k) const {
    auto place = [&](Value first, Value more, int64_t sharing) {
      Location loc = b.getLoc();
      if (sharing == 0)
        return getIndex(b, loc, 0);
      return b.createOrFold<arith::DivUIOp>(
          b.createOrFold<arith::AddIOp>(first, more),
          getIndex(b, loc, sharing));
    };
    return memref::LoadOp::create(
        b, memory->flat,
        ValueRange(memory->at(b, place(how.firstAcross, i, how.across),
                              place(how.firstTerm, k, how.terms))));
  }

  OperandScales how;
  std::optional<Matrix> memory;
};

/// Emits the loops of one product.
class Emitter {
public:
  Emitter(ContractOp op, int64_t lanes)
      : op(op), builder(op), b(op.getLoc(), builder), lanes(lanes),
        lhs(b, op.getLhs(), op.getLhsRow(), op.getLhsColumn(),
            op.getTransposeLhs()),
        rhs(b, op.getRhs(), op.getRhsRow(), op.getRhsColumn(),
            op.getTransposeRhs()),
        acc(b, op.getAcc(), op.getAccRow(), op.getAccColumn(), false),
        lhsScales(b, op, /*isLhs=*/true), rhsScales(b, op, /*isLhs=*/false) {
    for (auto [memory, row, column] : llvm::zip_equal(
             op.getAddends(), op.getAddendRows(), op.getAddendColumns()))
      addends.emplace_back(b, memory, row, column, false);
  }

  void emit() {
    Value rows = getCount(op.getRows(), op.getTileRows()),
          columns = getCount(op.getColumns(), op.getTileColumns());
    split(b, rows, kRows, [&](ImplicitLocOpBuilder &in, Value i, int64_t r) {
      split(in, columns, lanes,
            [&](ImplicitLocOpBuilder &inner, Value j, int64_t count) {
              emitSums(inner, {i, j, r, count});
            });
    });
    op.erase();
  }

private:
  using Body = llvm::function_ref<void(ImplicitLocOpBuilder &, Value, int64_t)>;

  Value getCount(Value given, int64_t all) {
    return given ? given : getIndex(b, b.getLoc(), all);
  }

  /// Loops over [0, count): by `step`, and over the rest one by one.
  static void split(ImplicitLocOpBuilder &b, Value count, int64_t step,
                    Body body) {
    Location loc = b.getLoc();
    auto loop = [&](Value first, Value last, int64_t size) {
      emitLoop(b, loc, first, last, size, [&](OpBuilder &inner, Value at) {
        ImplicitLocOpBuilder in(loc, inner);
        body(in, at, size);
      });
    };
    Value whole = b.createOrFold<arith::AndIOp>(count, getIndex(b, loc, -step));
    loop(getIndex(b, loc, 0), whole, step);
    if (step > 1)
      loop(whole, count, 1);
  }

  static Value widen(ImplicitLocOpBuilder &b, Value value) {
    Type wide = b.getF32Type();
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      wide = vector.clone(wide);
    return value.getType() == wide ? value
                                   : arith::ExtFOp::create(b, wide, value);
  }

  static Value load(ImplicitLocOpBuilder &b, const Matrix &matrix, Value i,
                    Value j) {
    return memref::LoadOp::create(b, matrix.flat,
                                  ValueRange(matrix.at(b, i, j)));
  }

  /// Elements (k, j) to (k, j + count) of the right operand.
  Value loadVector(ImplicitLocOpBuilder &b, const Matrix &matrix, Value i,
                   Value j, int64_t count) {
    auto type = VectorType::get({count}, matrix.element);
    if (!matrix.transposed)
      return vector::LoadOp::create(b, type, matrix.flat,
                                    ValueRange(matrix.at(b, i, j)));
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < count; ++lane)
      elements.push_back(load(b, matrix, i, add(b, j, lane)));
    return vector::FromElementsOp::create(b, type, elements);
  }

  static Value add(ImplicitLocOpBuilder &b, Value value, int64_t more) {
    return b.createOrFold<arith::AddIOp>(value, getIndex(b, b.getLoc(), more));
  }

  /// A part of the product: rows [i, i + rows), columns [j, j + count).
  struct Part {
    Value i, j;
    int64_t rows, count;
  };

  /// The sums of the terms [first, last), added to `sums`, one for each row.
  SmallVector<Value> addTerms(ImplicitLocOpBuilder &b, const Part &part,
                              Value first, Value last, ValueRange sums) {
    Location loc = b.getLoc();
    auto loop = scf::ForOp::create(b, first, last, getIndex(b, loc, 1), sums);
    loop->setAttr(kTileLoopAttr, b.getUnitAttr());
    OpBuilder body = OpBuilder::atBlockBegin(loop.getBody());
    ImplicitLocOpBuilder in(loc, body);
    Value k = loop.getInductionVar();
    Value right = widen(in, loadVector(in, rhs, k, part.j, part.count));
    SmallVector<Value> more;
    for (int64_t r = 0; r < part.rows; ++r) {
      Value left = widen(in, load(in, lhs, add(in, part.i, r), k));
      Value all = vector::BroadcastOp::create(in, right.getType(), left);
      Value term = arith::MulFOp::create(in, all, right);
      more.push_back(arith::AddFOp::create(in, loop.getRegionIterArg(r), term));
    }
    scf::YieldOp::create(in, more);
    return SmallVector<Value>(loop.getResults());
  }

  /// The scales of the part's sums from term `k` on, one vector for each row:
  /// of operands whose scales are of blocks of terms, or of the others. Null:
  /// there are none.
  SmallVector<Value> loadScales(ImplicitLocOpBuilder &b, const Part &part,
                                Value k, bool ofBlocks) {
    auto type = VectorType::get({part.count}, b.getF32Type());
    auto isMeant = [&](const Scales &scales) {
      return scales.memory && (scales.how.terms > 0) == ofBlocks;
    };
    Value right;
    if (isMeant(rhsScales)) {
      SmallVector<Value> lanesOf;
      for (int64_t lane = 0; lane < part.count; ++lane)
        lanesOf.push_back(rhsScales.load(b, add(b, part.j, lane), k));
      right = vector::FromElementsOp::create(b, type, lanesOf);
    }
    SmallVector<Value> factors(part.rows, right);
    if (isMeant(lhsScales))
      for (int64_t r = 0; r < part.rows; ++r) {
        Value left = lhsScales.load(b, add(b, part.i, r), k);
        left = vector::BroadcastOp::create(b, type, left);
        factors[r] = right ? arith::MulFOp::create(b, left, right) : left;
      }
    return factors;
  }

  /// The sums of blocks of terms, each times the scales of its block.
  SmallVector<Value> addBlocks(ImplicitLocOpBuilder &b, const Part &part,
                               ValueRange zeros) {
    constexpr int64_t kBlock = OperandScales::kBlock;
    Location loc = b.getLoc();
    auto loop = scf::ForOp::create(b, getIndex(b, loc, 0), op.getDepth(),
                                   getIndex(b, loc, kBlock), zeros);
    loop->setAttr(kTileLoopAttr, b.getUnitAttr());
    OpBuilder body = OpBuilder::atBlockBegin(loop.getBody());
    ImplicitLocOpBuilder in(loc, body);
    Value k = loop.getInductionVar();
    Value end = arith::MinSIOp::create(in, add(in, k, kBlock), op.getDepth());
    SmallVector<Value> terms = addTerms(in, part, k, end, zeros), sums;
    for (auto [term, factor, sum] :
         llvm::zip_equal(terms, loadScales(in, part, k, /*ofBlocks=*/true),
                         loop.getRegionIterArgs()))
      sums.push_back(math::FmaOp::create(in, term, factor, sum));
    scf::YieldOp::create(in, sums);
    return SmallVector<Value>(loop.getResults());
  }

  /// The sums of products of fp8 with scales.
  SmallVector<Value> addScaledTerms(ImplicitLocOpBuilder &b, const Part &part,
                                    ValueRange zeros) {
    Value none = getIndex(b, b.getLoc(), 0);
    SmallVector<Value> sums =
        op.hasBlockScales() ? addBlocks(b, part, zeros)
                            : addTerms(b, part, none, op.getDepth(), zeros);
    for (auto [sum, factor] :
         llvm::zip_equal(sums, loadScales(b, part, none, /*ofBlocks=*/false)))
      if (factor)
        sum = arith::MulFOp::create(b, sum, factor);
    return sums;
  }

  void emitSums(ImplicitLocOpBuilder &b, const Part &part) {
    auto wide = VectorType::get({part.count}, b.getF32Type());
    bool isScaled = lhsScales.memory.has_value();
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(wide));
    SmallVector<Value> before(part.rows, zero), sums;
    if (op.getAccumulate())
      for (int64_t r = 0; r < part.rows; ++r)
        before[r] =
            widen(b, loadVector(b, acc, add(b, part.i, r), part.j, part.count));
    if (isScaled)
      sums = addScaledTerms(b, part, SmallVector<Value>(part.rows, zero));
    else
      sums =
          addTerms(b, part, getIndex(b, b.getLoc(), 0), op.getDepth(), before);
    for (int64_t r = 0; r < part.rows; ++r) {
      Value line = add(b, part.i, r), total = sums[r];
      if (isScaled && op.getAccumulate())
        total = arith::AddFOp::create(b, total, before[r]);
      for (const Matrix &addend : addends)
        total = arith::AddFOp::create(
            b, total,
            widen(b, loadVector(b, addend, line, part.j, part.count)));
      store(b, total, line, part.j, part.count);
    }
  }

  void store(ImplicitLocOpBuilder &b, Value sums, Value i, Value j,
             int64_t count) {
    Value stored = emitCanonicalNaN(b, b.getLoc(), sums);
    if (!acc.element.isF32())
      stored = arith::TruncFOp::create(b, VectorType::get({count}, acc.element),
                                       stored);
    vector::StoreOp::create(b, stored, acc.flat, ValueRange(acc.at(b, i, j)));
  }

  ContractOp op;
  OpBuilder builder;
  ImplicitLocOpBuilder b;
  int64_t lanes;
  Matrix lhs, rhs, acc;
  Scales lhsScales, rhsScales;
  SmallVector<Matrix> addends;
};
} // namespace

void tiles::lowerContracts(KernelOp kernel, int64_t lanes) {
  SmallVector<ContractOp> ops;
  kernel.walk([&](ContractOp op) { ops.push_back(op); });
  for (ContractOp op : ops)
    Emitter(op, lanes).emit();
}
