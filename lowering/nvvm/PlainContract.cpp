//===- PlainContract.cpp - Products of f32 --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of f32, each sum in the order of the depth, without shared memory.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractLowering.h"
#include "lowering/nvvm/Int32.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// Address of an element of a part.
static Value addressOf(const ContractMemory &memory, Value row, Value column,
                       bool transposed, ImplicitLocOpBuilder &b) {
  if (transposed)
    std::swap(row, column);
  Type i64 = b.getI64Type();
  Value stride =
      arith::ConstantOp::create(b, b.getI64IntegerAttr(memory.stride));
  Value before =
      arith::MulIOp::create(b, arith::ExtSIOp::create(b, i64, row), stride);
  Value place =
      arith::AddIOp::create(b, before, arith::ExtSIOp::create(b, i64, column));
  return LLVM::GEPOp::create(b, memory.address.getType(), memory.element,
                             memory.address, ValueRange{place});
}

/// One element of a product: its sum begins with what memory holds, or 0.
static void emitElement(const ContractParts &parts, bool transposeLhs,
                        bool transposeRhs, Value row, Value column,
                        ImplicitLocOpBuilder &b) {
  Type f32 = b.getF32Type(), element = parts.acc.element;
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  Value place = addressOf(parts.acc, row, column, false, b);
  Value begin = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  if (parts.accumulate) {
    begin = LLVM::LoadOp::create(b, element, place, bytes);
    if (!element.isF32())
      begin = LLVM::FPExtOp::create(b, f32, begin);
  }
  auto loop = scf::ForOp::create(b, emitNumber(b, 0), parts.depth,
                                 emitNumber(b, 1), begin);
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Value k = loop.getInductionVar();
  Value left = LLVM::LoadOp::create(
      in, f32, addressOf(parts.lhs, row, k, transposeLhs, in), 4);
  Value right = LLVM::LoadOp::create(
      in, f32, addressOf(parts.rhs, k, column, transposeRhs, in), 4);
  Value term = arith::MulFOp::create(in, left, right);
  Value sum = arith::AddFOp::create(in, loop.getRegionIterArg(0), term);
  scf::YieldOp::create(in, sum);
  Value total = loop.getResult(0);
  for (const ContractMemory &addend : parts.addends) {
    Value held = LLVM::LoadOp::create(
        b, addend.element, addressOf(addend, row, column, false, b),
        addend.element.getIntOrFloatBitWidth() / 8);
    if (!addend.element.isF32())
      held = LLVM::FPExtOp::create(b, f32, held);
    total = arith::AddFOp::create(b, total, held);
  }
  Value nan = arith::ConstantOp::create(
      b, b.getFloatAttr(f32, APFloat::getQNaN(APFloat::IEEEsingle())));
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, total, total);
  total = arith::SelectOp::create(b, isNaN, nan, total);
  if (!element.isF32())
    total = LLVM::FPTruncOp::create(b, element, total);
  LLVM::StoreOp::create(b, total, place, bytes);
}

void nvvm::emitPlainContract(const ContractParts &parts, bool transposeLhs,
                             bool transposeRhs, int64_t threads,
                             ImplicitLocOpBuilder &b) {
  NVVM::Barrier0Op::create(b);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  auto loop = scf::ForOp::create(
      b, thread, emitNumber(b, parts.tileRows * parts.tileColumns),
      emitNumber(b, threads));
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Int place(in, loop.getInductionVar());
  Int row = place / parts.tileColumns, column = place % parts.tileColumns;
  Value exists = arith::AndIOp::create(in, row.isBelow(Int(in, parts.rows)),
                                       column.isBelow(Int(in, parts.columns)));
  emitWhen(in, exists, [&](ImplicitLocOpBuilder &inner) {
    emitElement(parts, transposeLhs, transposeRhs, row.value, column.value,
                inner);
  });
  NVVM::Barrier0Op::create(b);
}
