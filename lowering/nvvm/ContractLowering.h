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

#include "dialect/Comms.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::comms::nvvm {

/// How the threads of a CTA share a product.
struct ContractShape {
  /// Rows and columns that they make at a time.
  int64_t rows = 0, columns = 0;
  /// Multiplied by groups of four warps (wgmma, only on sm_90) rather than by
  /// warps (mma).
  bool byGroups = false;
  /// Warps (groups) along the rows and along the columns, and the blocks of 16
  /// (64) rows and of 16 columns of each.
  int64_t warpRows = 1, warpColumns = 1, rowBlocks = 1, columnBlocks = 1;
  /// Stages of shared memory, and how operands lie in them.
  int64_t stages = 2;
  bool transposeLhs = false, transposeRhs = false;
  /// Bytes of an element in a stage. Elements of 8 bits become f16 on the way
  /// to it, except for groups that multiply them directly (1): the sums of a
  /// stage's terms are then added to those of the stages before.
  int64_t elementBytes = 2;
  /// The sums of a stage's terms are multiplied by the scales of their block.
  bool hasBlockScales = false;
  /// A thread that does nothing else copies the operands of a stage as tiles,
  /// by maps. The kernel's products by maps share their stages.
  bool byMaps = false;
  int64_t stageBytes = 0;
  /// Nothing in the kernel writes what is copied by maps.
  bool constantOperands = false;
  /// By maps: addends whose tiles that thread copies, too, into stages behind
  /// those of the operands: all of the product's, or none. The most that a
  /// product of the kernel has.
  int64_t addends = 0, mostAddends = 0;

  int64_t getBlockRows() const { return byGroups ? 64 : 16; }
  /// Terms of the sum that a stage holds, and one instruction of a group
  /// multiplies.
  int64_t getDepth() const { return kRowBytes / elementBytes; }
  int64_t getTerms() const { return 32 / elementBytes; }
  /// Parts of a group's columns whose sums are multiplied on their own.
  int64_t getPortions() const {
    constexpr int64_t kMostColumns = 128;
    return elementBytes == 1 && getWarpColumns() > kMostColumns ? 2 : 1;
  }
  /// Bytes of a row of a panel, as operands lie in a stage.
  static constexpr int64_t kRowBytes = 128;
  /// Rows and columns that the warps hold, what does not exist included.
  int64_t getWarpRows() const { return rowBlocks * getBlockRows(); }
  int64_t getWarpColumns() const { return columnBlocks * 16; }
  /// Bytes of an operand in a stage.
  int64_t getLhsBytes() const;
  int64_t getRhsBytes() const;
  int64_t getStageBytes() const {
    return byMaps ? stageBytes : getLhsBytes() + getRhsBytes();
  }
  int64_t getBytes() const;
  /// Addends lie in stages as panels of 64 columns, which have all rows: of
  /// each so many panels, of so many bytes. A stage holds a number of them.
  int64_t getAddendPanels() const;
  int64_t getAddendRows() const { return warpRows * getWarpRows(); }
  int64_t getPanelBytes() const { return getAddendRows() * kRowBytes; }
  int64_t getPanelsOfStage() const { return stageBytes / getPanelBytes(); }
  /// Stages of all addends.
  int64_t getAddendStages() const;
  /// Rows of a tile that is copied: those of an operand whose columns are the
  /// terms, else the terms of a stage.
  int64_t getMapRows(bool isLhs) const;
};

/// Addends that are copied by maps, at most.
constexpr int64_t kMostMappedAddends = 8;

/// Threads of a CTA that only copy.
constexpr int64_t kCopyThreads = 32;

/// The shape for a CTA of `threads` with `memory` bytes of shared memory, on a
/// chip of compute capability `sm`, times ten. With `byMaps`, elements of 8
/// bits need no conversion. Emits an error if even the smallest shape does not
/// fit.
FailureOr<ContractShape> shapeContract(ContractOp op, int64_t threads,
                                       int64_t memory, unsigned sm,
                                       bool byMaps);

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

/// The first thread marks all stages empty, before the other threads begin.
void emitCopyBarriers(const ContractShape &shape, Value memory, int64_t threads,
                      ImplicitLocOpBuilder &b);

/// The life of the threads that copy: they take the products that other threads
/// announce, and end when these end. `shapes` are those of the kernel's
/// products by maps, in their order.
void emitCopies(ArrayRef<ContractShape> shapes, Value memory,
                ImplicitLocOpBuilder &b);

/// The thread that comes here ends the threads that copy.
void emitEndOfCopies(const ContractShape &shape, Value memory,
                     ImplicitLocOpBuilder &b);

/// Emits a product of elements of 8 or 16 bits.
void emitContract(const ContractParts &parts, const ContractShape &shape,
                  int64_t threads, ImplicitLocOpBuilder &b);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONTRACTLOWERING_H
