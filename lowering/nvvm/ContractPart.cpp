//===- ContractPart.cpp - One part of a product ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The place of a thread in a part of a product.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractPart.h"

#include "lowering/analysis/NarrowFloats.h"
#include "lowering/nvvm/ContractStages.h"
#include "lowering/nvvm/Ptx.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

ProductPart::ProductPart(ImplicitLocOpBuilder &b, const ContractParts &product,
                         const ContractShape &shape, int64_t threads)
    : product(product), shape(shape), threads(threads),
      thread(NVVM::ThreadIdXOp::create(b, b.getI32Type())) {
  Int number(b, thread);
  lane = (number % 32).value;
  Int warp = number / (shape.byGroups ? 128 : 32);
  // A value that all lanes share can be in registers of the warp.
  if (shape.byGroups)
    warp = {b, emitOneText(b, "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r",
                           {warp.value}, b.getI32Type())};
  warpRow = (warp % shape.warpRows).value;
  warpColumn = (warp / shape.warpRows).value;
}

Value nvvm::addBytes(ImplicitLocOpBuilder &b, Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                             ValueRange{bytes});
}

Value nvvm::getDistance(ImplicitLocOpBuilder &b, const StagedOperand &operand,
                        Int row, Int column) {
  auto wide = [&](Int value) {
    return arith::ExtSIOp::create(b, b.getI64Type(), value.value);
  };
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  Value down = arith::MulIOp::create(b, wide(row),
                                     constant(operand.stride * operand.bytes));
  Value right = arith::MulIOp::create(b, wide(column), constant(operand.bytes));
  return arith::AddIOp::create(b, down, right);
}

Value nvvm::getStage(ImplicitLocOpBuilder &b, const ProductPart &part,
                     Int step) {
  return ProductStages(part.shape, part.product.memory).getStage(b, step);
}

void nvvm::forSums(ImplicitLocOpBuilder &b, const ProductPart &part,
                   llvm::function_ref<void(ImplicitLocOpBuilder &, int64_t at,
                                           Int row, Int column)>
                       body) {
  Int mine(b, part.lane);
  Int row = Int(b, part.warpRow) * part.shape.getWarpRows() + mine / 4,
      column = Int(b, part.warpColumn) * part.shape.getWarpColumns() +
               (mine % 4) * 2;
  if (part.shape.byGroups)
    row = row + (Int(b, part.thread) / 32 % 4) * 16;
  for (int64_t m = 0; m < part.shape.rowBlocks; ++m)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t n = 0; n < 2 * part.shape.columnBlocks; ++n)
        body(b, (m * 2 * part.shape.columnBlocks + n) * 4 + 2 * half,
             row + (m * part.shape.getBlockRows() + 8 * half), column + n * 8);
}

Value nvvm::addressOfSum(ImplicitLocOpBuilder &b, const ProductPart &part,
                         const ContractMemory &memory, Int row, Int column) {
  StagedOperand matrix = {};
  matrix.stride = memory.stride;
  matrix.bytes = memory.element.getIntOrFloatBitWidth() / 8;
  return addBytes(b, memory.address,
                  getDistance(b, matrix, row + Int(b, part.firstRow),
                              column + Int(b, part.firstColumn)));
}

Value nvvm::widen(ImplicitLocOpBuilder &b, Value value) {
  if (value.getType().isF32())
    return value;
  if (value.getType().isBF16())
    return emitExtFromBF16(b, b.getLoc(), value);
  return arith::ExtFOp::create(b, b.getF32Type(), value);
}
