//===- ContractOperands.cpp - Operands that all threads copy --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies of operands to the stages of shared memory by all threads of a CTA,
// which also convert elements of 8 bits.
//
//===----------------------------------------------------------------------===//

#include "lowering/analysis/NarrowFloats.h"
#include "lowering/nvvm/ContractSteps.h"
#include "lowering/nvvm/Ptx.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

StagedOperand nvvm::getOperand(ImplicitLocOpBuilder &b, const ProductPart &part,
                               bool isLhs, Int first, Int count) {
  const ContractMemory &memory = isLhs ? part.product.lhs : part.product.rhs;
  StagedOperand operand = {};
  operand.stride = memory.stride;
  operand.element = memory.element;
  operand.bytes = memory.element.getIntOrFloatBitWidth() / 8;
  operand.alongDepth =
      isLhs ? !part.shape.transposeLhs : part.shape.transposeRhs;
  operand.aligned = memory.aligned && operand.bytes == 2;
  operand.extent = count.value;
  operand.width = isLhs ? part.shape.warpRows * part.shape.getWarpRows()
                        : part.shape.warpColumns * part.shape.getWarpColumns();
  operand.at = isLhs ? 0 : part.shape.getLhsBytes();
  Int zero = first.constant(0);
  Value bytes = operand.alongDepth ? getDistance(b, operand, first, zero)
                                   : getDistance(b, operand, zero, first);
  operand.address = addBytes(b, memory.address, bytes);
  return operand;
}

/// Whether all elements of a stage exist.
static Value isWhole(ImplicitLocOpBuilder &b, const ProductPart &part,
                     Int step) {
  auto atLeast = [&](Value extent, int64_t width) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sge, extent,
                                 emitNumber(b, width));
  };
  Int end = (step + 1) * kDepth;
  Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                      part.product.depth, end.value);
  for (const StagedOperand *operand : {&part.lhs, &part.rhs}) {
    int64_t width =
        operand->alongDepth ? operand->getRows() : operand->getColumns();
    whole = arith::AndIOp::create(b, whole, atLeast(operand->extent, width));
  }
  return whole;
}

/// An element as 16 bits: f8 becomes f16, which holds every one.
static Value loadElement(ImplicitLocOpBuilder &b, const StagedOperand &operand,
                         Value source, int64_t at) {
  Value bytes =
      arith::ConstantOp::create(b, b.getI64IntegerAttr(at * operand.bytes));
  Type stored = b.getIntegerType(8 * operand.bytes);
  Value bits = LLVM::LoadOp::create(b, stored, addBytes(b, source, bytes),
                                    operand.bytes);
  if (operand.bytes == 2)
    return bits;
  Value narrow = arith::BitcastOp::create(b, operand.element, bits);
  Value wide = emitExtFromF8(b, b.getLoc(), narrow);
  Value half = arith::TruncFOp::create(b, b.getF16Type(), wide);
  return arith::BitcastOp::create(b, b.getI16Type(), half);
}

/// Copies a piece, of which `left` elements exist; the others become 0.
static void copyPiece(ImplicitLocOpBuilder &b, const StagedOperand &operand,
                      Value source, Value dest, Int left, bool whole) {
  if (operand.aligned && whole) {
    emitText(b, "cp.async.cg.shared.global [$0], [$1], 16;", "r,l",
             {dest, source});
    return;
  }
  if (operand.aligned) {
    emitText(b, "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r",
             {dest, source, (left * 2).value});
    return;
  }
  SmallVector<Value> words;
  Value zero = arith::ConstantOp::create(b, b.getI16IntegerAttr(0));
  for (int64_t i = 0; i < 8; ++i) {
    auto exists = scf::IfOp::create(b, TypeRange{b.getI16Type()},
                                    left.constant(i).isBelow(left),
                                    /*withElseRegion=*/true);
    ImplicitLocOpBuilder yes(b), no(b);
    yes.setInsertionPointToStart(exists.getBody(0));
    scf::YieldOp::create(yes, loadElement(yes, operand, source, i));
    no.setInsertionPointToStart(exists.getBody(1));
    scf::YieldOp::create(no, zero);
    Value wide = arith::ExtUIOp::create(b, b.getI32Type(), exists.getResult(0));
    if (i % 2 == 0) {
      words.push_back(wide);
      continue;
    }
    Value high = arith::ShLIOp::create(b, wide, emitNumber(b, 16));
    words.back() = arith::OrIOp::create(b, words.back(), high);
  }
  SmallVector<Value> operands = {dest};
  operands.append(words);
  emitText(b, "st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
           operands);
}

/// Copies 64 terms of an operand: each thread pieces of eight elements, of
/// which neighbors have those of one row.
static void copyOperand(ImplicitLocOpBuilder &b, const ProductPart &part,
                        const StagedOperand &operand, Int step, Value stage,
                        bool whole) {
  int64_t rows = operand.getRows(), columns = operand.getColumns();
  int64_t pieces = rows * columns / 8;
  Int mine(b, part.thread), first = step * kDepth;
  Int depthLeft = Int(b, part.product.depth) - first;
  Value base = addBytes(b, operand.address,
                        operand.alongDepth
                            ? getDistance(b, operand, step.constant(0), first)
                            : getDistance(b, operand, first, step.constant(0)));
  for (int64_t trip = 0; trip * part.threads < pieces; ++trip) {
    auto copy = [&](ImplicitLocOpBuilder &in) {
      Int piece = Int(in, part.thread) + trip * part.threads;
      Int chunk = piece % 8, line = piece / 8;
      Int row = line % rows, panel = line / rows;
      Int column = (panel * 8 + chunk) * 8;
      Int swizzled = (chunk ^ (row % 8)) * 16;
      Int place = line * kRowBytes + swizzled + operand.at;
      Value dest = arith::AddIOp::create(in, stage, place.value);
      Int rowsLeft = operand.alongDepth ? Int(in, operand.extent)
                                        : Int(in, depthLeft.value);
      Int columnsLeft = operand.alongDepth ? Int(in, depthLeft.value)
                                           : Int(in, operand.extent);
      // Elements of the piece that exist.
      Value exists = arith::AndIOp::create(in, row.isBelow(rowsLeft),
                                           column.isBelow(columnsLeft));
      Int left(in, arith::SelectOp::create(in, exists,
                                           column.getRest(columnsLeft, 8).value,
                                           emitNumber(in, 0)));
      Value away = getDistance(in, operand, row, column);
      if (!whole) {
        Value none = arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                           left.value, emitNumber(in, 0));
        Value zero = arith::ConstantOp::create(in, in.getI64IntegerAttr(0));
        away = arith::SelectOp::create(in, none, zero, away);
      }
      copyPiece(in, operand, addBytes(in, base, away), dest, left, whole);
    };
    if ((trip + 1) * part.threads <= pieces)
      copy(b);
    else
      emitWhen(b, mine.isBelow(mine.constant(pieces - trip * part.threads)),
               copy);
  }
}

void nvvm::copyStage(ImplicitLocOpBuilder &b, const ProductPart &part, Int step,
                     Int steps) {
  emitWhen(b, step.isBelow(steps), [&](ImplicitLocOpBuilder &in) {
    Int at(in, step.value);
    Value stage = getStage(in, part, at);
    auto branch = scf::IfOp::create(in, isWhole(in, part, at), true);
    for (bool whole : {true, false}) {
      ImplicitLocOpBuilder inner(b.getLoc(), whole ? branch.thenYield()
                                                   : branch.elseYield());
      for (const StagedOperand *operand : {&part.lhs, &part.rhs})
        copyOperand(inner, part, *operand, Int(inner, step.value), stage,
                    whole);
    }
  });
  emitText(b, "cp.async.commit_group;", "", {});
}
