//===- ContractScales.cpp - Scales of operands ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scales of rows, columns and blocks of terms, by which sums are multiplied.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractSteps.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

bool nvvm::isScaled(const ProductPart &part) {
  return bool(part.product.lhsScales.address);
}

/// The scale of a row (column) of this CTA's part of the product, and of the
/// terms from `term` on. Rows that do not exist have that of another.
static Value loadScale(ImplicitLocOpBuilder &b, const ProductPart &part,
                       const ContractScales &scales, Int place, Value term) {
  Int across = place.constant(0), along = across;
  if (scales.across > 0 && scales.count > 1) {
    Int number = (place + scales.firstAcross) / scales.across,
        last = place.constant(scales.count - 1);
    across.value = arith::SelectOp::create(b, number.isBelow(last),
                                           number.value, last.value);
  }
  if (scales.terms > 0)
    along = (Int(b, term) + scales.firstTerm) / scales.terms;
  auto distance = [&](Int count, int64_t stride) -> Value {
    Value wide = arith::ExtUIOp::create(b, b.getI64Type(), count.value);
    Value bytes = arith::ConstantOp::create(b, b.getI64IntegerAttr(stride * 4));
    return arith::MulIOp::create(b, wide, bytes);
  };
  Value away = arith::AddIOp::create(b, distance(across, scales.acrossStride),
                                     distance(along, scales.termStride));
  return LLVM::LoadOp::create(b, b.getF32Type(),
                              addBytes(b, scales.address, away), 4);
}

/// How many columns, counted from this warp's (group's) first, have one scale
/// for certain.
static int64_t getColumnsOfScale(const ProductPart &part) {
  const ContractScales &scales = part.product.rhsScales;
  if (scales.across == 0)
    return part.shape.getWarpColumns();
  int64_t columns = std::min(scales.across, scales.divisor);
  auto beginsWith = [&](int64_t step) {
    columns = std::min(columns, step & -step);
  };
  if (part.product.tileColumns > part.shape.columns)
    beginsWith(part.shape.columns);
  if (part.shape.warpColumns > 1)
    beginsWith(part.shape.getWarpColumns());
  return columns;
}

ScaleFactors nvvm::loadFactors(ImplicitLocOpBuilder &b, const ProductPart &part,
                               Int term, bool ofBlocks) {
  auto isMeant = [&](const ContractScales &scales) {
    return scales.address && (scales.terms > 0) == ofBlocks;
  };
  bool ofRows = isMeant(part.product.lhsScales),
       ofColumns = isMeant(part.product.rhsScales);
  if (!ofRows && !ofColumns)
    return {};
  // A thread's sums are of few rows, and of columns that may share scales.
  llvm::DenseMap<int64_t, Value> rowScales, columnScales;
  int64_t shared = getColumnsOfScale(part),
          blocks = 2 * part.shape.columnBlocks;
  ScaleFactors factors(blocks * part.shape.rowBlocks * 4);
  forSums(
      b, part, [&](ImplicitLocOpBuilder &b, int64_t at, Int row, Int column) {
        for (int64_t i = 0; i < 2; ++i) {
          if (ofRows) {
            Value &known = rowScales[at / 4 / blocks * 2 + at % 4 / 2];
            if (!known)
              known = loadScale(b, part, part.product.lhsScales,
                                row + part.firstRow, term.value);
            factors[at + i].row = known;
          }
          if (ofColumns) {
            int64_t first = at / 4 % blocks * 8;
            Value &known =
                columnScales[shared < 8 ? first + i : first / shared * shared];
            if (!known)
              known = loadScale(b, part, part.product.rhsScales,
                                column + part.firstColumn + i, term.value);
            factors[at + i].column = known;
          }
        }
      });
  return factors;
}

/// Products of scales that were emitted before.
using ScaleProducts = llvm::DenseMap<std::pair<Value, Value>, Value>;

/// The factor of a sum, multiplied at its use: scales need fewer registers than
/// their products.
static Value multiplyScales(ImplicitLocOpBuilder &b, const ScaleFactor &factor,
                            ScaleProducts &known) {
  if (!factor.row || !factor.column)
    return factor.row ? factor.row : factor.column;
  Value &product = known[{factor.row, factor.column}];
  if (!product)
    product = arith::MulFOp::create(b, factor.row, factor.column);
  return product;
}

void nvvm::addTerms(ImplicitLocOpBuilder &b, ArrayRef<Value> terms,
                    ArrayRef<ScaleFactor> factors,
                    MutableArrayRef<Value> sums) {
  ScaleProducts known;
  for (auto [i, term] : llvm::enumerate(terms)) {
    Value &sum = sums[i];
    if (factors.empty())
      sum = arith::AddFOp::create(b, sum, term);
    else
      sum = LLVM::FMAOp::create(b, term, multiplyScales(b, factors[i], known),
                                sum);
  }
}

void nvvm::finishSums(ImplicitLocOpBuilder &b, const ProductPart &part,
                      Sums &sums) {
  if (!isScaled(part))
    return;
  ScaleProducts known;
  ScaleFactors factors =
      loadFactors(b, part, {b, emitNumber(b, 0)}, /*ofBlocks=*/false);
  for (auto [sum, factor] : llvm::zip(sums, factors))
    sum = arith::MulFOp::create(b, sum, multiplyScales(b, factor, known));
  if (part.product.accumulate)
    combineSums(b, part, part.product.acc, sums, /*replaces=*/false);
}
