//===- ContractShape.h - How threads share a matrix product -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_CONTRACTSHAPE_H
#define COMMSIR_LOWERING_NVVM_CONTRACTSHAPE_H

#include "dialect/Comms.h"

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

/// Calls `body` with each panel of a product's addends, its addend, and the
/// column where it begins in the tile.
void forAddendPanels(
    const ContractShape &shape,
    llvm::function_ref<void(int64_t panel, int64_t addend, int64_t column)>
        body);

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

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONTRACTSHAPE_H
