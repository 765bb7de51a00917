//===- ContractSteps.h - The steps of a matrix product ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm: what ContractLowering.cpp puts together, each step
// in the file that its section names. Steps are emitted for one part of a
// product (ContractPart.h).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_CONTRACTSTEPS_H
#define COMMSIR_LOWERING_NVVM_CONTRACTSTEPS_H

#include "lowering/nvvm/ContractPart.h"

namespace mlir::comms::nvvm {

//===----------------------------------------------------------------------===//
// ContractOperands.cpp: operands that all threads copy
//===----------------------------------------------------------------------===//

/// An operand of the part from row (column) `first` on, of which `count` exist.
StagedOperand getOperand(ImplicitLocOpBuilder &b, const ProductPart &part,
                         bool isLhs, Int first, Int count);

/// Starts the copies of stage `step`, if it is below `steps`, as one group of
/// cp.async.
void copyStage(ImplicitLocOpBuilder &b, const ProductPart &part, Int step,
               Int steps);

//===----------------------------------------------------------------------===//
// ContractMma.cpp: products by warps
//===----------------------------------------------------------------------===//

/// Adds the products of the terms in `stage` (i32) to the sums.
void multiplyStage(ImplicitLocOpBuilder &b, const ProductPart &part,
                   Value stage, Sums &sums);

//===----------------------------------------------------------------------===//
// ContractWgmma.cpp: products by groups of four warps
//===----------------------------------------------------------------------===//

/// The descriptors (i64) of the operands in a stage: those of each block of 64
/// rows of this group, and of its columns.
struct WgmmaDescriptors {
  SmallVector<Value> lhs;
  Value rhs;
};

WgmmaDescriptors describeStage(ImplicitLocOpBuilder &b, const ProductPart &part,
                               Value stage);

/// Starts the products of a stage and one portion of the sums: a block of rows
/// by some columns. With `anew` the sums begin with 0.
void startPortion(ImplicitLocOpBuilder &b, const ProductPart &part,
                  const WgmmaDescriptors &descriptors, int64_t portion,
                  MutableArrayRef<Value> sums, bool anew);

/// Starts the products of a stage, as one group of wgmma. They end later: until
/// waitForGroups nothing may touch the sums.
void multiplyByGroups(ImplicitLocOpBuilder &b, const ProductPart &part,
                      const WgmmaDescriptors &descriptors, Sums &sums);

/// Waits until all products have ended.
void waitForGroups(ImplicitLocOpBuilder &b, Sums &sums);

//===----------------------------------------------------------------------===//
// ContractScales.cpp: scales of rows, columns and blocks of terms
//===----------------------------------------------------------------------===//

/// The scales of a sum's row and column, f32; null: there is none.
struct ScaleFactor {
  Value row, column;
};
using ScaleFactors = SmallVector<ScaleFactor>;

/// Whether the operands have scales.
bool isScaled(const ProductPart &part);

/// Loads the scales of each sum of the terms from `term` on: those of blocks of
/// terms, or those of all terms. Empty: there are none of these.
ScaleFactors loadFactors(ImplicitLocOpBuilder &b, const ProductPart &part,
                         Int term, bool ofBlocks);

/// Adds sums of a stage's terms, each times its factor (empty: none), to those
/// of the stages before.
void addTerms(ImplicitLocOpBuilder &b, ArrayRef<Value> terms,
              ArrayRef<ScaleFactor> factors, MutableArrayRef<Value> sums);

/// Multiplies the sums of all terms by the scales of all terms, and adds what
/// memory holds.
void finishSums(ImplicitLocOpBuilder &b, const ProductPart &part, Sums &sums);

//===----------------------------------------------------------------------===//
// ContractStore.cpp: sums and memory
//===----------------------------------------------------------------------===//

/// What the sums begin with: 0, or what memory holds.
Sums beginSums(ImplicitLocOpBuilder &b, const ProductPart &part);

/// Adds to the sums what memory holds in their places; with `replaces`, the
/// sums are only that.
void combineSums(ImplicitLocOpBuilder &b, const ProductPart &part,
                 const ContractMemory &memory, Sums &sums, bool replaces);

/// Whether lanes can read and write 16 bytes of a row of `memory` at a time.
bool holdsBlocks(const ProductPart &part, const ContractMemory &memory);

/// Adds the addends to the sums, and stores these.
void storeProduct(ImplicitLocOpBuilder &b, const ProductPart &part,
                  ArrayRef<Value> sums);

//===----------------------------------------------------------------------===//
// ContractAddends.cpp: addends that come ahead of their use
//===----------------------------------------------------------------------===//

/// Brings an addend to L2 while the product is computed, if all columns exist.
void prefetchAddend(ImplicitLocOpBuilder &b, const ProductPart &part,
                    const ContractMemory &addend);

/// Adds the addends whose tiles the copying thread brings, in the stages behind
/// those of the operands.
void addTiles(ImplicitLocOpBuilder &b, const ProductPart &part, Sums &sums);

//===----------------------------------------------------------------------===//
// ContractLowering.cpp
//===----------------------------------------------------------------------===//

/// This warp has read a stage, so the copying thread may fill it again.
void leaveStage(ImplicitLocOpBuilder &b, const ProductPart &part, Int step);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONTRACTSTEPS_H
