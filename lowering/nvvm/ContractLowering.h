//===- ContractLowering.h - Matrix products by tensor cores -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_CONTRACTLOWERING_H
#define COMMSIR_LOWERING_NVVM_CONTRACTLOWERING_H

#include "lowering/nvvm/ContractShape.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::comms::nvvm {

/// A matrix in memory: the address of its part's first element.
struct ContractMemory {
  Value address;
  Type element;
  /// Elements of a row.
  int64_t stride = 0;
  /// All rows begin at multiples of 16 bytes, in global memory.
  bool aligned = false;
  /// All even columns begin at multiples of two elements.
  bool paired = false;
  /// Address of the map of the whole memory, for copies of whole tiles by one
  /// thread (TMA); null if there is none. The part's first row and column in
  /// it, of i32.
  Value map, row, column;
};

/// The scales of an operand, which are f32.
struct ContractScales {
  /// The address of the first scale; null: the operand has none.
  Value address;
  /// Elements from a scale to the next across the terms, and along them.
  int64_t acrossStride = 0, termStride = 0;
  /// Scales across the terms.
  int64_t count = 0;
  /// How many rows (columns) and terms share a scale, as OperandScales has it.
  int64_t across = 0, terms = 0;
  /// The part's first row (column) and term in the operand's memory: i32.
  Value firstAcross, firstTerm;
  /// A power of two that divides `firstAcross`.
  int64_t divisor = 1;
};

/// A product: numbers are i32.
struct ContractParts {
  ContractMemory lhs, rhs, acc;
  ContractScales lhsScales, rhsScales;
  Value rows, columns, depth;
  int64_t tileRows = 0, tileColumns = 0;
  bool accumulate = false;
  /// Addends of the product, before it is stored.
  SmallVector<ContractMemory> addends;
  /// The address of the stages in shared memory.
  Value memory;
  /// By maps: the product's number among the kernel's, and where the number of
  /// stages is that have been multiplied so far (i32).
  int64_t number = 0;
  Value counter;
};

/// Makes the map of a matrix of elements of 8 or 16 bits, in tiles of columns
/// of 128 bytes and `tileRows` rows, at `map` in global memory, through 128
/// bytes of shared memory at `place` (i32). All threads of the CTA call this.
void emitMap(Value map, Value place, Value base, int64_t rows, int64_t columns,
             Type element, int64_t tileRows, ImplicitLocOpBuilder &b);

/// Emits a product of elements of f32, each a sum in the order of the depth,
/// without shared memory.
void emitPlainContract(const ContractParts &parts, bool transposeLhs,
                       bool transposeRhs, int64_t threads,
                       ImplicitLocOpBuilder &b);

/// Initializes the barriers of the stages. The first thread runs this before
/// the others begin; `threads` multiply.
void emitCopyBarriers(const ContractShape &shape, Value memory, int64_t threads,
                      ImplicitLocOpBuilder &b);

/// Emits the loop of the thread that copies: it takes the jobs that another
/// thread posts, and ends when emitEndOfCopies has run. `shapes` are those of
/// the kernel's products by maps, in their order.
void emitCopies(ArrayRef<ContractShape> shapes, Value memory,
                ImplicitLocOpBuilder &b);

/// Ends the loop of the thread that copies.
void emitEndOfCopies(const ContractShape &shape, Value memory,
                     ImplicitLocOpBuilder &b);

/// Emits a product of elements of 8 or 16 bits.
void emitContract(const ContractParts &parts, const ContractShape &shape,
                  int64_t threads, ImplicitLocOpBuilder &b);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONTRACTLOWERING_H
