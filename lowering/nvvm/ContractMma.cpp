//===- ContractMma.cpp - Products by mma.sync -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each warp multiplies blocks of 16 rows by 16 columns that it reads from a
// stage by ldmatrix.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractSteps.h"
#include "lowering/nvvm/Ptx.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// The four registers of a block of 16 by 16 of an operand: those of mma's left
/// operand, or of two right ones of eight columns each.
static SmallVector<Value> loadBlock(ImplicitLocOpBuilder &b,
                                    const ProductPart &part,
                                    const StagedOperand &operand, Value stage,
                                    Value warp, int64_t blocks, int64_t block,
                                    int64_t term, bool isLhs) {
  Int mine(b, part.lane), across = (Int(b, warp) * blocks + block) * 16;
  // Two of the four matrices of 8 by 8 are lower, and two further right: bits
  // 3 and 4 of the lane say which.
  Int low = mine % 8, middle = (mine / 8) % 2, high = mine / 16;
  bool highIsColumn = isLhs == operand.alongDepth;
  Int row = low + (highIsColumn ? middle : high) * 8,
      chunk = highIsColumn ? high : middle;
  if (operand.alongDepth) {
    row = row + across;
    chunk = chunk + term / 8;
  } else {
    row = row + term;
    chunk = chunk + across / 8;
  }
  Int line = (chunk / 8) * operand.getRows() + row;
  Int place = line * kRowBytes + ((chunk % 8) ^ low) * 16 + operand.at;
  Value address = arith::AddIOp::create(b, stage, place.value);
  std::string text = "ldmatrix.sync.aligned.m8n8.x4";
  if (!operand.alongDepth)
    text += ".trans";
  text += ".shared.b16 {$0, $1, $2, $3}, [$4];";
  return emitText(b, text, "=r,=r,=r,=r,r", {address},
                  SmallVector<Type>(4, b.getI32Type()));
}

void nvvm::multiplyStage(ImplicitLocOpBuilder &b, const ProductPart &part,
                         Value stage, Sums &sums) {
  std::string type = part.lhs.element.isBF16() ? "bf16" : "f16";
  std::string text = "mma.sync.aligned.m16n8k16.row.col.f32." + type + "." +
                     type +
                     ".f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
                     "{$10, $11, $12, $13};";
  for (int64_t term = 0; term < kDepth; term += 16) {
    SmallVector<SmallVector<Value>> left, right;
    for (int64_t m = 0; m < part.shape.rowBlocks; ++m)
      left.push_back(loadBlock(b, part, part.lhs, stage, part.warpRow,
                               part.shape.rowBlocks, m, term,
                               /*isLhs=*/true));
    for (int64_t n = 0; n < part.shape.columnBlocks; ++n)
      right.push_back(loadBlock(b, part, part.rhs, stage, part.warpColumn,
                                part.shape.columnBlocks, n, term,
                                /*isLhs=*/false));
    for (int64_t m = 0; m < part.shape.rowBlocks; ++m)
      for (int64_t n = 0; n < 2 * part.shape.columnBlocks; ++n) {
        auto *sum = &sums[(m * 2 * part.shape.columnBlocks + n) * 4];
        SmallVector<Value> operands(left[m]);
        operands.append({right[n / 2][n % 2 * 2], right[n / 2][n % 2 * 2 + 1]});
        operands.append(sum, sum + 4);
        llvm::copy(emitText(b, text, "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f",
                            operands, SmallVector<Type>(4, b.getF32Type())),
                   sum);
      }
  }
}
