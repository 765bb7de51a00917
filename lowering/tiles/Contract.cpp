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

/// Emits the loops of one product.
class Emitter {
public:
  Emitter(ContractOp op, int64_t lanes)
      : op(op), builder(op), b(op.getLoc(), builder), lanes(lanes),
        lhs(b, op.getLhs(), op.getLhsRow(), op.getLhsColumn(),
            op.getTransposeLhs()),
        rhs(b, op.getRhs(), op.getRhsRow(), op.getRhsColumn(),
            op.getTransposeRhs()),
        acc(b, op.getAcc(), op.getAccRow(), op.getAccColumn(), false) {
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
              emitSums(inner, i, r, j, count);
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

  /// Rows [i, i + rows) and columns [j, j + count) of the product.
  void emitSums(ImplicitLocOpBuilder &b, Value i, int64_t rows, Value j,
                int64_t count) {
    auto wide = VectorType::get({count}, b.getF32Type());
    SmallVector<Value> sums;
    for (int64_t r = 0; r < rows; ++r)
      sums.push_back(op.getAccumulate()
                         ? widen(b, loadVector(b, acc, add(b, i, r), j, count))
                         : arith::ConstantOp::create(b, b.getZeroAttr(wide)));
    Location loc = b.getLoc();
    auto loop = scf::ForOp::create(b, getIndex(b, loc, 0), op.getDepth(),
                                   getIndex(b, loc, 1), sums);
    loop->setAttr(kTileLoopAttr, b.getUnitAttr());
    OpBuilder body = OpBuilder::atBlockBegin(loop.getBody());
    ImplicitLocOpBuilder in(loc, body);
    Value k = loop.getInductionVar();
    Value right = widen(in, loadVector(in, rhs, k, j, count));
    for (int64_t r = 0; r < rows; ++r) {
      Value left = widen(in, load(in, lhs, add(in, i, r), k));
      Value all = vector::BroadcastOp::create(in, wide, left);
      Value term = arith::MulFOp::create(in, all, right);
      sums[r] = arith::AddFOp::create(in, loop.getRegionIterArg(r), term);
    }
    scf::YieldOp::create(in, sums);
    for (int64_t r = 0; r < rows; ++r) {
      Value line = add(b, i, r), total = loop.getResult(r);
      for (const Matrix &addend : addends)
        total = arith::AddFOp::create(
            b, total, widen(b, loadVector(b, addend, line, j, count)));
      store(b, total, line, j, count);
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
  SmallVector<Matrix> addends;
};
} // namespace

void tiles::lowerContracts(KernelOp kernel, int64_t lanes) {
  SmallVector<ContractOp> ops;
  kernel.walk([&](ContractOp op) { ops.push_back(op); });
  for (ContractOp op : ops)
    Emitter(op, lanes).emit();
}
