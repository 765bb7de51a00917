//===- ContractPart.h - One part of a product -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm.
//
// A stage of an operand is panels of columns: rows of 128 bytes, whose eight
// pieces of 16 bytes are exchanged by the row's number modulo 8. ldmatrix reads
// this layout without bank conflicts, and it is wgmma's swizzle of 128 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_CONTRACTPART_H
#define COMMSIR_LOWERING_NVVM_CONTRACTPART_H

#include "lowering/nvvm/ContractLowering.h"
#include "lowering/nvvm/Int32.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::comms::nvvm {

/// Terms of a stage that threads copy.
constexpr int64_t kDepth = 64;
constexpr int64_t kRowBytes = ContractShape::kRowBytes;

/// A thread's sums of a part, of f32, ordered by the blocks of rows of its
/// warp, then by 8 columns. Of each, a thread has two neighbors in one row, and
/// two in the row 8 below.
using Sums = SmallVector<Value>;

/// An operand in memory, from the first element of a part on, and its place in
/// a stage.
struct StagedOperand {
  /// In address space 1, or generic.
  Value address;
  /// Elements of a row of memory; bytes of an element.
  int64_t stride, bytes;
  Type element;
  /// Its columns are the terms of the sum.
  bool alongDepth;
  /// Rows begin at multiples of 16 bytes of global memory.
  bool aligned;
  /// Rows (or columns) that exist across the depth.
  Value extent;
  /// Rows or columns across the depth that a stage holds.
  int64_t width;
  /// Where its part of a stage begins, in bytes.
  int64_t at;

  int64_t getRows() const { return alongDepth ? width : kDepth; }
  int64_t getColumns() const {
    return alongDepth ? kDepth : llvm::alignTo(width, 64);
  }
};

/// One part of a product, as a thread of the CTA computes it: as many rows and
/// columns as the sums of all threads cover.
struct ProductPart {
  ProductPart(ImplicitLocOpBuilder &b, const ContractParts &product,
              const ContractShape &shape, int64_t threads);

  const ContractParts &product;
  const ContractShape &shape;
  /// Threads of the CTA that multiply.
  int64_t threads;
  /// This thread, its lane, and the place of its warp (or group of warps) in
  /// the part: i32.
  Value thread, lane, warpRow, warpColumn;
  /// The part's first element of the product, and how many rows and columns of
  /// it exist: i32.
  Value firstRow, firstColumn, rows, columns;
  /// The operands, from the part's first row and column on.
  StagedOperand lhs = {}, rhs = {};
};

/// Emits the pointer plus `bytes` (i64).
Value addBytes(ImplicitLocOpBuilder &b, Value pointer, Value bytes);

/// Emits the bytes from the start of an operand's part to an element: i64.
Value getDistance(ImplicitLocOpBuilder &b, const StagedOperand &operand,
                  Int row, Int column);

/// Emits the address of the stage of step number `step` of all: i32.
Value getStage(ImplicitLocOpBuilder &b, const ProductPart &part, Int step);

/// Calls `body` for each pair of this thread's sums, which are neighbors in a
/// row: with the number of the first, its row and its column.
void forSums(ImplicitLocOpBuilder &b, const ProductPart &part,
             llvm::function_ref<void(ImplicitLocOpBuilder &, int64_t at,
                                     Int row, Int column)>
                 body);

/// Emits the address of the element of `memory` in the place of a sum.
Value addressOfSum(ImplicitLocOpBuilder &b, const ProductPart &part,
                   const ContractMemory &memory, Int row, Int column);

/// Emits the conversion of an element of 16 or 32 bits to f32.
Value widen(ImplicitLocOpBuilder &b, Value value);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONTRACTPART_H
